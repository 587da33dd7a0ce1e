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
 * On all threads the single pass divides A in one of three ways:
 *
 *   strips   of rows, one per thread. A strip contributes to all of y, so every strip except the
 *            first has its own y in scratch; at the end the threads add them, each a piece of the
 *            columns. For many rows that are short enough for a few of them to fit an L2 cache.
 *   turns    panels of columns, one per thread, for longer rows. A turn is some rows: each thread
 *            computes the products of its panel with x, the threads meet, and with the products of
 *            whole rows known, each adds its part to its own piece of y while it is still in its
 *            cache. The two halves of neighbouring turns are one task and one loop:
 *
 *              turn 0   the products of rows 0 ... 3 with x, panel by panel
 *              turn 1   rows 0 ... 3 to y; the products of rows 4 ... 7
 *              turn 2   rows 4 ... 7 to y; ...
 *
 *   phases   panels of columns, too; first the products of all rows, then all rows to y, each in
 *            blocks of columns whose x or y stays in the L1 cache. For few rows, and for rows so
 *            long that no cache holds some of them: then A is read twice, but x and y once. The
 *            second phase goes from right to left, since the end of the panel may be in a cache.
 *
 * A small matrix is one strip, on the caller's thread, and one that is not large uses few threads.
 * The division depends on the shape and the number of threads alone: the same pool gives the same
 * bits.
 */
#include "ops/atax/atax.h"

#include "core/cpu.h"
#include "core/number.h"

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
    (work->problem->c.element == IRON_F32 ? naive_f32 : naive_f64)(work);
}

/* In blocks of columns whose part of y has block_bytes. */
static void by_rows(const iron__cpu_work *work, size_t block_bytes) {
    if (work->problem->c.element == IRON_F32)
        by_rows_f32(work, block_bytes / sizeof(float));
    else
        by_rows_f64(work, block_bytes / sizeof(double));
}

static void run_interchanged(const iron__cpu_work *work) { by_rows(work, SIZE_MAX); }

static void run_blocked(const iron__cpu_work *work) { by_rows(work, BLOCK_BYTES); }

/* A part of the problem: `rows` rows of `cols` elements, `stride` elements apart. */
typedef struct block {
    const void *a;
    size_t rows, cols, stride;
    const void *next; /* where reading goes on after this block */
    const void *x;    /* cols elements */
    void *t;          /* rows elements */
    void *y;          /* cols elements */
} block;

/* The loops process four rows at a time. */
#define LOOP_ROWS 4u

/* The loops for one instruction set and element type. A row of A is read from left to right. */
typedef struct loops {
    /* t += A x of the fresh block and y += A^T t of the old one; either may be NULL. */
    void (*advance)(const block *fresh, const block *old);
    void (*add_both)(const block *b); /* y += A^T (A x) with A read once; t is not used */
} loops;

/* Zeros, then ones, each as long as the longest vector: a vector read across the middle is a mask
 * of its last lanes. */
#define MASK_BYTES 64
static const unsigned char lane_masks[2 * MASK_BYTES] = {[MASK_BYTES... 2 * MASK_BYTES - 1] = 0xFF};

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

static inline float total_of_floats(floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }
static inline double total_of_doubles(doubles v) { return v[0] + v[1]; }

#define TARGET
#define NAME(word)   word##_portable_f32
#define REAL         float
#define VECTOR       floats
#define LANES        ((size_t)4)
#define FMA(a, b, c) ((a) * (b) + (c))
#define TOTAL(v)     total_of_floats(v)
#include "ops/atax/atax_vector.inc"

#define NAME(word)   word##_portable_f64
#define REAL         double
#define VECTOR       doubles
#define LANES        ((size_t)2)
#define FMA(a, b, c) ((a) * (b) + (c))
#define TOTAL(v)     total_of_doubles(v)
#include "ops/atax/atax_vector.inc"
#undef TARGET

#if defined(__x86_64__)

/* The sum of both halves of a vector. */
#define HALVES_32(v) (_mm256_castps256_ps128(v) + _mm256_extractf128_ps((v), 1))
#define HALVES_64(v) (_mm256_castpd256_pd128(v) + _mm256_extractf128_pd((v), 1))

