/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu.c: the GPU rows of atax. The order of the rows: the talk's first kernels, what the talk
 * tried on them, two passes done well, and one pass.
 *
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
 * In parts both are the single pass. The champion suits every shape: it also takes rows of a few
 * columns, of any alignment, and rows too long for a group (ring.cu), and chooses by measurement.
 *
 * The file holds, in order: shapes of the single pass, what rows need of a device, launches of the
 * two-pass rows, launches of the single-pass rows, the champion's plan, and the rows.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "gpu/kernel_words.h"
#include "ops/atax/atax.h"
#include "ops/atax/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <stdio.h>

/* Maximum number of partial answers on any device: 4 parts on 192 units. */
#define PARTIALS_MAX 768u

/* The part of a row that a group of the champion holds at most, padding included. */
#define CHAMPION_SLICE UINT64_C(69632)

/* The compute capability that ring.cu needs. */
#define RING_VERSION 900u

/* State of the barrier across groups (atax.cu). */
#define BARRIER_BYTES 256u

/* A launcher's own, of rows with two passes: per group, rows of tmp and columns of y. */
typedef struct two_passes {
    uint32_t tmp_rows, y_cols;
} two_passes;

/* buffers[] of a work. No row has both a copy and a block. */
enum { TMP, PARTIALS, COPY, BLOCK = COPY, BARRIER };

/* kernels[] of a work. The single pass has the place of TMP_KERNEL. */
enum { TMP_KERNEL, Y_KERNEL, SUM_KERNEL, TRANSPOSE_KERNEL = SUM_KERNEL, TOGETHER_KERNEL };

/* params[] of a work: the lines that a run fills, the lines that a part fills, and the parts that
 * finish must add; of `constant`, the parts started since the last finish; of `champion`, how it
 * computes the case: with the kernels of the rows graph or one-launch, or in a ring. */
enum { RUN_PARTIALS, PART_PARTIALS, PARTS, WAY };
enum { BY_GRAPH, BY_ONE_LAUNCH, BY_RING };

static uint64_t row_bytes_of(const iron__case *c) {
    return c->cols * iron__element_bytes(c->element);
}

/* The part of A that a repeated call finds in the last-level cache, if all else leaves it first.
 * Measured on an H200: a unit reaches half of its 60 MB quickly. */
#define KEPT_BYTES (UINT64_C(28) << 20)

static atax_span whole_span(const iron__gpu_work *work) {
    uint64_t kept = KEPT_BYTES * 16 / (work->c.rows * row_bytes_of(&work->c));

    return (atax_span){.first = 0,
                       .count = work->c.rows,
                       .cols = work->c.cols,
                       .passing = kept < 16 ? 16 - (k_u32)kept : 0};
}

static atax_span part_span(const iron__gpu_work *work, iron__gpu_part part) {
    return (atax_span){
        .first = part.first, .count = part.count, .cols = work->c.cols, .passing = 16};
}

_Static_assert(sizeof(atax_span) == 32, "kernels see the same layout");

IRON_KIT_IMAGE(atax)

#define VECTOR_BYTES 16u

/* The shapes of the single pass, by the rows that they hold: a group holds whole rows in the first,
 * y of a row in `wide`, and nothing in `any`. */
typedef struct row_shape {
    const char *name;
    uint32_t threads, groups, vectors, rows, slots;
    bool is_held;
} row_shape;

static const row_shape row_shapes[] = {
#define SHAPE(name, threads, groups, vectors, rows, slots)                                         \
    {#name, threads, groups, vectors, rows, slots, true},
    ATAX_SINGLE_SHAPES(SHAPE)
#undef SHAPE
        {"wide", ATAX_WIDE_THREADS, 1, ATAX_WIDE_VECTORS, 1, 1, false},
    {"any", ATAX_ANY_THREADS, 1, UINT32_MAX, ATAX_ANY_ROWS, 1, false},
};

/* The shape for a case. */
static const row_shape *shape_of(const iron__case *c) {
    const row_shape *r = row_shapes;

    while ((uint64_t)r->threads * r->vectors < iron__kit_pieces(row_bytes_of(c), VECTOR_BYTES))
        r++;
    return r;
}

/* The threads that share a row: the smallest power of two that suffices. */
static uint32_t width_of(const iron__case *c) {
    const row_shape *r = shape_of(c);
    uint32_t width = r->threads / r->slots;

    while ((uint64_t)width * r->vectors < iron__kit_pieces(row_bytes_of(c), VECTOR_BYTES))
        width *= 2;
    return width;
}

/* Are rows not aligned to vectors? Then it is another version of the kernel. */
static bool is_by_element(const iron__case *c) {
    return row_bytes_of(c) % VECTOR_BYTES != 0 && shape_of(c)->vectors != UINT32_MAX;
}

/* Finds a kernel of the single pass for the case's shape: "atax_single_slim_unaligned_f64". */
static iron_status find_pass(iron__gpu_work *work, const char *kind, size_t kernel,
                             iron_error *err) {
    char name[64];

    snprintf(name, sizeof name, "atax_%s_%s%s", kind, shape_of(&work->c)->name,
             is_by_element(&work->c) ? "_unaligned" : "");
    return iron__kit_find(work, kernel, name, true, err);
}

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    IRON_TRY(iron__needs_element(device, c, err));
    IRON_FAIL_IF(c->rows > UINT32_MAX || c->cols > UINT32_MAX, err, IRON_E_UNSUPPORTED,
                 "one launch cannot handle 2^32 or more rows or columns");
    return IRON_OK;
}

