/* SPDX-License-Identifier: MIT */
/*
 * residency.c: the op residency: what it is, and its sizes. It races kernels of CUDA alone: OpenCL
 * has no word for what a cache should keep.
 */
#include "ops/residency/residency.h"

#include "ops/kit.h"
#include "ops/line.h"
#include "ops/residency/kernel_params.h"
#include "ops/residency/residency_op.h"

#define ROWS_MAX (UINT64_C(1) << 33)
#define GPU_ROWS (UINT64_C(1) << 28)
#define CPU_ROWS (UINT64_C(1) << 22) /* nobody races there; data must be of some size */

static const char why[] =
    "A stream passes through the L2 cache once, and leaves nothing there that anybody will want. "
    "But a cache does not know that: it keeps what came last. A table that is read now and then, "
    "at places that nobody can foresee, is pushed out by the stream between two reads of the same "
    "line, although it would fit, and every look-up then costs a trip to memory. Records of 128 "
    "bytes bring one key each, so while a table of some mebibytes is gone through once, several "
    "times as much of the stream has come by.\n"
    "\n"
    "There are three ways to tell the cache. A part of it can be set aside, for what a launch "
    "names. Loads of the stream can say that their lines may go first. And loads can name a policy "
    "each: the stream's first, the table's last. The race shows what each is worth for tables of "
    "different sizes, beside loads that say nothing.";

static const char traffic[] =
    "The stream is read once; that is what counts as useful. Each 128 bytes of it bring one "
    "look-up, which reads 32 bytes of the L2 cache, or of memory where the table was pushed out: "
    "up to a quarter more than the stream itself.";

static const char unless_it[] =
    "A table that is small, or read often enough, stays in the cache by itself. One that is larger "
    "than what can be set aside pushes itself out. And what is set aside is missing to all others "
    "on the device until it is given back.";

static const char used[] =
    "src/ops/atax/single_pass_real.k reads the matrix with k_load_once, loads that ask to be "
    "forgotten first, so that x stays. No kernel sets a part of the cache aside: what ours "
    "read again fits registers or local memory (src/ops/tokens/champion.k, apply.k), and a library "
    "should not take a part of the cache from its caller.";

static const double table_sizes[] = {8, 16, 24, 32};

static const iron__axis axes[] = {{.name = "table",
                                   .about = "MiB of the table that should stay in the cache",
                                   .numbers = table_sizes,
                                   .count = IRON_KIT_COUNT(table_sizes),
                                   .least = 1,
                                   .most = IRON_RESIDENCY_TABLE_MAX,
                                   .is_whole = true}};

static const iron__size sizes[] = {
    {"size", "SMALL", UINT64_C(1) << 24, 1, NULL},
    {"size", "STANDARD", GPU_ROWS, 1, NULL},
    {"size", "LARGE", UINT64_C(1) << 30, 1, NULL},
};

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? GPU_ROWS : CPU_ROWS;

    (void)element;
    /* a stream that the cache could hold would push nothing out */
    while (has_gpu && least * sizeof(uint32_t) < 8 * cache_bytes && least < ROWS_MAX)
        least *= 2;
    *rows = least;
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) { return c->rows * sizeof(uint32_t); }

/* An addition and an exclusive or a word. */
static double operations(const iron__case *c) { return 2 * (double)c->rows; }

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

const iron__op iron__op_residency = {
    .name = "residency",
    .contract =
        "sum and XOR of a stream of 32-bit words; the first of each 32 is a key, and counts "
        "as key ^ table[key * words / 2^32]",
    .why = why,
    .traffic = traffic,
    .unless = unless_it,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .bound = IRON_BOUND_READ,
    .is_resident = true,
    .is_never_cold = true,
    .axes = axes,
    .axis_count = IRON_KIT_COUNT(axes),
    .baselines = {"plain", "plain"},
    .sizes = sizes,
    .size_count = IRON_KIT_COUNT(sizes),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__residency_make,
    .unmake = iron__residency_unmake,
    .check = iron__residency_check,
    .contender_at = iron__residency_contender_at,
};

_Static_assert(RESIDENCY_RECORD == 32, "what the contract says");
