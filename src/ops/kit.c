/* SPDX-License-Identifier: MIT */
/*
 * kit.c: makes and unmakes the objects of plain GPU contenders; see kit.h.
 */
#include "ops/kit.h"

#include "core/fail.h"
#include "core/memory.h"

#include <stdio.h>

static iron_status find_kernels(iron__gpu_work *work, iron_error *err) {
    const iron__kit_recipe *r = work->recipe;

    for (size_t k = 0; k < IRON_KIT_KERNELS && r->kernels[k]; k++) {
        char name[64];

        snprintf(name, sizeof name, "%s%s%s", r->kernels[k], r->is_typed ? "_" : "",
                 r->is_typed ? iron__element_name(work->c.element) : "");
        IRON_TRY(iron__gpu_kernel_find(work->device, work->program, name, &work->kernels[k], err));
    }
    return IRON_OK;
}

static iron_status take_buffers(iron__gpu_work *work, iron_error *err) {
    for (size_t k = 0; work->recipe->buffer_bytes && k < IRON_KIT_BUFFERS; k++) {
        uint64_t bytes = work->recipe->buffer_bytes(&work->c, k);

        if (bytes)
            IRON_TRY(iron__gpu_buffer_create(work->device, IRON_GPU_MEMORY_DEVICE, (size_t)bytes,
                                             &work->buffers[k], err));
    }
    return IRON_OK;
}

static iron_status fill(iron__gpu_work *work, iron_error *err) {
    const iron__kit_recipe *r = work->recipe;

    if (r->suits)
        IRON_TRY(r->suits(work->device, &work->c, err));
    IRON_TRY(iron__gpu_program_load(work->device, r->image, &work->program, err));
    IRON_TRY(find_kernels(work, err));
    IRON_TRY(take_buffers(work, err));
    return r->set_up ? r->set_up(work, err) : IRON_OK;
}

iron_status iron__kit_create(iron__gpu_device *device, const iron__contender *row,
                             const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                             iron_error *err) {
    iron__gpu_work *work;
    iron_status status;

    (void)parts;
    *out = NULL;
    work = iron__allocate(iron__allocator_default(), 1, sizeof *work, "a contender", err);
    if (!work)
        return IRON_E_NOMEM;
    work->device = device;
    work->row = *row;
    work->recipe = iron__kit_recipe_of(row);
    work->problem = problem;
    work->c = problem->c;
    status = fill(work, err);
    if (status == IRON_OK)
        *out = work;
    else
        iron__kit_destroy(work);
    return status;
}

void iron__kit_destroy(iron__gpu_work *work) {
    if (work->recipe->tear_down)
        work->recipe->tear_down(work);
    iron__recording_deinit(&work->recording, work->device);
    iron__gpu_texture_destroy(work->device, work->texture);
    for (size_t k = 0; k < IRON_KIT_BUFFERS; k++)
        iron__gpu_buffer_destroy(work->buffers[k]);
    if (work->program)
        iron__gpu_program_unload(work->device, work->program);
    iron__release(iron__allocator_default(), work);
}

uint64_t iron__kit_device_bytes(const iron__contender *row, const iron__case *c) {
    const iron__kit_recipe *r = iron__kit_recipe_of(row);
    uint64_t bytes = 0;

    for (size_t k = 0; r->buffer_bytes && k < IRON_KIT_BUFFERS; k++)
        bytes += r->buffer_bytes(c, k);
    return bytes;
}

iron_status iron__kit_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err) {
    for (size_t k = 0; k < IRON_KIT_BUFFERS; k++)
        if (work->recipe->scratch & IRON_BIT(k) && work->buffers[k])
            IRON_TRY(
                iron__gpu_clear(queue, work->buffers[k], 0, work->buffers[k]->bytes / 4 * 4, err));
    return IRON_OK;
}

uint32_t iron__kit_groups(const iron__gpu_work *work, uint64_t pieces, uint32_t per_unit) {
    uint64_t most = (uint64_t)per_unit * work->device->info.units;

    if (pieces < most)
        most = pieces;
    return most > 0 ? (uint32_t)most : 1;
}
