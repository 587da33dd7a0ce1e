/* SPDX-License-Identifier: MIT */
/*
 * npy.c: NumPy array files: header parser, writer, activations, and the npy token format, in C
 * order or in Fortran order.
 *
 * The header is a Python dict literal. NumPy writes it in one form, other writers in others, so
 * keys may be in any order with white space anywhere, but nothing else is accepted.
 */
#include "formats/npy.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/nodes.h" /* iron__activations_check */
#include "core/number.h"
#include "formats/format.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC        "\x93NUMPY"
#define MAGIC_BYTES  6u
#define PREFIX_BYTES 12u /* of versions 2 and 3; version 1 has 10 */
#define ALIGNMENT    ((size_t)64)

typedef struct reader {
    const char *at, *end;
} reader;

static void skip_blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t'))
        r->at++;
}

/* Skips blanks and then the word; 0 if it is not there. */
static int accept(reader *r, const char *word) {
    size_t length = strlen(word);

    skip_blanks(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return 0;
    r->at += length;
    return 1;
}

/* Reads 'text' or "text" into `to`; 0 if it is missing or does not fit. */
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
    return iron__read_digits(&r->at, r->end, 10, value) && (*start != '0' || r->at == start + 1);
}

/* (), (4,) or (4, 2): with one dimension the comma is required. */
static int read_shape(reader *r, iron__npy_header *h) {
    int has_comma = 1;

    if (!accept(r, "("))
        return 0;
    while (!accept(r, ")")) {
        if (!has_comma || h->dimensions == IRON_DIMENSIONS_MAX ||
            !read_number(r, &h->shape[h->dimensions]))
            return 0;
        h->dimensions++;
        has_comma = accept(r, ",");
    }
    return h->dimensions != 1 || has_comma;
}

/* Each key exactly once, in any order; only blanks after the dict. */
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
            h->is_fortran = accept(r, "True");
            good = h->is_fortran || accept(r, "False");
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

/* The length of the header after the prefix, which has *prefix bytes. */
static size_t header_length(const unsigned char *data, size_t *prefix) {
    *prefix = data[6] == 1 ? 10 : PREFIX_BYTES;
    return (size_t)iron__load(data + 8, *prefix - 8);
}