/* With partial answers, which a kernel with larger groups adds. */
static iron_status suits_partials(const iron__gpu_device *device, const iron__case *c,
                                  iron_error *err) {
    IRON_TRY(iron__needs_threads(device, ATAX_SUM_COLS * ATAX_SUM_WAYS, err));
    return suits(device, c, err);
}

static iron_status suits_graph(const iron__gpu_device *device, const iron__case *c,
                               iron_error *err) {
    IRON_TRY(suits_partials(device, c, err));
    return iron__recording_suits(device, c, err);
}

static iron_status suits_together(const iron__gpu_device *device, const iron__case *c,
                                  iron_error *err) {
    IRON_TRY(suits_partials(device, c, err));
    IRON_FAIL_IF(!device->info.can_cooperate, err, IRON_E_UNSUPPORTED,
                 "%s cannot guarantee that all groups of a launch run at once", device->info.name);
    IRON_FAIL_IF(
        !shape_of(c)->is_held, err, IRON_E_UNSUPPORTED,
        "a group cannot hold rows of %llu columns; use single-pass, which needs two launches",
        (unsigned long long)c->cols);
    return IRON_OK;
}

static iron_status suits_ring(const iron__gpu_device *device, const iron__case *c,
                              iron_error *err) {
    IRON_TRY(iron__needs_threads(device, ATAX_RING_THREADS, err));
    IRON_TRY(suits(device, c, err));
    IRON_FAIL_IF(device->info.version < RING_VERSION || !device->info.can_cooperate, err,
                 IRON_E_UNSUPPORTED, "%s has no bulk copies (compute capability 9.0)",
                 device->info.name);
    return IRON_OK;
}

static uint64_t tmp_bytes(const iron__case *c, size_t index) {
    return index == TMP ? c->rows * iron__element_bytes(c->element) : 0;
}

static uint64_t copy_bytes(const iron__case *c, size_t index) {
    return index == COPY ? c->cols * tmp_bytes(c, TMP) : tmp_bytes(c, index);
}

static uint64_t barrier_bytes(const iron__case *c, size_t index) {
    (void)c;
    return index == BARRIER ? BARRIER_BYTES : 0;
}

/* Enough groups to fill the device, but no more than are useful for so many rows. */
static uint64_t wanted_partials(const iron__gpu_work *work, uint64_t count) {
    const two_passes *two = work->spec->own;
    const row_shape *r = shape_of(&work->c);
    uint64_t units = iron__max(work->device->info.units, 1);

    if (two) /* 8 groups of 256 threads per unit, slices of at least 32 rows */
        return iron__min(iron__kit_pieces(8 * units, iron__kit_pieces(work->c.cols, two->y_cols)),
                         iron__kit_pieces(count, 32));
    /* In one launch latency dominates: rows are spread over more groups, one for each slot. */
    return iron__min(
        units * r->groups,
        iron__kit_pieces(count, work->buffers[BARRIER]
                                    ? r->rows
                                    : r->threads / width_of(&work->c) * (uint64_t)r->rows));
}

/* Plans the partial answers and allocates them. */
static iron_status set_up_partials(iron__gpu_work *work, iron_error *err) {
    uint64_t of_run = iron__min(wanted_partials(work, work->c.rows), PARTIALS_MAX);
    uint64_t of_part = iron__min(wanted_partials(work, iron__kit_pieces(work->c.rows, work->parts)),
                                 iron__max(PARTIALS_MAX / work->parts, 1));

    work->params[RUN_PARTIALS] = of_run;
    work->params[PART_PARTIALS] = of_part;
    return iron__kit_allocate(
        work, PARTIALS, iron__max(work->parts * of_part, of_run) * row_bytes_of(&work->c), err);
}

