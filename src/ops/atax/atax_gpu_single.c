/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu_single.c: the way that reads A once: which of the kernels suits a case, and its
 * launches: the pass, which leaves a partial answer a group, and their sum. In parts, each part
 * leaves some more of them.
 */
#include "core/fail.h"
#include "ops/atax/atax_gpu_work.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define VECTOR_BYTES 16u

typedef struct held_shape {
    const char *name;
    uint32_t threads, groups, vectors, rows, slots;
} held_shape;

static const held_shape shapes[] = {
#define SHAPE(name, threads, groups, vectors, rows, slots)                                         \
    {#name, threads, groups, vectors, rows, slots},
    ATAX_SINGLE_SHAPES(SHAPE)
#undef SHAPE
};

/* How many threads share a row: as few as can hold it, a power of two. */
static uint32_t width_of(const held_shape *h, uint64_t row_bytes) {
    uint32_t width = h->threads / h->slots;

    while ((uint64_t)width * h->vectors * VECTOR_BYTES < row_bytes)
        width *= 2;
    return width;
}

iron__atax_shape iron__atax_shape_of(const iron__case *c) {
    uint64_t row_bytes = c->cols * iron__element_bytes(c->element);
    bool is_by_element = row_bytes % VECTOR_BYTES != 0;

    for (size_t k = 0; k < COUNT(shapes); k++) {
        const held_shape *h = &shapes[k];

        if ((uint64_t)h->threads * h->vectors * VECTOR_BYTES >= row_bytes) {
            uint32_t width = width_of(h, row_bytes);

            return (iron__atax_shape){.name = h->name,
                                      .threads = h->threads,
                                      .groups_a_unit = h->groups,
                                      .width = width,
                                      .round_rows = h->threads / width * h->rows,
                                      .slot_rows = h->rows,
                                      .is_held = true,
                                      .is_by_element = is_by_element};
        }
    }
    if ((uint64_t)ATAX_WIDE_THREADS * ATAX_WIDE_VECTORS * VECTOR_BYTES >= row_bytes)
        return (iron__atax_shape){.name = "wide",
                                  .threads = ATAX_WIDE_THREADS,
                                  .groups_a_unit = 1,
                                  .width = ATAX_WIDE_THREADS,
                                  .round_rows = 1,
                                  .slot_rows = 1,
                                  .is_by_element = is_by_element};
    return (iron__atax_shape){.name = "any",
                              .threads = ATAX_ANY_THREADS,
                              .groups_a_unit = 1,
                              .width = ATAX_ANY_THREADS,
                              .round_rows = ATAX_ANY_ROWS,
                              .slot_rows = ATAX_ANY_ROWS,
                              .is_by_element = false};
}

iron_status iron__atax_sum(iron__gpu_work *work, const iron__gpu_data *data, uint32_t lines,
                           iron__gpu_queue *queue, iron_error *err) {
    uint64_t cols = work->c.cols;
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(work->partials), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(cols), IRON_GPU_VALUE(lines)};
    const iron__gpu_launch l = {.kernel = work->sum_kernel,
                                .groups = {(uint32_t)iron__atax_groups(cols, ATAX_SUM_COLS)},
                                .threads = {ATAX_SUM_COLS, ATAX_SUM_WAYS},
                                .args = args,
                                .arg_count = COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status pass(iron__gpu_work *work, const iron__gpu_data *data, atax_span s,
                        uint32_t first, uint32_t groups, iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]),
                                  IRON_GPU_BUFFER(data->inputs[1]),
                                  IRON_GPU_BUFFER(work->partials),
                                  IRON_GPU_VALUE(s),
                                  IRON_GPU_VALUE(first),
                                  IRON_GPU_VALUE(work->shape.width)};
    const iron__gpu_launch l = {.kernel = work->tmp_kernel,
                                .groups = {groups},
                                .threads = {work->shape.threads},
                                .args = args,
                                .arg_count = COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

iron_status iron__atax_single_run(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(pass(work, data, iron__atax_whole(work), 0, work->run_partials, queue, err));
    return iron__atax_sum(work, data, work->run_partials, queue, err);
}

iron_status iron__atax_single_part(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    work->parts = part.total;
    return pass(work, data, iron__atax_part(work, part), part.index * work->part_partials,
                work->part_partials, queue, err);
}

iron_status iron__atax_single_finish(iron__gpu_work *work, const iron__gpu_data *data,
                                     iron__gpu_queue *queue, iron_error *err) {
    return iron__atax_sum(work, data, work->parts * work->part_partials, queue, err);
}

const iron__gpu_way iron__atax_single = {.create = iron__atax_gpu_create,
                                         .destroy = iron__atax_gpu_destroy,
                                         .device_bytes = iron__atax_gpu_device_bytes,
                                         .spoil = iron__atax_gpu_spoil,
                                         .run = iron__atax_single_run,
                                         .run_part = iron__atax_single_part,
                                         .finish = iron__atax_single_finish};
