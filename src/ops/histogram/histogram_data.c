/* SPDX-License-Identifier: MIT */
/*
 * histogram_data.c: the elements of the op histogram, from a seed. What they are like decides who
 * waits for whom, so it is an axis:
 *
 *   uniform   every value as likely as any other
 *   zipf      value k with a likelihood of 1 / (k + 1), as words of a language have: the tokenizers
 *             of real vocabularies give frequent tokens low numbers, so a value's rank is itself
 *   one       a single value, which the seed chooses, but never 0
 *   sorted    all values equally often, in ascending order: element i is floor(i * bins / count)
 *
 * Every element is a function of the seed and its index alone, so threads fill pieces in any order.
 *
 * Zipf's law by Walker's alias method, in integers: bins cells of equal size; cell k is shared
 * between value k and one other. An element takes a cell and a coin, both from one random number.
 * Weights fall with k, so the values that fill up the cells of rare ones are found by walking from
 * both ends, and no list of them is needed.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/data.h"
#include "ops/histogram/histogram.h"

/* Streams of numbers of one seed. */
enum { STREAM_ELEMENTS = 1, STREAM_ONE = 2 };

/* Weights are whole numbers, WEIGHT / (k + 1); bins * WEIGHT must stay below 2^63. */
#define WEIGHT    (UINT64_C(1) << 36)
#define COIN_BITS 23u
#define BLOCK     ((size_t)1024)

typedef struct cell {
    uint32_t own;   /* of 2^COIN_BITS coins so many give the cell's own value */
    uint32_t other; /* and the rest this one */
} cell;

typedef struct source {
    const iron__case *c;
    uint32_t bins, one;
    uint64_t base;
    const cell *cells;
    void *to;
    void (*draw)(const struct source *s, uint64_t first, uint32_t *to, size_t count);
} source;

/* Gives the cell of `rare` to it, filled up by `frequent`, which has that much less left. */
static void share(cell *cells, uint64_t *left, uint32_t rare, uint32_t frequent, uint64_t size) {
    cells[rare] = (cell){(uint32_t)((left[rare] << COIN_BITS) / size), frequent};
    left[frequent] -= size - left[rare];
}

/* left[k] is what value k has not been given yet: bins * weight of it at first. A cell has room for
 * the sum of all weights, so all cells together for just everything. */
static void share_all(cell *cells, uint64_t *left, uint32_t bins) {
    uint32_t rare = 0, frequent = 0;
    uint64_t size = 0;

    for (uint32_t k = 0; k < bins; k++) {
        left[k] = bins * (WEIGHT / (k + 1));
        size += WEIGHT / (k + 1);
        cells[k] = (cell){UINT32_C(1) << COIN_BITS, k};
    }
    while (rare < bins && left[rare] >= size)
        rare++;
    for (uint32_t k = bins; k-- > rare;) {
        share(cells, left, k, frequent, size);
        while (left[frequent] < size && frequent + 1 < rare) {
            share(cells, left, frequent, frequent + 1, size);
            frequent++;
        }
    }
}

static iron_status make_cells(cell **out, uint32_t bins, iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    uint64_t *left = iron__allocate(allocator, bins, sizeof *left, "weights", err);

    *out = left ? iron__allocate(allocator, bins, sizeof **out, "cells", err) : NULL;
    if (*out)
        share_all(*out, left, bins);
    iron__release(allocator, left);
    return *out ? IRON_OK : IRON_E_NOMEM;
}

static void draw_uniform(const source *s, uint64_t first, uint32_t *to, size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = iron__data_below(iron__data_bits(s->base, first + k), s->bins);
}

static void draw_zipf(const source *s, uint64_t first, uint32_t *to, size_t count) {
    for (size_t k = 0; k < count; k++) {
        uint64_t bits = iron__data_bits(s->base, first + k);
        uint32_t at = iron__data_below(bits, s->bins);
        uint32_t coin = (uint32_t)bits & ((UINT32_C(1) << COIN_BITS) - 1);

        uint32_t is_own = 0 - (uint32_t)(coin < s->cells[at].own); /* a branch would be a guess */

        to[k] = (at & is_own) | (s->cells[at].other & ~is_own);
    }
}

static void draw_one(const source *s, uint64_t first, uint32_t *to, size_t count) {
    (void)first;
    for (size_t k = 0; k < count; k++)
        to[k] = s->one;
}

/* From value to value: a division each, not an element. */
static void draw_sorted(const source *s, uint64_t first, uint32_t *to, size_t count) {
    uint64_t rows = s->c->rows;

    for (size_t k = 0; k < count;) {
        uint64_t value = (first + k) * s->bins / rows;
        uint64_t next = ((value + 1) * rows + s->bins - 1) / s->bins; /* the next value's first */

        for (; k < count && first + k < next; k++)
            to[k] = (uint32_t)value;
    }
}

static void store(const source *s, size_t first, const uint32_t *from, size_t count) {
    if (s->c->element == IRON_U8)
        for (size_t k = 0; k < count; k++)
            ((uint8_t *)s->to)[first + k] = (uint8_t)from[k];
    else if (s->c->element == IRON_U16)
        for (size_t k = 0; k < count; k++)
            ((uint16_t *)s->to)[first + k] = (uint16_t)from[k];
    else
        for (size_t k = 0; k < count; k++)
            ((uint32_t *)s->to)[first + k] = from[k];
}

static void fill_piece(void *context, size_t begin, size_t end) {
    const source *s = context;
    uint32_t block[BLOCK];

    for (size_t k = begin; k < end; k += BLOCK) {
        size_t count = end - k < BLOCK ? end - k : BLOCK;

        s->draw(s, k, block, count);
        store(s, k, block, count);
    }
}

iron_status iron__histogram_fill(iron__problem *problem, iron__team *team, iron_error *err) {
    static void (*const draws[IRON_HISTOGRAM_DATA])(const source *, uint64_t, uint32_t *,
                                                    size_t) = {draw_uniform, draw_zipf, draw_one,
                                                               draw_sorted};
    const iron__case *c = &problem->c;
    cell *cells = NULL;
    source s = {.c = c,
                .bins = iron__histogram_bins(c),
                .base = iron__data_base(c->seed, STREAM_ELEMENTS),
                .to = problem->inputs[0].data,
                .draw = draws[iron__histogram_data_of(c)]};

    s.one = 1 + iron__data_below(iron__data_base(c->seed, STREAM_ONE), s.bins - 1);
    if (iron__histogram_data_of(c) == IRON_HISTOGRAM_ZIPF)
        IRON_TRY(make_cells(&cells, s.bins, err));
    s.cells = cells;
    iron__data_pieces(team, (size_t)c->rows, fill_piece, &s);
    iron__release(iron__allocator_default(), cells);
    return IRON_OK;
}