static iron_status set_up_single(iron__gpu_work *work, iron_error *err) {
    IRON_TRY(iron__needs_threads(work->device, shape_of(&work->c)->threads, err));
    IRON_TRY(find_pass(work, "single", TMP_KERNEL, err));
    IRON_TRY(iron__kit_find(work, SUM_KERNEL, "atax_sum", true, err));
    return set_up_partials(work, err);
}

static iron_status set_up_together(iron__gpu_work *work, iron_error *err) {
    IRON_TRY(set_up_single(work, err));
    IRON_TRY(find_pass(work, "together", TOGETHER_KERNEL, err));
    return iron__gpu_clear_now(work->buffers[BARRIER], BARRIER_BYTES, err);
}

/* The event: the kernels of the last part have read the block. */
static iron_status set_up_constant(iron__gpu_work *work, iron_error *err) {
    IRON_TRY(iron__gpu_event_create(work->device, &work->event, err));
    return iron__gpu_constant_find(work->device, work->program, "atax_block", ATAX_BLOCK,
                                   &work->buffers[BLOCK], err);
}

static const two_passes *passes_of(const iron__gpu_work *work) { return work->spec->own; }

static iron_status run_tmp(iron__gpu_work *work, const iron__gpu_buffer *a,
                           const iron__gpu_buffer *x, atax_span s, iron__gpu_queue *queue,
                           iron_error *err) {
    return IRON_KIT_LAUNCH(queue, err, work->kernels[TMP_KERNEL],
                           iron__kit_pieces(s.count, passes_of(work)->tmp_rows),
                           work->spec->threads, IRON_GPU_BUFFER(a), IRON_GPU_BUFFER(x),
                           IRON_GPU_BUFFER(work->buffers[TMP]), IRON_GPU_VALUE(s));
}

static iron_status run_y(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                         iron_error *err) {
    atax_span s = whole_span(work);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[Y_KERNEL],
                           iron__kit_pieces(s.cols, passes_of(work)->y_cols), work->spec->threads,
                           IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->buffers[TMP]),
                           IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(s));
}

/* tmp from the copy, if there is one. */
static iron_status run_two_passes(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_buffer *a = work->buffers[COPY] ? work->buffers[COPY] : data->inputs[0];

    IRON_TRY(run_tmp(work, a, data->inputs[1], whole_span(work), queue, err));
    return run_y(work, data, queue, err);
}

static iron_status run_tmp_part(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    if (part.count == 0)
        return IRON_OK;
    return run_tmp(work, data->inputs[0], data->inputs[1], part_span(work, part), queue, err);
}

/* Copies as much of x as fits into the block, computes that part of tmp, and so on. */
static iron_status run_pieces(iron__gpu_work *work, const iron__gpu_data *data, atax_span s,
                              iron__gpu_queue *queue, iron_error *err) {
    size_t element_bytes = iron__element_bytes(work->c.element), size = ATAX_BLOCK / element_bytes;

    for (uint64_t from = 0; from < s.cols; from += size) {
        uint32_t count = (uint32_t)iron__min(s.cols - from, size);
        const iron__gpu_copy copy = {.from = data->inputs[1],
                                     .to = work->buffers[BLOCK],
                                     .from_offset = (size_t)from * element_bytes,
                                     .bytes = count * element_bytes};

        IRON_TRY(iron__gpu_copy_bytes(queue, &copy, err));
        IRON_TRY(IRON_KIT_LAUNCH(queue, err, work->kernels[TMP_KERNEL],
                                 iron__kit_pieces(s.count, passes_of(work)->tmp_rows),
                                 work->spec->threads, IRON_GPU_BUFFER(data->inputs[0]),
                                 IRON_GPU_BUFFER(work->buffers[BLOCK]),
                                 IRON_GPU_BUFFER(work->buffers[TMP]), IRON_GPU_VALUE(s),
                                 IRON_GPU_VALUE(from), IRON_GPU_VALUE(count)));
    }
    return IRON_OK;
}

static iron_status run_constant(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(run_pieces(work, data, whole_span(work), queue, err));
    return run_y(work, data, queue, err);
}

