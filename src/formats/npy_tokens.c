/* SPDX-License-Identifier: MIT */
/*
 * npy_tokens.c: NumPy arrays of tokens: one or two dimensions, rows one after the other. A file
 * that is named .npy but has no header of NumPy's is raw, and not ours.
 */
#include "core/fail.h"
#include "formats/format.h"
#include "formats/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_BYTES 12u /* of versions 2 and 3; 1 has 10 */

static bool recognise(const iron__candidate *c) {
    return c->head_count >= 6 && memcmp(c->head, "\x93NUMPY", 6) == 0;
}

/* All of the header, as long as it says it is; *out is the caller's. */
static iron_status take_header(iron__candidate *c, unsigned char **out, size_t *bytes,
                               iron_error *err) {
    unsigned char prefix[PREFIX_BYTES];
    size_t known = 10, length;
    iron_status status;

    IRON_TRY(iron__candidate_take(c, prefix, 6, err));
    IRON_FAIL_IF(memcmp(prefix, "\x93NUMPY", 6) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x ..., expected NumPy's magic \\x93NUMPY",
                 c->name, prefix[0], prefix[1], prefix[2], prefix[3]);
    iron__because(c, "NumPy's magic, \\x93NUMPY, at byte 0");
    IRON_TRY(iron__candidate_take(c, prefix + 6, 4, err));
    IRON_FAIL_IF(prefix[6] < 1 || prefix[6] > 3, err, IRON_E_FORMAT,
                 "%.100s at byte 6: NumPy format version %u.%u, expected 1 to 3", c->name,
                 prefix[6], prefix[7]);
    length = prefix[8] | (size_t)prefix[9] << 8;
    if (prefix[6] > 1) {
        known = PREFIX_BYTES;
        IRON_TRY(iron__candidate_take(c, prefix + 10, 2, err));
        length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    }
    IRON_FAIL_IF(length > IRON_NPY_HEADER_MAX, err, IRON_E_FORMAT,
                 "%.100s at byte 8: a NumPy header of %zu bytes, expected %u at most", c->name,
                 length, IRON_NPY_HEADER_MAX);
    *bytes = known + length;
    *out = malloc(*bytes);
    if (!*out)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a header");
    memcpy(*out, prefix, known);
    status = iron__candidate_take(c, *out + known, length, err);
    if (status != IRON_OK)
        free(*out);
    return status;
}

static iron_status take_dtype(const iron__candidate *c, const iron__npy_header *h,
                              iron_dtype *dtype, iron_error *err) {
    static const struct {
        const char *descr;
        iron_dtype dtype;
    } kinds[] = {
        {"|u1", IRON_DTYPE_U8},  {"<u2", IRON_DTYPE_U16}, {"<u4", IRON_DTYPE_U32},
        {"<i4", IRON_DTYPE_I32}, {"<i8", IRON_DTYPE_I64},
    };

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (strcmp(h->descr, kinds[k].descr) == 0)
            *dtype = kinds[k].dtype;
    IRON_FAIL_IF(
        *dtype == IRON_DTYPE_NONE, err, IRON_E_FORMAT,
        "%.100s: NumPy type '%s'%s, expected |u1, <u2, <u4, <i4 or <i8; save it with one of "
        "these (astype)",
        c->name, h->descr, h->descr[0] == '>' ? ", big-endian" : "");
    iron__because(c, "its header's descr '%s' is %s", h->descr, iron_dtype_name(*dtype));
    return IRON_OK;
}

static iron_status take_shape(const iron__candidate *c, const iron__npy_header *h,
                              iron__layout *layout, iron_error *err) {
    uint64_t rows = h->shape[0], columns = h->dimensions == 2 ? h->shape[1] : 1;

    IRON_FAIL_IF(h->is_fortran, err, IRON_E_FORMAT,
                 "%.100s: fortran_order is True, expected False: rows one after the other",
                 c->name);
    IRON_FAIL_IF(h->dimensions == 0, err, IRON_E_FORMAT,
                 "%.100s: its shape has no dimensions, expected 1 or 2", c->name);
    IRON_FAIL_IF(__builtin_mul_overflow(rows, columns, &layout->tokens) ||
                     layout->tokens == IRON_COUNT_UNKNOWN,
                 err, IRON_E_FORMAT,
                 "%.100s: shape %" PRIu64 " x %" PRIu64 ", expected fewer than 2^64 tokens",
                 c->name, rows, columns);
    if (h->dimensions == 2)
        iron__because(c, "its shape, %" PRIu64 " x %" PRIu64 ", against the size of the file", rows,
                      columns);
    else
        iron__because(c, "its shape, %" PRIu64 ", against the size of the file", rows);
    return IRON_OK;
}

static iron_status examine(iron__candidate *c, iron__layout *layout, iron_error *err) {
    unsigned char *header = NULL;
    iron__npy_header h;
    iron_error inner;
    size_t bytes = 0;
    iron_status status;

    IRON_TRY(take_header(c, &header, &bytes, err));
    status = iron__npy_parse(header, bytes, &h, &inner);
    free(header);
    if (status != IRON_OK)
        return iron__fail(err, status, 0, "%.100s: %.120s", c->name, inner.text);
    layout->data_offset = h.data_offset;
    IRON_TRY(take_dtype(c, &h, &layout->dtype, err));
    return take_shape(c, &h, layout, err);
}

const iron__format iron__format_npy = {"npy", recognise, examine, NULL};
