/* SPDX-License-Identifier: MIT */
/*
 * transpose_gpu.c: the contenders of transpose on GPUs: rows, and one function that launches them
 * all, since they differ in kernels, tiles and the order of tiles alone.
 *
 * A part of A's rows is a part of B's columns, so parts need nothing of each other.
 */
#include "core/fail.h"
#include "ops/kit.h"
#include "ops/needs.h"
#include "ops/transpose/kernel_params.h"
#include "ops/transpose/transpose.h"

#include <stdio.h>

_Static_assert(sizeof(transpose_part) == 32, "kernels see the same layout");

IRON_GPU_EMBEDDED(transpose)

static const iron__gpu_image image = IRON_GPU_IMAGE(transpose);

#define VECTOR_BYTES 16u

/* A tile: columns and rows of A, in elements. */
typedef struct cut {
    uint32_t width, height;
} cut;

/* How a contender cuts the matrix. kernels[0] is for sides of whole vectors where there is a
 * kernels[1] for all others; else it is for all. */
typedef struct shape {
    const cut (*cuts)[2]; /* of a kernel; for f32, for f64 */
    uint32_t threads;
    uint32_t along_b;    /* see kernel_params.h */
    bool has_local_size; /* the launch says how much local memory there is */
} shape;

static const cut lines[][2] = {{{TRANSPOSE_TILE, TRANSPOSE_THREADS / TRANSPOSE_TILE},
                                {TRANSPOSE_TILE, TRANSPOSE_THREADS / TRANSPOSE_TILE}}};
static const cut tiles[][2] = {
    {{TRANSPOSE_TILE, TRANSPOSE_TILE}, {TRANSPOSE_TILE, TRANSPOSE_TILE}}};
static const cut wide_tiles[][2] = {
    {{TRANSPOSE_WIDE, TRANSPOSE_WIDE}, {TRANSPOSE_WIDE, TRANSPOSE_WIDE}},
    {{TRANSPOSE_WIDE, TRANSPOSE_WIDE}, {TRANSPOSE_WIDE, TRANSPOSE_WIDE}}};
static const cut champion_tiles[][2] = {
    {{TRANSPOSE_ACROSS * 4, TRANSPOSE_ROWS}, {TRANSPOSE_ACROSS * 2, TRANSPOSE_ROWS}},
    {{TRANSPOSE_ANY_COLS, TRANSPOSE_ANY_DOWN * 4}, {TRANSPOSE_ANY_COLS, TRANSPOSE_ANY_DOWN * 2}}};

static const shape naive = {.cuts = lines, .threads = TRANSPOSE_THREADS};
static const shape tiled = {.cuts = tiles, .threads = TRANSPOSE_THREADS};
static const shape wide = {.cuts = wide_tiles, .threads = TRANSPOSE_THREADS};
static const shape champion = {champion_tiles, TRANSPOSE_CHAMPION_THREADS, 1, true};
static const shape rows_first = {champion_tiles, TRANSPOSE_CHAMPION_THREADS, 0, true};

_Static_assert(TRANSPOSE_LOADS *TRANSPOSE_CHAMPION_THREADS >=
                       4 * TRANSPOSE_ANY_COLS * TRANSPOSE_ANY_DOWN &&
                   TRANSPOSE_LOADS * TRANSPOSE_THREADS >= TRANSPOSE_WIDE * TRANSPOSE_WIDE,
               "a thread has room for its share");

static const shape *shape_of(const iron__gpu_work *work) { return work->recipe->own; }

static cut cut_of(const iron__gpu_work *work, bool is_any) {
    return shape_of(work)->cuts[is_any][work->c.element == IRON_F64];
}

/* Where elements are moved one by one, lines are one longer than they need be. */
static size_t local_bytes(const iron__gpu_work *work, bool is_any) {
    cut of = cut_of(work, is_any);

    return (size_t)of.height * (of.width + is_any) * iron__element_bytes(work->c.element);
}

/* What a launch asks for. Tiles that are moved element by element are many small requests: with
 * three groups a unit they crowd each other out, so each takes room enough that two fit. */
