/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu_ways.c: the ways that read A twice: tmp = A x, then y = A' tmp.
 *
 * In parts, tmp of a part's rows is computed as they arrive, and y of all rows in the end, as the
 * talk has it: a thread a column has nothing to show before it has seen all rows. `coalesced` cuts
 * the rows into slices anyway: a part is some more slices, and the end is their sum.
 *
 * Constant memory is one block for all queues: a part's copies into it wait until the kernels of
 * the part before have read it. So parts compute one after the other there, while the copies of A
 * for later ones go on.
 */
#include "core/fail.h"
#include "ops/atax/atax_gpu_work.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static iron_status launch(iron__gpu_work *work, iron__gpu_kernel *kernel, const uint64_t groups[2],
                          const iron__gpu_arg *args, size_t arg_count, iron__gpu_queue *queue,
                          iron_error *err) {
    const iron__gpu_launch l = {.kernel = kernel,
                                .groups = {(uint32_t)groups[0], (uint32_t)groups[1]},
                                .threads = {work->recipe->threads},
                                .args = args,
                                .arg_count = arg_count};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_tmp(iron__gpu_work *work, const iron__gpu_buffer *a,
                           const iron__gpu_buffer *x, atax_span s, iron__gpu_queue *queue,
                           iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(a), IRON_GPU_BUFFER(x),
                                  IRON_GPU_BUFFER(work->tmp), IRON_GPU_VALUE(s)};
    const uint64_t groups[2] = {iron__atax_groups(s.count, work->recipe->tmp_rows), 1};

    return launch(work, work->tmp_kernel, groups, args, COUNT(args), queue, err);
}

static iron_status run_y(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                         iron_error *err) {
    atax_span s = iron__atax_whole(work);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->tmp),
                                  IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(s)};
    const uint64_t groups[2] = {iron__atax_groups(s.cols, work->recipe->y_cols), 1};

    return launch(work, work->y_kernel, groups, args, COUNT(args), queue, err);
}

static iron_status run_two_passes(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(run_tmp(work, data->inputs[0], data->inputs[1], iron__atax_whole(work), queue, err));
    return run_y(work, data, queue, err);
}

static iron_status run_tmp_part(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    if (part.count == 0)
        return IRON_OK;
    return run_tmp(work, data->inputs[0], data->inputs[1], iron__atax_part(work, part), queue, err);
}

const iron__gpu_way iron__atax_two_passes = {.create = iron__atax_gpu_create,
                                             .destroy = iron__atax_gpu_destroy,
                                             .device_bytes = iron__atax_gpu_device_bytes,
                                             .spoil = iron__atax_gpu_spoil,
                                             .run = run_two_passes,
                                             .run_part = run_tmp_part,
                                             .finish = run_y};

/* Columns from ... from+count-1: their x into the block, then their part of tmp. */
static iron_status run_piece(iron__gpu_work *work, const iron__gpu_data *data, atax_span s,
                             uint64_t from, uint32_t count, iron__gpu_queue *queue,
                             iron_error *err) {
    size_t element_bytes = iron__element_bytes(work->c.element);
    const iron__gpu_copy copy = {.from = data->inputs[1],
                                 .to = work->block,
                                 .from_offset = (size_t)from * element_bytes,
                                 .bytes = count * element_bytes};
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]),
                                  IRON_GPU_BUFFER(work->block),
                                  IRON_GPU_BUFFER(work->tmp),
                                  IRON_GPU_VALUE(s),
                                  IRON_GPU_VALUE(from),
                                  IRON_GPU_VALUE(count)};
    const uint64_t groups[2] = {iron__atax_groups(s.count, work->recipe->tmp_rows), 1};

    IRON_TRY(iron__gpu_copy_bytes(queue, &copy, err));
    return launch(work, work->tmp_kernel, groups, args, COUNT(args), queue, err);
}

static iron_status run_pieces(iron__gpu_work *work, const iron__gpu_data *data, atax_span s,
                              iron__gpu_queue *queue, iron_error *err) {
    uint64_t size = ATAX_BLOCK / iron__element_bytes(work->c.element);

    for (uint64_t from = 0; from < s.cols; from += size) {
        uint64_t left = s.cols - from;

        IRON_TRY(run_piece(work, data, s, from, (uint32_t)(left < size ? left : size), queue, err));
    }
    return IRON_OK;
}

