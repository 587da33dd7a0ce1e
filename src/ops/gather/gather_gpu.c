/* SPDX-License-Identifier: MIT */
/*
 * gather_gpu.c: the op gather's rows on GPUs, and their launches: one kernel each, in groups that
 * take a block of elements. The texture is made of the table's buffer when the table has arrived
 * there.
 */
#include "core/fail.h"
#include "ops/gather/gather.h"
#include "ops/gather/kernel_params.h"
#include "ops/kit.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(gather)
static const iron__gpu_image image = IRON_GPU_IMAGE(gather);

/* How a kernel is launched; a recipe's own. */
typedef struct shape {
    uint32_t threads;
    uint32_t block; /* elements of a group */
    uint32_t local_bytes;
} shape;

static iron_status launch(iron__gpu_work *work, const iron__gpu_arg *args, size_t arg_count,
                          iron__gpu_queue *queue, iron_error *err) {
    const shape *s = work->recipe->own;
    const iron__gpu_launch l = {.kernel = work->kernels[0],
                                .groups = {(uint32_t)iron__kit_pieces(work->c.rows, s->block)},
                                .threads = {s->threads},
                                .args = args,
                                .arg_count = arg_count,
                                .local_bytes = s->local_bytes};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]),
                                  IRON_GPU_BUFFER(data->inputs[1]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows)};

    return launch(work, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_staged(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    k_u32 words = (k_u32)iron__gather_table_words(&work->c);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]),
                                  IRON_GPU_BUFFER(data->inputs[1]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(words)};

    return launch(work, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_texture(iron__gpu_work *work, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_VALUE(work->texture),
                                  IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(work->c.rows)};

    return launch(work, args, IRON_KIT_COUNT(args), queue, err);
}

/* A texture is a view: it stays good when its memory is filled anew. kept[0]: where that is. */
static iron_status derive_texture(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_buffer *table = data->inputs[1];

    (void)queue;
    if (work->texture && work->kept[0] == table->native)
        return IRON_OK;
    iron__gpu_texture_destroy(work->device, work->texture);
    work->texture = 0;
    IRON_TRY(iron__gpu_texture_create(table, &work->texture, err));
    work->kept[0] = table->native;
    return IRON_OK;
}

static iron_status suits_texture(const iron__gpu_device *device, const iron__case *c,
                                 iron_error *err) {
    (void)c;
    IRON_FAIL_IF(!device->info.has_textures, err, IRON_E_UNSUPPORTED,
                 "%s has no textures that kernels could be given", device->info.name);
    return IRON_OK;
}

static const shape each = {GATHER_THREADS, GATHER_THREADS, 0};
static const shape vector = {GATHER_THREADS, 4 * GATHER_QUADS *GATHER_THREADS, 0};
static const shape staged = {GATHER_STAGED_THREADS, GATHER_STAGED_BLOCK, 4 * GATHER_STAGED_WORDS};
static const shape sorted = {GATHER_SORTED_THREADS, GATHER_SORTED_BLOCK, 0};

/* Its groups are larger than most, in threads and in local memory. */
static iron_status suits_staged(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err) {
    (void)c;
    IRON_TRY(iron__needs_local(device, staged.local_bytes, err));
    return iron__needs_threads(device, staged.threads, err);
}

static const iron__kit_recipe recipes[] = {
    {.image = &image, .kernels = {"gather_global"}, .own = &each},
    {.image = &image, .kernels = {"gather_read_only"}, .own = &each},
    {.image = &image, .kernels = {"gather_texture"}, .suits = suits_texture, .own = &each},
    {.image = &image, .kernels = {"gather_vector"}, .own = &vector},
    {.image = &image, .kernels = {"gather_staged"}, .suits = suits_staged, .own = &staged},
    {.image = &image, .kernels = {"gather_sorted"}, .own = &sorted},
};

static const iron__gpu_way way = {IRON_KIT_WAY, .run = run};
static const iron__gpu_way way_staged = {IRON_KIT_WAY, .run = run_staged};
static const iron__gpu_way way_texture = {IRON_KIT_WAY, .derive = derive_texture,
                                          .run = run_texture};

static const iron__contender rows[] = {
    {.name = "global",
     .idea = "a thread an element, ordinary loads",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &recipes[0]},
    {.name = "read-only",
     .idea = "the same; the compiler knows that nobody writes what is read",
     .beats = "global",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &recipes[1]},
    {.name = "texture",
     .idea = "the same; the table is a texture",
     .beats = "global",
     .backends = IRON_ON_CUDA,
     .gpu = &way_texture,
     .own = &recipes[2]},
    {.name = "vector",
     .idea = "indices in 16-byte loads, eight words of the table under way a thread",
     .beats = "read-only",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &recipes[3]},
    {.name = "shared-staged",
     .idea = "a group's window of the table goes to local memory, and is picked from there",
     .beats = "vector",
     .backends = IRON_ON_GPU,
     .gpu = &way_staged,
     .own = &recipes[4]},
    {.name = "sorted-first",
     .idea = "a group sorts its indices in local memory, then neighbours read neighbours",
     .beats = "read-only",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &recipes[5]},
};

bool iron__gather_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