#define TARGET                 __attribute__((target("avx2,fma")))
#define NAME(word)             word##_avx2_f32
#define REAL                   float
#define VECTOR                 __m256
#define LANES                  ((size_t)8)
#define FMA(a, b, c)           _mm256_fmadd_ps((a), (b), (c))
#define LOAD_PART(p, mask)     _mm256_maskload_ps((p), (__m256i)(mask))
#define STORE_PART(p, mask, v) _mm256_maskstore_ps((p), (__m256i)(mask), (v))
#define PERMUTE(v, from)       _mm256_permutevar8x32_ps((v), (__m256i)(from))
#define TOTAL(v)               total_of_floats(HALVES_32(v))
#include "ops/atax/atax_vector.inc"

#define NAME(word)             word##_avx2_f64
#define REAL                   double
#define VECTOR                 __m256d
#define LANES                  ((size_t)4)
#define FMA(a, b, c)           _mm256_fmadd_pd((a), (b), (c))
#define LOAD_PART(p, mask)     _mm256_maskload_pd((p), (__m256i)(mask))
#define STORE_PART(p, mask, v) _mm256_maskstore_pd((p), (__m256i)(mask), (v))
#define TOTAL(v)               total_of_doubles(HALVES_64(v))
#include "ops/atax/atax_vector.inc"
#undef TARGET

/* A mask in a mask register. */
#define LANES_32(mask) _mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask))
#define LANES_64(mask) _mm512_test_epi64_mask((__m512i)(mask), (__m512i)(mask))

#define TARGET                 __attribute__((target("avx512f")))
#define NAME(word)             word##_avx512_f32
#define REAL                   float
#define VECTOR                 __m512
#define LANES                  ((size_t)16)
#define FMA(a, b, c)           _mm512_fmadd_ps((a), (b), (c))
#define LOAD_PART(p, mask)     _mm512_maskz_loadu_ps(LANES_32(mask), (p))
#define STORE_PART(p, mask, v) _mm512_mask_storeu_ps((p), LANES_32(mask), (v))
#define PERMUTE(v, from)       _mm512_permutexvar_ps((__m512i)(from), (v))
#define TOTAL(v)               _mm512_reduce_add_ps(v)
#include "ops/atax/atax_vector.inc"

#define NAME(word)             word##_avx512_f64
#define REAL                   double
#define VECTOR                 __m512d
#define LANES                  ((size_t)8)
#define FMA(a, b, c)           _mm512_fmadd_pd((a), (b), (c))
#define LOAD_PART(p, mask)     _mm512_maskz_loadu_pd(LANES_64(mask), (p))
#define STORE_PART(p, mask, v) _mm512_mask_storeu_pd((p), LANES_64(mask), (v))
#define PERMUTE(v, from)       _mm512_permutexvar_pd((__m512i)(from), (v))
#define TOTAL(v)               _mm512_reduce_add_pd(v)
#include "ops/atax/atax_vector.inc"
#undef TARGET

#elif defined(__aarch64__)

#define TARGET
#define NAME(word)   word##_neon_f32
#define REAL         float
#define VECTOR       float32x4_t
#define LANES        ((size_t)4)
#define FMA(a, b, c) vfmaq_f32((c), (a), (b))
#define TOTAL(v)     vaddvq_f32(v)
#include "ops/atax/atax_vector.inc"

#define NAME(word)   word##_neon_f64
#define REAL         double
#define VECTOR       float64x2_t
#define LANES        ((size_t)2)
#define FMA(a, b, c) vfmaq_f64((c), (a), (b))
#define TOTAL(v)     vaddvq_f64(v)
#include "ops/atax/atax_vector.inc"
#undef TARGET

#endif

/* By instruction set, best first. */
static const struct {
    uint32_t needs;        /* iron__cpu_feature bits */
    const loops *loops[2]; /* of f32 and of f64 */
} instruction_sets[] = {
#if defined(__x86_64__)
    {IRON_CPU_AVX512, {&loops_avx512_f32, &loops_avx512_f64}},
    {IRON_CPU_AVX2 | IRON_CPU_FMA, {&loops_avx2_f32, &loops_avx2_f64}},
#elif defined(__aarch64__)
    {IRON_CPU_NEON, {&loops_neon_f32, &loops_neon_f64}},
#endif
    {0, {&loops_portable_f32, &loops_portable_f64}},
};

