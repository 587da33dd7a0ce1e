/* SPDX-License-Identifier: MIT */
/*
 * residency_gpu.c: the op residency's rows, and their launches.
 *
 * What is set aside of the cache is one state for all who share the device, and contenders take
 * turns: somebody else's set-aside would make the cache smaller, and lines that somebody else's
 * kernels marked would stay in it. So every run first makes the cache what its contender wants. In
 * turns that begin with an untimed run it is that run which asks the driver.
 */
#include "core/fail.h"
#include "ops/kit.h"
#include "ops/residency/kernel_params.h"
#include "ops/residency/residency.h"

#include <inttypes.h>

IRON_GPU_EMBEDDED(residency)
static const iron__gpu_image image = IRON_GPU_IMAGE(residency);

/* What a contender wants of the cache; a recipe's own. */
typedef struct wish {
    bool is_keeping; /* the table's bytes are set aside for it */
    bool is_marking; /* its kernel tells the cache itself */
} wish;

/* The work's own buffers. */
enum { BUFFER_SHARES, BUFFER_COUNTER };

iron_status iron__residency_settle(iron__gpu_device *device, uint64_t bytes, bool is_marking,
                                   iron_error *err) {
    bool is_foreign = device->has_marks && !is_marking;

    if (is_foreign || (device->kept_bytes && device->kept_bytes != bytes))
        IRON_TRY(iron__gpu_keep(device, 0, err));
    if (device->kept_bytes != bytes)
        IRON_TRY(iron__gpu_keep(device, bytes, err));
    device->has_marks = device->has_marks || is_marking;
    return IRON_OK;
}

/* A driver that serves several processes may refuse what the device could do: it is asked before
 * the race. */
static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const wish *w = work->recipe->own;

    if (!w->is_keeping)
        return IRON_OK;
    IRON_TRY(
        iron__residency_settle(work->device, iron__residency_table_bytes(&work->c), false, err));
    return iron__residency_settle(work->device, 0, false, err);
}

/* The device is others' again. */
static void tear_down(iron__gpu_work *work) {
    if (work->device->kept_bytes || work->device->has_marks)
        (void)iron__gpu_keep(work->device, 0, NULL); /* what fails now has failed before */
}

/* The counter is 0 between runs: the kernel itself sees to that, once it has begun so. It is no
 * scratch, which is cleared before an answer: a kernel that leaves it otherwise must show. */
static iron_status derive(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    iron__gpu_buffer *counter = work->buffers[BUFFER_COUNTER];

    (void)data;
    return iron__gpu_clear(queue, counter, 0, counter->bytes, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const wish *w = work->recipe->own;
    uint64_t table_bytes = iron__residency_table_bytes(&work->c);
    uint64_t turns =
        iron__kit_pieces(work->c.rows, (uint64_t)4 * RESIDENCY_THREADS * RESIDENCY_LOADS);
    uint32_t groups = iron__kit_groups(work, turns, RESIDENCY_DENSE);
    uint32_t words = (uint32_t)(table_bytes / sizeof(uint32_t));
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]),
                                  IRON_GPU_VALUE(work->c.rows),
                                  IRON_GPU_BUFFER(data->inputs[1]),
                                  IRON_GPU_VALUE(words),
                                  IRON_GPU_BUFFER(work->buffers[BUFFER_SHARES]),
                                  IRON_GPU_BUFFER(work->buffers[BUFFER_COUNTER]),
                                  IRON_GPU_BUFFER(data->output)};
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {groups < RESIDENCY_GROUPS_MAX ? groups : RESIDENCY_GROUPS_MAX},
        .threads = {RESIDENCY_THREADS},
        .args = args,
        .arg_count = IRON_KIT_COUNT(args),
        .kept = w->is_keeping ? data->inputs[1] : NULL,
        .kept_bytes = w->is_keeping ? (size_t)table_bytes : 0};

    IRON_TRY(
        iron__residency_settle(work->device, w->is_keeping ? table_bytes : 0, w->is_marking, err));
    return iron__gpu_run(queue, &l, err);
}

