/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu.c: the GPU rows of atax. The order of the rows: the talk's first kernels, what the talk
 * tried on them, two passes done well, and one pass.
 *
 * A spec says which kernels a contender has and how much of the matrix a group of each processes.
 * Partial answers are lines of `cols` elements; each part of the matrix fills the same number of
 * them, empty ones with zeros, so that finish knows how many there are.
 *
 * Two passes compute tmp = A x, then y = A^T tmp. In parts, tmp is computed as rows arrive, and y
 * of all rows at the end, as in the talk: a kernel with one thread per column has no result before
 * it has seen all rows. `coalesced` divides the rows into slices anyway: a part is some more
 * slices, and finish adds them. Constant memory is one block for all queues: the copies of a part
 * into it wait until the kernels of the part before have read it. So parts compute one after the
 * other there, while copies of A for later parts continue.
 *
 * The single pass reads A once: the pass, which leaves one partial answer per group, then their
 * sum. For matrices so small that launches dominate, `graph` replays the two launches with one
 * call, and `one-launch` does everything in one launch whose groups wait for each other (atax.cu).
 * In parts both are the single pass.
 *
 * The file holds, in order: specs, shapes of the single pass, creation and destruction, launches of
 * the two-pass rows, launches of the single-pass rows, and the rows.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "gpu/kernel_words.h"
#include "ops/atax/atax.h"
#include "ops/atax/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <stdio.h>

/* Maximum number of partial answers on any device: 4 parts on 192 units. */
#define PARTIALS_MAX 768u

/* State of the barrier across groups (atax.cu). */
#define BARRIER_BYTES 256u

typedef struct atax_spec {
    const char *tmp, *y;         /* kernels, without _f32; y may be NULL */
    uint32_t tmp_rows, y_cols;   /* per group */
    uint32_t threads;            /* per group */
    bool has_copy, has_partials; /* which memory it needs */
    bool has_tmp, has_block;
    bool is_together; /* one launch whose groups wait for each other */
    bool is_replayed; /* its launches are recorded */
} atax_spec;

/* How the single pass is launched for a case. */
typedef struct pass_shape {
    const char *name; /* of the kernel, between atax_single_ and _f32 */
    uint32_t threads, groups_per_unit;
    uint32_t width;      /* threads that share a row */
    uint32_t round_rows; /* rows that a group processes at a time */
    uint32_t slot_rows;  /* of these, rows that are read by the same threads */
    bool is_held;        /* a group holds whole rows */
    bool is_by_element;  /* rows are not aligned to vectors: another version of the kernel */
} pass_shape;

typedef struct atax_work {
    iron__gpu_device *device;
    const atax_spec *spec;
    iron__case c;
    pass_shape shape;       /* of the single pass */
    uint32_t run_partials;  /* lines that a run fills */
    uint32_t part_partials; /* lines that a part fills */
    uint32_t parts;         /* that finish must add; constant: started since the last finish */
    iron__gpu_program *program;
    iron__gpu_kernel *tmp_kernel, *y_kernel, *sum_kernel, *transpose_kernel, *together_kernel;
    iron__gpu_buffer *tmp, *partials, *copy, *block, *barrier;
    iron__recording recording;
    iron__gpu_event *block_free; /* the kernels of the last part have read the block */
} atax_work;

/* All rows. */
static atax_span whole_span(const atax_work *work) {
    return (atax_span){.first = 0, .count = work->c.rows, .cols = work->c.cols};
}

static atax_span part_span(const atax_work *work, iron__gpu_part part) {
    return (atax_span){.first = part.first, .count = part.count, .cols = work->c.cols};
}

_Static_assert(sizeof(atax_span) == 24, "kernels see the same layout");

IRON_GPU_EMBEDDED(atax)

static const iron__gpu_image image = IRON_GPU_IMAGE(atax);

