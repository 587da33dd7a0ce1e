/* SPDX-License-Identifier: MIT */
/*
 * adaptive_gpu.c: the contenders of adaptive on GPUs: one kernel each, launched alike.
 */
#include "core/fail.h"
#include "ops/adaptive/adaptive.h"
#include "ops/kit.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(adaptive)

static const iron__gpu_image image = IRON_GPU_IMAGE(adaptive);

/* Local memory of compact and auto: elements, places, and a little. */
#define LOCAL_BYTES (ADAPTIVE_CHUNK * 6u + ADAPTIVE_THREADS * 4u + 256u)

/* Groups that take `piece` elements each; density: for who asks for it. */
static iron_status launch(iron__gpu_work *work, const iron__gpu_data *data, uint64_t piece,
                          const float *density, iron__gpu_queue *queue, iron_error *err) {
    uint64_t count = work->c.rows;
    iron__gpu_arg args[4] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                             IRON_GPU_VALUE(count)};
    iron__gpu_launch l = {.kernel = work->kernels[0],
                          .groups = {(uint32_t)iron__kit_pieces(count, piece)},
                          .threads = {ADAPTIVE_THREADS},
                          .args = args,
                          .arg_count = 3};

    if (density)
        args[l.arg_count++] = IRON_GPU_VALUE(*density);
    return iron__gpu_run(queue, &l, err);
}

static iron_status run_plain(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, ADAPTIVE_THREADS, NULL, queue, err);
}

static iron_status run_switch(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    float density = (float)iron__adaptive_density(&work->c);

    return launch(work, data, ADAPTIVE_THREADS, &density, queue, err);
}

static iron_status run_chunks(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, (uint64_t)ADAPTIVE_CHUNK, NULL, queue, err);
}

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    (void)c;
    return iron__needs_threads(device, ADAPTIVE_THREADS, err);
}

static iron_status suits_chunks(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err) {
    IRON_TRY(suits(device, c, err));
    return iron__needs_local(device, LOCAL_BYTES, err);
}

/* A device that is no GPU computes an element's chain much as one thread would. */
#define OPERATIONS_A_SECOND 4e9

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    (void)row;
    (void)threads;
    return device->is_gpu ? 0 : IRON_ADAPTIVE_OPERATIONS * (double)c->rows / OPERATIONS_A_SECOND;
}

static const iron__kit_recipe dense = {
    .image = &image, .kernels = {"adaptive_dense"}, .suits = suits};
static const iron__kit_recipe branch = {
    .image = &image, .kernels = {"adaptive_branch"}, .suits = suits};
static const iron__kit_recipe by_switch = {
    .image = &image, .kernels = {"adaptive_switch"}, .suits = suits};
static const iron__kit_recipe compact = {
    .image = &image, .kernels = {"adaptive_compact"}, .suits = suits_chunks};
static const iron__kit_recipe by_itself = {
    .image = &image, .kernels = {"adaptive_auto"}, .suits = suits_chunks};

static const iron__gpu_way plain_way = {IRON_KIT_WAY, .run = run_plain};
static const iron__gpu_way switch_way = {IRON_KIT_WAY, .run = run_switch};
static const iron__gpu_way chunks_way = {IRON_KIT_WAY, .run = run_chunks};

static const iron__contender rows[] = {
    {.name = "dense-always",
     .idea = "computes f of every element, zeros too",
     .backends = IRON_ON_GPU,
     .gpu = &plain_way,
     .own = &dense,
     .seconds = seconds},
    {.name = "branch",
     .idea = "a branch an element: a warp is spared the work if all its 32 are 0",
     .beats = "dense-always",
     .backends = IRON_ON_GPU,
     .gpu = &plain_way,
     .own = &branch,
     .seconds = seconds},
    {.name = "density-switch",
     .idea = "the guide's: told the density, branches below one half, computes all above",
     .beats = "branch",
     .backends = IRON_ON_GPU,
     .gpu = &switch_way,
     .own = &by_switch,
     .seconds = seconds},
    {.name = "compact",
     .idea = "a group packs its elements that are not 0, so that warps are full or idle",
     .beats = "density-switch",
     .backends = IRON_ON_GPU,
     .gpu = &chunks_way,
     .own = &compact,
     .seconds = seconds},
    {.name = "auto",
     .idea = "each group counts what it has loaded: none, packs, or computes as it stands",
     .beats = "compact",
     .backends = IRON_ON_GPU,
     .gpu = &chunks_way,
     .own = &by_itself,
     .seconds = seconds},
};

bool iron__adaptive_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
