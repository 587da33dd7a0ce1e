/* SPDX-License-Identifier: MIT */
/*
 * atax.c: the op atax: y = A^T t with t = A x; A is row-major. This file has the problem, its
 * reference and its check, and the op's table. The rows are in atax_cpu.c and atax_gpu.c.
 *
 * The data are random and have no symmetry, low rank or short fractions, so a contender that takes
 * A for A^T, drops a row or reads one twice is detected. (Some benchmark suites use a matrix that
 * hides all of these.)
 *
 * The reference has about twice the precision of any contender and reads A once. Sums are pairs of
 * doubles, a high part and the remainder. Two well-known steps are exact: the sum of two doubles is
 * a double and a remainder (Knuth), and so is their product once each factor is split into halves
 * of 26 bits (Veltkamp, Dekker). They only need that every operation rounds once, which the build
 * guarantees (-ffp-contract=off); without fma and long double the result is the same on every
 * machine. A x stays a pair when it is multiplied by A^T. The error of the reference is about 2^-53
 * of an element of y, from rounding the final pair to one double.
 *
 * A is divided into blocks by the shape alone, and their sums are added in the order of blocks, so
 * the result does not depend on the number of threads. Blocks of rows have a y each: at most 64
 * times cols pairs, and never more than a sixteenth of A as doubles, or one block. A few long rows
 * are divided into blocks of columns, and read twice: for A x, then for A^T.
 *
 * The check. Contenders add in any order, so an answer is right if rounding can explain its
 * distance from the reference. Errors of single operations look random, so they grow with the
 * square root of the number of operations on the way to an element, rows + cols:
 *
 *   |y[j] - reference[j]| <= 16 * u * sqrt(rows + cols) * scale,     u = 2^-24 (f32), 2^-53 (f64)
 *
 * scale is the size of an element: the root mean square of y, not y[j] itself, which may be close
 * to 0 by chance. If a matrix has few rows, all of y may be: with one row y is a multiple of t[0],
 * a sum whose terms may cancel while their rounding errors remain. So the scale is at least what y
 * would be if nothing cancelled: the root of the mean over j of
 *
 *   sum over i of A[i][j]^2 * (sum over k of (A[i][k] x[k])^2)
 *
 * The factor 16: over 20 shapes from 1x1 to 60000x64, up to 2000 seeds each, both types, and all
 * orders of our CPU rows, including the naive one, the largest error needed a factor of 2.6. In f32
 * at 20000x20000 an answer scaled by 1.001 is off by 5 tolerances, and one that omits a row of A by
 * 26; at other sizes and in f64 by more.
 */
#include "ops/atax/atax.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/op.h"

#include <stdio.h>

#define BLOCKS_MAX 64u
#define BLOCK_ROWS 32u

/* Columns from which a single block of rows is divided into blocks of columns; and the vectors of y
 * that are done at once. */
#define LONG_ROW      ((size_t)16384)
#define PIECE_VECTORS ((size_t)1024)

/* 2^27 + 1 */
#define SPLITTER 134217729.0

#define INLINE static inline __attribute__((always_inline))

/* Two lanes of doubles, which every 64-bit processor has. */
typedef double two __attribute__((vector_size(16)));
#define LANES ((size_t)2)

/* Sums or numbers: high + low. */
typedef struct pair {
    two high, low;
} pair;

/* A factor and its two halves: value = upper + lower. */
typedef struct factor {
    two value, upper, lower;
} factor;

typedef struct row_sums {
    pair product;                 /* the row times x */
    two squares, product_squares; /* of its elements; of its elements times x */
} row_sums;

/* The sums over a row, or over a part of it. */
typedef struct row_part {
    pair t; /* the same in both lanes */
    double squares, product_squares;
} row_part;

typedef struct reference {
    const iron__op_problem *problem;
    size_t rows, cols;
    size_t blocks;
    size_t vectors;    /* of columns */
    pair *sums;        /* blocks of rows: vectors for each */
    row_part *parts;   /* blocks of columns: rows for each */
    bool has_products; /* the parts are complete */
    double *squares;   /* for each block: the sum of squares of y if nothing cancelled */
    double *y;
} reference;

INLINE two splat(double value) { return (two){value, value}; }

INLINE factor split(two value) {
    two c = value * SPLITTER, upper = c - (c - value);

    return (factor){value, upper, value - upper};
}

/* sum += a * b, exact except for the rounding of the low part. */
INLINE void add_product(pair *sum, factor a, factor b) {
    two product = a.value * b.value;
    two error =
        ((a.upper * b.upper - product) + a.upper * b.lower + a.lower * b.upper) + a.lower * b.lower;
    two total = sum->high + product, part = total - sum->high;

    sum->low += error + ((sum->high - (total - part)) + (product - part));
    sum->high = total;
}