static const atax_spec naive = {.tmp = "atax_naive_tmp",
                                .y = "atax_naive_y",
                                .tmp_rows = ATAX_THREADS,
                                .y_cols = ATAX_THREADS,
                                .threads = ATAX_THREADS,
                                .has_tmp = true};
static const atax_spec constant = {.tmp = "atax_constant_tmp",
                                   .y = "atax_naive_y",
                                   .tmp_rows = ATAX_THREADS,
                                   .y_cols = ATAX_THREADS,
                                   .threads = ATAX_THREADS,
                                   .has_tmp = true,
                                   .has_block = true};
static const atax_spec transposed = {.tmp = "atax_transposed_tmp",
                                     .y = "atax_naive_y",
                                     .tmp_rows = ATAX_THREADS,
                                     .y_cols = ATAX_THREADS,
                                     .threads = ATAX_THREADS,
                                     .has_tmp = true,
                                     .has_copy = true};
static const atax_spec tiled = {.tmp = "atax_tiled_tmp",
                                .y = "atax_tiled_y",
                                .tmp_rows = ATAX_TILE,
                                .y_cols = ATAX_TILE,
                                .threads = ATAX_TILE_THREADS,
                                .has_tmp = true};
static const atax_spec coalesced = {.tmp = "atax_coalesced_tmp",
                                    .y = "atax_coalesced_y",
                                    .tmp_rows = ATAX_THREADS / 32,
                                    .y_cols = ATAX_THREADS,
                                    .threads = ATAX_THREADS,
                                    .has_tmp = true,
                                    .has_partials = true};
static const atax_spec single = {.has_partials = true};
static const atax_spec together = {.has_partials = true, .is_together = true};
static const atax_spec replayed = {.has_partials = true, .is_replayed = true};

#define FLOATS (IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64))

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

/* The number of threads that share a row: the smallest power of two that can hold it. */
static uint32_t width_of(const held_shape *h, uint64_t row_bytes) {
    uint32_t width = h->threads / h->slots;

    while ((uint64_t)width * h->vectors * VECTOR_BYTES < row_bytes)
        width *= 2;
    return width;
}

static pass_shape shape_of(const iron__case *c) {
    uint64_t row_bytes = c->cols * iron__element_bytes(c->element);
    bool is_by_element = row_bytes % VECTOR_BYTES != 0;

    for (size_t k = 0; k < IRON_KIT_COUNT(shapes); k++) {
        const held_shape *h = &shapes[k];

        if ((uint64_t)h->threads * h->vectors * VECTOR_BYTES >= row_bytes) {
            uint32_t width = width_of(h, row_bytes);

            return (pass_shape){.name = h->name,
                                .threads = h->threads,
                                .groups_per_unit = h->groups,
                                .width = width,
                                .round_rows = h->threads / width * h->rows,
                                .slot_rows = h->rows,
                                .is_held = true,
                                .is_by_element = is_by_element};
        }
    }
    if ((uint64_t)ATAX_WIDE_THREADS * ATAX_WIDE_VECTORS * VECTOR_BYTES >= row_bytes)
        return (pass_shape){.name = "wide",
                            .threads = ATAX_WIDE_THREADS,
                            .groups_per_unit = 1,
                            .width = ATAX_WIDE_THREADS,
                            .round_rows = 1,
                            .slot_rows = 1,
                            .is_by_element = is_by_element};
    return (pass_shape){.name = "any",
                        .threads = ATAX_ANY_THREADS,
                        .groups_per_unit = 1,
                        .width = ATAX_ANY_THREADS,
                        .round_rows = ATAX_ANY_ROWS,
                        .slot_rows = ATAX_ANY_ROWS,
                        .is_by_element = false};
}

/* Finds a kernel for the element type: "atax_sum" is "atax_sum_f64". */
static iron_status find(atax_work *work, const char *stem, bool is_by_element,
                        iron__gpu_kernel **out, iron_error *err) {
    char name[64];

    snprintf(name, sizeof name, "%s%s_%s", stem, is_by_element ? "_unaligned" : "",
             iron__element_name(work->c.element));
    return iron__gpu_kernel_find(work->device, work->program, name, out, err);
}