static iron_status run_constant(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(run_pieces(work, data, iron__atax_whole(work), queue, err));
    return run_y(work, data, queue, err);
}

static iron_status run_constant_part(iron__gpu_work *work, const iron__gpu_data *data,
                                     iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    if (part.count == 0)
        return IRON_OK;
    if (work->parts > 0)
        IRON_TRY(iron__gpu_event_follow(queue, work->block_free, err));
    work->parts++;
    IRON_TRY(run_pieces(work, data, iron__atax_part(work, part), queue, err));
    return iron__gpu_event_record(queue, work->block_free, err);
}

static iron_status finish_constant(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    work->parts = 0;
    return run_y(work, data, queue, err);
}

const iron__gpu_way iron__atax_constant = {.create = iron__atax_gpu_create,
                                           .destroy = iron__atax_gpu_destroy,
                                           .device_bytes = iron__atax_gpu_device_bytes,
                                           .spoil = iron__atax_gpu_spoil,
                                           .run = run_constant,
                                           .run_part = run_constant_part,
                                           .finish = finish_constant};

static iron_status make_copy(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    atax_span s = iron__atax_whole(work);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->copy),
                                  IRON_GPU_VALUE(s)};
    const uint64_t groups[2] = {
        iron__atax_groups(s.count, ATAX_TILE) * iron__atax_groups(s.cols, ATAX_TILE), 1};

    return launch(work, work->transpose_kernel, groups, args, COUNT(args), queue, err);
}

static iron_status run_transposed(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(run_tmp(work, work->copy, data->inputs[1], iron__atax_whole(work), queue, err));
    return run_y(work, data, queue, err);
}

const iron__gpu_way iron__atax_transposed = {.create = iron__atax_gpu_create,
                                             .destroy = iron__atax_gpu_destroy,
                                             .device_bytes = iron__atax_gpu_device_bytes,
                                             .spoil = iron__atax_gpu_spoil,
                                             .derive = make_copy,
                                             .run = run_transposed};

/* tmp of the span's rows, and `slices` partial answers of them from line `first` on. */
static iron_status run_slices(iron__gpu_work *work, const iron__gpu_data *data, atax_span s,
                              uint32_t first, uint32_t slices, iron__gpu_queue *queue,
                              iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->tmp),
                                  IRON_GPU_BUFFER(work->partials), IRON_GPU_VALUE(s),
                                  IRON_GPU_VALUE(first)};
    const uint64_t groups[2] = {iron__atax_groups(s.cols, work->recipe->y_cols), slices};

    if (s.count > 0)
        IRON_TRY(run_tmp(work, data->inputs[0], data->inputs[1], s, queue, err));
    return launch(work, work->y_kernel, groups, args, COUNT(args), queue, err);
}

static iron_status run_coalesced(iron__gpu_work *work, const iron__gpu_data *data,
                                 iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(run_slices(work, data, iron__atax_whole(work), 0, work->run_partials, queue, err));
    return iron__atax_sum(work, data, work->run_partials, queue, err);
}

static iron_status run_coalesced_part(iron__gpu_work *work, const iron__gpu_data *data,
                                      iron__gpu_part part, iron__gpu_queue *queue,
                                      iron_error *err) {
    work->parts = part.total;
    return run_slices(work, data, iron__atax_part(work, part), part.index * work->part_partials,
                      work->part_partials, queue, err);
}

static iron_status finish_coalesced(iron__gpu_work *work, const iron__gpu_data *data,
                                    iron__gpu_queue *queue, iron_error *err) {
    return iron__atax_sum(work, data, work->parts * work->part_partials, queue, err);
}

const iron__gpu_way iron__atax_coalesced = {.create = iron__atax_gpu_create,
                                            .destroy = iron__atax_gpu_destroy,
                                            .device_bytes = iron__atax_gpu_device_bytes,
                                            .spoil = iron__atax_gpu_spoil,
                                            .run = run_coalesced,
                                            .run_part = run_coalesced_part,
                                            .finish = finish_coalesced};