/* sum += more. */
INLINE void add_pair(pair *sum, pair more) {
    two total = sum->high + more.high, part = total - sum->high;

    sum->low += more.low + ((sum->high - (total - part)) + (more.high - part));
    sum->high = total;
}

/* Elements at and at + 1 of an array; 0 past its end. */
INLINE two load(const void *array, size_t at, size_t count, bool is_f32) {
    bool has_second = at + 1 < count;

    if (is_f32) {
        const float *from = array;

        return (two){(double)from[at], has_second ? (double)from[at + 1] : 0};
    }
    return (two){((const double *)array)[at], has_second ? ((const double *)array)[at + 1] : 0};
}

/* Independent chains of sums. */
#define CHAINS ((size_t)4)

INLINE void multiply_one(row_sums *sums, const void *row, const void *x, size_t at, size_t cols,
                         bool is_f32) {
    two a = load(row, at, cols, is_f32), v = load(x, at, cols, is_f32);
    two product = a * v;

    add_product(&sums->product, split(a), split(v));
    sums->squares += a * a;
    sums->product_squares += product * product;
}

/* t = row * x. */
INLINE row_part multiply_row(const void *row, const void *x, size_t cols, bool is_f32) {
    row_sums sums[CHAINS] = {0};
    row_part part = {.t = {{0}, {0}}};
    size_t at = 0;

    for (; at + LANES * CHAINS <= cols; at += LANES * CHAINS)
        for (size_t k = 0; k < CHAINS; k++)
            multiply_one(&sums[k], row, x, at + LANES * k, cols, is_f32);
    for (; at < cols; at += LANES)
        multiply_one(&sums[0], row, x, at, cols, is_f32);
    for (size_t k = 1; k < CHAINS; k++) {
        add_pair(&sums[0].product, sums[k].product);
        sums[0].squares += sums[k].squares;
        sums[0].product_squares += sums[k].product_squares;
    }
    for (size_t lane = 0; lane < LANES; lane++)
        add_pair(&part.t,
                 (pair){splat(sums[0].product.high[lane]), splat(sums[0].product.low[lane])});
    part.squares = sums[0].squares[0] + sums[0].squares[1];
    part.product_squares = sums[0].product_squares[0] + sums[0].product_squares[1];
    return part;
}

/* y += row * t. */
INLINE void add_row(pair *y, const void *row, size_t cols, bool is_f32, pair t) {
    two high = t.high + t.low, low = t.low - (high - t.high);
    factor scale = split(high);

    for (size_t at = 0; at < cols; at += LANES) {
        two a = load(row, at, cols, is_f32);
        pair *sum = &y[at / LANES];

        add_product(sum, split(a), scale);
        sum->low += a * low;
    }
}

INLINE void run_rows(const reference *r, size_t block, bool is_f32) {
    size_t first = r->rows * block / r->blocks, end = r->rows * (block + 1) / r->blocks;
    size_t row_bytes = r->cols * (is_f32 ? sizeof(float) : sizeof(double));
    pair *y = r->sums + block * r->vectors;
    double squares = 0;

    for (size_t i = first; i < end; i++) {
        const void *row = (const char *)r->problem->inputs[0].data + i * row_bytes;
        row_part part = multiply_row(row, r->problem->inputs[1].data, r->cols, is_f32);

        add_row(y, row, r->cols, is_f32, part.t);
        squares += part.squares * part.product_squares;
    }
    r->squares[block] = squares;
}

/* The sums over row i, of all blocks of columns. */
static row_part whole_row(const reference *r, size_t i) {
    row_part whole = r->parts[i];

    for (size_t block = 1; block < r->blocks; block++) {
        const row_part *more = &r->parts[block * r->rows + i];

        add_pair(&whole.t, more->t);
        whole.squares += more->squares;
        whole.product_squares += more->product_squares;
    }
    return whole;
}

/* First all products, then y, a piece at a time. */
INLINE void run_columns(const reference *r, size_t block, bool is_f32) {
    size_t bytes = is_f32 ? sizeof(float) : sizeof(double);
    size_t at = r->vectors * block / r->blocks * LANES;
    size_t end = block + 1 == r->blocks ? r->cols : r->vectors * (block + 1) / r->blocks * LANES;
    const char *a = r->problem->inputs[0].data, *x = r->problem->inputs[1].data;

    for (size_t i = 0; !r->has_products && i < r->rows; i++)
        r->parts[block * r->rows + i] =
            multiply_row(a + (i * r->cols + at) * bytes, x + at * bytes, end - at, is_f32);
    for (size_t count; r->has_products && at < end; at += count) {
        pair y[PIECE_VECTORS] = {0};

        count = end - at < PIECE_VECTORS * LANES ? end - at : PIECE_VECTORS * LANES;
        for (size_t i = 0; i < r->rows; i++)
            add_row(y, a + (i * r->cols + at) * bytes, count, is_f32, r->parts[i].t);
        for (size_t k = 0; k < count; k++)
            r->y[at + k] = y[k / LANES].high[k % LANES] + y[k / LANES].low[k % LANES];
    }
}