/* Finds a kernel for the case's shape. */
static iron_status find_shape(atax_work *work, const char *kind, iron__gpu_kernel **out,
                              iron_error *err) {
    char stem[48];

    snprintf(stem, sizeof stem, "atax_%s_%s", kind, work->shape.name);
    return find(work, stem, work->shape.is_by_element, out, err);
}

static iron_status find_kernels(atax_work *work, iron_error *err) {
    const atax_spec *spec = work->spec;

    IRON_TRY(iron__gpu_program_load(work->device, &image, &work->program, err));
    if (spec->tmp)
        IRON_TRY(find(work, spec->tmp, false, &work->tmp_kernel, err));
    else
        IRON_TRY(find_shape(work, "single", &work->tmp_kernel, err));
    if (spec->is_together)
        IRON_TRY(find_shape(work, "together", &work->together_kernel, err));
    if (spec->y)
        IRON_TRY(find(work, spec->y, false, &work->y_kernel, err));
    if (spec->has_copy)
        IRON_TRY(find(work, "atax_transpose", false, &work->transpose_kernel, err));
    return spec->has_partials ? find(work, "atax_sum", false, &work->sum_kernel, err) : IRON_OK;
}

static iron_status allocate_memory(atax_work *work, uint32_t parts, iron_error *err) {
    const atax_spec *spec = work->spec;
    size_t element_bytes = iron__element_bytes(work->c.element);
    size_t line_bytes = (size_t)work->c.cols * element_bytes;
    size_t part_lines = (size_t)parts * work->part_partials;
    size_t lines = part_lines > work->run_partials ? part_lines : work->run_partials;
    const struct {
        bool is_wanted;
        iron__gpu_buffer **buffer;
        size_t bytes;
    } wanted[] = {
        {spec->has_tmp, &work->tmp, (size_t)work->c.rows * element_bytes},
        {spec->has_copy, &work->copy, (size_t)work->c.rows * line_bytes},
        {spec->has_partials, &work->partials, lines * line_bytes},
        {spec->is_together, &work->barrier, BARRIER_BYTES},
    };

    for (size_t k = 0; k < IRON_KIT_COUNT(wanted); k++)
        if (wanted[k].is_wanted)
            IRON_TRY(iron__gpu_buffer_create(work->device, IRON_GPU_MEMORY_DEVICE, wanted[k].bytes,
                                             wanted[k].buffer, err));
    if (!spec->has_block)
        return IRON_OK;
    IRON_TRY(iron__gpu_event_create(work->device, &work->block_free, err));
    return iron__gpu_constant_find(work->device, work->program, "atax_block", ATAX_BLOCK,
                                   &work->block, err);
}

/* Enough groups to fill the device, but no more than are useful for so many rows. */
static uint64_t wanted_partials(const atax_work *work, uint64_t count) {
    uint64_t units = work->device->info.units ? work->device->info.units : 1;
    uint64_t fill, useful;

    if (work->spec->tmp) { /* 8 groups of 256 threads per unit, slices of at least 32 rows */
        fill = iron__kit_pieces(8 * units, iron__kit_pieces(work->c.cols, work->spec->y_cols));
        useful = iron__kit_pieces(count, 32);
    } else {
        fill = units * work->shape.groups_per_unit;
        /* In one launch latency dominates, so rows are spread over more groups. */
        useful = iron__kit_pieces(count, work->spec->is_together ? work->shape.slot_rows
                                                                 : work->shape.round_rows);
    }
    return useful < fill ? useful : fill;
}

