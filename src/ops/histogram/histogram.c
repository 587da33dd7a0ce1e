/* SPDX-License-Identifier: MIT */
/*
 * histogram.c: the op histogram: what it is, its sizes and its limits. Rows on the CPU come first
 * (histogram_cpu.c), then those on GPUs (histogram_gpu.c).
 */
#include "ops/histogram/histogram.h"

#include "core/fail.h"
#include "ops/histogram/histogram_op.h"
#include "ops/line.h"

#include <inttypes.h>

#define VOCAB_USUAL 50257u
#define VOCAB_MAX   (UINT32_C(1) << 24)
#define ROWS_MAX    (UINT64_C(1) << 38)
#define BYTES_GPU   (UINT64_C(1) << 32)
#define BYTES_CPU   (UINT64_C(1) << 26)

static const char why[] =
    "Reading is all that has to be done, and one addition an element; but where the additions go, "
    "the data decide. Threads that meet in one counter wait for each other, and atomics in device "
    "memory let all threads of the device meet in a few lines of the last-level cache. A table in "
    "a group's local memory, added to the answer once at the end, leaves the meetings to the "
    "group, "
    "and local memory is fast at them. Copies of the table make them rarer; a copy for each of 32 "
    "lanes, each in a bank of its own, makes them impossible within a warp, whatever the data.\n"
    "\n"
    "Then memory decides again, and with it bytes in flight: 16-byte loads, several of them under "
    "way. With many bins the question is another one: does a table fit at all? Tokens of a large "
    "vocabulary need every byte of local memory that a unit has, or counters of half the width, "
    "which overflow unless somebody looks after them. "
    "Race all values of `data`: a contender that is fast on uniform data alone is a trap.";

static const char traffic[] =
    "All contenders read the data once. They differ in atomic additions: one an element in device "
    "memory (global-atomic), or one an element in local memory and one a bin and group in device "
    "memory. Counters in device memory have 8 bytes, tables in local memory 4 bytes a bin and "
    "copy, packed and swept ones 2. Values without room there are added in device memory, to one "
    "counter (packed) or to copies of it that a second kernel adds up (swept).";

static const char unless[] =
    "Tables have to be cleared and written back once a group: for data that are not much longer "
    "than tables times groups, or for bins that fit no local memory, adding in place does as well. "
    "Sorting first pays only if the sorted data are wanted anyway.";

static const char used[] =
    "iron's own kernels count nothing, but they add up by the same rule: sums are made in "
    "registers and local memory, and device memory sees one atomic a group and batch "
    "(tokens_champion in src/ops/tokens/champion.k, tokens_reduce_group in "
    "src/ops/tokens/tokens.k), and they read by 16-byte loads, several under way.";

static const char *const data_words[IRON_HISTOGRAM_DATA] = {"uniform", "zipf", "one", "sorted"};

static const iron__axis axes[] = {{.name = "data",
                                   .about = "which values there are, and in which order",
                                   .words = data_words,
                                   .count = IRON_HISTOGRAM_DATA}};

static const iron__size sizes[] = {
    {"size", "SMALL", UINT64_C(1) << 20, 1, NULL},
    {"size", "STANDARD", UINT64_C(1) << 28, 1, NULL},
    {"size", "LARGE", UINT64_C(1) << 32, 1, NULL},
};

static bool contender_at(size_t index, iron__contender *out) {
    if (index < iron__histogram_cpu_count())
        return iron__histogram_cpu_contender_at(index, out);
    return iron__histogram_gpu_contender_at(index - iron__histogram_cpu_count(), out);
}

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    *name = "bins";
    *value = iron__histogram_bins(c);
    return index == 0;
}

/* 4 GiB where there is a GPU, which then is busy for a millisecond; else what a CPU's caches cannot
 * hold. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t bytes = has_gpu ? BYTES_GPU : BYTES_CPU;

    while (bytes < 4 * cache_bytes)
        bytes *= 2;
    *rows = bytes / iron__element_bytes(element);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return c->rows * iron__element_bytes(c->element) + iron__histogram_bins(c) * sizeof(uint64_t);
}

/* An addition an element. */
static double operations(const iron__case *c) { return (double)c->rows; }

static iron_status accept(const iron__case *c, iron_error *err) {
    IRON_TRY(iron__line_accept(c, ROWS_MAX, err));
    IRON_FAIL_IF(c->element == IRON_U32 && (c->vocab < 2 || c->vocab > VOCAB_MAX), err, IRON_E_ARG,
                 "vocab is %" PRIu32 "; a histogram has 2 to %" PRIu32 " bins", c->vocab,
                 VOCAB_MAX);
    return IRON_OK;
}

const iron__op iron__op_histogram = {
    .name = "histogram",
    .contract = "how often each value occurs, a 64-bit count each: 256 values of u8, 65,536 of "
                "u16, the vocabulary of u32",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_U8) | IRON_BIT(IRON_U16) | IRON_BIT(IRON_U32),
    .usual = IRON_U8,
    .is_line = true,
    .vocab_usual = VOCAB_USUAL,
    .bound = IRON_BOUND_READ,
    .is_resident = true,
    .axes = axes,
    .axis_count = sizeof axes / sizeof axes[0],
    .param_at = param_at,
    .baselines = {"plain", "shared"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__histogram_make,
    .unmake = iron__histogram_unmake,
    .check = iron__histogram_check,
    .contender_at = contender_at,
};
