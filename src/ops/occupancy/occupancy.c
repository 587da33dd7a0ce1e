/* SPDX-License-Identifier: MIT */
/*
 * occupancy.c: one streaming kernel with different numbers of resident threads, loads in flight per
 * thread, and registers. Only CUDA races: OpenCL neither reports how many threads a unit holds nor
 * lets a program limit registers.
 *
 * Each row launches as many groups as all units hold at a time, and each group loops over its
 * share. The driver reports how many groups a unit holds. Rows that want fewer request local memory
 * that they do not use: the smallest amount that keeps the others out.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/occupancy/kernel_params.h"
#include "ops/op.h"

/* The function applied to each word. Each step is invertible, so different words stay different. */
static uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= UINT32_C(0x7FEB352D);
    return x ^ x >> 15;
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    return iron__data_input(p, "in", (size_t)p->c.rows, NULL, err);
}

static uint32_t expected(const iron__op_problem *problem, size_t i) {
    return mix(((const uint32_t *)problem->inputs[0].data)[i]);
}

IRON_KIT_IMAGE(occupancy)

#define KIB UINT64_C(1024)

/* params[] of a work, computed by set_up. */
enum { PARAM_LOCAL_BYTES, PARAM_GROUPS };

/* Returns how many groups a unit holds if each uses so much local memory. */
typedef uint32_t (*groups_function)(void *context, uint64_t local_bytes);

/* The least local memory per group, in whole KiB up to most_bytes, with which a unit holds at most
 * `groups` groups; UINT64_MAX if even most_bytes is too little. */
static uint64_t least_local_bytes(uint32_t groups, uint64_t most_bytes, groups_function groups_with,
                                  void *context) {
    uint64_t low = 0, high = most_bytes / KIB; /* the answer is in low ... high */

    if (groups_with(context, high * KIB) > groups)
        return UINT64_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (groups_with(context, middle * KIB) > groups)
            low = middle + 1;
        else
            high = middle;
    }
    return low * KIB;
}

static iron__gpu_resources facts_with(const iron__gpu_work *work, uint64_t local_bytes) {
    iron__gpu_resources f;

    (void)iron__gpu_kernel_resources(work->device, work->kernels[0], work->spec->threads,
                                     (size_t)local_bytes, &f, NULL); /* unknown values are 0 */
    return f;
}

static uint32_t groups_with(void *context, uint64_t local_bytes) {
    return facts_with(context, local_bytes).groups;
}

/* A launcher's own is the share of the threads that a unit can hold; 0: as many as fit. */
static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const double share = *(const double *)work->spec->own;
    uint32_t threads = work->spec->threads, groups;
    iron__gpu_resources full = facts_with(work, 0);
    uint64_t bytes;

    IRON_FAIL_IF(full.groups == 0 || !(full.occupancy > 0), err, IRON_E_UNSUPPORTED,
                 "the driver of %s does not report how many groups a unit holds",
                 work->device->info.name);
    work->params[PARAM_GROUPS] = full.groups;
    if (!(share > 0))
        return IRON_OK;
    groups = (uint32_t)(full.groups * (double)threads / full.occupancy * share / threads + 0.5);
    groups = groups > 0 ? groups : 1;
    bytes = least_local_bytes(groups, work->device->info.local_bytes_max, groups_with, work);
    IRON_FAIL_IF(bytes == UINT64_MAX || groups_with(work, bytes) != groups, err, IRON_E_UNSUPPORTED,
                 "no amount of local memory limits a unit of %s to exactly %u groups",
                 work->device->info.name, groups);
    work->params[PARAM_LOCAL_BYTES] = bytes;
    work->params[PARAM_GROUPS] = groups;
    return IRON_OK;
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    uint64_t turns = iron__kit_pieces(work->c.rows, work->spec->block);
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {iron__kit_groups(work, turns, (uint32_t)work->params[PARAM_GROUPS])},
        .threads = {work->spec->threads},
        IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                      IRON_GPU_VALUE(work->c.rows)),
        .local_bytes = (size_t)work->params[PARAM_LOCAL_BYTES]};

    return iron__gpu_run(queue, &l, err);
}

/* threads_of_<name> and turn_of_<name> for each kernel. */
#define NUMBERS(name, threads, loads)                                                              \
    threads_of_##name = (threads), turn_of_##name = 4 * (threads) * (loads),
