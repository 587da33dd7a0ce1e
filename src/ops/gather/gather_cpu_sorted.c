/* SPDX-License-Identifier: MIT */
/*
 * gather_cpu_sorted.c: the row of the CPU that sorts first: indices by blocks into buckets of the
 * table, so that the reads of a block go through the table once, from its beginning to its end, and
 * meet each page and each open row of memory once.
 *
 * A block and its places fit the second-level cache; the results go to their places there. Threads
 * take strips of the whole, each with room of its own for a block.
 */
#include "ops/gather/gather.h"

#include <string.h>

#define BLOCK   ((size_t)16384)
#define BUCKETS ((size_t)1024)

typedef struct entry {
    uint32_t index, place;
} entry;

/* What a strip works in: a multiple of the cache line. */
typedef struct room {
    entry entries[BLOCK];
    uint32_t starts[BUCKETS];
} room;

typedef struct pass {
    const uint32_t *index, *table;
    uint32_t *output;
    size_t rows, strips;
    room *rooms;
} pass;

/* As many as threads, if there is a block for each. */
static size_t count_strips(const iron__problem *problem, uint32_t threads) {
    size_t blocks = (size_t)((problem->c.rows + BLOCK - 1) / BLOCK);

    return blocks < threads ? blocks : threads;
}

size_t iron__gather_sorted_scratch(const iron__problem *problem, uint32_t threads) {
    return count_strips(problem, threads) * sizeof(room);
}

/* The narrowest buckets of which BUCKETS cover what lies between the smallest and the largest. */
static uint32_t find_shift(const uint32_t *index, size_t count, uint32_t *least) {
    uint32_t low = index[0], high = index[0], shift = 0;

    for (size_t i = 1; i < count; i++) {
        low = index[i] < low ? index[i] : low;
        high = index[i] > high ? index[i] : high;
    }
    while ((high - low) >> shift >= BUCKETS)
        shift++;
    *least = low;
    return shift;
}

static void sort_block(room *r, const uint32_t *index, size_t count) {
    uint32_t least, shift = find_shift(index, count, &least), start = 0;

    memset(r->starts, 0, sizeof r->starts);
    for (size_t i = 0; i < count; i++)
        r->starts[(index[i] - least) >> shift]++;
    for (size_t b = 0; b < BUCKETS; b++) {
        uint32_t in_bucket = r->starts[b];

        r->starts[b] = start;
        start += in_bucket;
    }
    for (size_t i = 0; i < count; i++)
        r->entries[r->starts[(index[i] - least) >> shift]++] = (entry){index[i], (uint32_t)i};
}

static void run_strip(void *context, size_t strip) {
    const pass *p = context;
    size_t blocks = (p->rows + BLOCK - 1) / BLOCK;

    for (size_t b = blocks * strip / p->strips; b < blocks * (strip + 1) / p->strips; b++) {
        size_t first = b * BLOCK, count = p->rows - first < BLOCK ? p->rows - first : BLOCK;
        room *r = &p->rooms[strip];

        sort_block(r, p->index + first, count);
        for (size_t k = 0; k < count; k++)
            p->output[first + r->entries[k].place] = p->table[r->entries[k].index];
    }
}

void iron__gather_run_sorted(const iron__cpu_work *work) {
    const iron__problem *problem = work->problem;
    pass p = {.index = problem->inputs[0].data,
              .table = problem->inputs[1].data,
              .output = work->output,
              .rows = (size_t)problem->c.rows,
              .strips = count_strips(problem, iron__team_threads(work->team)),
              .rooms = work->scratch};

    iron__team_run(work->team, run_strip, &p, p.strips);
}