static void run_block(void *context, size_t index) {
    const reference *r = context;
    bool is_f32 = r->problem->c.element == IRON_F32;

    if (is_f32 && r->sums)
        run_rows(r, index, true);
    else if (is_f32)
        run_columns(r, index, true);
    else if (r->sums)
        run_rows(r, index, false);
    else
        run_columns(r, index, false);
}

/* The square root with a relative error of about 1e-16, without libm. */
static double square_root(double square) {
    double root = square > 1 ? square : 1, better;

    if (!(square > 0))
        return 0;
    /* Newton's steps from above decrease until they converge. */
    while ((better = (root + square / root) / 2) < root)
        root = better;
    return root;
}

/* The size of an element of y: its root mean square, actual or without cancellation, whichever is
 * larger. */
static double find_scale(const reference *r) {
    double as_is = 0, uncancelled = 0;

    for (size_t j = 0; j < r->cols; j++)
        as_is += r->y[j] * r->y[j];
    for (size_t block = 0; block < r->blocks; block++)
        uncancelled += r->squares[block];
    return square_root((as_is > uncancelled ? as_is : uncancelled) / (double)r->cols);
}

/* Computes the reference and own->scale from the inputs. */
static iron_status compute_reference(iron__op_problem *problem, iron__atax_own *own,
                                     iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    double squares[BLOCKS_MAX] = {0};
    reference r = {.problem = problem,
                   .rows = (size_t)problem->c.rows,
                   .cols = (size_t)problem->c.cols,
                   .squares = squares};

    r.blocks = (size_t)iron__min(iron__max(r.rows / BLOCK_ROWS, 1), BLOCKS_MAX);
    r.vectors = (r.cols + LANES - 1) / LANES;
    IRON_TRY(iron__data_take(&problem->reference, "reference", r.cols * sizeof *r.y, err));
    r.y = problem->reference.data;
    if (r.blocks > 1 || r.cols < LONG_ROW) {
        IRON_TRY(IRON_ALLOCATE(&r.sums, allocator, r.blocks * r.vectors,
                               "the sums of atax's reference", err));
        iron__thread_pool_run(problem->pool, run_block, &r, r.blocks);
        for (size_t at = 0; at < r.cols; at += LANES) {
            pair sum = r.sums[at / LANES];

            for (size_t block = 1; block < r.blocks; block++)
                add_pair(&sum, r.sums[block * r.vectors + at / LANES]);
            for (size_t lane = 0; lane < LANES && at + lane < r.cols; lane++)
                r.y[at + lane] = sum.high[lane] + sum.low[lane];
        }
    } else {
        r.blocks = BLOCKS_MAX;
        IRON_TRY(IRON_ALLOCATE(&r.parts, allocator, r.blocks * r.rows,
                               "the products of atax's reference", err));
        iron__thread_pool_run(problem->pool, run_block, &r, r.blocks);
        for (size_t i = 0; i < r.rows; i++) {
            r.parts[i] = whole_row(&r, i);
            squares[0] += r.parts[i].squares * r.parts[i].product_squares;
        }
        r.has_products = true;
        iron__thread_pool_run(problem->pool, run_block, &r, r.blocks);
    }
    iron__release(allocator, r.sums);
    iron__release(allocator, r.parts);
    own->scale = find_scale(&r);
    return IRON_OK;
}

static double element_at(const iron__op_problem *problem, const void *output, size_t index) {
    if (problem->c.element == IRON_F32)
        return (double)((const float *)output)[index];
    return ((const double *)output)[index];
}

static double error_at(const iron__op_problem *problem, const void *output, size_t j) {
    double is = element_at(problem, output, j);
    double should_be = ((const double *)problem->reference.data)[j];

    return is > should_be ? is - should_be : should_be - is;
}

static bool is_off(const iron__op_problem *problem, const void *output, size_t j) {
    const iron__atax_own *own = problem->own;

    return !(error_at(problem, output, j) <= own->tolerance); /* not ">": NaN must fail */
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    const iron__atax_own *own = problem->own;
    int digits = problem->c.element == IRON_F32 ? 9 : 17;
    size_t j = iron__data_first(problem, output, (size_t)problem->c.cols, is_off);

    if (j == problem->c.cols)
        return true;
    snprintf(text, size, "y[%zu] is %.*g, should be %.*g (off by %.3g; tolerance %.3g)", j, digits,
             element_at(problem, output, j), digits, ((const double *)problem->reference.data)[j],
             error_at(problem, output, j), own->tolerance);
    return false;
}

