/* SPDX-License-Identifier: MIT */
/*
 * atax_panels.c: the single pass for matrices with few and long rows.
 *
 * Strips of rows, as in atax_threads.c, need as many groups of rows as there are threads. Where
 * there are fewer, columns are dealt out instead, in panels, one a thread. A few rows at a time,
 * each thread takes the products of its panel with x; the threads meet, and with the products of
 * whole rows known, each adds their multiples to its own piece of y while the panel still is in its
 * cache. The two halves of neighbouring turns are one task, so that they meet once a turn:
 *
 *   turn 0   the products of rows 0 ... 3 with x, panel by panel
 *   turn 1   rows 0 ... 3 to y; the products of rows 4 ... 7
 *   turn 2   rows 4 ... 7 to y; ...
 *
 * Traffic: A once, as long as the rows of a turn fit into the caches of all cores.
 */
#include "ops/atax/atax.h"

#include <string.h>

/* Panels are at least so long: meeting takes some microseconds. */
#define PANEL_BYTES_MIN ((size_t)16384)

/* A thread's part of the rows of a turn: half of a second-level cache of 1 MiB. */
#define TURN_BYTES    ((size_t)512 << 10)
#define TURN_ROWS_MAX ((size_t)64)

typedef struct panels {
    const iron__problem *problem;
    const iron__atax_loops *loops;
    size_t element_bytes;
    size_t count, width; /* panels, and the columns of all but the last */
    size_t turn_rows, turn;
    char *sums; /* of even and of odd turns: turn_rows for each panel */
    char *y;
} panels;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Panels begin at cache lines of x and y. */
static panels lay_out(const iron__problem *problem, uint32_t threads) {
    size_t lines = (problem->output_bytes + IRON_CACHE_LINE - 1) / IRON_CACHE_LINE;
    size_t least = PANEL_BYTES_MIN / IRON_CACHE_LINE, even = (lines + threads - 1) / threads;
    size_t width_lines = even < least ? least : even;
    size_t fitting = TURN_BYTES / (width_lines * IRON_CACHE_LINE) / IRON_ATAX_ROWS * IRON_ATAX_ROWS;
    panels p = {.problem = problem, .element_bytes = iron__element_bytes(problem->c.element)};

    p.width = width_lines * IRON_CACHE_LINE / p.element_bytes;
    p.count = (lines + width_lines - 1) / width_lines;
    p.turn_rows = fitting < IRON_ATAX_ROWS ? IRON_ATAX_ROWS : smaller(fitting, TURN_ROWS_MAX);
    return p;
}

bool iron__atax_suits_panels(const iron__problem *problem, uint32_t threads) {
    return problem->c.rows < (uint64_t)IRON_ATAX_ROWS * threads &&
           lay_out(problem, threads).count > 1;
}

size_t iron__atax_panels_scratch(const iron__problem *problem, uint32_t threads) {
    panels p = lay_out(problem, threads);

    return 2 * p.count * p.turn_rows * p.element_bytes;
}

static char *sums_of(const panels *p, size_t turn, size_t panel) {
    return p->sums + (turn % 2 * p->count + panel) * p->turn_rows * p->element_bytes;
}

/* The rows whose products are taken in a turn. */
static size_t rows_of(const panels *p, size_t turn) {
    size_t rows = (size_t)p->problem->c.rows, first = turn * p->turn_rows;

    return first < rows ? smaller(rows - first, p->turn_rows) : 0;
}

static iron__atax_block block_of(const panels *p, size_t turn, size_t panel) {
    size_t cols = (size_t)p->problem->c.cols, begin = panel * p->width;
    size_t offset = turn * p->turn_rows * cols + begin;

    return (iron__atax_block){
        .a = (const char *)p->problem->inputs[0].data + offset * p->element_bytes,
        .rows = rows_of(p, turn),
        .cols = smaller(cols - begin, p->width),
        .stride = cols,
        .x = (const char *)p->problem->inputs[1].data + begin * p->element_bytes,
        .y = p->y + begin * p->element_bytes};
}

static void run_turn(void *context, size_t panel) {
    const panels *p = context;

    if (p->turn > 0) {
        iron__atax_block old = block_of(p, p->turn - 1, panel);

        if (p->turn == 1)
            memset(old.y, 0, old.cols * p->element_bytes);
        old.t = sums_of(p, p->turn - 1, 0);
        p->loops->add_transposed(&old);
    }
    if (rows_of(p, p->turn) > 0) {
        iron__atax_block fresh = block_of(p, p->turn, panel);

        fresh.t = sums_of(p, p->turn, panel);
        p->loops->multiply(&fresh);
    }
}

void iron__atax_run_panels(const iron__cpu_work *work) {
    panels p = lay_out(work->problem, iron__team_threads(work->team));

    p.loops = iron__atax_best(work->problem->c.element);
    p.sums = work->scratch;
    p.y = work->output;
    for (p.turn = 0; p.turn == 0 || rows_of(&p, p.turn - 1) > 0; p.turn++) {
        iron__team_run(work->team, run_turn, &p, p.count);
        for (size_t panel = 1; panel < p.count; panel++)
            iron__atax_add(work->problem->c.element, sums_of(&p, p.turn, 0),
                           sums_of(&p, p.turn, panel), rows_of(&p, p.turn));
    }
}