iron_status iron__npy_parse(const unsigned char *data, size_t bytes, iron__npy_header *out,
                            iron_error *err) {
    size_t prefix, length;
    reader r;

    *out = (iron__npy_header){.descr = ""};
    IRON_FAIL_IF(bytes < 10 || memcmp(data, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "not a NumPy file: the magic \\x93NUMPY is missing");
    IRON_FAIL_IF(data[6] < 1 || data[6] > 3, err, IRON_E_FORMAT,
                 "NumPy format version %u.%u is not supported; versions 1 to 3 are", data[6],
                 data[7]);
    IRON_FAIL_IF(data[6] > 1 && bytes < PREFIX_BYTES, err, IRON_E_FORMAT,
                 "NumPy header is incomplete");
    length = header_length(data, &prefix);
    IRON_FAIL_IF(length > IRON_NPY_HEADER_MAX || bytes - prefix < length, err, IRON_E_FORMAT,
                 "NumPy header of %zu bytes does not fit into %zu bytes", length, bytes);
    r = (reader){(const char *)data + prefix, (const char *)data + prefix + length};
    IRON_FAIL_IF(!read_dict(&r, out), err, IRON_E_FORMAT,
                 "NumPy header at byte %zu is not a dict of descr, fortran_order and shape",
                 (size_t)(r.at - (const char *)data));
    out->data_offset = prefix + length;
    return IRON_OK;
}

size_t iron__npy_head(char head[IRON_NPY_HEAD_MAX], const char *descr, size_t count) {
    static const unsigned char start[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    int used = snprintf(head + 10, IRON_NPY_HEAD_MAX - 10,
                        "{'descr': %s, 'fortran_order': False, 'shape': (%zu,), }", descr, count);
    size_t end = 10 + (size_t)used;
    size_t total = (end + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    memcpy(head, start, sizeof start);
    head[8] = (char)((total - 10) & 0xFF);
    head[9] = (char)((total - 10) >> 8);
    memset(head + end, ' ', total - 1 - end);
    head[total - 1] = '\n';
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

/* Parses a whole file into `to`. A finite nonzero double that would become 0 or infinity as a float
 * is an error. */
static iron_status parse_activations(const char *path, const unsigned char *data, size_t bytes,
                                     float *to, uint64_t count, iron_error *err) {
    iron__npy_header h;
    iron_error inner;
    double value;
    size_t width;

    IRON_FAIL_IF(iron__npy_parse(data, bytes, &h, &inner) != IRON_OK, err, IRON_E_FORMAT,
                 "%.80s: %.120s", path, inner.text);
    width = strcmp(h.descr, "<f4") == 0 ? 4 : strcmp(h.descr, "<f8") == 0 ? 8 : 0;
    IRON_FAIL_IF(width == 0, err, IRON_E_FORMAT, "%.80s holds %s; activations must be <f4 or <f8",
                 path, h.descr);
    IRON_FAIL_IF(h.dimensions != 1 || h.shape[0] != count, err, IRON_E_ARG,
                 "%.80s has %u dimensions with %" PRIu64 " first; give one dimension of %" PRIu64
                 ", one number per node",
                 path, h.dimensions, h.dimensions ? h.shape[0] : 0, count);
    IRON_FAIL_IF(bytes - h.data_offset != count * width, err, IRON_E_FORMAT,
                 "%.80s has %zu bytes of data, its header says %" PRIu64, path,
                 bytes - h.data_offset, count * width);
    if (width == sizeof(float))
        memcpy(to, data + h.data_offset, count * sizeof(float));
    for (uint64_t k = 0; width == sizeof value && k < count; k++) {
        memcpy(&value, data + h.data_offset + k * sizeof value, sizeof value);
        IRON_FAIL_IF((value != 0 && fabs(value) < FLT_MIN) || fabs(value) > FLT_MAX, err,
                     IRON_E_ARG, "activation %" PRIu64 " is %g; it does not fit a 32-bit float", k,
                     value);
        to[k] = (float)value;
    }
    return iron__activations_check(to, count, err);
}

/* At most 2^20 numbers of 8 bytes and a header, and one byte more to detect longer files. */
#define ACTIVATIONS_FILE_MAX (IRON_NPY_HEADER_MAX + 12 + ((size_t)8 << 20) + 1)

iron_status iron_activations_read(const char *path, float *activations, uint64_t count,
                                  iron_error *err) {
    FILE *file = fopen(path, "rbe");
    unsigned char *data;
    size_t bytes;
    iron_status status;

    if (!file)
        return iron__fail_path(err, "open", path, errno);
    data = malloc(ACTIVATIONS_FILE_MAX);
    bytes = data ? fread(data, 1, ACTIVATIONS_FILE_MAX, file) : 0;
    if (!data)
        status = iron__no_memory(err, path);
    else if (ferror(file))
        status = iron__fail_path(err, "read", path, errno);
    else
        status = parse_activations(path, data, bytes, activations, count, err);
    free(data);
    fclose(file);
    return status;
}

/* Arrays in Fortran order, read in C order.
 *
 * NumPy saves an array in Fortran order if that is how it is in memory, as after a transpose.
 * Loaded, it is the same array as one saved in C order, so it is the same stream of tokens: the
 * last index changes fastest. In the file the first index does.
 *
 * The file consists of columns: all elements with the same indexes but the first. A block is a
 * tile: a range of the first index, as many rows as fit into TILE_BYTES. It has one piece of each
 * column, which is read and written to its place in C order. Larger tiles mean longer reads. */

#ifndef TILE_BYTES /* small ones in tests */
#define TILE_BYTES ((size_t)64 << 20)
#endif
#define COLUMN_BYTES ((size_t)1 << 20) /* of several columns, if the tile has all rows */

/* The table's state is a copy of the layout, which owns both the table and the shape. */
typedef iron__format_layout array;

/* The tokens of a row: all with the same first index. */
static uint64_t row_tokens(const array *a) { return a->tokens / a->shape[0]; }

uint64_t iron__fortran_place(const iron__format_layout *l, uint64_t token) {
    uint64_t place = 0, columns = l->tokens, stride = 1;

    for (unsigned d = 0; d < l->dimensions; d++) {
        columns /= l->shape[d];
        place += token / columns * stride;
        token %= columns;
        stride *= l->shape[d];
    }
    return place;
}

/* Fills the tile with rows `row` ... row+rows-1. `piece` has room for one column's part of it, and
 * for COLUMN_BYTES. */
static iron_status read_tile(const array *a, const iron__input *in, uint64_t row, size_t rows,
                             unsigned char *to, unsigned char *piece, iron_error *err) {
    uint64_t index[IRON_DIMENSIONS_MAX] = {0}, stride[IRON_DIMENSIONS_MAX], column = 0;
    size_t width = iron_dtype_bytes(a->dtype), part = rows * width;
    uint64_t columns = row_tokens(a), place = 0;

    /* a step of index d moves so many tokens within a row */
    stride[a->dimensions - 1] = 1;
    for (unsigned d = a->dimensions - 1; d > 1; d--)
        stride[d - 1] = stride[d] * a->shape[d];
    while (column < columns) {
        /* columns that follow each other without a gap are read together */
        size_t some = rows == a->shape[0] && part < COLUMN_BYTES ? COLUMN_BYTES / part : 1;

        some = some < columns - column ? some : (size_t)(columns - column);
        IRON_TRY(iron__input_read_at(in, a->data_offset + (column * a->shape[0] + row) * width,
                                     piece, some * part, err));
        for (size_t k = 0; k < some; k++) {
            /* one column of the tile: an element for each of its rows */
            for (size_t r = 0; r < rows; r++)
                memcpy(to + ((size_t)columns * r + place) * width, piece + k * part + r * width,
                       width);
            for (unsigned d = 1; d < a->dimensions; d++) {
                place += stride[d];
                if (++index[d] < a->shape[d])
                    break;
                place -= stride[d] * a->shape[d];
                index[d] = 0;
            }
        }
        column += some;
    }
    return IRON_OK;
}

static iron_status decode_tile(const iron__table *t, const iron__input *in, size_t index,
                               bool wants_tokens, iron__block *out, iron_error *err) {
    const array *a = t->state;
    uint64_t row = t->blocks[index].first / row_tokens(a);
    size_t rows = (size_t)(iron__table_block_tokens(t, index) / row_tokens(a));
    size_t width = iron_dtype_bytes(a->dtype), part = rows * width;
    size_t bytes = part * (size_t)row_tokens(a);
    unsigned char *piece;
    iron_status status;

    if (!wants_tokens) /* it has no rows that are documents */
        return IRON_OK;
    IRON_TRY(iron__block_reserve(out, bytes, err));
    piece = malloc(part > COLUMN_BYTES ? part : COLUMN_BYTES);
    if (!piece)
        return iron__no_memory(err, in->path);
    status = read_tile(a, in, row, rows, out->data, piece, err);
    free(piece);
    if (a->is_swapped)
        iron__swap_bytes(out->data, bytes / width, width);
    out->bytes = bytes;
    return status;
}

static const iron__table_kind tiles = {decode_tile, free, NULL};

static iron_status fortran_table(iron__format_layout *l, const char *name, iron_error *err) {
    size_t width = iron_dtype_bytes(l->dtype);
    uint64_t row = row_tokens(l);
    array own = *l;

    IRON_FAIL_IF(row > TILE_BYTES / width, err, IRON_E_UNSUPPORTED,
                 "%.80s: an array in Fortran order with %" PRIu64 " bytes for each first index, at "
                 "most %zu can be read; save it with numpy.ascontiguousarray",
                 name, row * width, TILE_BYTES);
    IRON_TRY(iron__table_create(&tiles, sizeof own, &l->table, err));
    memcpy(l->table->state, &own, sizeof own);
    l->table->dtype = l->dtype;
    l->table->tokens = l->tokens;
    row *= TILE_BYTES / (row * width);
    for (uint64_t first = 0; first < l->tokens; first += row)
        IRON_TRY(iron__table_add_block(l->table, &(iron__table_block){.first = first}, err));
    return IRON_OK;
}

/* The npy token format: arrays of any number of dimensions, read in C order as numpy.ravel does,
 * whatever the order and the byte order in the file. A file that is named .npy but has no NumPy
 * header is raw. */

static bool recognise(const iron__candidate *c) {
    return c->head_count >= MAGIC_BYTES && memcmp(c->head, MAGIC, MAGIC_BYTES) == 0;
}

/* Reads the whole header; the caller frees *out. */
static iron_status read_header(iron__candidate *c, unsigned char **out, size_t *bytes,
                               iron_error *err) {
    unsigned char prefix[PREFIX_BYTES];
    size_t known, length;
    iron_status status;

    IRON_TRY(iron__candidate_read(c, prefix, 6, err));
    IRON_FAIL_IF(memcmp(prefix, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x ..., expected NumPy's magic \\x93NUMPY",
                 c->name, prefix[0], prefix[1], prefix[2], prefix[3]);
    iron__format_reason(c, "NumPy magic \\x93NUMPY at byte 0");
    IRON_TRY(iron__candidate_read(c, prefix + 6, 4, err));
    IRON_FAIL_IF(prefix[6] < 1 || prefix[6] > 3, err, IRON_E_FORMAT,
                 "%.100s at byte 6: NumPy format version %u.%u, expected 1 to 3", c->name,
                 prefix[6], prefix[7]);
    if (prefix[6] > 1)
        IRON_TRY(iron__candidate_read(c, prefix + 10, 2, err));
    length = header_length(prefix, &known);
    IRON_FAIL_IF(length > IRON_NPY_HEADER_MAX, err, IRON_E_FORMAT,
                 "%.100s at byte 8: NumPy header of %zu bytes, expected at most %u", c->name,
                 length, IRON_NPY_HEADER_MAX);
    *bytes = known + length;
    IRON_TRY(IRON_NEW(out, *bytes, "a header", err));
    memcpy(*out, prefix, known);
    status = iron__candidate_read(c, *out + known, length, err);
    if (status != IRON_OK)
        free(*out);
    return status;
}

static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    static const struct {
        const char *kind;
        iron_dtype dtype;
    } kinds[] = {
        {"u1", IRON_DTYPE_U8},  {"u2", IRON_DTYPE_U16}, {"u4", IRON_DTYPE_U32},
        {"i4", IRON_DTYPE_I32}, {"i8", IRON_DTYPE_I64},
    };
    unsigned char *header = NULL;
    iron__npy_header h;
    iron_error inner;
    size_t bytes = 0;
    iron_status status;
    char order, shape[96] = "";
    unsigned count = 0;

    IRON_TRY(read_header(c, &header, &bytes, err));
    status = iron__npy_parse(header, bytes, &h, &inner);
    free(header);
    if (status != IRON_OK)
        return iron__fail(err, status, 0, "%.100s: %.120s", c->name, inner.text);
    layout->data_offset = h.data_offset;
    /* "<u2", ">u2" and so on; bytes have no order: "|u1" */
    order = h.descr[0];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && order; k++)
        if (strcmp(h.descr + 1, kinds[k].kind) == 0 &&
            strchr(kinds[k].dtype == IRON_DTYPE_U8 ? "|<>" : "<>", order))
            layout->dtype = kinds[k].dtype;
    IRON_FAIL_IF(
        layout->dtype == IRON_DTYPE_NONE, err, IRON_E_FORMAT,
        "%.100s: NumPy type '%s', expected |u1, <u2, <u4, <i4 or <i8; save it with one of these "
        "(astype)",
        c->name, h.descr);
    layout->is_swapped = order == '>' && layout->dtype != IRON_DTYPE_U8;
    iron__format_reason(c, "header descr '%s' is %s%s", h.descr, iron_dtype_name(layout->dtype),
                        layout->is_swapped ? ", big-endian" : "");
    layout->tokens = 1;
    for (unsigned d = 0; d < h.dimensions; d++) {
        iron__append(shape, sizeof shape, "%s%" PRIu64, d ? " x " : "", h.shape[d]);
        if (layout->tokens != IRON_COUNT_UNKNOWN &&
            __builtin_mul_overflow(layout->tokens, h.shape[d], &layout->tokens))
            layout->tokens = IRON_COUNT_UNKNOWN;
        if (h.shape[d] == 0) { /* empty, whatever the others are */
            layout->tokens = 0;
            break;
        }
    }
    IRON_FAIL_IF(layout->tokens == IRON_COUNT_UNKNOWN, err, IRON_E_FORMAT,
                 "%.100s: shape %s, expected fewer than 2^64 tokens", c->name, shape);
    iron__format_reason(c, "shape %s%s, checked against the file size",
                        h.dimensions ? shape : "() of one token",
                        h.is_fortran && h.dimensions > 1 ? " in Fortran order" : "");
    /* the shape of an array whose order in the file is not the stream's is kept: dimensions of 1
     * do not matter, and with one that is left both orders are the same */
    if (!h.is_fortran || layout->tokens == 0)
        return IRON_OK;
    for (unsigned d = 0; d < h.dimensions; d++)
        count += h.shape[d] > 1;
    if (count < 2)
        return IRON_OK;
    IRON_FAIL_IF(iron__input_is_pipe(c->file) || iron__path_is_stdin(c->file->path), err,
                 IRON_E_UNSUPPORTED,
                 "%.100s is an array in Fortran order, which cannot be read from a pipe: name a "
                 "file",
                 c->name);
    IRON_TRY(IRON_NEW(&layout->shape, count, "a header", err));
    for (unsigned d = 0; d < h.dimensions; d++)
        if (h.shape[d] > 1)
            layout->shape[layout->dimensions++] = h.shape[d];
    return fortran_table(layout, c->name, err);
}

const iron__format iron__format_npy = {"npy", recognise, examine, NULL};