static iron_status run_constant_part(iron__gpu_work *work, const iron__gpu_data *data,
                                     iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    if (part.count == 0)
        return IRON_OK;
    if (work->params[PARTS] > 0)
        IRON_TRY(iron__gpu_queue_wait_event(queue, work->event, err));
    work->params[PARTS]++;
    IRON_TRY(run_pieces(work, data, part_span(work, part), queue, err));
    return iron__gpu_event_record(queue, work->event, err);
}

static iron_status finish_constant(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    work->params[PARTS] = 0;
    return run_y(work, data, queue, err);
}

static iron_status make_copy(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    atax_span s = whole_span(work);
    uint64_t tiles = iron__kit_pieces(s.count, ATAX_TILE) * iron__kit_pieces(s.cols, ATAX_TILE);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[TRANSPOSE_KERNEL], tiles, work->spec->threads,
                           IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->buffers[COPY]),
                           IRON_GPU_VALUE(s));
}

static iron_status sum_partials(iron__gpu_work *work, const iron__gpu_data *data, uint64_t count,
                                iron__gpu_queue *queue, iron_error *err) {
    uint64_t cols = work->c.cols;
    uint32_t lines = (uint32_t)count;
    const iron__gpu_launch l = {.kernel = work->kernels[SUM_KERNEL],
                                .groups = {(uint32_t)iron__kit_pieces(cols, ATAX_SUM_COLS)},
                                .threads = {ATAX_SUM_COLS, ATAX_SUM_WAYS},
                                IRON_KIT_ARGS(IRON_GPU_BUFFER(work->buffers[PARTIALS]),
                                              IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(cols),
                                              IRON_GPU_VALUE(lines))};

    return iron__gpu_run(queue, &l, err);
}

static iron_status finish_partials(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    return sum_partials(work, data, work->params[PARTS] * work->params[PART_PARTIALS], queue, err);
}

/* The span's partial answers, in so many lines from line `first` on: by the single pass, or tmp of
 * its rows and a slice of them for each line. */
static iron_status run_lines(iron__gpu_work *work, const iron__gpu_data *data, atax_span s,
                             uint32_t first, uint64_t lines, iron__gpu_queue *queue,
                             iron_error *err) {
    const two_passes *two = passes_of(work);
    uint32_t width = two ? 0 : width_of(&work->c);

    if (!two)
        return IRON_KIT_LAUNCH(queue, err, work->kernels[TMP_KERNEL], lines,
                               shape_of(&work->c)->threads, IRON_GPU_BUFFER(data->inputs[0]),
                               IRON_GPU_BUFFER(data->inputs[1]),
                               IRON_GPU_BUFFER(work->buffers[PARTIALS]), IRON_GPU_VALUE(s),
                               IRON_GPU_VALUE(first), IRON_GPU_VALUE(width));
    if (s.count > 0)
        IRON_TRY(run_tmp(work, data->inputs[0], data->inputs[1], s, queue, err));
    return iron__gpu_run(
        queue,
        &(const iron__gpu_launch){
            .kernel = work->kernels[Y_KERNEL],
            .groups = {(uint32_t)iron__kit_pieces(s.cols, two->y_cols), (uint32_t)lines},
            .threads = {work->spec->threads},
            IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->buffers[TMP]),
                          IRON_GPU_BUFFER(work->buffers[PARTIALS]), IRON_GPU_VALUE(s),
                          IRON_GPU_VALUE(first))},
        err);
}

/* Partial answers, then their sum. */
static iron_status run_single(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    uint64_t lines = work->params[RUN_PARTIALS];

    IRON_TRY(run_lines(work, data, whole_span(work), 0, lines, queue, err));
    return sum_partials(work, data, lines, queue, err);
}

static iron_status run_single_part(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_part part, iron__gpu_queue *queue, iron_error *err) {
    uint64_t lines = work->params[PART_PARTIALS];

    work->params[PARTS] = part.total;
    return run_lines(work, data, part_span(work, part), (uint32_t)(part.index * lines), lines,
                     queue, err);
}

static iron_status run_graph(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return iron__recording_run(work, run_single, data, queue, err);
}

static iron_status run_together(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    atax_span s = whole_span(work);
    uint32_t width = width_of(&work->c);
    const iron__gpu_launch l = {
        .kernel = work->kernels[TOGETHER_KERNEL],
        .groups = {(uint32_t)work->params[RUN_PARTIALS]},
        .threads = {shape_of(&work->c)->threads},
        .flags = IRON_GPU_LAUNCH_COOPERATIVE,
        IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->inputs[1]),
                      IRON_GPU_BUFFER(work->buffers[PARTIALS]), IRON_GPU_BUFFER(data->output),
                      IRON_GPU_BUFFER(work->buffers[BARRIER]), IRON_GPU_VALUE(s),
                      IRON_GPU_VALUE(width))};

    return iron__gpu_run(queue, &l, err);
}

