/* SPDX-License-Identifier: MIT */
/*
 * adaptive.c: the op adaptive: what it is, its axis, its sizes and limits.
 */
#include "ops/adaptive/adaptive.h"

#include "ops/adaptive/adaptive_op.h"
#include "ops/line.h"

#define ROWS_MAX (UINT64_C(1) << 36)

static const char why[] =
    "An expensive function, of which f(0) = 0 is known beforehand, is asked for over data of which "
    "many are 0. A branch per element looks like the remedy, and is none on a GPU: 32 threads run "
    "in step, and as long as one of them has work to do, all take its time. With one element of "
    "ten at random places, 97 of 100 such warps find one. A switch between a branching and a dense "
    "kernel by the density, as the guide has it, therefore hardly gains anything.\n"
    "\n"
    "What helps is to move the work, not the branch: a group packs those of its elements that are "
    "not 0, its threads take them from the front, and nearly all warps are full or have nothing to "
    "do. The results go back to their places through local memory, so each element still is read "
    "and written once, 16 bytes at a time. Then time follows the density, down to the point where "
    "memory is the limit. auto looks at what it has loaded anyway: groups without work only write, "
    "full ones compute as they stand, all others pack.";

static const char traffic[] =
    "Useful: each element read and written once, 8 bytes. All contenders move just that; they "
    "differ in how many of their threads compute something that is wanted.";

static const char unless[] =
    "Packing does not pay where the function is cheap (a few dozen operations are hidden behind "
    "the memory anyway), where nearly nothing is 0, or where the zeros come in runs of whole "
    "warps: then a branch is enough.";

static const char used[] =
    "src/ops/tokens/apply.k (tokens_apply_settle) looks at each node's potential and adds its "
    "batches as one whole number where that is exact, one by one where it is not; and the host "
    "takes tokens_champion_few for batches too short for tokens_champion "
    "(src/ops/tokens/champion.k). Nothing of ours packs elements: every token counts.";

static const double densities[] = {0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
static const iron__axis axes[] = {{.name = "density",
                                   .about = "the share of elements that are not 0",
                                   .numbers = densities,
                                   .count = sizeof densities / sizeof densities[0],
                                   .telling = 2,
                                   .least = 0,
                                   .most = 1}};

static const iron__size sizes[] = {{"size", "SMALL", UINT64_C(1) << 16, 1, NULL},
                                   {"size", "STANDARD", UINT64_C(1) << 24, 1, NULL},
                                   {"size", "LARGE", UINT64_C(1) << 28, 1, NULL}};

static uint64_t useful_bytes(const iron__case *c) { return 2 * sizeof(float) * c->rows; }

static double operations(const iron__case *c) {
    return IRON_ADAPTIVE_OPERATIONS * iron__adaptive_density(c) * (double)c->rows;
}

/* On a GPU several times any cache; the right answer takes the host a while, and more would only
 * keep it busy. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? UINT64_C(1) << 26 : UINT64_C(1) << 22;

    (void)element;
    *rows = iron__line_usual(least, ROWS_MAX, 2 * sizeof(float), cache_bytes);
    *cols = 1;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

static bool contender_at(size_t index, iron__contender *out) {
    size_t on_cpu = iron__adaptive_cpu_contender_count();

    return index < on_cpu ? iron__adaptive_cpu_contender_at(index, out)
                          : iron__adaptive_gpu_contender_at(index - on_cpu, out);
}

const iron__op iron__op_adaptive = {
    .name = "adaptive",
    .contract = "out = f(in), element by element: f(0) = 0, else a hundred times sin(v) cos(v)",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_F32),
    .usual = IRON_F32,
    .is_line = true,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .axes = axes,
    .axis_count = sizeof axes / sizeof axes[0],
    .baselines = {"dense-always", "dense-always"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__adaptive_make,
    .unmake = iron__adaptive_unmake,
    .check = iron__adaptive_check,
    .contender_at = contender_at,
};
