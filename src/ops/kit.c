/* SPDX-License-Identifier: MIT */
/*
 * kit.c: creates and destroys GPU contenders of the common form, and records launches; see kit.h.
 */
#include "ops/kit.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"

#include <stdio.h>
#include <string.h>

iron_status iron__kit_find(iron__gpu_work *work, size_t index, const char *name, bool is_typed,
                           iron_error *err) {
    char full[96];

    snprintf(full, sizeof full, "%s%s%s", name, is_typed ? "_" : "",
             is_typed ? iron__element_name(work->c.element) : "");
    return iron__gpu_kernel_find(work->device, work->program, full, &work->kernels[index], err);
}

iron_status iron__kit_allocate(iron__gpu_work *work, size_t index, uint64_t bytes,
                               iron_error *err) {
    return iron__gpu_buffer_create(work->device, IRON_GPU_MEMORY_DEVICE, (size_t)bytes,
                                   &work->buffers[index], err);
}

/* Fills a new work up to what its launcher asks for. */
static iron_status set_up_work(iron__gpu_work *work, iron_error *err) {
    const iron__gpu_launcher *s = work->spec;

    IRON_TRY(iron__needs_threads(work->device, s->threads, err));
    IRON_TRY(iron__needs_local(work->device, s->local_bytes + s->own_local_bytes, err));
    if (s->suits)
        IRON_TRY(s->suits(work->device, &work->c, err));
    if (s->image)
        IRON_TRY(iron__gpu_program_load(work->device, s->image, &work->program, err));
    for (size_t k = 0; k < IRON_KIT_KERNELS && s->kernels[k]; k++)
        IRON_TRY(iron__kit_find(work, k, s->kernels[k], s->is_typed, err));
    for (size_t k = 0; s->buffer_bytes && k < IRON_KIT_BUFFERS; k++)
        if (s->buffer_bytes(&work->c, k))
            IRON_TRY(iron__kit_allocate(work, k, s->buffer_bytes(&work->c, k), err));
    return s->set_up ? s->set_up(work, err) : IRON_OK;
}

iron_status iron__kit_create(iron__gpu_device *device, const iron__contender *row,
                             const iron__op_problem *problem, uint32_t parts, iron__gpu_work **out,
                             iron_error *err) {
    iron__gpu_work *work;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_ALLOCATE(&work, iron__allocator_default(), 1, "a contender", err));
    work->device = device;
    work->row = *row;
    work->spec = row->gpu;
    work->problem = problem;
    work->c = problem->c;
    work->parts = parts ? parts : 1;
    status = set_up_work(work, err);
    if (status == IRON_OK)
        *out = work;
    else
        iron__kit_destroy(work);
    return status;
}

void iron__kit_destroy(iron__gpu_work *work) {
    if (work->spec->tear_down)
        work->spec->tear_down(work);
    iron__gpu_graph_destroy(work->device, work->graph);
    iron__gpu_texture_destroy(work->device, work->texture);
    iron__gpu_event_destroy(work->device, work->event);
    for (size_t k = 0; k < IRON_KIT_BUFFERS; k++)
        iron__gpu_buffer_destroy(work->buffers[k]);
    if (work->program)
        iron__gpu_program_unload(work->device, work->program);
    iron__release(iron__allocator_default(), work->own);
    iron__release(iron__allocator_default(), work);
}

uint64_t iron__kit_device_bytes(const iron__contender *row, const iron__case *c) {
    const iron__gpu_launcher *s = row->gpu;
    uint64_t bytes = 0;

    for (size_t k = 0; s->buffer_bytes && k < IRON_KIT_BUFFERS; k++)
        bytes += s->buffer_bytes(c, k);
    return bytes;
}

iron_status iron__kit_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err) {
    for (size_t k = 0; k < IRON_KIT_BUFFERS; k++)
        if (work->spec->scratch & IRON_BIT(k) && work->buffers[k])
            IRON_TRY(
                iron__gpu_clear(queue, work->buffers[k], 0, work->buffers[k]->bytes / 4 * 4, err));
    return IRON_OK;
}

iron_status iron__kit_run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    const iron__gpu_launcher *s = work->spec;
    size_t inputs = work->problem->input_count;
    iron__gpu_arg args[IRON_OP_INPUTS + 2];
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {(uint32_t)iron__kit_pieces(work->c.rows, s->block) * (s->sharing + !s->sharing)},
        .threads = {s->threads},
        .args = args,
        .arg_count = inputs + 2,
        .local_bytes = s->local_bytes};

    for (size_t k = 0; k < inputs; k++)
        args[k] = IRON_GPU_BUFFER(data->inputs[k]);
    args[inputs] = IRON_GPU_BUFFER(data->output);
    args[inputs + 1] = IRON_GPU_VALUE(work->c.rows);
    return iron__gpu_run(queue, &l, err);
}

uint32_t iron__kit_groups(const iron__gpu_work *work, uint64_t pieces, uint32_t per_unit) {
    return (uint32_t)iron__max(1, iron__min(pieces, (uint64_t)per_unit * work->device->info.units));
}

static iron_status record(iron__gpu_work *work, iron__recorded_run run, const iron__gpu_data *data,
                          iron__gpu_queue *queue, iron_error *err) {
    iron_status status, ended;

    iron__gpu_graph_destroy(work->device, work->graph);
    work->graph = NULL;
    IRON_TRY(iron__gpu_graph_begin(queue, err));
    status = run(work, data, queue, err);
    /* The queue must leave recording mode even if run failed. */
    ended = iron__gpu_graph_end(queue, &work->graph, status == IRON_OK ? err : NULL);
    if (status == IRON_OK)
        return ended;
    iron__gpu_graph_destroy(work->device, work->graph);
    work->graph = NULL;
    return status;
}

iron_status iron__recording_run(iron__gpu_work *work, iron__recorded_run run,
                                const iron__gpu_data *data, iron__gpu_queue *queue,
                                iron_error *err) {
    const uintptr_t buffers[3] = {data->inputs[0]->native, data->inputs[1]->native,
                                  data->output->native};

    if (!work->graph || memcmp(work->recorded, buffers, sizeof buffers) != 0) {
        IRON_TRY(record(work, run, data, queue, err));
        memcpy(work->recorded, buffers, sizeof buffers);
    }
    return iron__gpu_graph_replay(work->graph, queue, err);
}

iron_status iron__recording_suits(const iron__gpu_device *device, const iron__case *c,
                                  iron_error *err) {
    (void)c;
    IRON_FAIL_IF(!device->info.can_graph, err, IRON_E_UNSUPPORTED,
                 "%s cannot record launches and replay them with one call", device->info.name);
    return IRON_OK;
}
