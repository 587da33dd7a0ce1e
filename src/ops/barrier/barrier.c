/* SPDX-License-Identifier: MIT */
/*
 * barrier.c: the op barrier: what it is, what it is about, its sizes and limits. Its rows are in
 * barrier_cpu.c and barrier_gpu.c.
 */
#include "ops/barrier/barrier.h"

#include "ops/barrier/barrier_op.h"
#include "ops/kit.h"
#include "ops/line.h"

#define ROWS_MAX (UINT64_C(1) << 38)

static const char why[] =
    "A sum is the simplest thing that threads cannot compute without each other, and waiting is "
    "what it costs. A barrier stops all warps of a group until the slowest is there; a tree over "
    "256 sums has eight of them. But once 32 sums are left, only one warp works, and a warp needs "
    "no barrier of the group: it can order its own accesses to local memory (on CUDA __syncwarp, "
    "where __CUDA_ARCH__ is 700 or more), or pass values from register to register by shuffles, or "
    "add them in one instruction (redux, from 800 on; the same kernel is compiled to shuffles for "
    "older cards). Segments are as short as a group's one load, so that this part shows beside the "
    "reading. A warp that has a segment to itself waits for nobody at all.\n"
    "\n"
    "Across groups there is no barrier, unless all of them run at the same time and build one of "
    "atomics. The usual ways around it: end the launch and start another; count arrivals, and let "
    "the group that arrives last finish; add everything to one word. All read alike and at the "
    "memory's rate, so on a large line they are equal; on a small one the launches and the waiting "
    "are all there is. Compare --size 'size:*'.";

static const char traffic[] =
    "The line is read once, 4 bytes an element. For reach=block 4 bytes are written for each 1024 "
    "elements. For reach=grid each group writes and reads 8 bytes, a few kilobytes in all; "
    "`two-launches` starts a second kernel for them, `atomic` clears its word before each run.";

static const char unless[] =
    "Where a thread has much to read before it has to meet the others, all ways of meeting are "
    "equal, and the simplest is best. A last group or a grid-wide barrier pays only where a launch "
    "takes as long as the work; a grid-wide barrier also keeps the launch to as many groups as fit "
    "at once. One word for all is fine for hundreds of groups, and not for millions of threads.";

static const char used[] =
    "tokens_reduce_group in src/ops/tokens/tokens.k adds up by shuffles with one barrier, for "
    "champion.k and others; tokens_reduce in src/ops/tokens/reduce.k keeps the tree with a barrier "
    "a step, as its paper has it. tokens_champion_step in src/ops/tokens/champion_step.cu uses "
    "redux, and its groups wait for each other within one launch. tokens_champion in "
    "src/ops/tokens/champion.k adds each group's sums by atomics; atax_sum in "
    "src/ops/atax/coalesced_real.k is a second launch. No kernel lets its last group finish: where "
    "atomics add up and nobody reads their results, there is nothing to wait for.";

static const char *const reaches[] = {"block", "grid"};

static const iron__axis axes[] = {
    {.name = "reach",
     .about = "what is added up: every 1024 elements by themselves (block), or all of them (grid)",
     .words = reaches,
     .count = IRON_KIT_COUNT(reaches)}};

static const iron__size sizes[] = {
    {"size", "SMALL", UINT64_C(1) << 16, 1, NULL},
    {"size", "MEDIUM", UINT64_C(1) << 20, 1, NULL},
    {"size", "LARGE", UINT64_C(1) << 28, 1, NULL},
};

static bool contender_at(size_t index, iron__contender *out) {
    return index < IRON_BARRIER_CPU_ROWS
               ? iron__barrier_cpu_contender_at(index, out)
               : iron__barrier_gpu_contender_at(index - IRON_BARRIER_CPU_ROWS, out);
}

/* 1 GiB for a GPU; else four times the caches, and 256 MiB at most. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = UINT64_C(1) << (has_gpu ? 28 : 24);
    uint64_t most = UINT64_C(1) << (has_gpu ? 32 : 26);

    *rows = iron__line_usual(least, most, iron__element_bytes(element), cache_bytes);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return c->rows * sizeof(uint32_t) + iron__barrier_output_bytes(c);
}

static double operations(const iron__case *c) { return (double)c->rows; }

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    if (index > 0 || iron__barrier_is_grid(c))
        return false;
    *name = "segment";
    *value = BARRIER_SEGMENT;
    return true;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

const iron__op iron__op_barrier = {
    .name = "barrier",
    .contract =
        "the sum of every 1024 consecutive u32 (reach=block, the last may be fewer), or one "
        "64-bit sum of all (reach=grid)",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .bound = IRON_BOUND_READ,
    .is_resident = true,
    .axes = axes,
    .axis_count = IRON_KIT_COUNT(axes),
    .param_at = param_at,
    .baselines = {"plain", "block-barrier"},
    .sizes = sizes,
    .size_count = IRON_KIT_COUNT(sizes),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__barrier_make,
    .unmake = iron__barrier_unmake,
    .check = iron__barrier_check,
    .contender_at = contender_at,
};
