/* SPDX-License-Identifier: MIT */
/*
 * occupancy.c: the op occupancy: what it is, and its sizes. It races kernels of CUDA alone, since
 * OpenCL neither tells how many threads a unit holds nor lets one say how many registers they get.
 */
#include "ops/occupancy/occupancy.h"

#include "ops/kit.h"
#include "ops/line.h"
#include "ops/occupancy/occupancy_op.h"

#define ROWS_MAX (UINT64_C(1) << 33)
#define GPU_ROWS (UINT64_C(1) << 26)
#define CPU_ROWS (UINT64_C(1) << 22) /* nobody races there; data must be of some size */

static const char why[] =
    "Memory answers after hundreds of nanoseconds, and what it delivers in a second is what was "
    "under way at a time, divided by that wait. A unit of a GPU has as many bytes under way as it "
    "holds threads, times the loads of a thread that waits for none of them, times their width. "
    "Occupancy is the first factor alone: the share of the threads that a unit could hold which "
    "it does hold, given what each takes of registers and local memory.\n"
    "\n"
    "The race holds the kernel and moves the factors. The size of a group matters little while "
    "the unit is full. Fewer threads with one load each are slower in proportion; but an eighth "
    "of the threads with eight loads each is a full unit again, as far as memory can tell. And "
    "where a kernel needs its registers, squeezing them until more threads fit makes it store to "
    "memory what it just had: full, and slower.";

static const char traffic[] =
    "Each word is read once and written once. Where registers are spilled, hundreds of bytes a "
    "thread and turn go to the L1 cache and back on top of that, and to memory when it is full.";

static const char unless_it[] =
    "Once enough is under way, neither more threads nor more loads help; and a kernel that waits "
    "for arithmetic rather than memory needs less of either.";

static const char used[] =
    "src/ops/tokens/champion.k has four 16-byte loads under way a thread, and as many threads as "
    "fit. src/ops/atax/single_pass_real.k goes the other way: K_KERNEL_DENSE asks for few groups a "
    "unit, whose threads hold rows of the matrix in registers.";

static const iron__size sizes[] = {
    {"size", "SMALL", UINT64_C(1) << 24, 1, NULL},
    {"size", "STANDARD", GPU_ROWS, 1, NULL},
    {"size", "LARGE", UINT64_C(1) << 28, 1, NULL},
};

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    (void)cache_bytes;
    (void)element;
    *rows = has_gpu ? GPU_ROWS : CPU_ROWS;
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) { return 2 * c->rows * sizeof(uint32_t); }

/* Two shifts, two exclusive ors and a multiplication a word. */
static double operations(const iron__case *c) { return 5 * (double)c->rows; }

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

const iron__op iron__op_occupancy = {
    .name = "occupancy",
    .contract = "out[i] = mix(in[i]), 32-bit words, by more or fewer threads",
    .why = why,
    .traffic = traffic,
    .unless = unless_it,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .baselines = {"threads-256", "threads-256"},
    .sizes = sizes,
    .size_count = IRON_KIT_COUNT(sizes),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__occupancy_make,
    .unmake = iron__occupancy_unmake,
    .check = iron__occupancy_check,
    .contender_at = iron__occupancy_contender_at,
};
