/* SPDX-License-Identifier: MIT */
/*
 * fortran.c: arrays in Fortran order, read in C order.
 *
 * NumPy saves an array in Fortran order if that is how it is in memory, as after a transpose.
 * Loaded, it is the same array as one saved in C order, so it is the same stream of tokens: the
 * last index changes fastest. In the file the first index does.
 *
 * The file consists of columns: all elements with the same indexes but the first. A tile is a range
 * of the first index, as many rows as fit into TILE_BYTES: one piece of each column, read and
 * written to its place in C order. Larger tiles mean longer reads. A source keeps two tiles, for
 * threads that are at the end of one and at the beginning of the next.
 */
#include "core/fail.h"
#include "formats/format.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifndef TILE_BYTES /* small ones in tests */
#define TILE_BYTES ((size_t)64 << 20)
#endif
#define PIECE_BYTES ((size_t)1 << 20) /* of several columns, if the tile has all rows */
#define TILES       2u

typedef struct tile {
    const char *path; /* of the file, borrowed; NULL: empty */
    uint64_t first;   /* token */
    uint64_t count;
    uint64_t last_use;
    size_t capacity; /* of data, in bytes */
    unsigned char *data;
} tile;

struct iron__fortran_reader {
    pthread_mutex_t mutex;
    uint64_t clock;
    tile tiles[TILES];
};

iron_status iron__fortran_reader_create(iron__fortran_reader **out, iron_error *err) {
    *out = calloc(1, sizeof **out);
    if (!*out)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for an array reader");
    pthread_mutex_init(&(*out)->mutex, NULL);
    return IRON_OK;
}

void iron__fortran_reader_destroy(iron__fortran_reader *reader) {
    if (!reader)
        return;
    for (size_t k = 0; k < TILES; k++)
        free(reader->tiles[k].data);
    pthread_mutex_destroy(&reader->mutex);
    free(reader);
}

/* The tokens of a row: all with the same first index. */
static uint64_t row_tokens(const iron__format_layout *l) { return l->tokens / l->shape[0]; }

iron_status iron__fortran_check(const iron__format_layout *l, const char *name, iron_error *err) {
    uint64_t bytes = l->tokens ? row_tokens(l) * iron_dtype_bytes(l->dtype) : 0;

    IRON_FAIL_IF(bytes > TILE_BYTES, err, IRON_E_UNSUPPORTED,
                 "%.80s: an array in Fortran order with %" PRIu64 " bytes for each first index, at "
                 "most %zu can be read; save it with numpy.ascontiguousarray",
                 name, bytes, TILE_BYTES);
    return IRON_OK;
}

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

/* Copies `rows` elements, which follow each other, to every row of the tile at one column. */
static void scatter(const unsigned char *from, size_t rows, unsigned char *to, size_t row_bytes,
                    size_t width) {
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * row_bytes, from + r * width, width);
}

/* Reads exactly `want` bytes. */
static iron_status read_exactly(iron__source_file *file, uint64_t at, void *to, size_t want,
                                const atomic_bool *stop, iron_error *err) {
    size_t got;

    file->offset = at;
    IRON_TRY(iron__source_file_read(file, to, want, &got, stop, err));
    return got < want ? iron__source_file_check_end(file, err) : IRON_OK;
}

/* Fills the tile with rows `row` ... row+rows-1. `piece` has room for one column's part of it, and
 * for PIECE_BYTES. */
