/* SPDX-License-Identifier: MIT */
/*
 * atax.c: the op atax: what it is, its sizes, and its rows on the CPU. Rows on GPUs follow
 * those (atax_gpu.c).
 */
#include "ops/atax/atax.h"

#include "core/fail.h"
#include "ops/atax/atax_gpu.h"
#include "ops/atax/atax_op.h"

#include <inttypes.h>

#define SIDE_MAX  UINT64_C(0x7FFFFFFF)
#define BYTES_MAX (UINT64_C(1) << 40)

static const char why[] =
    "y needs A twice: once for t = A x, and once more for A^T t, which cannot begin before t is "
    "known. Each element of A takes part in four operations, and a processor does hundreds in the "
    "time in which memory delivers one element; so the reading of A decides, and the order in "
    "which "
    "it is read. Written down as it stands, A^T t goes down the columns of a matrix that lies in "
    "rows, and uses one element of each cache line it fetches. With its loops exchanged it reads A "
    "in order; all that is left then is that it reads it twice.\n"
    "\n"
    "Once is enough: row i of A is needed for t[i], and right after that, while it still is in a "
    "cache or in registers, for the multiple that it adds to y. Libraries of two matrix-vector "
    "products cannot do that, whatever they do inside. Useful bytes are those of one read, so a "
    "contender with two cannot come past half of the ceiling. A transposed copy of A makes both "
    "products run along rows; making it costs as much as a few of the runs that it speeds up, "
    "which "
    "is why `prepare` is timed and shown beside them.";

static const char traffic[] =
    "A contender that computes one product after the other reads A twice, the last one once; x, t "
    "and y are a row's or a column's length, and stay in caches.";
static const char unless[] =
    "While A fits into the last-level cache, the second read costs little, and a library's two "
    "products are as good. Where a row is longer than a group's registers, the single pass reads "
    "it twice after all, the second time from the cache.";
static const char used[] =
    "The engine is a single pass too: tokens_champion (src/ops/tokens/champion.k) reads every "
    "token once for all nodes, which the first modes read once a node.";

static const iron__size sizes[] = {
    {"talk", "MINI", 32, 32, NULL},
    {"talk", "SMALL", 500, 500, NULL},
    {"talk", "STANDARD", 4000, 4000, NULL},
    {"talk", "LARGE", 8000, 8000, NULL},
    {"talk", "EXTRALARGE", 20000, 20000, NULL},
    {"acc", "MINI", 1024, 1024, "f32"},
    {"acc", "SMALL", 2048, 2048, "f32"},
    {"acc", "STANDARD", 4096, 4096, "f32"},
    {"acc", "LARGE", 8192, 8192, "f32"},
    {"acc", "EXTRALARGE", 16384, 16384, "f32"},
    {"polybench", "MINI", 38, 42, NULL},
    {"polybench", "SMALL", 116, 124, NULL},
    {"polybench", "MEDIUM", 390, 410, NULL},
    {"polybench", "LARGE", 1900, 2100, NULL},
    {"polybench", "EXTRALARGE", 1800, 2200, NULL},
};

#define ROW(text_name, text_idea, slower, reads, function, scratch, single)                        \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_CPU,      \
        .passes = (reads), .cpu_run = (function), .cpu_scratch_bytes = (scratch),                  \
        .is_single = (single)                                                                      \
    }

static const iron__contender cpu_rows[] = {
    ROW("naive", "both products as they are written; A^T t goes down the columns", NULL, 2,
        iron__atax_run_naive, iron__atax_plain_scratch, true),
    ROW("interchanged", "A^T t with its loops exchanged: A is read along its rows", "naive", 2,
        iron__atax_run_interchanged, iron__atax_plain_scratch, true),
    ROW("blocked", "blocks of columns, so that their part of y stays in the L1 cache",
        "interchanged", 2, iron__atax_run_blocked, iron__atax_plain_scratch, true),
    ROW("vector", "four rows at a time in vectors, lines asked for ahead", "blocked", 2,
        iron__atax_run_vector, iron__atax_plain_scratch, true),
    ROW("threads", "vector's loops on all threads: strips of rows, a y for each, then their sum",
        "vector", 2, iron__atax_run_threads, iron__atax_threads_scratch, false),
    ROW("single-pass-one-thread", "a row adds to y while it still is in the cache: A is read once",
        "vector", 1, iron__atax_run_single_pass_one_thread, NULL, true),
    ROW("single-pass", "the same on all threads: strips of rows, a y for each, then their sum",
        "threads", 1, iron__atax_run_single_pass, iron__atax_single_pass_scratch, false),
};

#define CPU_ROWS (sizeof cpu_rows / sizeof cpu_rows[0])

static bool contender_at(size_t index, iron__contender *out) {
    if (index < CPU_ROWS) {
        *out = cpu_rows[index];
        return true;
    }
    return iron__atax_gpu_contender_at(index - CPU_ROWS, out);
}

/* The talk's STANDARD, if it is no cached one: else the next whole thousand that is not. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t side = 4000;

    (void)has_gpu;
    while (side * side * iron__element_bytes(element) / 4 < cache_bytes && side < SIDE_MAX / 2)
        side += 1000;
    *rows = *cols = side;
}

/* A, x and y once each. */
static uint64_t useful_bytes(const iron__case *c) {
    return (c->rows + 2) * c->cols * iron__element_bytes(c->element);
}

/* A multiplication and an addition for each element of A, twice. */
static double operations(const iron__case *c) { return 4 * (double)c->rows * (double)c->cols; }

static iron_status accept(const iron__case *c, iron_error *err) {
    uint64_t bytes = 0;

    IRON_FAIL_IF(c->element != IRON_F32 && c->element != IRON_F64, err, IRON_E_ARG,
                 "atax knows f32 and f64, not %s",
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

const iron__op iron__op_atax = {
    .name = "atax",
    .contract = "y = A^T (A x), A row-major",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64),
    .usual = IRON_F64,
    .bound = IRON_BOUND_READ,
    .baselines = {"naive", "naive"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__atax_make,
    .unmake = iron__atax_unmake,
    .check = iron__atax_check,
    .contender_at = contender_at,
};