static void plan_partials(atax_work *work, uint32_t parts) {
    uint64_t of_run = wanted_partials(work, work->c.rows);
    uint64_t of_part = wanted_partials(work, iron__kit_pieces(work->c.rows, parts));
    uint64_t limit = PARTIALS_MAX / parts > 0 ? PARTIALS_MAX / parts : 1;

    work->run_partials = (uint32_t)(of_run < PARTIALS_MAX ? of_run : PARTIALS_MAX);
    work->part_partials = (uint32_t)(of_part < limit ? of_part : limit);
}

static iron_status check_device(const atax_work *work, iron_error *err) {
    const iron__gpu_info *info = &work->device->info;
    uint32_t threads = work->spec->tmp ? work->spec->threads : work->shape.threads;

    if (work->spec->has_partials && threads < ATAX_SUM_COLS * ATAX_SUM_WAYS)
        threads = ATAX_SUM_COLS * ATAX_SUM_WAYS;
    IRON_TRY(iron__needs_element(work->device, &work->c, err));
    IRON_TRY(iron__needs_threads(work->device, threads, err));
    if (work->spec->is_replayed)
        IRON_TRY(iron__recording_suits(work->device, err));
    IRON_FAIL_IF(work->spec->is_together && !info->can_cooperate, err, IRON_E_UNSUPPORTED,
                 "%s cannot guarantee that all groups of a launch run at once", info->name);
    IRON_FAIL_IF(
        work->spec->is_together && !work->shape.is_held, err, IRON_E_UNSUPPORTED,
        "a group cannot hold rows of %llu columns; use single-pass, which needs two launches",
        (unsigned long long)work->c.cols);
    IRON_FAIL_IF(work->c.rows > UINT32_MAX || work->c.cols > UINT32_MAX, err, IRON_E_UNSUPPORTED,
                 "one launch cannot handle 2^32 or more rows or columns");
    return IRON_OK;
}

static void destroy_work(iron__gpu_work *object) {
    atax_work *work = (atax_work *)object;

    if (!work)
        return;
    iron__gpu_graph_destroy(work->device, work->recording.graph);
    iron__gpu_event_destroy(work->device, work->block_free);
    iron__gpu_buffer_destroy(work->barrier);
    iron__gpu_buffer_destroy(work->block);
    iron__gpu_buffer_destroy(work->copy);
    iron__gpu_buffer_destroy(work->partials);
    iron__gpu_buffer_destroy(work->tmp);
    iron__gpu_program_unload(work->device, work->program);
    iron__release(iron__allocator_default(), work);
}

static iron_status create_work(iron__gpu_device *device, const iron__contender *row,
                               const iron__op_problem *problem, uint32_t parts,
                               iron__gpu_work **out, iron_error *err) {
    atax_work *work =
        iron__allocate(iron__allocator_default(), 1, sizeof *work, "atax on a GPU", err);
    iron_status status;

    *out = NULL;
    if (!work)
        return IRON_E_NOMEM;
    parts = parts ? parts : 1;
    work->device = device;
    work->spec = row->own;
    work->c = problem->c;
    work->shape = shape_of(&work->c);
    plan_partials(work, parts);
    status = check_device(work, err);
    if (status == IRON_OK)
        status = find_kernels(work, err);
    if (status == IRON_OK)
        status = allocate_memory(work, parts, err);
    if (status != IRON_OK) {
        destroy_work((iron__gpu_work *)work);
        return status;
    }
    *out = (iron__gpu_work *)work;
    return IRON_OK;
}

static iron_status spoil_work(iron__gpu_work *object, iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;
    iron__gpu_buffer *const scratch[] = {work->tmp, work->partials};

    for (size_t k = 0; k < IRON_KIT_COUNT(scratch); k++)
        if (scratch[k])
            IRON_TRY(iron__gpu_clear(queue, scratch[k], 0, scratch[k]->bytes & ~(size_t)3, err));
    return IRON_OK;
}