static uint64_t buffer_bytes(const iron__case *c, size_t index) {
    (void)c;
    return index == BUFFER_SHARES    ? RESIDENCY_GROUPS_MAX * sizeof(iron__residency_answer)
           : index == BUFFER_COUNTER ? sizeof(uint32_t)
                                     : 0;
}

static iron_status suits_keeping(const iron__gpu_device *device, const iron__case *c,
                                 iron_error *err) {
    uint64_t bytes = iron__residency_table_bytes(c), most = device->info.keep_bytes_max;

    IRON_FAIL_IF(most == 0, err, IRON_E_UNSUPPORTED, "%s cannot set a part of its cache aside",
                 device->info.name);
    IRON_FAIL_IF(bytes > most, err, IRON_E_UNSUPPORTED,
                 "%s can set %.1f MiB of its cache aside, and the table has %" PRIu64 " MiB",
                 device->info.name, (double)most / 0x1p20, bytes >> 20);
    return IRON_OK;
}

/* Where nothing can be set aside, marks cannot be taken back either, and others would live on. */
static iron_status suits_marking(const iron__gpu_device *device, const iron__case *c,
                                 iron_error *err) {
    (void)c;
    IRON_FAIL_IF(device->info.version < 800, err, IRON_E_UNSUPPORTED,
                 "%s has no policies of its cache that a load could name; compute capability 8.0 "
                 "and later have",
                 device->info.name);
    IRON_FAIL_IF(device->info.keep_bytes_max == 0, err, IRON_E_UNSUPPORTED,
                 "%s cannot be made to let go of what its cache was told to keep",
                 device->info.name);
    return IRON_OK;
}

static const wish nothing = {.is_keeping = false};
static const wish keeping = {.is_keeping = true};
static const wish marking = {.is_marking = true};

#define RECIPE(kernel, function, wanted)                                                           \
    {                                                                                              \
        .image = &image, .kernels = {kernel}, .suits = (function), .buffer_bytes = buffer_bytes,   \
        .scratch = IRON_BIT(BUFFER_SHARES), .set_up = set_up, .tear_down = tear_down,              \
        .own = &(wanted)                                                                           \
    }

static const iron__kit_recipe recipes[] = {
    RECIPE("residency_plain", NULL, nothing),
    RECIPE("residency_plain", suits_keeping, keeping),
    RECIPE("residency_streaming", NULL, nothing),
    RECIPE("residency_policy", suits_marking, marking),
    RECIPE("residency_streaming", suits_keeping, keeping),
};

static const iron__gpu_way way = {IRON_KIT_WAY, .derive = derive, .run = run};

static const iron__contender rows[] = {
    {.name = "plain",
     .idea = "ordinary loads; the cache decides what stays",
     .backends = IRON_ON_CUDA,
     .gpu = &way,
     .own = &recipes[0]},
    {.name = "persisting",
     .idea = "a part of the L2 cache is set aside for the table",
     .beats = "plain",
     .backends = IRON_ON_CUDA,
     .gpu = &way,
     .own = &recipes[1]},
    {.name = "streaming-loads",
     .idea = "loads of the stream say that it may be forgotten first",
     .beats = "plain",
     .backends = IRON_ON_CUDA,
     .gpu = &way,
     .own = &recipes[2]},
    {.name = "evict-policy",
     .idea = "loads name policies: the stream goes first, the table last",
     .beats = "streaming-loads",
     .backends = IRON_ON_CUDA,
     .gpu = &way,
     .own = &recipes[3]},
    {.name = "persisting-streaming",
     .idea = "the set-aside part, and loads that say so",
     .beats = "persisting",
     .backends = IRON_ON_CUDA,
     .gpu = &way,
     .own = &recipes[4]},
};

bool iron__residency_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
