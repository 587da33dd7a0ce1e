/* SPDX-License-Identifier: MIT */
/*
 * fortran.c: arrays in Fortran order, read in C order.
 *
 * NumPy saves an array in Fortran order if that is how it is in memory, as after a transpose.
 * Loaded, it is the same array as one saved in C order, so it is the same stream of tokens: the
 * last index changes fastest. In the file the first index does.
 *
 * The file consists of columns: all elements with the same indexes but the first. A block is a
 * tile: a range of the first index, as many rows as fit into TILE_BYTES. It has one piece of each
 * column, which is read and written to its place in C order. Larger tiles mean longer reads.
 */
#include "core/fail.h"
#include "formats/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
static iron_status fill(const array *a, const iron__input *in, uint64_t row, size_t rows,
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

static iron_status decode(const iron__table *t, const iron__input *in, size_t index,
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
    status = fill(a, in, row, rows, out->data, piece, err);
    free(piece);
    if (a->is_swapped)
        iron__swap_bytes(out->data, bytes / width, width);
    out->bytes = bytes;
    return status;
}

static const iron__table_kind kind = {decode, free, NULL};

iron_status iron__fortran_table(iron__format_layout *l, const char *name, iron_error *err) {
    size_t width = iron_dtype_bytes(l->dtype);
    uint64_t row = row_tokens(l);
    array own = *l;

    IRON_FAIL_IF(row > TILE_BYTES / width, err, IRON_E_UNSUPPORTED,
                 "%.80s: an array in Fortran order with %" PRIu64 " bytes for each first index, at "
                 "most %zu can be read; save it with numpy.ascontiguousarray",
                 name, row * width, TILE_BYTES);
    IRON_TRY(iron__table_create(&kind, sizeof own, &l->table, err));
    memcpy(l->table->state, &own, sizeof own);
    l->table->dtype = l->dtype;
    l->table->tokens = l->tokens;
    row *= TILE_BYTES / (row * width);
    for (uint64_t first = 0; first < l->tokens; first += row)
        IRON_TRY(iron__table_add_block(l->table, &(iron__table_block){.first = first}, err));
    return IRON_OK;
}
