/* SPDX-License-Identifier: MIT */
/*
 * npy.c: see npy.h. The header is a Python dict literal; NumPy writes it in one shape, other
 * writers in others, so keys may come in any order and white space anywhere, but nothing else is
 * accepted.
 */
#include "formats/npy.h"

#include "core/fail.h"
#include "core/nodes.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAGIC     "\x93NUMPY"
#define ALIGNMENT ((size_t)64)

typedef struct reader {
    const char *at, *end;
} reader;

static void skip_blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t'))
        r->at++;
}

static int accept(reader *r, const char *word) {
    size_t length = strlen(word);

    skip_blanks(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return 0;
    r->at += length;
    return 1;
}

/* 'text' or "text" into `to`; 0 if there is none or it does not fit. */
static int read_string(reader *r, char *to, size_t size) {
    char quote;
    size_t length = 0;

    skip_blanks(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return 0;
    quote = *r->at++;
    for (; r->at < r->end && *r->at != quote; r->at++) {
        if (length + 1 >= size || (unsigned char)*r->at < ' ')
            return 0;
        to[length++] = *r->at;
    }
    to[length] = '\0';
    return accept(r, quote == '\'' ? "'" : "\"");
}

static int read_number(reader *r, uint64_t *value) {
    const char *start;

    skip_blanks(r);
    start = r->at;
    for (*value = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(*value, 10u, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*r->at - '0'), value))
            return 0;
    return r->at > start && (*start != '0' || r->at == start + 1);
}

/* (), (4,) or (4, 2): with one dimension the comma makes it a tuple. */
static int read_shape(reader *r, iron__npy_header *h) {
    int has_comma = 1;

    if (!accept(r, "("))
        return 0;
    while (!accept(r, ")")) {
        if (!has_comma || h->dimensions == 2 || !read_number(r, &h->shape[h->dimensions]))
            return 0;
        h->dimensions++;
        has_comma = accept(r, ",");
    }
    return h->dimensions != 1 || has_comma;
}

static int read_flag(reader *r, int *flag) {
    if (accept(r, "True"))
        *flag = 1;
    else if (accept(r, "False"))
        *flag = 0;
    else
        return 0;
    return 1;
}

/* Each key once, in any order; blanks alone after the dict. */
static int read_dict(reader *r, iron__npy_header *h) {
    unsigned seen = 0;
    int has_comma = 1;

    if (!accept(r, "{"))
        return 0;
    while (!accept(r, "}")) {
        char key[16];
        unsigned bit;
        int good;

        if (!has_comma || !read_string(r, key, sizeof key) || !accept(r, ":"))
            return 0;
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            good = read_string(r, h->descr, sizeof h->descr);
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            good = read_flag(r, &h->is_fortran);
        } else if (strcmp(key, "shape") == 0) {
            bit = 4;
            good = (seen & bit) == 0 && read_shape(r, h);
        } else {
            return 0;
        }
        if (!good || (seen & bit))
            return 0;
        seen |= bit;
        has_comma = accept(r, ",");
    }
    skip_blanks(r);
    return seen == 7 && r->at == r->end;
}

iron_status iron__npy_parse(const unsigned char *data, size_t bytes, iron__npy_header *out,
                            iron_error *err) {
    size_t prefix, length;
    reader r;

    *out = (iron__npy_header){.descr = ""};
    IRON_FAIL_IF(bytes < 10 || memcmp(data, MAGIC, 6) != 0, err, IRON_E_FORMAT,
                 "not a NumPy file: the magic \\x93NUMPY is missing");
    IRON_FAIL_IF(data[6] < 1 || data[6] > 3, err, IRON_E_FORMAT,
                 "NumPy format version %u.%u is unknown; versions 1 to 3 are read", data[6],
                 data[7]);
    prefix = data[6] == 1 ? 10 : 12;
    IRON_FAIL_IF(bytes < prefix, err, IRON_E_FORMAT, "NumPy header is cut off");
    length = data[8] | (size_t)data[9] << 8;
    if (data[6] > 1)
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    IRON_FAIL_IF(length > IRON_NPY_HEADER_MAX || bytes - prefix < length, err, IRON_E_FORMAT,
                 "NumPy header of %zu bytes does not fit its file of %zu", length, bytes);
    r = (reader){(const char *)data + prefix, (const char *)data + prefix + length};
    IRON_FAIL_IF(!read_dict(&r, out), err, IRON_E_FORMAT,
                 "NumPy header at byte %zu is not a dict of descr, fortran_order and shape",
                 (size_t)(r.at - (const char *)data));
    out->data_offset = prefix + length;
    return IRON_OK;
}