/* A launch of a kernel in ring.cu: own of a work. */
typedef struct ring_plan {
    char kernel[24]; /* without the element type: "atax_team_12x2" */
    uint32_t groups, threads;
    size_t local_bytes;
    uint64_t partials; /* elements */
    atax_ring s;
} ring_plan;

typedef struct ring_shape {
    uint32_t values, sure, rows;
} ring_shape;

#define SHAPE(values, sure, rows) {values, sure, rows},
/* Of f32 and of f64; zeros follow the last. */
static const ring_shape warp_shapes[2][8] = {{ATAX_WARP_SHAPES_F32(SHAPE)},
                                             {ATAX_WARP_SHAPES_F64(SHAPE)}};
static const ring_shape team_shapes[2][15] = {{ATAX_TEAM_SHAPES_F32(SHAPE)},
                                              {ATAX_TEAM_SHAPES_F64(SHAPE)}};
#undef SHAPE

static const struct {
    uint32_t cols, warps[2]; /* warps of f32 and of f64 */
} thread_shapes[] = {
#define SHAPE(cols, warps_f32, warps_f64, is_exact) {cols, {warps_f32, warps_f64}},
    ATAX_THREAD_SHAPES(SHAPE)
#undef SHAPE
};

/* Measured on an H200. Up to SMALL_BYTES a matrix takes less time than launches do. A ring holds
 * what is in use and about AHEAD_BYTES more: with less, memory idles; with much more, the units no
 * longer get equal shares of it. A turn costs a team about as much as TURN_BYTES. */
#define SMALL_BYTES     (UINT64_C(8) << 20)
#define TILE_BYTES      32768u
#define AHEAD_BYTES     98304u
#define TURN_BYTES      8192u
#define TURN_ROWS_BYTES 41984u /* several short rows per turn */
#define SLICE_BYTES     67584u /* a member's part of a row: three fit a ring */
#define TIGHT_COST      1.15   /* of no more than three, if many members wait for each other */
#define RING_ROW_BYTES  4096u  /* aligned rows that a ring reads faster than registers hold them */
#define SLOTS_MAX       64u

static uint64_t padded_cols(const iron__case *c) { return iron__kit_pieces(c->cols, 32) * 32; }

static uint32_t slot_bytes_for(uint64_t bytes) {
    return (uint32_t)iron__kit_pieces(bytes + VECTOR_BYTES, 128) * 128;
}

static const ring_shape *shape_for(const ring_shape *s, uint64_t values, uint32_t rows) {
    for (; s->values > 0; s++)
        if (values <= s->values && values > s->sure && (rows == 0 || rows == s->rows))
            return s;
    return NULL;
}

/* Tiles for groups that process `step` rows at a time and need end_bytes in the end. */
static bool plan_tiles(const iron__gpu_info *info, const iron__case *c, uint32_t step,
                       size_t end_bytes, ring_plan *p) {
    uint64_t row_bytes = row_bytes_of(c), each = iron__kit_pieces(c->rows, info->units);
    uint64_t steps = iron__min(TILE_BYTES / (step * row_bytes), iron__kit_pieces(each, step));
    uint64_t slots;

    p->s.tile_rows = step * (uint32_t)iron__max(steps, 1);
    p->s.slot_bytes = slot_bytes_for(p->s.tile_rows * row_bytes);
    slots = iron__min((uint32_t)(info->local_bytes_max / (p->s.slot_bytes + 16)),
                      2 + AHEAD_BYTES / p->s.slot_bytes);
    p->s.slots = (uint32_t)iron__min(slots, SLOTS_MAX);
    p->s.members = 1;
    p->groups = (uint32_t)iron__min(iron__kit_pieces(c->rows, p->s.tile_rows), info->units);
    p->partials = p->groups * padded_cols(c);
    p->local_bytes = (size_t)iron__max((size_t)p->s.slots * (p->s.slot_bytes + 16), end_bytes);
    return slots >= 2 && end_bytes <= info->local_bytes_max;
}