static size_t launch_bytes(const iron__gpu_work *work, bool is_any) {
    const iron__gpu_info *info = &work->device->info;
    size_t bytes = shape_of(work)->has_local_size ? local_bytes(work, is_any) : 0;
    size_t third = (size_t)info->local_bytes_max / 3 + 1;

    return is_any && bytes > 0 && bytes < third && info->is_gpu ? third : bytes;
}

static iron_status check_room(iron__gpu_work *work, iron_error *err) {
    size_t bytes = shape_of(work)->has_local_size ? local_bytes(work, true) : 0;

    IRON_TRY(iron__needs_threads(work->device, shape_of(work)->threads, err));
    return iron__needs_local(work->device, bytes, err);
}

static bool is_by_vector(const iron__gpu_work *work, const transpose_part *p) {
    uint64_t lanes = VECTOR_BYTES / iron__element_bytes(work->c.element);

    return (p->rows | p->cols | p->first | p->count) % lanes == 0;
}

static iron_status launch(iron__gpu_work *work, const iron__gpu_data *data, transpose_part part,
                          iron__gpu_queue *queue, iron_error *err) {
    const shape *s = shape_of(work);
    bool is_any = work->kernels[1] && !is_by_vector(work, &part);
    cut of = cut_of(work, is_any);
    uint64_t count =
        iron__kit_pieces(part.count, of.height) * iron__kit_pieces(part.cols, of.width);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(part), IRON_GPU_VALUE(s->along_b)};
    iron__gpu_launch l = {.kernel = work->kernels[is_any],
                          .groups = {(uint32_t)count},
                          .threads = {s->threads},
                          .args = args,
                          .arg_count = IRON_KIT_COUNT(args),
                          .local_bytes = launch_bytes(work, is_any)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    transpose_part all = {work->c.rows, work->c.cols, 0, work->c.rows};

    return launch(work, data, all, queue, err);
}

static iron_status run_part(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_part part,
                            iron__gpu_queue *queue, iron_error *err) {
    transpose_part rows = {work->c.rows, work->c.cols, part.first, part.count};

    return launch(work, data, rows, queue, err);
}

static iron_status finish(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    (void)work;
    (void)data;
    (void)queue;
    (void)err;
    return IRON_OK; /* every part is whole by itself */
}

static const iron__gpu_way way = {IRON_KIT_WAY, .run = run, .run_part = run_part, .finish = finish};

#define RECIPE(its_shape, ...)                                                                     \
    (&(const iron__kit_recipe){.image = &image,                                                    \
                               .kernels = {__VA_ARGS__},                                           \
                               .is_typed = true,                                                   \
                               .suits = iron__needs_element,                                       \
                               .set_up = check_room,                                               \
                               .own = (its_shape)})
#define CHAMPION(its_shape) RECIPE(its_shape, "transpose_champion", "transpose_champion_any")

#define ROW(text_name, text_idea, slower, recipe)                                                  \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_GPU,      \
        .passes = 1, .gpu = &way, .own = (recipe)                                                  \
    }

static const iron__contender rows[] = {
    ROW("naive", "a thread an element: reads side by side, writes a row of B apart", NULL,
        RECIPE(&naive, "transpose_naive")),
    ROW("tiled", "32 x 32 tiles in local memory: both sides whole lines, bank conflicts between",
        "naive", RECIPE(&tiled, "transpose_tiled")),
    ROW("tiled-padded", "lines of 33 elements: a column of the tile lies in all banks", "tiled",
        RECIPE(&tiled, "transpose_tiled_padded")),
    ROW("tiled-swizzled", "column XOR row instead of padding: the same without the room", "tiled",
        RECIPE(&tiled, "transpose_tiled_swizzled")),
    ROW("tiled-vector", "64 x 64 tiles, loads and stores of 16 bytes", "tiled-padded",
        RECIPE(&wide, "transpose_tiled_vector", "transpose_tiled_vector_any")),
    ROW("champion", "vectors into local memory as they are, no conflicts, along B's rows",
        "tiled-vector", CHAMPION(&champion)),
    ROW("champion-rows-first", "the same kernels, tiles in the order of A's rows", "tiled-vector",
        CHAMPION(&rows_first)),
};

bool iron__transpose_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