#define NUMBERS_TIGHT(name, threads, registers) NUMBERS(name, threads, OCCUPANCY_HELD)
enum {
    OCCUPANCY_SHAPES(NUMBERS) OCCUPANCY_TIGHT(NUMBERS_TIGHT) /* the macros add the commas */
    threads_of_words = OCCUPANCY_WORDS_THREADS,
    turn_of_words = OCCUPANCY_WORDS_THREADS
};

/* block is the words per group and turn. */
#define KERNEL(of, of_unit)                                                                        \
    IRON_ON_CUDA, .gpu = IRON_KIT(.kernels = {"occupancy_" #of}, .threads = threads_of_##of,       \
                                  .block = turn_of_##of, .set_up = set_up, .run = run,             \
                                  .own = &(const double){of_unit})

static const iron__contender contenders[] = {
    {"threads-32", "groups of one warp: a unit cannot hold enough groups", NULL,
     KERNEL(threads_32, 0)},
    {"threads-64", "groups of 64, one 16-byte load in flight per thread", "threads-32",
     KERNEL(threads_64, 0)},
    {"threads-256", "groups of 256: the same number of threads per unit", NULL,
     KERNEL(threads_256, 0)},
    {"threads-1024", "groups of 1024: the same number of threads in fewer groups", NULL,
     KERNEL(threads_1024, 0)},
    {"threads-256-words", "one 4-byte load per thread: a full unit, but few bytes in flight", NULL,
     KERNEL(words, 0)},
    {"limit-50%", "half of the threads: unused local memory keeps the others out", "limit-25%",
     KERNEL(threads_64, 0.5)},
    {"limit-25%", "a quarter of the threads", "limit-12%", KERNEL(threads_64, 0.25)},
    {"limit-12%", "an eighth of the threads, one load in flight per thread", NULL,
     KERNEL(threads_64, 0.125)},
    {"limit-12%-ilp-4", "an eighth of the threads with four loads in flight each", "limit-12%",
     KERNEL(ilp_4, 0.125)},
    {"limit-12%-ilp-8",
     "an eighth of the threads with eight loads in flight each: as much as all with one",
     "limit-12%-ilp-4", KERNEL(ilp_8, 0.125)},
    {"registers-32", "16 loads, a full unit: values that 32 registers cannot hold are spilled",
     NULL, KERNEL(registers_32, 0)},
    {"registers-64", "16 loads, half a unit: fewer spills", "registers-32",
     KERNEL(registers_64, 0)},
    {"registers-128", "16 loads, even fewer threads: no spills", "registers-64",
     KERNEL(registers_128, 0)},
};

const iron__op iron__op_occupancy = {
    .name = "occupancy",
    .contract = "out[i] = mix(in[i]), 32-bit words",
    .why =
        "Memory answers after hundreds of nanoseconds, and its bandwidth is the number of bytes in "
        "flight divided by that latency: the number of a unit's resident threads, times the "
        "independent loads of each thread, times their width. Occupancy is only the first factor: "
        "the share of the threads a unit could hold that it does hold, given the registers and "
        "local memory that each needs.\n"
        "\n"
        "The race keeps the kernel and varies the factors. The group size matters little while the "
        "unit is full. Fewer threads with one load each are proportionally slower, but an eighth "
        "of the threads with eight loads each keep memory as busy as a full unit. Limiting "
        "registers until more threads fit makes a kernel spill values to memory: a full unit, but "
        "slower.",
    .traffic =
        "Each word is read once and written once. If registers are spilled, hundreds of bytes per "
        "thread and turn also go to the L1 cache and back, and to memory when it is full.",
    .unless =
        "Once enough bytes are in flight, neither more threads nor more loads help; a kernel that "
        "waits for arithmetic rather than for memory needs fewer of both.",
    .used = "src/ops/tokens/champion.k has four 16-byte loads in flight per thread and as many "
            "threads as fit. The single pass in src/ops/atax/atax_real.k does the opposite: "
            "K_KERNEL_DENSE asks for few groups per unit, whose threads hold rows of the matrix in "
            "registers.",
    IRON_LINE_OP(IRON_U32, iron__line_check),
    .bound = IRON_BOUND_COPY,
    .baselines = {"threads-256", "threads-256"},
    IRON_LINE_SIZES(24, 26, 28),
    .usual_log2 = {{22, 22}, {26, 26}}, /* nothing races on a CPU, but tests make data */
    .bytes_each = 2 * sizeof(uint32_t),
    .operations_each = 5, /* two shifts, two exclusive ors, one multiplication */
    .rows_max = UINT64_C(1) << 33,
    .output = "out",
    .expected = expected,
};