static bool plan_threads(const iron__gpu_info *info, const iron__case *c, ring_plan *p) {
    size_t element_bytes = iron__element_bytes(c->element);

    for (size_t k = 0; k < IRON_KIT_COUNT(thread_shapes); k++) {
        uint32_t cols = thread_shapes[k].cols;
        uint32_t warps = thread_shapes[k].warps[c->element == IRON_F64];
        uint32_t rows = ATAX_THREAD_ROWS(cols * (uint32_t)element_bytes, warps);

        if (c->cols > cols)
            continue;
        p->threads = 32 * (warps + 1);
        snprintf(p->kernel, sizeof p->kernel, "atax_thread_%u", cols);
        return plan_tiles(
            info, c, 32 * warps * rows,
            (size_t)(32 * c->cols * warps * element_bytes + UINT64_C(16) * p->threads), p);
    }
    return false;
}

static bool plan_warps(const iron__gpu_info *info, const iron__case *c, ring_plan *p) {
    const ring_shape *shape =
        shape_for(warp_shapes[c->element == IRON_F64], iron__kit_pieces(c->cols, 32), 0);
    uint32_t warps = ATAX_RING_THREADS / 32 - 1;

    if (!shape)
        return false;
    p->threads = ATAX_RING_THREADS;
    snprintf(p->kernel, sizeof p->kernel, "atax_warp_%u", shape->values);
    return plan_tiles(info, c, warps * shape->rows,
                      (size_t)(warps * row_bytes_of(c) + UINT64_C(16) * ATAX_RING_THREADS), p);
}

/* A team with so many members; returns what a row costs it, or 0 if it cannot hold one. */
static double plan_members(const iron__gpu_info *info, const iron__case *c, uint32_t members,
                           ring_plan *p) {
    const ring_shape *shape = NULL;
    size_t element_bytes = iron__element_bytes(c->element), own;
    uint64_t width = iron__kit_pieces(c->cols, members), slice = width * element_bytes, fits;
    uint64_t teams = iron__min(info->units / members, c->rows);
    uint32_t lag = 1;
    double turn;

    if (slice > SLICE_BYTES)
        return 0;
    for (uint32_t rows = members > 1 ? 1 : 8; rows > 0 && !shape; rows /= 2)
        if (rows == 1 || rows * slice <= TURN_ROWS_BYTES)
            shape = shape_for(team_shapes[c->element == IRON_F64],
                              iron__kit_pieces(width, ATAX_TEAM_THREADS), rows);
    if (!shape)
        return 0;
    p->s.slot_bytes = shape->rows * slot_bytes_for(slice);
    own = 4 * (16 + (ATAX_TEAM_THREADS + shape->rows) * element_bytes) + 64;
    fits = info->local_bytes_max > own ? (info->local_bytes_max - own) / (p->s.slot_bytes + 16) : 0;
    if (members > 1 && fits >= 5)
        lag = 2;
    if (fits < lag + 2)
        return 0;
    fits = iron__min(fits, SLOTS_MAX);
    p->s.slots =
        (uint32_t)iron__min(fits, lag + 1 + iron__kit_pieces(AHEAD_BYTES, p->s.slot_bytes));
    p->s.lag = lag;
    p->s.members = members;
    p->threads = ATAX_RING_THREADS;
    p->groups = (uint32_t)teams * members;
    p->partials = teams * padded_cols(c);
    p->local_bytes = (size_t)p->s.slots * (p->s.slot_bytes + 16) + own;
    snprintf(p->kernel, sizeof p->kernel, "atax_team_%ux%u", shape->values, shape->rows);
    turn = TURN_BYTES * (1 + members / 32.0) / shape->rows;
    return (double)iron__kit_pieces(c->rows, teams) * ((double)slice + turn) *
               (members > 2 && fits < 4 ? TIGHT_COST : 1) +
           2.0 * (double)p->partials * (double)element_bytes / info->units;
}

/* The best number of members for the case's rows. */
static bool plan_team(const iron__gpu_info *info, const iron__case *c, ring_plan *p) {
    double best = 0;

    for (uint32_t members = 1; members <= info->units; members++) {
        ring_plan other = *p;
        double cost = plan_members(info, c, members, &other);

        if (cost > 0 && (best == 0 || cost < best)) {
            best = cost;
            *p = other;
        }
    }
    return best > 0;
}

static bool is_thin(const iron__case *c) {
    return c->cols <= thread_shapes[IRON_KIT_COUNT(thread_shapes) - 1].cols;
}

