/* SPDX-License-Identifier: MIT */
/*
 * atax_cpu.c: the CPU rows of atax.
 *
 * Three rows in plain C on one thread (atax_plain.inc), each one idea away from the one before it:
 *
 *   naive         both products as written; A^T t walks down the columns
 *   interchanged  A^T t with its loops exchanged, so that A is read along its rows
 *   blocked       the same in blocks of columns whose part of y stays in the L1 cache
 *
 * The other rows use vector loops (atax_vector.inc), in the widest instruction set of the machine:
 *
 *   AVX-512    eight doubles or sixteen floats
 *   AVX2, FMA  four doubles or eight floats. The eight sums and four scales take twelve of 16
 *              registers; x, y and a row of A share the rest, since a multiply-add takes one
 *              operand from memory.
 *   NEON       two doubles or four floats; part of the aarch64 baseline, so nothing is probed
 *   portable   the compiler's own vectors of 16 bytes. Products are rounded before they are added:
 *              a fused operation would be a function call per element if the processor has none.
 *
 * The build uses no flags for these sets: each function with vectors has a target attribute.
 *
 * On all threads A is divided into strips of rows, one per thread. A strip contributes to all of y,
 * so every strip except the first has its own y in scratch; at the end all threads add them, each a
 * piece of the columns. Strips depend on the number of threads alone: the same pool gives the same
 * bits.
 *
 * The single pass for few and long rows divides columns instead, into panels, one per thread, if
 * there are fewer groups of rows than threads. For a few rows at a time, each thread computes the
 * products of its panel with x; the threads meet, and with the products of whole rows known, each
 * adds its part to its own piece of y while the panel is still in its cache. The two halves of
 * neighbouring turns are one task, so that the threads meet once per turn:
 *
 *   turn 0   the products of rows 0 ... 3 with x, panel by panel
 *   turn 1   rows 0 ... 3 to y; the products of rows 4 ... 7
 *   turn 2   rows 4 ... 7 to y; ...
 *
 * Traffic of the panels: A once, as long as the rows of a turn fit the caches of all cores.
 */
#include "ops/atax/atax.h"

#include "core/cpu.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* 16 KiB of y: half of a small L1 cache; the other half is for the rows. */
#define BLOCK_BYTES ((size_t)16384)

#define NAME(word) word##_f32
#define REAL       float
#include "ops/atax/atax_plain.inc"

#define NAME(word) word##_f64
#define REAL       double
#include "ops/atax/atax_plain.inc"

/* t, the vector between the two products. */
static size_t t_scratch(const iron__op_problem *problem, uint32_t threads) {
    (void)threads;
    return (size_t)problem->c.rows * iron__element_bytes(problem->c.element);
}

static void run_naive(const iron__cpu_work *work) {
    if (work->problem->c.element == IRON_F32)
        naive_f32(work);
    else
        naive_f64(work);
}

static void run_interchanged(const iron__cpu_work *work) {
    if (work->problem->c.element == IRON_F32)
        by_rows_f32(work, SIZE_MAX);
    else
        by_rows_f64(work, SIZE_MAX);
}

static void run_blocked(const iron__cpu_work *work) {
    if (work->problem->c.element == IRON_F32)
        by_rows_f32(work, BLOCK_BYTES / sizeof(float));
    else
        by_rows_f64(work, BLOCK_BYTES / sizeof(double));
}

/* A part of the problem: `rows` rows of `cols` elements, `stride` elements apart. */
typedef struct block {
    const void *a;
    size_t rows, cols, stride;
    const void *x; /* cols elements */
    void *t;       /* rows elements */
    void *y;       /* cols elements */
} block;

/* The loops process four rows at a time. */
#define LOOP_ROWS 4u

/* The loops for one instruction set and element type. A row of A is read from left to right. */
typedef struct loops {
    void (*multiply)(const block *b);       /* t = A x */
    void (*add_transposed)(const block *b); /* y += A^T t */
    void (*add_both)(const block *b);       /* y += A^T (A x) with A read once; t is not used */
} loops;

typedef enum instruction_set { SET_PORTABLE, SET_NEON, SET_AVX2, SET_AVX512, SETS } instruction_set;

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

#define TARGET
#define NAME(word)   word##_portable_f32
#define REAL         float
#define VECTOR       floats
#define LANES        ((size_t)4)
#define FMA(a, b, c) ((a) * (b) + (c))
#include "ops/atax/atax_vector.inc"