size_t iron__npy_head(char room[IRON_NPY_HEAD_MAX], const char *descr, size_t count) {
    static const unsigned char start[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    int used = snprintf(room + 10, IRON_NPY_HEAD_MAX - 10,
                        "{'descr': %s, 'fortran_order': False, 'shape': (%zu,), }", descr, count);
    size_t end = 10 + (size_t)used;
    size_t total = (end + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    memcpy(room, start, sizeof start);
    room[8] = (char)((total - 10) & 0xFF);
    room[9] = (char)((total - 10) >> 8);
    memset(room + end, ' ', total - 1 - end);
    room[total - 1] = '\n';
    return total;
}

iron_status iron__npy_write(const char *path, const char *descr, const void *data, size_t count,
                            size_t width, iron_output **out, iron_error *err) {
    char header[IRON_NPY_HEAD_MAX], quoted[16];
    iron_status status;
    size_t total;

    snprintf(quoted, sizeof quoted, "'%s'", descr);
    total = iron__npy_head(header, quoted, count);
    IRON_TRY(iron_output_open(path, out, err));
    status = iron_output_write(*out, header, total, err);
    if (status == IRON_OK)
        status = iron_output_write(*out, data, count * width, err);
    if (status != IRON_OK) {
        iron_output_abandon(*out);
        *out = NULL;
    }
    return status;
}

/* Doubles become floats; those that would become 0 or infinity without being it are refused. */
static iron_status copy_activations(const iron__npy_header *h, const unsigned char *data, float *to,
                                    uint64_t count, iron_error *err) {
    if (strcmp(h->descr, "<f4") == 0) {
        memcpy(to, data + h->data_offset, count * sizeof(float));
        return IRON_OK;
    }
    for (uint64_t k = 0; k < count; k++) {
        double value;

        memcpy(&value, data + h->data_offset + k * sizeof value, sizeof value);
        IRON_FAIL_IF((value != 0 && fabs(value) < FLT_MIN) || fabs(value) > FLT_MAX, err,
                     IRON_E_ARG, "activation %" PRIu64 " is %g; it does not fit a 32-bit float", k,
                     value);
        to[k] = (float)value;
    }
    return IRON_OK;
}

static iron_status take_activations(const char *path, const unsigned char *data, size_t bytes,
                                    float *to, uint64_t count, iron_error *err) {
    iron__npy_header h;
    iron_error inner;
    size_t width;

    if (iron__npy_parse(data, bytes, &h, &inner) != IRON_OK)
        return iron__fail(err, IRON_E_FORMAT, 0, "%.80s: %.120s", path, inner.text);
    width = strcmp(h.descr, "<f4") == 0 ? 4 : strcmp(h.descr, "<f8") == 0 ? 8 : 0;
    IRON_FAIL_IF(width == 0, err, IRON_E_FORMAT, "%.80s holds %s; activations must be <f4 or <f8",
                 path, h.descr);
    IRON_FAIL_IF(h.dimensions != 1 || h.shape[0] != count, err, IRON_E_ARG,
                 "%.80s has %u dimensions with %" PRIu64 " first; give one dimension of %" PRIu64
                 ", a number a node",
                 path, h.dimensions, h.dimensions ? h.shape[0] : 0, count);
    IRON_FAIL_IF(bytes - h.data_offset != count * width, err, IRON_E_FORMAT,
                 "%.80s has %zu bytes of data, its header says %" PRIu64, path,
                 bytes - h.data_offset, count * width);
    IRON_TRY(copy_activations(&h, data, to, count, err));
    return iron__activations_check(to, count, err);
}

/* At most 2^20 numbers of 8 bytes and a header, with room to see that there is too much. */
#define ACTIVATIONS_FILE_MAX (IRON_NPY_HEADER_MAX + 12 + ((size_t)8 << 20) + 1)

iron_status iron_activations_read(const char *path, float *activations, uint64_t count,
                                  iron_error *err) {
    FILE *file = fopen(path, "rbe");
    unsigned char *data;
    size_t bytes;
    iron_status status;

    if (!file)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    data = malloc(ACTIVATIONS_FILE_MAX);
    bytes = data ? fread(data, 1, ACTIVATIONS_FILE_MAX, file) : 0;
    if (!data)
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %.120s", path);
    else if (ferror(file))
        status = iron__fail(err, IRON_E_IO, errno, "cannot read %.120s: %s", path, strerror(errno));
    else
        status = take_activations(path, data, bytes, activations, count, err);
    free(data);
    fclose(file);
    return status;
}