static ring_plan plan_ring(const iron__gpu_info *info, const iron__case *c) {
    ring_plan p = {.s = {.rows = c->rows, .cols = c->cols}};

    if (!(is_thin(c) && plan_threads(info, c, &p)) && !plan_warps(info, c, &p) &&
        !plan_team(info, c, &p)) {
        size_t rows = iron__min_size(ATAX_TWICE_ROWS, c->rows);

        p.groups = info->units * ATAX_TWICE_GROUPS;
        p.threads = ATAX_RING_THREADS;
        p.local_bytes = (ATAX_RING_THREADS / 4 + rows) * iron__element_bytes(c->element);
        p.partials = rows * p.groups * (c->rows > rows ? 2 : 1);
        p.s.members = 1;
        snprintf(p.kernel, sizeof p.kernel, "atax_twice");
    }
    return p;
}

static int champions_way(const iron__gpu_info *info, const iron__case *c) {
    if (info->version < RING_VERSION || !info->can_cooperate)
        return BY_GRAPH;
    if (!shape_of(c)->is_held || is_thin(c))
        return BY_RING;
    if (c->rows * row_bytes_of(c) <= SMALL_BYTES)
        return BY_ONE_LAUNCH;
    return is_by_element(c) || row_bytes_of(c) <= RING_ROW_BYTES ? BY_RING : BY_GRAPH;
}

static iron_status set_up_ring(iron__gpu_work *work, iron_error *err) {
    size_t words;
    ring_plan *p;

    IRON_TRY(IRON_ALLOCATE(&p, iron__allocator_default(), 1, "a plan", err));
    work->own = p;
    *p = plan_ring(&work->device->info, &work->c);
    words = sizeof(k_u32) * ATAX_BARRIER_WORDS + (size_t)16 * ATAX_PACKETS * p->groups;
    IRON_TRY(iron__kit_find(work, TMP_KERNEL, p->kernel, true, err));
    IRON_TRY(iron__kit_allocate(work, PARTIALS, p->partials * iron__element_bytes(work->c.element),
                                err));
    IRON_TRY(iron__kit_allocate(work, BARRIER, words, err));
    return iron__gpu_clear_now(work->buffers[BARRIER], words, err);
}

static iron_status set_up_champion(iron__gpu_work *work, iron_error *err) {
    work->params[WAY] = (uint64_t)champions_way(&work->device->info, &work->c);
    if (work->params[WAY] == BY_RING)
        return set_up_ring(work, err);
    if (work->params[WAY] == BY_GRAPH)
        return set_up_single(work, err);
    IRON_TRY(iron__kit_allocate(work, BARRIER, BARRIER_BYTES, err));
    return set_up_together(work, err);
}

/* The maximum: the number of partial answers depends on the device. A group of the champion leaves
 * no more than the part of a row that it holds; two reads need less. */
static uint64_t device_bytes(const iron__contender *row, const iron__case *c) {
    uint64_t partials = iron__min(c->rows, PARTIALS_MAX) * row_bytes_of(c);
    uint64_t bytes = iron__kit_device_bytes(row, c);

    if (row->gpu->set_up == set_up_champion || row->gpu->set_up == set_up_ring)
        partials = iron__min(partials, PARTIALS_MAX * CHAMPION_SLICE);
    if (row->gpu->scratch & IRON_BIT(PARTIALS))
        bytes += partials;
    return row->gpu->set_up == set_up_constant ? bytes + ATAX_BLOCK : bytes;
}

static iron_status run_ring(iron__gpu_work *work, const iron__gpu_data *data,
                            iron__gpu_queue *queue, iron_error *err) {
    const ring_plan *p = work->own;
    const iron__gpu_launch l = {
        .kernel = work->kernels[TMP_KERNEL],
        .groups = {p->groups},
        .threads = {p->threads},
        .flags = p->groups > 1 ? IRON_GPU_LAUNCH_COOPERATIVE : 0,
        .local_bytes = p->local_bytes,
        IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->inputs[1]),
                      IRON_GPU_BUFFER(data->output), IRON_GPU_BUFFER(work->buffers[PARTIALS]),
                      IRON_GPU_BUFFER(work->buffers[BARRIER]), IRON_GPU_VALUE(p->s))};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_champion(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    switch ((uint32_t)work->params[WAY]) {
    case BY_RING:
        return run_ring(work, data, queue, err);
    case BY_ONE_LAUNCH:
        return run_together(work, data, queue, err);
    default:
        return run_graph(work, data, queue, err);
    }
}

#define GPU(reads, ...)                                                                            \
    .elements = IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64), .passes = (reads),                        \
    .gpu = &(const iron__gpu_launcher) {                                                           \
        .create = iron__kit_create, .destroy = iron__kit_destroy, .device_bytes = device_bytes,    \
        .spoil = iron__kit_spoil, .image = &image, .is_typed = true, __VA_ARGS__                   \
    }