#define NAME(word)   word##_portable_f64
#define REAL         double
#define VECTOR       doubles
#define LANES        ((size_t)2)
#define FMA(a, b, c) ((a) * (b) + (c))
#include "ops/atax/atax_vector.inc"
#undef TARGET

#if defined(__x86_64__)

#define TARGET       __attribute__((target("avx2,fma")))
#define NAME(word)   word##_avx2_f32
#define REAL         float
#define VECTOR       __m256
#define LANES        ((size_t)8)
#define FMA(a, b, c) _mm256_fmadd_ps((a), (b), (c))
#include "ops/atax/atax_vector.inc"

#define NAME(word)   word##_avx2_f64
#define REAL         double
#define VECTOR       __m256d
#define LANES        ((size_t)4)
#define FMA(a, b, c) _mm256_fmadd_pd((a), (b), (c))
#include "ops/atax/atax_vector.inc"
#undef TARGET

#define TARGET       __attribute__((target("avx512f")))
#define NAME(word)   word##_avx512_f32
#define REAL         float
#define VECTOR       __m512
#define LANES        ((size_t)16)
#define FMA(a, b, c) _mm512_fmadd_ps((a), (b), (c))
#include "ops/atax/atax_vector.inc"

#define NAME(word)   word##_avx512_f64
#define REAL         double
#define VECTOR       __m512d
#define LANES        ((size_t)8)
#define FMA(a, b, c) _mm512_fmadd_pd((a), (b), (c))
#include "ops/atax/atax_vector.inc"
#undef TARGET

#elif defined(__aarch64__)

#define TARGET
#define NAME(word)   word##_neon_f32
#define REAL         float
#define VECTOR       float32x4_t
#define LANES        ((size_t)4)
#define FMA(a, b, c) vfmaq_f32((c), (a), (b))
#include "ops/atax/atax_vector.inc"

#define NAME(word)   word##_neon_f64
#define REAL         double
#define VECTOR       float64x2_t
#define LANES        ((size_t)2)
#define FMA(a, b, c) vfmaq_f64((c), (a), (b))
#include "ops/atax/atax_vector.inc"
#undef TARGET

#endif

/* NULL if the set belongs to another architecture. */
static const loops *loops_of(instruction_set set, iron__element element) {
    static const loops *const table[SETS][2] = {
        [SET_PORTABLE] = {&loops_portable_f32, &loops_portable_f64},
#if defined(__x86_64__)
        [SET_AVX2] = {&loops_avx2_f32, &loops_avx2_f64},
        [SET_AVX512] = {&loops_avx512_f32, &loops_avx512_f64},
#elif defined(__aarch64__)
        [SET_NEON] = {&loops_neon_f32, &loops_neon_f64},
#endif
    };

    return table[set][element == IRON_F32 ? 0 : 1];
}

/* The widest set of this machine. */
static const loops *best_loops(iron__element element) {
    uint32_t features = iron__cpu_features();

    if (features & IRON_CPU_AVX512)
        return loops_of(SET_AVX512, element);
    if ((features & IRON_CPU_AVX2) && (features & IRON_CPU_FMA))
        return loops_of(SET_AVX2, element);
    if (features & IRON_CPU_NEON)
        return loops_of(SET_NEON, element);
    return loops_of(SET_PORTABLE, element);
}

/* Minimum size of a panel: meeting takes some microseconds. */
#define PANEL_BYTES_MIN ((size_t)16384)

/* A thread's part of the rows of a turn: half of an L2 cache of 1 MiB. */
#define TURN_BYTES    ((size_t)512 << 10)
#define TURN_ROWS_MAX ((size_t)64)

typedef struct panels {
    const iron__op_problem *problem;
    const loops *loops;
    size_t element_bytes;
    size_t count, width; /* panels, and columns of each but the last */
    size_t turn_rows, turn;
    char *sums; /* for even and odd turns: turn_rows per panel */
    char *y;
} panels;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Panels begin at cache lines of x and y. */
static panels panels_of(const iron__op_problem *problem, uint32_t threads) {
    size_t lines = (problem->output_bytes + IRON_CACHE_LINE - 1) / IRON_CACHE_LINE;
    size_t least = PANEL_BYTES_MIN / IRON_CACHE_LINE, even = (lines + threads - 1) / threads;
    size_t width_lines = even < least ? least : even;
    size_t fitting = TURN_BYTES / (width_lines * IRON_CACHE_LINE) / LOOP_ROWS * LOOP_ROWS;
    panels p = {.problem = problem, .element_bytes = iron__element_bytes(problem->c.element)};

    p.width = width_lines * IRON_CACHE_LINE / p.element_bytes;
    p.count = (lines + width_lines - 1) / width_lines;
    p.turn_rows = fitting < LOOP_ROWS ? LOOP_ROWS : smaller(fitting, TURN_ROWS_MAX);
    return p;
}

