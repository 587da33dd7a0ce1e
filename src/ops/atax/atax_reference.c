/* SPDX-License-Identifier: MIT */
/*
 * atax_reference.c: the right answer, with about twice the digits of any contender, in one read of
 * A.
 *
 * Sums are pairs of doubles, a high part and what it could not hold. Two well-known steps make no
 * error at all: the sum of two doubles is exactly a double and a remainder (Knuth), and so is their
 * product once each is split into halves of 26 bits (Veltkamp, Dekker). They need nothing but that
 * every operation rounds once, which the build guarantees (-ffp-contract=off); no fma, no long
 * double, so the result is the same on every machine. The result of A x stays such a pair when it
 * is multiplied by A^T. Error of the reference: about 2^-53 of an element of y, from rounding the
 * final pair to one double.
 *
 * Rows are cut into blocks by the shape alone; each block has sums of its own, which are added in
 * the order of blocks. So the result does not depend on the number of threads. Memory: at most 64
 * blocks of cols pairs, and never more than a sixteenth of A as doubles, or one block.
 *
 * Along with it goes the size of an element of y if nothing cancelled, which the tolerance needs.
 */
#include "core/fail.h"
#include "ops/atax/atax.h"

#define BLOCKS_MAX 64u
#define BLOCK_ROWS 32u

/* 2^27 + 1 */
#define SPLITTER 134217729.0

#define INLINE static inline __attribute__((always_inline))

/* Two lanes of doubles: every 64-bit processor has them. */
typedef double two __attribute__((vector_size(16)));
#define LANES ((size_t)2)

/* The sums of one lane group, or a finished number: high + low. */
typedef struct pair {
    two high, low;
} pair;

/* A factor and its halves: value = upper + lower. */
typedef struct factor {
    two value, upper, lower;
} factor;

typedef struct row_sums {
    pair product;                 /* the row times x */
    two squares, product_squares; /* of its elements; of its elements times x */
} row_sums;

typedef struct reference {
    const iron__problem *problem;
    size_t rows, cols;
    size_t blocks;
    pair *sums; /* blocks times vectors of columns */
    size_t vectors;
    double *squares; /* of a block's y if nothing cancelled, all elements together */
    double *y;
} reference;

INLINE two splat(double value) { return (two){value, value}; }

INLINE factor split(two value) {
    two c = value * SPLITTER, upper = c - (c - value);

    return (factor){value, upper, value - upper};
}

/* sum += a * b, but for what the low part cannot hold. */
INLINE void add_product(pair *sum, factor a, factor b) {
    two product = a.value * b.value;
    two error =
        ((a.upper * b.upper - product) + a.upper * b.lower + a.lower * b.upper) + a.lower * b.lower;
    two total = sum->high + product, part = total - sum->high;

    sum->low += error + ((sum->high - (total - part)) + (product - part));
    sum->high = total;
}

/* high + low of two pairs. */
INLINE void add_pair(pair *sum, pair more) {
    two total = sum->high + more.high, part = total - sum->high;

    sum->low += more.low + ((sum->high - (total - part)) + (more.high - part));
    sum->high = total;
}

/* Elements at and at + 1 of an array; past its end there are zeros. */
INLINE two load(const void *array, size_t at, size_t count, bool is_f32) {
    bool has_second = at + 1 < count;

    if (is_f32) {
        const float *from = array;

        return (two){(double)from[at], has_second ? (double)from[at + 1] : 0};
    }
    return (two){((const double *)array)[at], has_second ? ((const double *)array)[at + 1] : 0};
}

/* Chains of sums that do not wait for each other. */
#define CHAINS ((size_t)4)

INLINE void multiply_one(row_sums *sums, const void *row, const void *x, size_t at, size_t cols,
                         bool is_f32) {
    two a = load(row, at, cols, is_f32), v = load(x, at, cols, is_f32);
    two product = a * v;

    add_product(&sums->product, split(a), split(v));
    sums->squares += a * a;
    sums->product_squares += product * product;
}

/* t = row * x as a pair in both lanes. */
INLINE pair multiply_row(const void *row, const void *x, size_t cols, bool is_f32, double *square) {
    row_sums sums[CHAINS] = {0};
    size_t at = 0;
    pair t = {{0}, {0}};

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
        add_pair(&t, (pair){splat(sums[0].product.high[lane]), splat(sums[0].product.low[lane])});
    *square = (sums[0].squares[0] + sums[0].squares[1]) *
              (sums[0].product_squares[0] + sums[0].product_squares[1]);
    return t;
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
        double square = 0;
        pair t = multiply_row(row, r->problem->inputs[1].data, r->cols, is_f32, &square);

        add_row(y, row, r->cols, is_f32, t);
        squares += square;
    }
    r->squares[block] = squares;
}

static void run_block(void *context, size_t index) {
    const reference *r = context;

    if (r->problem->c.element == IRON_F32)
        run_rows(r, index, true);
    else
        run_rows(r, index, false);
}

static void add_blocks(reference *r) {
    for (size_t at = 0; at < r->cols; at += LANES) {
        pair sum = r->sums[at / LANES];

        for (size_t block = 1; block < r->blocks; block++)
            add_pair(&sum, r->sums[block * r->vectors + at / LANES]);
        for (size_t lane = 0; lane < LANES && at + lane < r->cols; lane++)
            r->y[at + lane] = sum.high[lane] + sum.low[lane];
    }
}

/* The size of an element of y: the root of its mean square, as it is or as it would be if nothing
 * cancelled, whichever is larger. */
static double find_scale(const reference *r) {
    double as_is = 0, uncancelled = 0;

    for (size_t j = 0; j < r->cols; j++)
        as_is += r->y[j] * r->y[j];
    for (size_t block = 0; block < r->blocks; block++)
        uncancelled += r->squares[block];
    return iron__atax_root((as_is > uncancelled ? as_is : uncancelled) / (double)r->cols);
}

static size_t count_blocks(size_t rows) {
    size_t blocks = rows / BLOCK_ROWS;

    return blocks < 1 ? 1 : blocks > BLOCKS_MAX ? BLOCKS_MAX : blocks;
}

iron_status iron__atax_refer(const iron__problem *problem, iron__team *team, iron__atax_own *own,
                             iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    double squares[BLOCKS_MAX] = {0};
    reference r = {.problem = problem,
                   .rows = (size_t)problem->c.rows,
                   .cols = (size_t)problem->c.cols,
                   .squares = squares};

    r.blocks = count_blocks(r.rows);
    r.vectors = (r.cols + LANES - 1) / LANES;
    r.y = iron__allocate(allocator, r.cols, sizeof *r.y, "atax's reference", err);
    if (!r.y)
        return IRON_E_NOMEM;
    r.sums = iron__allocate(allocator, r.blocks * r.vectors, sizeof *r.sums,
                            "the sums of atax's reference", err);
    if (!r.sums) {
        iron__release(allocator, r.y);
        return IRON_E_NOMEM;
    }
    iron__team_run(team, run_block, &r, r.blocks);
    add_blocks(&r);
    iron__release(allocator, r.sums);
    own->reference = r.y;
    own->scale = find_scale(&r);
    return IRON_OK;
}