static iron_status fill(const iron__format_layout *l, iron__source_file *file, uint64_t row,
                        size_t rows, unsigned char *to, unsigned char *piece,
                        const atomic_bool *stop, iron_error *err) {
    uint64_t index[IRON_DIMENSIONS_MAX] = {0}, stride[IRON_DIMENSIONS_MAX], column = 0;
    size_t width = iron_dtype_bytes(l->dtype), part = rows * width;
    uint64_t columns = row_tokens(l), place = 0;

    /* a step of index d moves so many tokens within a row */
    stride[l->dimensions - 1] = 1;
    for (unsigned d = l->dimensions - 1; d > 1; d--)
        stride[d - 1] = stride[d] * l->shape[d];
    while (column < columns) {
        /* columns that follow each other without a gap are read together */
        size_t some = rows == l->shape[0] && part < PIECE_BYTES ? PIECE_BYTES / part : 1;

        some = some < columns - column ? some : (size_t)(columns - column);
        IRON_TRY(read_exactly(file, l->data_offset + (column * l->shape[0] + row) * width, piece,
                              some * part, stop, err));
        for (size_t k = 0; k < some; k++) {
            scatter(piece + k * part, rows, to + place * width, (size_t)columns * width, width);
            for (unsigned d = 1; d < l->dimensions; d++) {
                place += stride[d];
                if (++index[d] < l->shape[d])
                    break;
                place -= stride[d] * l->shape[d];
                index[d] = 0;
            }
        }
        column += some;
    }
    return IRON_OK;
}

/* Loads the tile that begins with the row of a token. */
static iron_status load(tile *t, const iron__format_layout *l, const char *path, uint64_t token,
                        const atomic_bool *stop, iron_error *err) {
    iron__source_file file = {.path = path, .bytes = l->bytes, .fd = -1};
    uint64_t columns = row_tokens(l), row = token / columns;
    size_t width = iron_dtype_bytes(l->dtype), fit = TILE_BYTES / (size_t)(columns * width);
    size_t rows = fit < l->shape[0] - row ? fit : (size_t)(l->shape[0] - row);
    unsigned char *piece = malloc(rows * width > PIECE_BYTES ? rows * width : PIECE_BYTES);
    iron_status status;

    t->path = NULL;
    if (t->capacity < rows * columns * width) {
        free(t->data);
        t->capacity = rows * (size_t)columns * width;
        t->data = malloc(t->capacity);
    }
    if (!t->data)
        t->capacity = 0;
    if (!piece || !t->data)
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a part of %.120s", path);
    else
        status = iron__source_file_open(&file, err);
    if (status == IRON_OK) {
        status = fill(l, &file, row, rows, t->data, piece, stop, err);
        iron__source_file_close(&file);
    }
    free(piece);
    if (status == IRON_OK) {
        t->path = path;
        t->first = row * columns;
        t->count = rows * columns;
    }
    return status;
}

/* The tile with a token; loads it in place of the one that was not used for longest. */
static iron_status find_tile(iron__fortran_reader *r, const iron__format_layout *l,
                             const char *path, uint64_t token, const atomic_bool *stop, tile **out,
                             iron_error *err) {
    tile *oldest = &r->tiles[0];

    for (size_t k = 0; k < TILES; k++) {
        tile *t = &r->tiles[k];

        if (t->path == path && token >= t->first && token - t->first < t->count) {
            *out = t;
            return IRON_OK;
        }
        oldest = t->last_use < oldest->last_use ? t : oldest;
    }
    *out = oldest;
    return load(oldest, l, path, token, stop, err);
}

iron_status iron__fortran_read(iron__fortran_reader *reader, const iron__format_layout *l,
                               const char *path, uint64_t first, void *to, size_t count,
                               const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(l->dtype);
    iron_status status = IRON_OK;

    pthread_mutex_lock(&reader->mutex);
    while (count > 0 && status == IRON_OK) {
        tile *t;

        status = find_tile(reader, l, path, first, stop, &t, err);
        if (status == IRON_OK) {
            uint64_t left = t->first + t->count - first;
            size_t some = count < left ? count : (size_t)left;

            memcpy(to, t->data + (first - t->first) * width, some * width);
            t->last_use = ++reader->clock;
            to = (char *)to + some * width;
            first += some;
            count -= some;
        }
    }
    pthread_mutex_unlock(&reader->mutex);
    return status;
}