/* Are there too few rows for strips, and columns for several panels? */
static bool suits_panels(const iron__op_problem *problem, uint32_t threads) {
    return problem->c.rows < (uint64_t)LOOP_ROWS * threads && panels_of(problem, threads).count > 1;
}

static size_t panels_scratch(const iron__op_problem *problem, uint32_t threads) {
    panels p = panels_of(problem, threads);

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

static block panel_block(const panels *p, size_t turn, size_t panel) {
    size_t cols = (size_t)p->problem->c.cols, begin = panel * p->width;
    size_t offset = turn * p->turn_rows * cols + begin;

    return (block){.a = (const char *)p->problem->inputs[0].data + offset * p->element_bytes,
                   .rows = rows_of(p, turn),
                   .cols = smaller(cols - begin, p->width),
                   .stride = cols,
                   .x = (const char *)p->problem->inputs[1].data + begin * p->element_bytes,
                   .y = p->y + begin * p->element_bytes};
}

static void run_turn(void *context, size_t panel) {
    const panels *p = context;

    if (p->turn > 0) {
        block old = panel_block(p, p->turn - 1, panel);

        if (p->turn == 1)
            memset(old.y, 0, old.cols * p->element_bytes);
        old.t = sums_of(p, p->turn - 1, 0);
        p->loops->add_transposed(&old);
    }
    if (rows_of(p, p->turn) > 0) {
        block fresh = panel_block(p, p->turn, panel);

        fresh.t = sums_of(p, p->turn, panel);
        p->loops->multiply(&fresh);
    }
}

/* y += more. */
static void add(iron__element element, void *y, const void *more, size_t count) {
    if (element == IRON_F32)
        for (size_t j = 0; j < count; j++)
            ((float *)y)[j] += ((const float *)more)[j];
    else
        for (size_t j = 0; j < count; j++)
            ((double *)y)[j] += ((const double *)more)[j];
}

static void run_panels(const iron__cpu_work *work) {
    panels p = panels_of(work->problem, iron__thread_pool_threads(work->pool));

    p.loops = best_loops(work->problem->c.element);
    p.sums = work->scratch;
    p.y = work->output;
    for (p.turn = 0; p.turn == 0 || rows_of(&p, p.turn - 1) > 0; p.turn++) {
        iron__thread_pool_run(work->pool, run_turn, &p, p.count);
        for (size_t panel = 1; panel < p.count; panel++)
            add(work->problem->c.element, sums_of(&p, p.turn, 0), sums_of(&p, p.turn, panel),
                rows_of(&p, p.turn));
    }
}

/* Pieces of y that threads add: a multiple of the cache line. */
#define PIECE_BYTES ((size_t)16384)

typedef struct pass {
    const iron__op_problem *problem;
    const loops *loops;
    size_t element_bytes;
    size_t strips;
    bool is_single; /* one read of A */
    char *scratch;  /* t if A is read twice; then a y for each strip except the first */
    char *y;
} pass;

static size_t whole_lines(size_t bytes) {
    return (bytes + IRON_CACHE_LINE - 1) / IRON_CACHE_LINE * IRON_CACHE_LINE;
}

static size_t count_groups(const iron__op_problem *problem) {
    return (size_t)(problem->c.rows + LOOP_ROWS - 1) / LOOP_ROWS;
}

/* One per thread, but no more than there are groups of rows. */
static size_t count_strips(const iron__op_problem *problem, uint32_t threads) {
    size_t groups = count_groups(problem);

    return groups <= 1 || threads <= 1 ? 1 : groups < threads ? groups : threads;
}

static size_t t_bytes(const iron__op_problem *problem) {
    return whole_lines((size_t)problem->c.rows * iron__element_bytes(problem->c.element));
}

static size_t partials_bytes(const iron__op_problem *problem, uint32_t threads) {
    return (count_strips(problem, threads) - 1) * whole_lines(problem->output_bytes);
}

static size_t threads_scratch(const iron__op_problem *problem, uint32_t threads) {
    return t_bytes(problem) + partials_bytes(problem, threads);
}

static size_t single_pass_scratch(const iron__op_problem *problem, uint32_t threads) {
    if (suits_panels(problem, threads))
        return panels_scratch(problem, threads);
    return partials_bytes(problem, threads);
}

static pass start(const iron__cpu_work *work, uint32_t threads, bool is_single) {
    const iron__op_problem *p = work->problem;

    return (pass){.problem = p,
                  .loops = best_loops(p->c.element),
                  .element_bytes = iron__element_bytes(p->c.element),
                  .strips = count_strips(p, threads),
                  .is_single = is_single,
                  .scratch = work->scratch,
                  .y = work->output};
}

/* The first row of a strip: whole groups, divided evenly. */
static size_t strip_begin(const pass *p, size_t index) {
    size_t rows = (size_t)p->problem->c.rows;
    size_t first = count_groups(p->problem) * index / p->strips * LOOP_ROWS;

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
    block b = {.a = (const char *)p->problem->inputs[0].data + begin * cols * p->element_bytes,
               .rows = end - begin,
               .cols = cols,
               .stride = cols,
               .x = p->problem->inputs[1].data,
               .t = p->is_single ? NULL : p->scratch + begin * p->element_bytes,
               .y = strip_y(p, index)};

    assert(p->loops);
    memset(b.y, 0, p->problem->output_bytes);
    if (p->is_single) {
        p->loops->add_both(&b);
        return;
    }
    p->loops->multiply(&b);
    p->loops->add_transposed(&b);
}

static void add_partials(void *context, size_t index) {
    const pass *p = context;
    size_t begin = index * PIECE_BYTES, left = p->problem->output_bytes - begin;
    size_t count = (left < PIECE_BYTES ? left : PIECE_BYTES) / p->element_bytes;

    for (size_t strip = 1; strip < p->strips; strip++)
        add(p->problem->c.element, p->y + begin, strip_y(p, strip) + begin, count);
}

static void run_strips(const iron__cpu_work *work, bool is_single) {
    pass p = start(work, iron__thread_pool_threads(work->pool), is_single);

    iron__thread_pool_run(work->pool, run_strip, &p, p.strips);
    if (p.strips > 1)
        iron__thread_pool_run(work->pool, add_partials, &p,
                              (work->problem->output_bytes + PIECE_BYTES - 1) / PIECE_BYTES);
}

static void run_vector(const iron__cpu_work *work) {
    pass p = start(work, 1, false);

    run_strip(&p, 0);
}

static void run_threads(const iron__cpu_work *work) { run_strips(work, false); }

static void run_single_pass(const iron__cpu_work *work) {
    if (suits_panels(work->problem, iron__thread_pool_threads(work->pool)))
        run_panels(work);
    else
        run_strips(work, true);
}

static void run_single_pass_one_thread(const iron__cpu_work *work) {
    pass p = start(work, 1, true);

    run_strip(&p, 0);
}

#define ROW(text_name, text_idea, slower, reads, function, scratch, single)                        \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_CPU,      \
        .passes = (reads), .cpu_run = (function), .cpu_scratch_bytes = (scratch),                  \
        .is_single = (single)                                                                      \
    }

const iron__contender iron__atax_cpu_rows[IRON_ATAX_CPU_ROWS] = {
    ROW("naive", "both products as written; A^T t walks down the columns", NULL, 2, run_naive,
        t_scratch, true),
    ROW("interchanged", "A^T t with its loops exchanged: A is read along its rows", "naive", 2,
        run_interchanged, t_scratch, true),
    ROW("blocked", "blocks of columns whose part of y stays in the L1 cache", "interchanged", 2,
        run_blocked, t_scratch, true),
    ROW("vector", "four rows at a time in vectors, with prefetching", "blocked", 2, run_vector,
        t_scratch, true),
    ROW("threads", "the vector loops on all threads: strips of rows, a y for each, then their sum",
        "vector", 2, run_threads, threads_scratch, false),
    ROW("single-pass-one-thread",
        "a row is added to y while it is still in the cache: A is read once", "vector", 1,
        run_single_pass_one_thread, NULL, true),
    ROW("single-pass", "the same on all threads: strips of rows, a y for each, then their sum",
        "threads", 1, run_single_pass, single_pass_scratch, false),
};
