/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu_once.c: the single pass with one call to the driver, for matrices so small that
 * launching is what takes the time: its two launches recorded and replayed as a graph, or all of it
 * in one launch whose groups meet (together.cu). In parts both are the single pass.
 */
#include "core/fail.h"
#include "ops/atax/atax_gpu_work.h"

static iron_status run_graph(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return iron__recording_run(&work->recording, work->device, iron__atax_single_run, work, data,
                               queue, err);
}

/* Nobody has arrived yet. */
static iron_status clear_meeting(iron__gpu_work *work, iron_error *err) {
    return iron__gpu_clear_now(work->meeting, IRON_ATAX_MEETING, err);
}

static iron_status create_together(iron__gpu_device *device, const iron__contender *row,
                                   const iron__problem *problem, uint32_t parts,
                                   iron__gpu_work **out, iron_error *err) {
    iron_status status = iron__atax_gpu_create(device, row, problem, parts, out, err);

    if (status != IRON_OK)
        return status;
    status = clear_meeting(*out, err);
    if (status != IRON_OK) {
        iron__atax_gpu_destroy(*out);
        *out = NULL;
    }
    return status;
}

static iron_status run_together(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    atax_span s = iron__atax_whole(work);
    const iron__gpu_arg args[] = {
        IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->inputs[1]),
        IRON_GPU_BUFFER(work->partials),  IRON_GPU_BUFFER(data->output),
        IRON_GPU_BUFFER(work->meeting),   IRON_GPU_VALUE(s),
        IRON_GPU_VALUE(work->shape.width)};
    const iron__gpu_launch l = {.kernel = work->together_kernel,
                                .groups = {work->run_partials},
                                .threads = {work->shape.threads},
                                .flags = IRON_GPU_LAUNCH_TOGETHER,
                                .args = args,
                                .arg_count = sizeof args / sizeof args[0]};

    return iron__gpu_run(queue, &l, err);
}

const iron__gpu_way iron__atax_graph = {.create = iron__atax_gpu_create,
                                        .destroy = iron__atax_gpu_destroy,
                                        .device_bytes = iron__atax_gpu_device_bytes,
                                        .spoil = iron__atax_gpu_spoil,
                                        .run = run_graph,
                                        .run_part = iron__atax_single_part,
                                        .finish = iron__atax_single_finish};

const iron__gpu_way iron__atax_together = {.create = create_together,
                                           .destroy = iron__atax_gpu_destroy,
                                           .device_bytes = iron__atax_gpu_device_bytes,
                                           .spoil = iron__atax_gpu_spoil,
                                           .run = run_together,
                                           .run_part = iron__atax_single_part,
                                           .finish = iron__atax_single_finish};