/* The maximum: the number of partial answers depends on the device. */
static uint64_t device_bytes(const iron__contender *row, const iron__case *c) {
    const atax_spec *spec = row->own;
    uint64_t element_bytes = iron__element_bytes(c->element);
    uint64_t lines = c->rows < PARTIALS_MAX ? c->rows : PARTIALS_MAX;

    return (spec->has_tmp ? c->rows * element_bytes : 0) +
           (spec->has_copy ? c->rows * c->cols * element_bytes : 0) +
           (spec->has_partials ? lines * c->cols * element_bytes : 0) +
           (spec->has_block ? ATAX_BLOCK : 0);
}

#define LAUNCHER                                                                                   \
    .create = create_work, .destroy = destroy_work, .device_bytes = device_bytes,                  \
    .spoil = spoil_work

static iron_status launch(atax_work *work, iron__gpu_kernel *kernel, const uint64_t groups[2],
                          const iron__gpu_arg *args, size_t arg_count, iron__gpu_queue *queue,
                          iron_error *err) {
    const iron__gpu_launch l = {.kernel = kernel,
                                .groups = {(uint32_t)groups[0], (uint32_t)groups[1]},
                                .threads = {work->spec->threads},
                                .args = args,
                                .arg_count = arg_count};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_tmp(atax_work *work, const iron__gpu_buffer *a, const iron__gpu_buffer *x,
                           atax_span s, iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(a), IRON_GPU_BUFFER(x),
                                  IRON_GPU_BUFFER(work->tmp), IRON_GPU_VALUE(s)};
    const uint64_t groups[2] = {iron__kit_pieces(s.count, work->spec->tmp_rows), 1};

    return launch(work, work->tmp_kernel, groups, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_y(iron__gpu_work *object, const iron__gpu_data *data, iron__gpu_queue *queue,
                         iron_error *err) {
    atax_work *work = (atax_work *)object;
    atax_span s = whole_span(work);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->tmp),
                                  IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(s)};
    const uint64_t groups[2] = {iron__kit_pieces(s.cols, work->spec->y_cols), 1};

    return launch(work, work->y_kernel, groups, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_two_passes(iron__gpu_work *object, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    IRON_TRY(run_tmp(work, data->inputs[0], data->inputs[1], whole_span(work), queue, err));
    return run_y(object, data, queue, err);
}

static iron_status run_tmp_part(iron__gpu_work *object, const iron__gpu_data *data,
                                iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    if (part.count == 0)
        return IRON_OK;
    return run_tmp(work, data->inputs[0], data->inputs[1], part_span(work, part), queue, err);
}

static const iron__gpu_launcher two_passes_launcher = {LAUNCHER, .run = run_two_passes,
                                                       .run_part = run_tmp_part, .finish = run_y};

/* Columns from ... from+count-1: copies their x into the block, then computes their part of tmp. */
static iron_status run_piece(atax_work *work, const iron__gpu_data *data, atax_span s,
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
    const uint64_t groups[2] = {iron__kit_pieces(s.count, work->spec->tmp_rows), 1};

    IRON_TRY(iron__gpu_copy_bytes(queue, &copy, err));
    return launch(work, work->tmp_kernel, groups, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_pieces(atax_work *work, const iron__gpu_data *data, atax_span s,
                              iron__gpu_queue *queue, iron_error *err) {
    uint64_t size = ATAX_BLOCK / iron__element_bytes(work->c.element);

    for (uint64_t from = 0; from < s.cols; from += size) {
        uint64_t left = s.cols - from;

        IRON_TRY(run_piece(work, data, s, from, (uint32_t)(left < size ? left : size), queue, err));
    }
    return IRON_OK;
}

static iron_status run_constant(iron__gpu_work *object, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    IRON_TRY(run_pieces(work, data, whole_span(work), queue, err));
    return run_y(object, data, queue, err);
}

static iron_status run_constant_part(iron__gpu_work *object, const iron__gpu_data *data,
                                     iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    if (part.count == 0)
        return IRON_OK;
    if (work->parts > 0)
        IRON_TRY(iron__gpu_queue_wait_event(queue, work->block_free, err));
    work->parts++;
    IRON_TRY(run_pieces(work, data, part_span(work, part), queue, err));
    return iron__gpu_event_record(queue, work->block_free, err);
}

static iron_status finish_constant(iron__gpu_work *object, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;
    work->parts = 0;
    return run_y(object, data, queue, err);
}

static const iron__gpu_launcher constant_launcher = {
    LAUNCHER, .run = run_constant, .run_part = run_constant_part, .finish = finish_constant};

static iron_status make_copy(iron__gpu_work *object, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;
    atax_span s = whole_span(work);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->copy),
                                  IRON_GPU_VALUE(s)};
    const uint64_t groups[2] = {
        iron__kit_pieces(s.count, ATAX_TILE) * iron__kit_pieces(s.cols, ATAX_TILE), 1};

    return launch(work, work->transpose_kernel, groups, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_transposed(iron__gpu_work *object, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    IRON_TRY(run_tmp(work, work->copy, data->inputs[1], whole_span(work), queue, err));
    return run_y(object, data, queue, err);
}

static const iron__gpu_launcher transposed_launcher = {LAUNCHER, .derive = make_copy,
                                                       .run = run_transposed};

static iron_status sum_partials(atax_work *work, const iron__gpu_data *data, uint32_t lines,
                                iron__gpu_queue *queue, iron_error *err) {
    uint64_t cols = work->c.cols;
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(work->partials), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(cols), IRON_GPU_VALUE(lines)};
    const iron__gpu_launch l = {.kernel = work->sum_kernel,
                                .groups = {(uint32_t)iron__kit_pieces(cols, ATAX_SUM_COLS)},
                                .threads = {ATAX_SUM_COLS, ATAX_SUM_WAYS},
                                .args = args,
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status pass(atax_work *work, const iron__gpu_data *data, atax_span s, uint32_t first,
                        uint32_t groups, iron__gpu_queue *queue, iron_error *err) {
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
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_single(iron__gpu_work *object, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    IRON_TRY(pass(work, data, whole_span(work), 0, work->run_partials, queue, err));
    return sum_partials(work, data, work->run_partials, queue, err);
}

static iron_status run_single_part(iron__gpu_work *object, const iron__gpu_data *data,
                                   iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;
    work->parts = part.total;
    return pass(work, data, part_span(work, part), part.index * work->part_partials,
                work->part_partials, queue, err);
}

static iron_status finish_partials(iron__gpu_work *object, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    return sum_partials(work, data, work->parts * work->part_partials, queue, err);
}

/* tmp of the span's rows, and their `slices` partial answers from line `first` on. */
static iron_status run_slices(atax_work *work, const iron__gpu_data *data, atax_span s,
                              uint32_t first, uint32_t slices, iron__gpu_queue *queue,
                              iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->tmp),
                                  IRON_GPU_BUFFER(work->partials), IRON_GPU_VALUE(s),
                                  IRON_GPU_VALUE(first)};
    const uint64_t groups[2] = {iron__kit_pieces(s.cols, work->spec->y_cols), slices};

    if (s.count > 0)
        IRON_TRY(run_tmp(work, data->inputs[0], data->inputs[1], s, queue, err));
    return launch(work, work->y_kernel, groups, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_coalesced(iron__gpu_work *object, const iron__gpu_data *data,
                                 iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    IRON_TRY(run_slices(work, data, whole_span(work), 0, work->run_partials, queue, err));
    return sum_partials(work, data, work->run_partials, queue, err);
}

static iron_status run_coalesced_part(iron__gpu_work *object, const iron__gpu_data *data,
                                      iron__gpu_part part, iron__gpu_queue *queue,
                                      iron_error *err) {
    atax_work *work = (atax_work *)object;
    work->parts = part.total;
    return run_slices(work, data, part_span(work, part), part.index * work->part_partials,
                      work->part_partials, queue, err);
}

static const iron__gpu_launcher coalesced_launcher = {
    LAUNCHER, .run = run_coalesced, .run_part = run_coalesced_part, .finish = finish_partials};

static iron_status run_graph(iron__gpu_work *object, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;

    return iron__recording_run(&work->recording, work->device, run_single, object, data, queue,
                               err);
}

static iron_status create_together(iron__gpu_device *device, const iron__contender *row,
                                   const iron__op_problem *problem, uint32_t parts,
                                   iron__gpu_work **out, iron_error *err) {
    iron_status status = create_work(device, row, problem, parts, out, err);

    if (status != IRON_OK)
        return status;
    status = iron__gpu_clear_now(((atax_work *)*out)->barrier, BARRIER_BYTES, err);
    if (status != IRON_OK) {
        destroy_work(*out);
        *out = NULL;
    }
    return status;
}

static iron_status run_together(iron__gpu_work *object, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    atax_work *work = (atax_work *)object;
    atax_span s = whole_span(work);
    const iron__gpu_arg args[] = {
        IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->inputs[1]),
        IRON_GPU_BUFFER(work->partials),  IRON_GPU_BUFFER(data->output),
        IRON_GPU_BUFFER(work->barrier),   IRON_GPU_VALUE(s),
        IRON_GPU_VALUE(work->shape.width)};
    const iron__gpu_launch l = {.kernel = work->together_kernel,
                                .groups = {work->run_partials},
                                .threads = {work->shape.threads},
                                .flags = IRON_GPU_LAUNCH_COOPERATIVE,
                                .args = args,
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static const iron__gpu_launcher graph_launcher = {
    LAUNCHER, .run = run_graph, .run_part = run_single_part, .finish = finish_partials};

static const iron__gpu_launcher together_launcher = {.create = create_together,
                                                     .destroy = destroy_work,
                                                     .device_bytes = device_bytes,
                                                     .spoil = spoil_work,
                                                     .run = run_together,
                                                     .run_part = run_single_part,
                                                     .finish = finish_partials};
static const iron__gpu_launcher single_launcher = {
    LAUNCHER, .run = run_single, .run_part = run_single_part, .finish = finish_partials};

const iron__contender iron__atax_gpu_rows[IRON_ATAX_GPU_ROWS] = {
    {.name = "naive",
     .idea = "one thread per row for A x, one per column for A^T(A x): the talk's first kernels",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &two_passes_launcher,
     .own = &naive},
    {.name = "constant",
     .idea = "the same with x in constant memory, 64 KiB at a time",
     .beats = "naive",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &constant_launcher,
     .own = &constant},
    {.name = "transposed",
     .idea = "A x reads a transposed copy made beforehand: coalesced reads",
     .beats = "naive",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &transposed_launcher,
     .own = &transposed},
    {.name = "tiled",
     .idea = "both products through 32 x 32 tiles in local memory, loaded along rows",
     .beats = "naive",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &two_passes_launcher,
     .own = &tiled},
    {.name = "coalesced",
     .idea = "one warp per row for A x; one thread per column and slice of rows for y, then a sum",
     .beats = "tiled",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &coalesced_launcher,
     .own = &coalesced},
    {.name = "single-pass",
     .idea = "a group holds rows and its part of y in registers: A is read once",
     .beats = "coalesced",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 1,
     .gpu = &single_launcher,
     .own = &single},
    {.name = "graph",
     .idea = "the two launches of the single pass, recorded once and replayed with one call",
     .beats = "single-pass",
     .backends = IRON_ON_CUDA,
     .elements = FLOATS,
     .passes = 1,
     .gpu = &graph_launcher,
     .own = &replayed},
    {.name = "one-launch",
     .idea = "the single pass; its groups then wait for each other and add their parts: one launch",
     .beats = "single-pass",
     .backends = IRON_ON_CUDA,
     .elements = FLOATS,
     .passes = 1,
     .gpu = &together_launcher,
     .own = &together},
};
