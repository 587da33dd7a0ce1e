/* SPDX-License-Identifier: MIT */
/*
 * layout_gpu.c: the contenders of layout on GPUs: rows, the copy that a layout is made with, and
 * one function that launches them all.
 */
#include "ops/kit.h"
#include "ops/layout/layout.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(layout)

static const iron__gpu_image image = IRON_GPU_IMAGE(layout);

/* Of a recipe's kernels. ALL_ANY is for counts that are no whole vectors, where ALL is not. */
enum { ALL, ONE, DERIVE, ALL_ANY };

/* Particles that a thread takes. */
typedef struct shares {
    uint32_t all, one;
} shares;

static const shares singles = {1, LAYOUT_LOADS};
static const shares quads = {4, 4 * LAYOUT_QUADS};

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    (void)c;
    return iron__needs_threads(device, LAYOUT_THREADS, err);
}

/* The copy of the particles in the contender's own layout. */
static uint64_t copy_bytes(const iron__case *c, size_t index) {
    return index == 0 ? c->rows * sizeof(layout_particle) : 0;
}

static iron_status launch(iron__gpu_work *work, size_t kernel, uint32_t share,
                          const iron__gpu_buffer *from, iron__gpu_buffer *to,
                          iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to),
                                  IRON_GPU_VALUE(work->c.rows)};
    iron__gpu_launch l = {
        .kernel = work->kernels[kernel],
        .groups = {(uint32_t)iron__kit_pieces(work->c.rows, (uint64_t)share * LAYOUT_THREADS)},
        .threads = {LAYOUT_THREADS},
        .args = args,
        .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const shares *s = work->recipe->own;
    bool is_one = iron__layout_is_one(&work->c);
    bool is_any = work->kernels[ALL_ANY] && work->c.rows % 4 != 0;
    size_t kernel = is_one ? ONE : is_any ? ALL_ANY : ALL;

    return launch(work, kernel, is_one ? s->one : s->all,
                  work->buffers[0] ? work->buffers[0] : data->inputs[0], data->output, queue, err);
}

static iron_status derive(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    return launch(work, DERIVE, 1, data->inputs[0], work->buffers[0], queue, err);
}

static const iron__gpu_way as_it_is = {IRON_KIT_WAY, .run = run};
static const iron__gpu_way by_copy = {IRON_KIT_WAY, .derive = derive, .run = run};

static const iron__kit_recipe aos = {.image = &image,
                                     .kernels = {"layout_aos_all", "layout_aos_one"},
                                     .suits = suits,
                                     .own = &singles};
static const iron__kit_recipe aosoa = {
    .image = &image,
    .kernels = {"layout_aosoa_all", "layout_aosoa_one", "layout_to_aosoa"},
    .suits = suits,
    .buffer_bytes = copy_bytes,
    .own = &singles};
static const iron__kit_recipe soa = {
    .image = &image,
    .kernels = {"layout_soa_all", "layout_soa_one", "layout_to_soa"},
    .suits = suits,
    .buffer_bytes = copy_bytes,
    .own = &singles};
static const iron__kit_recipe soa_vector = {
    .image = &image,
    .kernels = {"layout_vector_all", "layout_vector_one", "layout_to_soa", "layout_vector_all_any"},
    .suits = suits,
    .buffer_bytes = copy_bytes,
    .own = &quads};

static const iron__contender rows[] = {
    {.name = "aos",
     .idea = "a thread a structure: neighbours read 24 bytes apart",
     .backends = IRON_ON_GPU,
     .passes = 1,
     .gpu = &as_it_is,
     .own = &aos},
    {.name = "aosoa",
     .idea = "blocks of 32 particles, an array a field in each: a warp reads six whole lines",
     .beats = "aos",
     .backends = IRON_ON_GPU,
     .passes = 1,
     .unpack = iron__layout_from_aosoa,
     .gpu = &by_copy,
     .own = &aosoa},
    {.name = "soa",
     .idea = "an array a field: neighbours read neighbours",
     .beats = "aos",
     .backends = IRON_ON_GPU,
     .passes = 1,
     .unpack = iron__layout_from_soa,
     .gpu = &by_copy,
     .own = &soa},
    {.name = "soa-vector",
     .idea = "the same, 16 bytes an access, several in flight",
     .beats = "soa",
     .backends = IRON_ON_GPU,
     .passes = 1,
     .unpack = iron__layout_from_soa,
     .gpu = &by_copy,
     .own = &soa_vector},
};

bool iron__layout_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