#define TOLERANCE_FACTOR 16.0 /* see above */

static iron_status fill(iron__op_problem *p, iron_error *err) {
    size_t cols = (size_t)p->c.cols;
    iron__atax_own *own;

    p->output_bytes = cols * iron__element_bytes(p->c.element);
    IRON_TRY(IRON_ALLOCATE(&own, iron__allocator_default(), 1, "atax's problem", err));
    p->own = own;
    IRON_TRY(iron__data_input(p, "A", (size_t)p->c.rows * cols, NULL, err));
    IRON_TRY(iron__data_input(p, "x", cols, NULL, err));
    IRON_TRY(compute_reference(p, own, err));
    own->tolerance = TOLERANCE_FACTOR * (p->c.element == IRON_F32 ? 0x1p-24 : 0x1p-53) *
                     square_root((double)(p->c.rows + p->c.cols)) * own->scale;
    return IRON_OK;
}

static bool contender_at(size_t index, iron__contender *out) {
    return iron__row_at(iron__atax_cpu_rows, IRON_ATAX_CPU_ROWS, &index, out) ||
           iron__row_at(iron__atax_gpu_rows, IRON_ATAX_GPU_ROWS, &index, out);
}

/* The talk's STANDARD unless caches hold it. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    (void)has_gpu;
    *rows = *cols = iron__matrix_usual(4000, 1000, element, cache_bytes);
}

/* A, x and y once each. */
static uint64_t useful_bytes(const iron__case *c) {
    return (c->rows + 2) * c->cols * iron__element_bytes(c->element);
}

/* One multiplication and one addition per element of A, twice. */
static double operations(const iron__case *c) { return 4 * (double)c->rows * (double)c->cols; }

const iron__op iron__op_atax = {
    .name = "atax",
    .contract = "y = A^T (A x), A row-major",
    .why =
        "y needs A twice: for t = A x, and again for A^T t, which cannot begin before t is known. "
        "Each element of A takes part in four operations, and a processor performs hundreds in the "
        "time in which memory delivers one element, so the reading of A and its order decide. In "
        "the straightforward version A^T t walks down the columns of a matrix stored in rows and "
        "uses one element of each cache line it fetches. With its loops exchanged it reads A in "
        "order, but twice.\n"
        "\n"
        "Once is enough: row i of A is needed for t[i], and right after that, while it is still in "
        "a cache or in registers, for its contribution to y. A library call for each of two "
        "matrix-vector products cannot do that. Useful bytes are those of one read, so a contender "
        "that reads A twice cannot exceed half of the ceiling. A transposed copy of A makes both "
        "products run along rows; making it costs as much as a few of the runs it speeds up, so "
        "`prepare` is timed and shown next to them.",
    .traffic =
        "Contenders that compute one product after the other read A twice, the single-pass ones "
        "once; x, t and y have the length of a row or column and stay in caches.",
    .unless =
        "While A fits the last-level cache, the second read costs little, and two library calls "
        "are as good. If a row is longer than the registers of a group, the single pass reads it "
        "twice after all, the second time from the cache.",
    .used =
        "The engine is a single pass too: tokens_champion (src/ops/tokens/champion.k) reads every "
        "token once for all nodes; the first modes read it once per node.",
    .elements = IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64),
    .usual = IRON_F64,
    .bound = IRON_BOUND_READ,
    .baselines = {"naive", "naive"},
    IRON_SIZES({"talk", "MINI", 32, 32, NULL}, {"talk", "SMALL", 500, 500, NULL},
               {"talk", "STANDARD", 4000, 4000, NULL}, {"talk", "LARGE", 8000, 8000, NULL},
               {"talk", "EXTRALARGE", 20000, 20000, NULL}, {"acc", "MINI", 1024, 1024, "f32"},
               {"acc", "SMALL", 2048, 2048, "f32"}, {"acc", "STANDARD", 4096, 4096, "f32"},
               {"acc", "LARGE", 8192, 8192, "f32"}, {"acc", "EXTRALARGE", 16384, 16384, "f32"},
               {"polybench", "MINI", 38, 42, NULL}, {"polybench", "SMALL", 116, 124, NULL},
               {"polybench", "MEDIUM", 390, 410, NULL}, {"polybench", "LARGE", 1900, 2100, NULL},
               {"polybench", "EXTRALARGE", 1800, 2200, NULL}),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = iron__matrix_accept,
    IRON_DATA_OP,
    .contender_at = contender_at,
};
