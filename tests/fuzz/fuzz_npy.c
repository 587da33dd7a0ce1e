/* SPDX-License-Identifier: MIT */
/*
 * fuzz_npy.c: headers of NumPy files, and activations read from such files. The input is the file.
 *
 * An accepted header lies within the file, is an error when truncated anywhere, and gives the same
 * fields when rewritten in NumPy's own form. Activations are accepted iff type, shape and size are
 * correct and an independent check of each number passes, and then they are those numbers.
 */
#include "formats/npy.h"
#include "fuzz.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACTIVATIONS_MAX 512u

static void check_rewritten(const iron__npy_header *h) {
    char quote = strchr(h->descr, '\'') ? '"' : '\'';
    char shape[1600] = "", text[2048];
    size_t used = 0;
    iron__npy_header again;
    iron_error err;
    int length;

    for (unsigned d = 0; d < h->dimensions; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%" PRIu64 ", ", h->shape[d]);
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    length = snprintf(text + 10, sizeof text - 10,
                      "{'descr': %c%s%c, 'fortran_order': %s, 'shape': (%s), }\n", quote, h->descr,
                      quote, h->is_fortran ? "True" : "False", shape);
    text[8] = (char)(length & 0xFF);
    text[9] = (char)(length >> 8);
    FUZZ_REQUIRE(iron__npy_parse((unsigned char *)text, 10 + (size_t)length, &again, &err) ==
                 IRON_OK);
    FUZZ_REQUIRE(strcmp(again.descr, h->descr) == 0 && again.is_fortran == h->is_fortran);
    FUZZ_REQUIRE(again.dimensions == h->dimensions && again.data_offset == 10u + (size_t)length);
    FUZZ_REQUIRE(memcmp(again.shape, h->shape, h->dimensions * sizeof h->shape[0]) == 0);
}

static bool is_good(float a) { return isfinite(a) && (a == 0 || fabsf(a) >= 0x1p-96f); }

/* The numbers as the file has them; false if one may not be an activation. */
static bool decode(const iron__npy_header *h, const uint8_t *at, float *wanted) {
    bool all_good = true;

    for (uint64_t k = 0; k < h->shape[0]; k++) {
        double wide;

        if (h->descr[2] == '4') {
            memcpy(&wanted[k], at + 4 * k, 4);
        } else {
            memcpy(&wide, at + 8 * k, 8);
            if ((wide != 0 && fabs(wide) < FLT_MIN) || fabs(wide) > FLT_MAX)
                return false;
            wanted[k] = (float)wide;
        }
        all_good = all_good && is_good(wanted[k]);
    }
    return all_good;
}

static void check_activations(const iron__npy_header *h, const uint8_t *data, size_t size) {
    float wanted[ACTIVATIONS_MAX] = {0}, *got = fuzz_copy(wanted, h->shape[0] * sizeof *got);
    size_t width = strcmp(h->descr, "<f4") == 0 ? 4 : strcmp(h->descr, "<f8") == 0 ? 8 : 0;
    bool all_good = width > 0 && size - h->data_offset == h->shape[0] * width &&
                    decode(h, data + h->data_offset, wanted);
    int fd = memfd_create("activations.npy", MFD_CLOEXEC);
    char path[40];
    iron_error err;

    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fuzz_refused(iron_activations_read(path, got, h->shape[0], &err), &err))
        FUZZ_REQUIRE(!all_good);
    else
        FUZZ_REQUIRE(all_good && memcmp(got, wanted, h->shape[0] * sizeof *got) == 0);
    close(fd);
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    iron__npy_header h, cut;
    iron_error err;

    if (fuzz_refused(iron__npy_parse(data, size, &h, &err), &err))
        return 0;
    FUZZ_REQUIRE(h.data_offset >= 10 && h.data_offset <= size && h.dimensions <= 64);
    FUZZ_REQUIRE(memchr(h.descr, '\0', sizeof h.descr));
    for (size_t bytes = 0; bytes < h.data_offset; bytes += 1 + bytes / 16) {
        uint8_t *part = fuzz_copy(data, bytes);

        FUZZ_REQUIRE(fuzz_refused(iron__npy_parse(part, bytes, &cut, &err), &err));
        free(part);
    }
    check_rewritten(&h);
    if (h.dimensions == 1 && h.shape[0] <= ACTIVATIONS_MAX)
        check_activations(&h, data, size);
    return 0;
}
