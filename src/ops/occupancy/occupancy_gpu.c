/* SPDX-License-Identifier: MIT */
/*
 * occupancy_gpu.c: the op occupancy's rows, and their launches: as many groups as all units hold at
 * a time, each of which walks through its share.
 *
 * How many a unit holds is the driver's word. Rows that want fewer ask for local memory that they
 * do not use: as little as keeps the others out.
 */
#include "core/fail.h"
#include "ops/kit.h"
#include "ops/occupancy/kernel_params.h"
#include "ops/occupancy/occupancy.h"

IRON_GPU_EMBEDDED(occupancy)
static const iron__gpu_image image = IRON_GPU_IMAGE(occupancy);

#define KIB UINT64_C(1024)

/* How a kernel is launched; a recipe's own. */
typedef struct shape {
    uint32_t threads;
    uint32_t turn; /* words that a group takes at a time */
    double share;  /* of the threads that a unit could hold; 0: as many as fit */
} shape;

/* kept[]: what set_up has found out. */
enum { KEPT_LOCAL_BYTES, KEPT_GROUPS };

uint64_t iron__occupancy_hold(uint32_t groups, uint64_t most_bytes,
                              iron__occupancy_groups_with groups_with, void *context) {
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

static iron__gpu_facts facts_with(const iron__gpu_work *work, uint64_t local_bytes) {
    const shape *s = work->recipe->own;
    iron__gpu_facts f;

    (void)iron__gpu_kernel_facts(work->device, work->kernels[0], s->threads, (size_t)local_bytes,
                                 &f, NULL); /* what it cannot tell is 0 */
    return f;
}

static uint32_t groups_with(void *context, uint64_t local_bytes) {
    return facts_with(context, local_bytes).groups;
}

static iron_status hold_back(iron__gpu_work *work, const iron__gpu_facts *full, iron_error *err) {
    const shape *s = work->recipe->own;
    double unit_threads = full->groups * (double)s->threads / full->occupancy;
    uint32_t groups = (uint32_t)(unit_threads * s->share / s->threads + 0.5);
    uint64_t bytes;

    groups = groups > 0 ? groups : 1;
    bytes = iron__occupancy_hold(groups, work->device->info.local_bytes_max, groups_with, work);
    IRON_FAIL_IF(bytes == UINT64_MAX || groups_with(work, bytes) != groups, err, IRON_E_UNSUPPORTED,
                 "no amount of local memory makes a unit of %s hold just %u groups",
                 work->device->info.name, groups);
    work->kept[KEPT_LOCAL_BYTES] = bytes;
    work->kept[KEPT_GROUPS] = groups;
    return IRON_OK;
}

static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const shape *s = work->recipe->own;
    iron__gpu_facts full = facts_with(work, 0);

    IRON_FAIL_IF(full.groups == 0 || !(full.occupancy > 0), err, IRON_E_UNSUPPORTED,
                 "the driver of %s does not tell how many groups a unit holds",
                 work->device->info.name);
    work->kept[KEPT_GROUPS] = full.groups;
    return s->share > 0 ? hold_back(work, &full, err) : IRON_OK;
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const shape *s = work->recipe->own;
    uint64_t turns = iron__kit_pieces(work->c.rows, s->turn);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows)};
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {iron__kit_groups(work, turns, (uint32_t)work->kept[KEPT_GROUPS])},
        .threads = {s->threads},
        .args = args,
        .arg_count = IRON_KIT_COUNT(args),
        .local_bytes = (size_t)work->kept[KEPT_LOCAL_BYTES]};

    return iron__gpu_run(queue, &l, err);
}

static const iron__gpu_way way = {IRON_KIT_WAY, .run = run};

/* Numbers of each kernel: threads_of_<name>, turn_of_<name>. */
#define NUMBERS(name, threads, loads)                                                              \
    threads_of_##name = (threads), turn_of_##name = 4 * (threads) * (loads),
#define NUMBERS_TIGHT(name, threads, registers) NUMBERS(name, threads, OCCUPANCY_HELD)
enum {
    OCCUPANCY_SHAPES(NUMBERS) OCCUPANCY_TIGHT(NUMBERS_TIGHT) /* each brings its commas */
    threads_of_words = OCCUPANCY_WORDS_THREADS,
    turn_of_words = OCCUPANCY_WORDS_THREADS
};

#define ROW(text_name, text_idea, slower, of_kernel, of_unit)                                      \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_CUDA,     \
        .gpu = &way, .own = &(const iron__kit_recipe) {                                            \
            .image = &image, .kernels = {"occupancy_" #of_kernel}, .set_up = set_up,               \
            .own = &(const shape) {                                                                \
                threads_of_##of_kernel, turn_of_##of_kernel, (of_unit)                             \
            }                                                                                      \
        }                                                                                          \
    }

static const iron__contender rows[] = {
    ROW("threads-32", "groups of one warp: a unit has no room for so many groups", NULL, threads_32,
        0),
    ROW("threads-64", "groups of 64, one 16-byte load under way a thread", "threads-32", threads_64,
        0),
    ROW("threads-256", "groups of 256: as many threads on a unit", NULL, threads_256, 0),
    ROW("threads-1024", "groups of 1024: as many threads in fewer groups", NULL, threads_1024, 0),
    ROW("threads-256-words", "one 4-byte load a thread: a full unit, and little under way", NULL,
        words, 0),
    ROW("limit-50%", "half of the threads: local memory that nobody uses keeps the others out",
        "limit-25%", threads_64, 0.5),
    ROW("limit-25%", "a quarter of them", "limit-12%", threads_64, 0.25),
    ROW("limit-12%", "an eighth of them, still one load under way a thread", NULL, threads_64,
        0.125),
    ROW("limit-12%-ilp-4", "an eighth of the threads with four loads under way each", "limit-12%",
        ilp_4, 0.125),
    ROW("limit-12%-ilp-8", "and with eight: as much as all threads with one", "limit-12%-ilp-4",
        ilp_8, 0.125),
    ROW("registers-32", "16 loads, a full unit: what 32 registers do not hold is spilled", NULL,
        registers_32, 0),
    ROW("registers-64", "16 loads, half a unit: less is spilled", "registers-32", registers_64, 0),
    ROW("registers-128", "16 loads, fewer threads yet: nothing is spilled", "registers-64",
        registers_128, 0),
};

bool iron__occupancy_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
