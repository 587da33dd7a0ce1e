/* SPDX-License-Identifier: MIT */
/*
 * atax_threads.c: the rows that are made of the vector loops: two passes over A on one thread and
 * on all, and one pass on one thread and on all.
 *
 * On all threads the rows of A are dealt out in strips, one a thread. A strip makes a contribution
 * to all of y, so every strip but the first has a y of its own in scratch; at the end they are
 * added up, by all threads, a piece of the columns each. Strips depend on the number of threads
 * alone: the same team gives the same bits.
 */
#include "core/cpu.h"
#include "ops/atax/atax.h"

#include <string.h>

/* Pieces of y that threads add up: a multiple of the cache line. */
#define PIECE_BYTES ((size_t)16384)

typedef struct pass {
    const iron__problem *problem;
    const iron__atax_loops *loops;
    size_t element_bytes;
    size_t strips;
    bool is_single; /* one read of A */
    char *scratch;  /* t, where A is read twice; then a y for each strip but the first */
    char *y;
} pass;

const iron__atax_loops *iron__atax_best(iron__element element) {
    uint32_t features = iron__cpu_features();

    if (features & IRON_CPU_AVX512)
        return iron__atax_avx512(element);
    if ((features & IRON_CPU_AVX2) && (features & IRON_CPU_FMA))
        return iron__atax_avx2(element);
    if (features & IRON_CPU_NEON)
        return iron__atax_neon(element);
    return iron__atax_portable(element);
}

static size_t whole_lines(size_t bytes) {
    return (bytes + IRON_CACHE_LINE - 1) / IRON_CACHE_LINE * IRON_CACHE_LINE;
}

static size_t count_groups(const iron__problem *problem) {
    return (size_t)(problem->c.rows + IRON_ATAX_ROWS - 1) / IRON_ATAX_ROWS;
}

/* One a thread, as long as there is a group of rows for each. */
static size_t count_strips(const iron__problem *problem, uint32_t threads) {
    size_t groups = count_groups(problem);

    return groups <= 1 || threads <= 1 ? 1 : groups < threads ? groups : threads;
}

static size_t t_bytes(const iron__problem *problem) {
    return whole_lines((size_t)problem->c.rows * iron__element_bytes(problem->c.element));
}

static size_t partials_bytes(const iron__problem *problem, uint32_t threads) {
    return (count_strips(problem, threads) - 1) * whole_lines(problem->output_bytes);
}

size_t iron__atax_threads_scratch(const iron__problem *problem, uint32_t threads) {
    return t_bytes(problem) + partials_bytes(problem, threads);
}

size_t iron__atax_single_pass_scratch(const iron__problem *problem, uint32_t threads) {
    if (iron__atax_suits_panels(problem, threads))
        return iron__atax_panels_scratch(problem, threads);
    return partials_bytes(problem, threads);
}

static pass start(const iron__cpu_work *work, uint32_t threads, bool is_single) {
    const iron__problem *p = work->problem;

    return (pass){.problem = p,
                  .loops = iron__atax_best(p->c.element),
                  .element_bytes = iron__element_bytes(p->c.element),
                  .strips = count_strips(p, threads),
                  .is_single = is_single,
                  .scratch = work->scratch,
                  .y = work->output};
}

/* The first row of a strip: whole groups, dealt out evenly. */
static size_t strip_begin(const pass *p, size_t index) {
    size_t rows = (size_t)p->problem->c.rows;
    size_t first = count_groups(p->problem) * index / p->strips * IRON_ATAX_ROWS;

    return first < rows ? first : rows;
}

static char *strip_y(const pass *p, size_t index) {
    size_t skipped = p->is_single ? 0 : t_bytes(p->problem);

    if (index == 0)
        return p->y;
    return p->scratch + skipped + (index - 1) * whole_lines(p->problem->output_bytes);
}

static void run_strip(void *context, size_t index) {
    const pass *p = context;
    size_t cols = (size_t)p->problem->c.cols;
    size_t begin = strip_begin(p, index), end = strip_begin(p, index + 1);
    iron__atax_block block = {.a = (const char *)p->problem->inputs[0].data +
                                   begin * cols * p->element_bytes,
                              .rows = end - begin,
                              .cols = cols,
                              .stride = cols,
                              .x = p->problem->inputs[1].data,
                              .t = p->is_single ? NULL : p->scratch + begin * p->element_bytes,
                              .y = strip_y(p, index)};

    memset(block.y, 0, p->problem->output_bytes);
    if (p->is_single) {
        p->loops->add_both(&block);
        return;
    }
    p->loops->multiply(&block);
    p->loops->add_transposed(&block);
}

static void add_f32(float *y, const float *more, size_t count) {
    for (size_t j = 0; j < count; j++)
        y[j] += more[j];
}

static void add_f64(double *y, const double *more, size_t count) {
    for (size_t j = 0; j < count; j++)
        y[j] += more[j];
}

void iron__atax_add(iron__element element, void *y, const void *more, size_t count) {
    if (element == IRON_F32)
        add_f32(y, more, count);
    else
        add_f64(y, more, count);
}

static void add_partials(void *context, size_t index) {
    const pass *p = context;
    size_t begin = index * PIECE_BYTES, left = p->problem->output_bytes - begin;
    size_t count = (left < PIECE_BYTES ? left : PIECE_BYTES) / p->element_bytes;

    for (size_t strip = 1; strip < p->strips; strip++)
        iron__atax_add(p->problem->c.element, p->y + begin, strip_y(p, strip) + begin, count);
}

static void run_strips(const iron__cpu_work *work, bool is_single) {
    pass p = start(work, iron__team_threads(work->team), is_single);

    iron__team_run(work->team, run_strip, &p, p.strips);
    if (p.strips > 1)
        iron__team_run(work->team, add_partials, &p,
                       (work->problem->output_bytes + PIECE_BYTES - 1) / PIECE_BYTES);
}

void iron__atax_run_vector(const iron__cpu_work *work) {
    pass p = start(work, 1, false);

    run_strip(&p, 0);
}

void iron__atax_run_threads(const iron__cpu_work *work) { run_strips(work, false); }

void iron__atax_run_single_pass(const iron__cpu_work *work) {
    if (iron__atax_suits_panels(work->problem, iron__team_threads(work->team)))
        iron__atax_run_panels(work);
    else
        run_strips(work, true);
}

void iron__atax_run_single_pass_one_thread(const iron__cpu_work *work) {
    pass p = start(work, 1, true);

    run_strip(&p, 0);
}
