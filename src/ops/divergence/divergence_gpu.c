/* SPDX-License-Identifier: MIT */
/*
 * divergence_gpu.c: the contenders of divergence on GPUs: one kernel each, launched alike; they
 * differ in how many elements a group takes.
 */
#include "core/fail.h"
#include "ops/divergence/divergence.h"
#include "ops/kit.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(divergence)

static const iron__gpu_image image = IRON_GPU_IMAGE(divergence);

/* Local memory of sorted: elements, with gaps, and a little. */
#define LOCAL_BYTES (DIVERGENCE_CHUNK * 5u + DIVERGENCE_THREADS * 4u + 256u)

/* `sharing` groups take `piece` elements together. */
static iron_status launch(iron__gpu_work *work, const iron__gpu_data *data, uint64_t piece,
                          uint32_t sharing, iron__gpu_queue *queue, iron_error *err) {
    uint64_t count = work->c.rows;
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(count)};
    const iron__gpu_launch l = {.kernel = work->kernels[0],
                                .groups = {(uint32_t)iron__kit_pieces(count, piece) * sharing},
                                .threads = {DIVERGENCE_THREADS},
                                .args = args,
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_elements(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, DIVERGENCE_THREADS, 1, queue, err);
}

static iron_status run_blocks(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, UINT64_C(2) * DIVERGENCE_THREADS, 2, queue, err);
}

static iron_status run_quads(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, UINT64_C(4) * DIVERGENCE_THREADS, 1, queue, err);
}

static iron_status run_chunks(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, (uint64_t)DIVERGENCE_CHUNK, 1, queue, err);
}

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    (void)c;
    return iron__needs_threads(device, DIVERGENCE_THREADS, err);
}

static iron_status suits_chunks(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err) {
    IRON_TRY(suits(device, c, err));
    return iron__needs_local(device, LOCAL_BYTES, err);
}

/* Rows that go by the index. */
static bool wants_alternating(const iron__contender *row, const iron__case *c) {
    (void)row;
    return iron__divergence_alternates(c);
}

#define RECIPE(kernel, rule)                                                                       \
    { .image = &image, .kernels = {kernel}, .suits = (rule) }

static const iron__kit_recipe by_thread = RECIPE("divergence_thread", suits);
static const iron__kit_recipe by_warp = RECIPE("divergence_warp", suits);
static const iron__kit_recipe by_block = RECIPE("divergence_block", suits);
static const iron__kit_recipe both = RECIPE("divergence_both", suits);
static const iron__kit_recipe pair = RECIPE("divergence_pair", suits);
static const iron__kit_recipe sorted = RECIPE("divergence_sorted", suits_chunks);

static const iron__gpu_way elements_way = {IRON_KIT_WAY, .run = run_elements};
static const iron__gpu_way blocks_way = {IRON_KIT_WAY, .run = run_blocks};
static const iron__gpu_way quads_way = {IRON_KIT_WAY, .run = run_quads};
static const iron__gpu_way chunks_way = {IRON_KIT_WAY, .run = run_chunks};

static const iron__contender rows[] = {
    {.name = "thread-odd-even",
     .idea = "thread k takes element k: warps have both kinds, and walk through both paths",
     .backends = IRON_ON_GPU,
     .gpu = &elements_way,
     .own = &by_thread},
    {.name = "branch-free",
     .idea = "both paths for every element, and a choice by masks",
     .beats = "thread-odd-even",
     .backends = IRON_ON_GPU,
     .gpu = &elements_way,
     .own = &both},
    {.name = "block-uniform",
     .idea = "every second group takes the odd elements, the others the even ones",
     .beats = "thread-odd-even",
     .backends = IRON_ON_GPU,
     .suits = wants_alternating,
     .gpu = &blocks_way,
     .own = &by_block},
    {.name = "warp-uniform",
     .idea = "every second warp takes the odd ones of 64 elements: both warps use the same lines",
     .beats = "block-uniform",
     .backends = IRON_ON_GPU,
     .suits = wants_alternating,
     .gpu = &elements_way,
     .own = &by_warp},
    {.name = "thread-pair",
     .idea = "a thread takes 16 bytes, two elements of each kind: both paths, each on all lanes",
     .beats = "warp-uniform",
     .backends = IRON_ON_GPU,
     .suits = wants_alternating,
     .gpu = &quads_way,
     .own = &pair},
    {.name = "sorted",
     .idea = "a group sorts its elements by key in local memory: for keys that nobody knows",
     .beats = "thread-odd-even",
     .backends = IRON_ON_GPU,
     .gpu = &chunks_way,
     .own = &sorted},
};

bool iron__divergence_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
