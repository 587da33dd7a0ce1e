/* SPDX-License-Identifier: MIT */
/*
 * occupancy.c: one streaming kernel with different numbers of resident threads, loads in flight per
 * thread, and registers. Only CUDA races: OpenCL neither reports how many threads a unit holds nor
 * lets a program limit registers.
 *
 * Each row launches as many groups as all units hold at a time, and each group loops over its
 * share. The driver reports how many groups a unit holds. Rows that want fewer request local memory
 * that they do not use: the smallest amount that keeps the others out.
 *
 * The file holds, in order: the problem (random words) and its check, which computes each word
 * again, the GPU rows, and the op's table.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/occupancy/kernel_params.h"
#include "ops/op.h"

#include <stdio.h>

/* The function applied to each word. Each step is invertible, so different words stay different. */
static uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= UINT32_C(0x7FEB352D);
    return x ^ x >> 15;
}

#define STREAM 1u

static iron_status fill(iron__op_problem *p, iron_error *err) {
    p->input_count = 1;
    p->output_bytes = (size_t)p->c.rows * sizeof(uint32_t);
    IRON_TRY(iron__data_take(&p->inputs[0], "in", p->output_bytes, err));
    iron__data_fill_words(&p->inputs[0], &p->c, STREAM, p->pool);
    return IRON_OK;
}

static iron_status make(iron__op_problem *out, iron__thread_pool *pool, iron_error *err) {
    return iron__data_make(out, pool, fill, err);
}

typedef struct answer {
    const uint32_t *in, *out;
} answer;

static bool differs(const void *context, size_t i) {
    const answer *a = context;

    return a->out[i] != mix(a->in[i]);
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    answer a = {problem->inputs[0].data, output};
    size_t rows = (size_t)problem->c.rows;
    size_t i = iron__data_first(problem->pool, rows, differs, &a);

    if (i == rows)
        return true;
    snprintf(text, size, "out[%zu] is %u, should be %u", i, a.out[i], mix(a.in[i]));
    return false;
}

IRON_GPU_EMBEDDED(occupancy)
static const iron__gpu_image image = IRON_GPU_IMAGE(occupancy);

#define KIB UINT64_C(1024)

/* How a kernel is launched: a spec's own. */
typedef struct shape {
    uint32_t threads;
    uint32_t turn; /* words per group and turn */
    double share;  /* of the threads that a unit can hold; 0: as many as fit */
} shape;

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
    const shape *s = work->spec->own;
    iron__gpu_resources f;

    (void)iron__gpu_kernel_resources(work->device, work->kernels[0], s->threads,
                                     (size_t)local_bytes, &f, NULL); /* unknown values are 0 */
    return f;
}

static uint32_t groups_with(void *context, uint64_t local_bytes) {
    return facts_with(context, local_bytes).groups;
}

/* Limits a unit to the share of threads that the row asks for. */
static iron_status limit_groups(iron__gpu_work *work, const iron__gpu_resources *full,
                                iron_error *err) {
    const shape *s = work->spec->own;
    double unit_threads = full->groups * (double)s->threads / full->occupancy;
    uint32_t groups = (uint32_t)(unit_threads * s->share / s->threads + 0.5);
    uint64_t bytes;

    groups = groups > 0 ? groups : 1;
    bytes = least_local_bytes(groups, work->device->info.local_bytes_max, groups_with, work);
    IRON_FAIL_IF(bytes == UINT64_MAX || groups_with(work, bytes) != groups, err, IRON_E_UNSUPPORTED,
                 "no amount of local memory limits a unit of %s to exactly %u groups",
                 work->device->info.name, groups);
    work->params[PARAM_LOCAL_BYTES] = bytes;
    work->params[PARAM_GROUPS] = groups;
    return IRON_OK;
}

static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const shape *s = work->spec->own;
    iron__gpu_resources full = facts_with(work, 0);

    IRON_FAIL_IF(full.groups == 0 || !(full.occupancy > 0), err, IRON_E_UNSUPPORTED,
                 "the driver of %s does not report how many groups a unit holds",
                 work->device->info.name);
    work->params[PARAM_GROUPS] = full.groups;
    return s->share > 0 ? limit_groups(work, &full, err) : IRON_OK;
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const shape *s = work->spec->own;
    uint64_t turns = iron__kit_pieces(work->c.rows, s->turn);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows)};
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {iron__kit_groups(work, turns, (uint32_t)work->params[PARAM_GROUPS])},
        .threads = {s->threads},
        .args = args,
        .arg_count = IRON_KIT_COUNT(args),
        .local_bytes = (size_t)work->params[PARAM_LOCAL_BYTES]};

    return iron__gpu_run(queue, &l, err);
}

static const iron__gpu_launcher launcher = {IRON_KIT_LAUNCHER, .run = run};

/* threads_of_<name> and turn_of_<name> for each kernel. */
#define NUMBERS(name, threads, loads)                                                              \
    threads_of_##name = (threads), turn_of_##name = 4 * (threads) * (loads),