/* Those of the widest set of this machine. */
static const loops *best_loops(iron__element element) {
    uint32_t features = iron__cpu_features();
    size_t k = 0;

    while (instruction_sets[k].needs & ~features)
        k++;
    return instruction_sets[k].loops[element == IRON_F64];
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

static size_t whole_lines(size_t bytes) {
    return (bytes + IRON_CACHE_LINE - 1) / IRON_CACHE_LINE * IRON_CACHE_LINE;
}

/* N threads need N^2 + 4 times this: meeting takes the longer, the more threads there are. */
#define MEETING_BYTES ((size_t)16384)
#define PANEL_BYTES   ((size_t)1024) /* of a row, at least */

/* Without division: half of the time of 4 x 4 would be spent with it. */
#define TINY_BYTES ((size_t)65536)

/* Rows per thread from which the work on a y of its own is small. */
#define STRIP_ROWS 16u

/* Eight rows, the fresh and the old ones, fit an L2 cache of 1 MiB. */
#define STRIP_ROW_BYTES ((size_t)128 << 10)

/* A thread's part of the rows of a turn, half of such a cache; and of a row that may be longer: the
 * third-level cache holds eight of them. */
#define TURN_BYTES     ((size_t)512 << 10)
#define TURN_ROW_BYTES ((size_t)1 << 20)

/* Rows whose sum is taken at once: in f32 a sum of 10^7 terms of one sign is off by a percent. */
#define SUM_ROWS ((size_t)16384)

typedef enum division { STRIPS, TURNS, PHASES } division;

typedef struct pass {
    const iron__op_problem *problem;
    const loops *loops;
    size_t element_bytes, row_bytes;
    bool is_single; /* one read of A */
    division division;
    size_t tasks;           /* strips or panels */
    size_t width;           /* columns of each panel but the last */
    size_t turn_rows, turn; /* rows of a turn; all of them if there are phases */
    char *scratch;          /* strips: t or sums of y, then a y per strip; panels: see sums_of */
    char *y;
} pass;

static size_t count_groups(const iron__op_problem *problem) {
    return (size_t)(problem->c.rows + LOOP_ROWS - 1) / LOOP_ROWS;
}

/* How a pass divides the problem. With two reads: one strip per thread. */
static pass divide(const iron__op_problem *problem, size_t threads, bool is_single) {
    pass p = {.problem = problem,
              .element_bytes = iron__element_bytes(problem->c.element),
              .row_bytes = problem->output_bytes,
              .is_single = is_single,
              .tasks = 1};
    size_t rows = (size_t)problem->c.rows, bytes = rows * p.row_bytes, used = 1, panels;

    if (!is_single) {
        p.tasks = iron__min_size(count_groups(problem), threads);
        return p;
    }
    while (used < threads && ((used + 1) * (used + 1) + 4) * MEETING_BYTES <= bytes)
        used++;
    if (used == 1 && p.row_bytes <= STRIP_ROW_BYTES)
        return p;
    p.width = (size_t)iron__max(whole_lines((p.row_bytes + used - 1) / used), PANEL_BYTES);
    panels = (p.row_bytes + p.width - 1) / p.width;
    p.tasks = iron__min_size(used, count_groups(problem));
    if (p.row_bytes <= STRIP_ROW_BYTES && (rows >= STRIP_ROWS * used || panels < p.tasks))
        return p;
    p.tasks = panels;
    p.division = TURNS;
    p.turn_rows = (size_t)iron__max(TURN_BYTES / p.width / LOOP_ROWS, 1) * LOOP_ROWS;
    /* Two turns are three meetings, two phases are two; many threads meet slowly. */
    if ((used < 8 ? 2 : 4) * p.turn_rows >= rows || p.width > TURN_ROW_BYTES) {
        p.division = PHASES;
        p.turn_rows = rows;
    }
    p.width /= p.element_bytes; /* panels begin at cache lines of x and y */
    return p;
}

/* The rows whose products are taken in a turn. */
static size_t rows_of(const pass *p, size_t turn) {
    size_t rows = (size_t)p->problem->c.rows, first = turn * p->turn_rows;

    return first < rows ? iron__min_size(rows - first, p->turn_rows) : 0;
}

/* The products of a turn's rows and a panel; those of even and odd turns are kept apart. */
static char *sums_of(const pass *p, size_t turn, size_t panel) {
    return p->scratch +
           (turn % 2 * p->tasks + panel) * whole_lines(p->turn_rows * p->element_bytes);
}

/* Columns begin ... end-1 of a turn's rows. */
static block columns_of(const pass *p, size_t turn, size_t begin, size_t end) {
    size_t cols = (size_t)p->problem->c.cols, offset = turn * p->turn_rows * cols + begin;
    const char *a = p->problem->inputs[0].data;

    return (block){.a = a + offset * p->element_bytes,
                   .rows = rows_of(p, turn),
                   .cols = end - begin,
                   .stride = cols,
                   .next = a + (offset + p->turn_rows * cols) * p->element_bytes,
                   .x = (const char *)p->problem->inputs[1].data + begin * p->element_bytes,
                   .y = p->y + begin * p->element_bytes};
}

static void run_turn(void *context, size_t panel) {
    const pass *p = context;
    size_t begin = panel * p->width;
    size_t end = iron__min_size(begin + p->width, (size_t)p->problem->c.cols);
    block fresh = columns_of(p, p->turn, begin, end), old = {.rows = 0};

    fresh.t = memset(sums_of(p, p->turn, panel), 0, fresh.rows * p->element_bytes);
    if (p->turn > 0) {
        old = columns_of(p, p->turn - 1, begin, end);
        old.t = sums_of(p, p->turn - 1, 0);
    }
    if (p->turn == 1)
        memset(old.y, 0, old.cols * p->element_bytes);
    p->loops->advance(fresh.rows > 0 ? &fresh : NULL, p->turn > 0 ? &old : NULL);
}

static void run_phase(void *context, size_t panel) {
    const pass *p = context;
    size_t begin = panel * p->width, step = BLOCK_BYTES / p->element_bytes;
    size_t end = iron__min_size(begin + p->width, (size_t)p->problem->c.cols), at;
    void *t = sums_of(p, 0, p->turn == 0 ? panel : 0);
    block b;

    if (p->turn == 0) {
        memset(t, 0, p->turn_rows * p->element_bytes);
        for (at = begin; at < end; at += step) {
            b = columns_of(p, 0, at, iron__min_size(at + step, end));
            b.t = t;
            b.next = (const char *)b.a + step * p->element_bytes;
            p->loops->advance(&b, NULL);
        }
        return;
    }
    for (at = begin + (end - begin - 1) / step * step;; at -= step) {
        b = columns_of(p, 0, at, iron__min_size(at + step, end));
        b.t = t;
        b.next = (const char *)b.a - (at > begin ? step * p->element_bytes : 0);
        memset(b.y, 0, b.cols * p->element_bytes);
        p->loops->advance(NULL, &b);
        if (at == begin)
            return;
    }
}

/* Of a strip's y: a partial sum beside it where there are many rows. */
static size_t partial_bytes(const pass *p) {
    return p->is_single && p->problem->c.rows > SUM_ROWS * p->tasks ? whole_lines(p->row_bytes) : 0;
}

/* Two reads need t. */
static size_t t_bytes(const pass *p) {
    return p->is_single ? 0 : whole_lines((size_t)p->problem->c.rows * p->element_bytes);
}

static size_t scratch_of(const pass *p) {
    if (p->division != STRIPS)
        return 2 * p->tasks * whole_lines(p->turn_rows * p->element_bytes);
    return t_bytes(p) + (p->tasks - 1) * whole_lines(p->row_bytes) + p->tasks * partial_bytes(p);
}

static char *strip_y(const pass *p, size_t index) {
    return index == 0 ? p->y : p->scratch + t_bytes(p) + (index - 1) * whole_lines(p->row_bytes);
}

/* The first row of a strip: whole groups, divided evenly. */
static size_t strip_begin(const pass *p, size_t index) {
    return iron__min_size(count_groups(p->problem) * index / p->tasks * LOOP_ROWS,
                          (size_t)p->problem->c.rows);
}

static void run_strip(void *context, size_t index) {
    const pass *p = context;
    size_t cols = (size_t)p->problem->c.cols, partial = partial_bytes(p);
    size_t begin = strip_begin(p, index), end = strip_begin(p, index + 1);
    block b = {.a = (const char *)p->problem->inputs[0].data + begin * p->row_bytes,
               .rows = end - begin,
               .cols = cols,
               .stride = cols,
               .x = p->problem->inputs[1].data,
               .y = strip_y(p, index)};
    void *y = b.y;

    assert(p->loops);
    b.next = b.a;
    memset(y, 0, p->row_bytes);
    if (!p->is_single) {
        b.t = memset(p->scratch + begin * p->element_bytes, 0, b.rows * p->element_bytes);
        p->loops->advance(&b, NULL);
        p->loops->advance(NULL, &b);
        return;
    }
    if (!partial) {
        p->loops->add_both(&b);
        return;
    }
    b.y = p->scratch + (p->tasks - 1) * whole_lines(p->row_bytes) + index * partial;
    for (; begin < end; begin += b.rows) {
        b.a = (const char *)p->problem->inputs[0].data + begin * p->row_bytes;
        b.rows = iron__min_size(end - begin, SUM_ROWS);
        memset(b.y, 0, p->row_bytes);
        p->loops->add_both(&b);
        add(p->problem->c.element, y, b.y, cols);
    }
}

/* Each task a piece of whole cache lines. */
static void add_strips(void *context, size_t index) {
    const pass *p = context;
    size_t piece = whole_lines((p->row_bytes + p->tasks - 1) / p->tasks);
    size_t begin = iron__min_size(index * piece, p->row_bytes),
           end = iron__min_size(begin + piece, p->row_bytes);

    for (size_t strip = 1; strip < p->tasks; strip++)
        add(p->problem->c.element, p->y + begin, strip_y(p, strip) + begin,
            (end - begin) / p->element_bytes);
}

static void run_pass(const iron__cpu_work *work, bool is_single) {
    pass p = divide(work->problem, iron__thread_pool_threads(work->pool), is_single);
    iron__element element = work->problem->c.element;

    p.loops = best_loops(element);
    p.scratch = work->scratch;
    p.y = work->output;
    if (p.division == STRIPS) {
        iron__thread_pool_run(work->pool, run_strip, &p, p.tasks);
        if (p.tasks > 1)
            iron__thread_pool_run(work->pool, add_strips, &p, p.tasks);
        return;
    }
    for (; p.turn == 0 || rows_of(&p, p.turn - 1) > 0; p.turn++) {
        iron__thread_pool_run(work->pool, p.division == TURNS ? run_turn : run_phase, &p, p.tasks);
        for (size_t panel = 1; panel < p.tasks; panel++)
            add(element, sums_of(&p, p.turn, 0), sums_of(&p, p.turn, panel), rows_of(&p, p.turn));
    }
}

static size_t two_reads_scratch(const iron__op_problem *problem, uint32_t threads) {
    pass p = divide(problem, threads, false);

    return scratch_of(&p);
}

static void run_two_reads(const iron__cpu_work *work) { run_pass(work, false); }

static size_t single_pass_scratch(const iron__op_problem *problem, uint32_t threads) {
    pass p = divide(problem, threads, true);

    return scratch_of(&p);
}

static void run_single_pass(const iron__cpu_work *work) {
    const iron__op_problem *problem = work->problem;
    size_t rows = (size_t)problem->c.rows, cols = (size_t)problem->c.cols;

    if (problem->inputs[0].bytes <= TINY_BYTES) {
        block b = {.a = problem->inputs[0].data,
                   .rows = rows,
                   .cols = cols,
                   .stride = cols,
                   .x = problem->inputs[1].data,
                   .y = memset(work->output, 0, problem->output_bytes)};

        best_loops(problem->c.element)->add_both(&b);
    } else {
        run_pass(work, true);
    }
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
    ROW("vector", "four rows at a time in vectors, with prefetching", "blocked", 2, run_two_reads,
        two_reads_scratch, true),
    ROW("threads", "the vector loops on all threads: strips of rows, a y for each, then their sum",
        "vector", 2, run_two_reads, two_reads_scratch, false),
    ROW("single-pass-one-thread",
        "a row is added to y while it is still in the cache: A is read once", "vector", 1,
        run_single_pass, single_pass_scratch, true),
    ROW("single-pass",
        "the same on all threads: strips of rows, or panels of columns if rows are long", "threads",
        1, run_single_pass, single_pass_scratch, false),
};
