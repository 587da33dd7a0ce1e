/* SPDX-License-Identifier: MIT */
/*
 * banks_gpu.c: the rows of banks: one kernel each, a group a tile. There are none on the CPU, which
 * has no local memory.
 */
#include "core/fail.h"
#include "ops/banks/banks.h"
#include "ops/kit.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(banks)

static const iron__gpu_image image = IRON_GPU_IMAGE(banks);

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    const uint64_t bytes = (BANKS_TILE + BANKS_TILE / 32) * sizeof(uint32_t);

    (void)c;
    IRON_TRY(iron__needs_threads(device, BANKS_THREADS, err));
    return iron__needs_local(device, bytes, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    uint32_t stride = iron__banks_stride(&work->c), block = iron__banks_block(stride);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(stride),
                                  IRON_GPU_VALUE(block)};
    const iron__gpu_launch l = {.kernel = work->kernels[0],
                                .groups = {(uint32_t)iron__banks_tiles(&work->c)},
                                .threads = {BANKS_THREADS},
                                .args = args,
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static const iron__kit_recipe plain = {.image = &image, .kernels = {"banks_plain"}, .suits = suits};
static const iron__kit_recipe padded = {
    .image = &image, .kernels = {"banks_padded"}, .suits = suits};
static const iron__kit_recipe swizzled = {
    .image = &image, .kernels = {"banks_swizzled"}, .suits = suits};

static const iron__gpu_way way = {IRON_KIT_WAY, .run = run};

static const iron__contender rows[] = {
    {.name = "plain",
     .idea = "words in order: a stride's power of two is how many threads meet in a bank",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &plain},
    {.name = "padded",
     .idea = "one word left out after every 32: the next row begins a bank later",
     .beats = "plain",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &padded},
    {.name = "swizzled",
     .idea = "words of a row exchanged by XOR with its number: nothing is left out",
     .beats = "plain",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &swizzled},
};

bool iron__banks_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
