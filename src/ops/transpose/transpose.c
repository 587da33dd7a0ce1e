/* SPDX-License-Identifier: MIT */
/*
 * transpose.c: the op transpose: what it is, its sizes, and its rows on the CPU. Rows on GPUs
 * follow those (transpose_gpu.c).
 */
#include "ops/transpose/transpose.h"

#include "core/fail.h"
#include "ops/transpose/transpose_op.h"

#include <inttypes.h>

#define SIDE_MAX  UINT64_C(0x7FFFFFFF)
#define BYTES_MAX (UINT64_C(1) << 40)

static const char why[] =
    "Nothing is computed here: every element goes to another place. Written down as it stands, one "
    "of the two sides walks down columns. A memory answers with whole lines (32 to 128 bytes), so "
    "a walk down a column of 4-byte elements moves many times the bytes that are asked for; and "
    "where rows are a power of two long, all lines of a column fall into the same few sets of a "
    "cache.\n"
    "\n"
    "A tile is the way out: read a block along rows, turn it where that is cheap, write it along "
    "rows. On a GPU cheap means local memory, and there a column is no better at first: it lies in "
    "one bank, and 32 threads take turns. One unused element a line (padding) or a column number "
    "XORed with the row (swizzling) spreads it over all banks. What is left then is how much is "
    "in flight, 16 bytes an access, and the order of the tiles: those that are worked on at the "
    "same time should write rows of B side by side. champion-rows-first is the champion without "
    "that order. The race shows each step by itself, beside a plain copy of as many bytes, which "
    "no transpose can beat.";

static const char traffic[] =
    "Useful are one read of A and one write of B: 2 * rows * cols elements, the same for all. "
    "naive "
    "asks for that much as well, but its writes are 4 bytes of a sector of 32 each; all others "
    "move whole lines on both sides.";

static const char unless[] =
    "It does not pay where the reader can take the matrix as it lies (a matrix product with a "
    "flag, a loop exchanged as in atax.cpu.interchanged), or where both matrices fit a cache.";

static const char used[] =
    "The kernel atax_transpose in src/ops/atax/two_kernels_real.k makes the copy of the contender "
    "atax transposed through a padded tile; atax_load_tile in src/ops/atax/tiled_real.k pads its "
    "tile for the same reason. The layouts of src/ops/layout are transposes of particles by "
    "fields.";

static const iron__size sizes[] = {
    {"size", "SMALL", 2048, 2048, NULL},   {"size", "STANDARD", 8192, 8192, NULL},
    {"size", "LARGE", 16384, 16384, NULL}, {"size", "ODD", 16383, 16381, NULL},
    {"size", "WIDE", 1024, 262144, NULL},  {"size", "TALL", 262144, 1024, NULL},
};

#define ROW(text_name, text_idea, slower, function, single)                                        \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_CPU,      \
        .passes = 1, .cpu_run = (function), .is_single = (single)                                  \
    }

static const iron__contender cpu_rows[] = {
    ROW("naive", "two loops; every element of a row goes to another line of B", NULL,
        iron__transpose_run_naive, true),
    ROW("blocked", "blocks of 32 x 32, whose lines stay in the L1 cache", "naive",
        iron__transpose_run_blocked, true),
    ROW("vector", "squares turned in registers, tiles that leave in runs of 512 bytes", "blocked",
        iron__transpose_run_vector, true),
    ROW("threads", "vector's tiles on all threads", "vector", iron__transpose_run_threads, false),
};

#define CPU_ROWS (sizeof cpu_rows / sizeof cpu_rows[0])

static bool contender_at(size_t index, iron__contender *out) {
    if (index < CPU_ROWS) {
        *out = cpu_rows[index];
        return true;
    }
    return iron__transpose_gpu_contender_at(index - CPU_ROWS, out);
}

/* On a GPU the size that libraries are compared at; else the next whole thousand that no cache
 * holds. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t side = has_gpu ? 16384 : 4000;

    while (side * side * iron__element_bytes(element) / 4 < cache_bytes && side < SIDE_MAX / 2)
        side += has_gpu ? 16384 : 1000;
    *rows = *cols = side;
}

/* A is read and B is written. */
static uint64_t useful_bytes(const iron__case *c) {
    return 2 * c->rows * c->cols * iron__element_bytes(c->element);
}

static double operations(const iron__case *c) {
    (void)c;
    return 0;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    uint64_t bytes = 0;

    IRON_FAIL_IF(c->element != IRON_F32 && c->element != IRON_F64, err, IRON_E_ARG,
                 "transpose knows f32 and f64, not %s",
                 c->element < IRON_ELEMENTS ? iron__element_name(c->element) : "this type");
    IRON_FAIL_IF(c->rows < 1 || c->cols < 1, err, IRON_E_ARG,
                 "a matrix of %" PRIu64 "x%" PRIu64 " is empty; both sides must be at least 1",
                 c->rows, c->cols);
    IRON_FAIL_IF(c->rows > SIDE_MAX || c->cols > SIDE_MAX, err, IRON_E_ARG,
                 "a matrix of %" PRIu64 "x%" PRIu64 " is too long; sides go up to %" PRIu64,
                 c->rows, c->cols, SIDE_MAX);
    IRON_FAIL_IF(
        __builtin_mul_overflow(c->rows * c->cols, iron__element_bytes(c->element), &bytes) ||
            bytes > BYTES_MAX,
        err, IRON_E_ARG, "a matrix of %" PRIu64 "x%" PRIu64 " %s is too large; up to 2^40 bytes go",
        c->rows, c->cols, iron__element_name(c->element));
    return IRON_OK;
}

const iron__op iron__op_transpose = {
    .name = "transpose",
    .contract = "B = A^T, both row-major",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64),
    .usual = IRON_F32,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .baselines = {"naive", "naive"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__transpose_make,
    .unmake = iron__transpose_unmake,
    .check = iron__transpose_check,
    .contender_at = contender_at,
};
