/* SPDX-License-Identifier: MIT */
/*
 * fusion_gpu.c: the contenders of fusion on GPUs. `graph` records the launches of `separate` and
 * replays them with one call.
 */
#include "core/fail.h"
#include "ops/fusion/fusion.h"
#include "ops/kit.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(fusion)

static const iron__gpu_image image = IRON_GPU_IMAGE(fusion);

/* Elements that a group takes. */
enum { SINGLES = FUSION_EACH * FUSION_THREADS, VECTORS = 4 * FUSION_QUADS * FUSION_THREADS };

static iron_status launch(iron__gpu_work *work, iron__gpu_kernel *kernel, uint64_t piece,
                          const iron__gpu_buffer *const from[2], const iron__gpu_buffer *to,
                          iron__gpu_queue *queue, iron_error *err) {
    uint64_t count = work->c.rows;
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(from[0]), IRON_GPU_BUFFER(from[1]),
                                  IRON_GPU_BUFFER(to), IRON_GPU_VALUE(count)};
    const iron__gpu_launch l = {.kernel = kernel,
                                .groups = {(uint32_t)iron__kit_pieces(count, piece)},
                                .threads = {FUSION_THREADS},
                                .args = args,
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

/* Kernels stand in a recipe in the order of the steps. */
static iron_status run_separate(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    const iron__fusion_chain *chain = iron__fusion_chain_of(&work->c);
    const iron__gpu_buffer *t = data->inputs[0];

    for (size_t k = 0; k < chain->count; k++) {
        iron__fusion_step step = chain->steps[k];
        const iron__gpu_buffer *from[2] = {t, data->inputs[step != IRON_FUSION_MULTIPLY]};
        const iron__gpu_buffer *to = k + 1 == chain->count ? data->output : work->buffers[k % 2];

        IRON_TRY(launch(work, work->kernels[step], SINGLES, from, to, queue, err));
        t = to;
    }
    return IRON_OK;
}

/* Kernels stand in a recipe in the order of the chains. */
static iron_status run_at_once(iron__gpu_work *work, const iron__gpu_data *data, uint64_t piece,
                               iron__gpu_queue *queue, iron_error *err) {
    return launch(work, work->kernels[iron__fusion_is_long(&work->c)], piece, data->inputs,
                  data->output, queue, err);
}

static iron_status run_fused(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return run_at_once(work, data, SINGLES, queue, err);
}

static iron_status run_vector(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    return run_at_once(work, data, VECTORS, queue, err);
}

static iron_status run_graph(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return iron__recording_run(&work->recording, work->device, run_separate, work, data, queue,
                               err);
}

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    (void)c;
    return iron__needs_threads(device, FUSION_THREADS, err);
}

static iron_status suits_graph(const iron__gpu_device *device, const iron__case *c,
                               iron_error *err) {
    IRON_TRY(suits(device, c, err));
    return iron__recording_suits(device, err);
}

static uint64_t between_bytes(const iron__case *c, size_t index) {
    return index < iron__fusion_chain_of(c)->between ? c->rows * sizeof(float) : 0;
}

#define STEP_KERNELS                                                                               \
    { "fusion_add", "fusion_scale", "fusion_multiply", "fusion_clamp", "fusion_subtract" }
#define BETWEEN (IRON_BIT(0) | IRON_BIT(1))

static const iron__kit_recipe separate = {.image = &image,
                                          .kernels = STEP_KERNELS,
                                          .suits = suits,
                                          .buffer_bytes = between_bytes,
                                          .scratch = BETWEEN};
static const iron__kit_recipe graph = {.image = &image,
                                       .kernels = STEP_KERNELS,
                                       .suits = suits_graph,
                                       .buffer_bytes = between_bytes,
                                       .scratch = BETWEEN};
static const iron__kit_recipe fused = {
    .image = &image, .kernels = {"fusion_fused_short", "fusion_fused_long"}, .suits = suits};
static const iron__kit_recipe vector = {
    .image = &image, .kernels = {"fusion_vector_short", "fusion_vector_long"}, .suits = suits};

static const iron__gpu_way separate_way = {IRON_KIT_WAY, .run = run_separate};
static const iron__gpu_way graph_way = {IRON_KIT_WAY, .run = run_graph};
static const iron__gpu_way fused_way = {IRON_KIT_WAY, .run = run_fused};
static const iron__gpu_way vector_way = {IRON_KIT_WAY, .run = run_vector};

static const iron__contender rows[] = {
    {.name = "separate",
     .idea = "a kernel a step, with an array in memory between two of them",
     .backends = IRON_ON_GPU,
     .gpu = &separate_way,
     .own = &separate},
    {.name = "graph",
     .idea = "the same kernels, recorded once and replayed with one call",
     .beats = "separate",
     .backends = IRON_ON_GPU,
     .gpu = &graph_way,
     .own = &graph},
    {.name = "fused",
     .idea = "one kernel of the same shape: nothing between the steps leaves the registers",
     .beats = "separate",
     .backends = IRON_ON_GPU,
     .gpu = &fused_way,
     .own = &fused},
    {.name = "fused-vector",
     .idea = "the same with 16-byte loads, several of each input under way a thread",
     .beats = "fused",
     .backends = IRON_ON_GPU,
     .gpu = &vector_way,
     .own = &vector},
};

_Static_assert(IRON_FUSION_STEPS <= IRON_KIT_KERNELS, "a recipe names the kernel of each step");

bool iron__fusion_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