#define TWO_PASSES(size, rows, cols, ...)                                                          \
    GPU(2, .threads = (size), .own = &(const two_passes){(rows), (cols)}, __VA_ARGS__)
#define ONE_EACH(...) TWO_PASSES(ATAX_THREADS, ATAX_THREADS, ATAX_THREADS, __VA_ARGS__)
#define SCRATCH_TMP   .suits = suits, .scratch = IRON_BIT(TMP)
#define SINGLE_PASS(...)                                                                           \
    GPU(1, .scratch = IRON_BIT(PARTIALS), .run_part = run_single_part, .finish = finish_partials,  \
        __VA_ARGS__)

const iron__contender iron__atax_gpu_rows[IRON_ATAX_GPU_ROWS] = {
    {"naive", "one thread per row for A x, one per column for A^T(A x): the talk's first kernels",
     NULL, IRON_ON_GPU,
     ONE_EACH(SCRATCH_TMP, .kernels = {"atax_naive_tmp", "atax_naive_y"}, .buffer_bytes = tmp_bytes,
              .run = run_two_passes, .run_part = run_tmp_part, .finish = run_y)},
    {"constant", "the same with x in constant memory, 64 KiB at a time", "naive", IRON_ON_GPU,
     ONE_EACH(SCRATCH_TMP, .kernels = {"atax_constant_tmp", "atax_naive_y"},
              .buffer_bytes = tmp_bytes, .set_up = set_up_constant, .run = run_constant,
              .run_part = run_constant_part, .finish = finish_constant)},
    {"transposed", "A x reads a transposed copy made beforehand: coalesced reads", "naive",
     IRON_ON_GPU,
     ONE_EACH(SCRATCH_TMP, .kernels = {"atax_transposed_tmp", "atax_naive_y", "atax_transpose"},
              .buffer_bytes = copy_bytes, .derive = make_copy, .run = run_two_passes)},
    {"tiled", "both products through 32 x 32 tiles in local memory, loaded along rows", "naive",
     IRON_ON_GPU,
     TWO_PASSES(ATAX_TILE_THREADS, ATAX_TILE, ATAX_TILE, SCRATCH_TMP,
                .kernels = {"atax_tiled_tmp", "atax_tiled_y"}, .buffer_bytes = tmp_bytes,
                .run = run_two_passes, .run_part = run_tmp_part, .finish = run_y)},
    {"coalesced",
     "one warp per row for A x; one thread per column and slice of rows for y, then a sum", "tiled",
     IRON_ON_GPU,
     TWO_PASSES(ATAX_THREADS, ATAX_THREADS / 32, ATAX_THREADS, .suits = suits_partials,
                .kernels = {"atax_coalesced_tmp", "atax_coalesced_y", "atax_sum"},
                .buffer_bytes = tmp_bytes, .scratch = IRON_BIT(TMP) | IRON_BIT(PARTIALS),
                .set_up = set_up_partials, .run = run_single, .run_part = run_single_part,
                .finish = finish_partials)},
    {"single-pass", "a group holds rows and its part of y in registers: A is read once",
     "coalesced", IRON_ON_GPU,
     SINGLE_PASS(.suits = suits_partials, .set_up = set_up_single, .run = run_single)},
    {"graph", "the two launches of the single pass, recorded once and replayed with one call",
     "single-pass", IRON_ON_CUDA,
     SINGLE_PASS(.suits = suits_graph, .set_up = set_up_single, .run = run_graph)},
    {"one-launch",
     "the single pass; its groups then wait for each other and add their parts: one launch",
     "single-pass", IRON_ON_CUDA,
     SINGLE_PASS(.suits = suits_together, .buffer_bytes = barrier_bytes, .set_up = set_up_together,
                 .run = run_together)},
    {"ring",
     "rows of any length through a ring in local memory; groups share long ones: A is read once",
     "one-launch", IRON_ON_CUDA,
     GPU(1, .scratch = IRON_BIT(PARTIALS), .suits = suits_ring, .set_up = set_up_ring,
         .run = run_ring)},
    {"champion", "held in registers or through a ring, in one launch or replayed: what is fastest",
     "ring", IRON_ON_CUDA,
     GPU(1, .scratch = IRON_BIT(PARTIALS), .suits = suits_graph, .set_up = set_up_champion,
         .run = run_champion)},
};