#define NUMBERS_TIGHT(name, threads, registers) NUMBERS(name, threads, OCCUPANCY_HELD)
enum {
    OCCUPANCY_SHAPES(NUMBERS) OCCUPANCY_TIGHT(NUMBERS_TIGHT) /* the macros add the commas */
    threads_of_words = OCCUPANCY_WORDS_THREADS,
    turn_of_words = OCCUPANCY_WORDS_THREADS
};

#define ROW(text_name, text_idea, slower, of_kernel, of_unit)                                      \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_CUDA,     \
        .gpu = &launcher, .own = &(const iron__kit_spec) {                                         \
            .image = &image, .kernels = {"occupancy_" #of_kernel}, .set_up = set_up,               \
            .own = &(const shape) {                                                                \
                threads_of_##of_kernel, turn_of_##of_kernel, (of_unit)                             \
            }                                                                                      \
        }                                                                                          \
    }

static const iron__contender gpu_rows[] = {
    ROW("threads-32", "groups of one warp: a unit cannot hold enough groups", NULL, threads_32, 0),
    ROW("threads-64", "groups of 64, one 16-byte load in flight per thread", "threads-32",
        threads_64, 0),
    ROW("threads-256", "groups of 256: the same number of threads per unit", NULL, threads_256, 0),
    ROW("threads-1024", "groups of 1024: the same number of threads in fewer groups", NULL,
        threads_1024, 0),
    ROW("threads-256-words", "one 4-byte load per thread: a full unit, but few bytes in flight",
        NULL, words, 0),
    ROW("limit-50%", "half of the threads: unused local memory keeps the others out", "limit-25%",
        threads_64, 0.5),
    ROW("limit-25%", "a quarter of the threads", "limit-12%", threads_64, 0.25),
    ROW("limit-12%", "an eighth of the threads, one load in flight per thread", NULL, threads_64,
        0.125),
    ROW("limit-12%-ilp-4", "an eighth of the threads with four loads in flight each", "limit-12%",
        ilp_4, 0.125),
    ROW("limit-12%-ilp-8",
        "an eighth of the threads with eight loads in flight each: as much as all with one",
        "limit-12%-ilp-4", ilp_8, 0.125),
    ROW("registers-32", "16 loads, a full unit: values that 32 registers cannot hold are spilled",
        NULL, registers_32, 0),
    ROW("registers-64", "16 loads, half a unit: fewer spills", "registers-32", registers_64, 0),
    ROW("registers-128", "16 loads, even fewer threads: no spills", "registers-64", registers_128,
        0),
};

#define ROWS_MAX (UINT64_C(1) << 33)
#define GPU_ROWS (UINT64_C(1) << 26)
#define CPU_ROWS (UINT64_C(1) << 22) /* nothing races there, but tests make data */

static const char why[] =
    "Memory answers after hundreds of nanoseconds, and its bandwidth is the number of bytes in "
    "flight divided by that latency. A unit of a GPU has as many bytes in flight as its number of "
    "resident threads, times the independent loads of each thread, times their width. Occupancy "
    "is only the first factor: the share of the threads a unit could hold that it does hold, "
    "given the registers and local memory that each needs.\n"
    "\n"
    "The race keeps the kernel and varies the factors. The group size matters little while the "
    "unit is full. Fewer threads with one load each are proportionally slower, but an eighth of "
    "the threads with eight loads each keep memory as busy as a full unit. And if a kernel needs "
    "its registers, limiting them until more threads fit makes it spill values to memory: a full "
    "unit, but slower.";

static const char traffic[] =
    "Each word is read once and written once. If registers are spilled, hundreds of bytes per "
    "thread and turn also go to the L1 cache and back, and to memory when it is full.";

static const char unless[] =
    "Once enough bytes are in flight, neither more threads nor more loads help; a kernel that "
    "waits for arithmetic rather than for memory needs fewer of both.";

static const char used[] =
    "src/ops/tokens/champion.k has four 16-byte loads in flight per thread and as many threads as "
    "fit. The single pass in src/ops/atax/atax_real.k does the opposite: K_KERNEL_DENSE asks for "
    "few groups per unit, whose threads hold rows of the matrix in registers.";

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

/* Two shifts, two exclusive ors and one multiplication per word. */
static double operations(const iron__case *c) { return 5 * (double)c->rows; }

static bool contender_at(size_t index, iron__contender *out) {
    return iron__row_at(gpu_rows, IRON_KIT_COUNT(gpu_rows), &index, out);
}

const iron__op iron__op_occupancy = {
    .name = "occupancy",
    .contract = "out[i] = mix(in[i]), 32-bit words",
    .why = why,
    .traffic = traffic,
    .unless = unless,
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
    .rows_max = ROWS_MAX,
    .accept = iron__line_accept_case,
    .make = make,
    .unmake = iron__data_unmake,
    .check = check,
    .contender_at = contender_at,
};
