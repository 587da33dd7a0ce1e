/* SPDX-License-Identifier: MIT */
/*
 * transpose.c: B = A^T, both row-major. A has rows x cols elements, B has cols x rows, and B[j][i]
 * is A[i][j].
 *
 * A's elements are random functions of their index with all the bits that the type has. Two of them
 * are equal by chance once in 2^23 pairs (f32), and then exchanging them changes nothing. So the
 * check compares bits, and an answer that is shifted, permuted, not transposed, or from another
 * seed differs nearly everywhere. A itself is the reference. The check reads both matrices along
 * their rows, one tile at a time that is transposed in between; walking down the columns of a GiB
 * would take minutes.
 *
 * The file holds, in order: the problem and its check, the CPU rows (transpose_cpu.inc has their
 * loops for floats and doubles; the vectors are the compiler's, 16 bytes, which every 64-bit
 * processor has), the GPU rows, and the op's table. On GPUs one function launches all rows, since
 * they differ only in kernels, tiles and the order of tiles. A part of A's rows is a part of B's
 * columns, so parts are independent.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"
#include "ops/transpose/kernel_params.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define STREAM_A 1
/* The side of the check's tiles: 32 KiB of doubles, on the threads' stacks. */
#define SIDE ((size_t)64)

static iron_status fill(iron__op_problem *p, iron_error *err) {
    p->input_count = 1;
    p->output_bytes = (size_t)p->c.rows * (size_t)p->c.cols * iron__element_bytes(p->c.element);
    IRON_TRY(iron__data_take(&p->inputs[0], "A", p->output_bytes, err));
    iron__data_fill_reals(&p->inputs[0], &p->c, STREAM_A, p->pool);
    return IRON_OK;
}

typedef struct comparison {
    const char *a, *b;
    size_t rows, cols;    /* of A */
    size_t element;       /* bytes */
    size_t across;        /* tiles per row of tiles */
    _Atomic size_t first; /* index in B of the first difference found so far */
} comparison;

typedef struct place {
    size_t row, col, height, width; /* in A */
} place;

static size_t at_most(size_t value, size_t most) { return value < most ? value : most; }

/* Copies a tile of A transposed; a line of the copy has SIDE elements. */
static void copy_tile_f32(const comparison *c, place p, float *tile) {
    const float *a = (const float *)(const void *)c->a + p.row * c->cols + p.col;

    for (size_t i = 0; i < p.height; i++)
        for (size_t j = 0; j < p.width; j++)
            tile[j * SIDE + i] = a[i * c->cols + j];
}

static void copy_tile_f64(const comparison *c, place p, double *tile) {
    const double *a = (const double *)(const void *)c->a + p.row * c->cols + p.col;

    for (size_t i = 0; i < p.height; i++)
        for (size_t j = 0; j < p.width; j++)
            tile[j * SIDE + i] = a[i * c->cols + j];
}

static void report_difference(comparison *c, size_t index) {
    size_t first = atomic_load(&c->first);

    while (index < first && !atomic_compare_exchange_weak(&c->first, &first, index)) {
    }
}

/* Compares lines and elements in order and reports the first difference of the tile. */
static void compare_tile(void *context, size_t index) {
    comparison *c = context;
    place p = {.row = index / c->across * SIDE, .col = index % c->across * SIDE};
    union {
        float f32[SIDE * SIDE];
        double f64[SIDE * SIDE];
        char bytes[1];
    } tile;

    if (p.col * c->rows + p.row > atomic_load(&c->first))
        return;
    p.height = at_most(c->rows - p.row, SIDE);
    p.width = at_most(c->cols - p.col, SIDE);
    if (c->element == sizeof(float))
        copy_tile_f32(c, p, tile.f32);
    else
        copy_tile_f64(c, p, tile.f64);
    for (size_t j = 0; j < p.width; j++) {
        size_t line = (p.col + j) * c->rows + p.row, i = 0;
        const char *is = c->b + line * c->element, *should = tile.bytes + j * SIDE * c->element;

        if (memcmp(is, should, p.height * c->element) == 0)
            continue;
        while (memcmp(is + i * c->element, should + i * c->element, c->element) == 0)
            i++;
        report_difference(c, line + i);
        return;
    }
}

static double element_at(const char *array, size_t element, size_t index) {
    if (element == sizeof(float))
        return (double)((const float *)(const void *)array)[index];
    return ((const double *)(const void *)array)[index];
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    size_t rows = (size_t)problem->c.rows, cols = (size_t)problem->c.cols;
    comparison c = {.a = problem->inputs[0].data,
                    .b = output,
                    .rows = rows,
                    .cols = cols,
                    .element = iron__element_bytes(problem->c.element),
                    .across = (cols + SIDE - 1) / SIDE,
                    .first = rows * cols};
    int digits = c.element == sizeof(float) ? 9 : 17;
    size_t at;

    iron__thread_pool_run(problem->pool, compare_tile, &c, c.across * ((rows + SIDE - 1) / SIDE));
    at = c.first;
    if (at == rows * cols)
        return true;
    snprintf(text, size, "B[%zu][%zu] is %.*g, should be %.*g", at / rows, at % rows, digits,
             element_at(c.b, c.element, at), digits,
             element_at(c.a, c.element, at % rows * cols + at / rows));
    return false;
}

/* blocked: side of a block in elements; 32 lines of A and 32 of B fit any L1 cache. */
#define BLOCK ((size_t)32)
/* vector, threads: a tile is transposed in a buffer of 32 KiB and written in runs of 512 bytes;
 * with half or twice as many bytes per run a core is slower. */
#define TILE_RUN_BYTES ((size_t)512)
#define TILE_COLS      ((size_t)64)
/* threads: tiles of a task. */
#define TASK_TILES ((size_t)16)

typedef struct matrices {
    const void *a;
    void *b;
    size_t rows, cols; /* of A */
} matrices;

typedef struct loops {
    void (*naive)(const matrices *m);
    void (*blocked)(const matrices *m);
    void (*tile)(const matrices *m, size_t row, size_t col); /* the tile at (row, col) */
    size_t tile_rows;
} loops;

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

/* Selects elements of a and b; b's indices follow a's. */
#if defined(__clang__)
#define PICK_F32(a, b, i, j, k, l) __builtin_shufflevector((a), (b), (i), (j), (k), (l))
#define PICK_F64(a, b, i, j)       __builtin_shufflevector((a), (b), (i), (j))
#else
typedef int32_t numbers32 __attribute__((vector_size(16)));
typedef int64_t numbers64 __attribute__((vector_size(16)));
#define PICK_F32(a, b, i, j, k, l) __builtin_shuffle((a), (b), (numbers32){(i), (j), (k), (l)})
#define PICK_F64(a, b, i, j)       __builtin_shuffle((a), (b), (numbers64){(i), (j)})
#endif

/* Transposes four vectors: pairs first, then pairs of pairs. */
static inline void turn_floats(floats v[4]) {
    floats even_top = PICK_F32(v[0], v[1], 0, 4, 2, 6), odd_top = PICK_F32(v[0], v[1], 1, 5, 3, 7);
    floats even_low = PICK_F32(v[2], v[3], 0, 4, 2, 6), odd_low = PICK_F32(v[2], v[3], 1, 5, 3, 7);

    v[0] = PICK_F32(even_top, even_low, 0, 1, 4, 5);
    v[1] = PICK_F32(odd_top, odd_low, 0, 1, 4, 5);
    v[2] = PICK_F32(even_top, even_low, 2, 3, 6, 7);
    v[3] = PICK_F32(odd_top, odd_low, 2, 3, 6, 7);
}

static inline void turn_doubles(doubles v[2]) {
    doubles first = v[0];

    v[0] = PICK_F64(first, v[1], 0, 2);
    v[1] = PICK_F64(first, v[1], 1, 3);
}

#define NAME(word) word##_f32
#define REAL       float
#define VECTOR     floats
#define LANES      ((size_t)4)
#define TURN       turn_floats
#include "ops/transpose/transpose_cpu.inc"

#define NAME(word) word##_f64
#define REAL       double
#define VECTOR     doubles
#define LANES      ((size_t)2)
#define TURN       turn_doubles
#include "ops/transpose/transpose_cpu.inc"

static const loops *loops_of(const iron__cpu_work *work) {
    return work->problem->c.element == IRON_F32 ? &loops_f32 : &loops_f64;
}

static matrices matrices_of(const iron__cpu_work *work) {
    return (matrices){.a = work->problem->inputs[0].data,
                      .b = work->output,
                      .rows = (size_t)work->problem->c.rows,
                      .cols = (size_t)work->problem->c.cols};
}

static void run_naive(const iron__cpu_work *work) {
    matrices m = matrices_of(work);

    loops_of(work)->naive(&m);
}

static void run_blocked(const iron__cpu_work *work) {
    matrices m = matrices_of(work);

    loops_of(work)->blocked(&m);
}

/* All tiles, numbered along the rows of A. */
typedef struct tiling {
    matrices m;
    const loops *loops;
    size_t across, count;
} tiling;

static tiling tiling_of(const iron__cpu_work *work) {
    tiling t = {.m = matrices_of(work), .loops = loops_of(work)};

    t.across = (t.m.cols + TILE_COLS - 1) / TILE_COLS;
    t.count = t.across * ((t.m.rows + t.loops->tile_rows - 1) / t.loops->tile_rows);
    return t;
}

static void run_tiles(const tiling *t, size_t begin, size_t end) {
    for (size_t k = begin; k < end; k++)
        t->loops->tile(&t->m, k / t->across * t->loops->tile_rows, k % t->across * TILE_COLS);
}

static void run_vector(const iron__cpu_work *work) {
    tiling t = tiling_of(work);

    run_tiles(&t, 0, t.count);
}

static void run_task(void *context, size_t index) {
    const tiling *t = context;
    size_t begin = index * TASK_TILES, left = t->count - begin;

    run_tiles(t, begin, begin + (left < TASK_TILES ? left : TASK_TILES));
}

static void run_threads(const iron__cpu_work *work) {
    tiling t = tiling_of(work);

    iron__thread_pool_run(work->pool, run_task, &t, (t.count + TASK_TILES - 1) / TASK_TILES);
}

_Static_assert(sizeof(transpose_part) == 32, "kernels see the same layout");

IRON_GPU_EMBEDDED(transpose)

static const iron__gpu_image image = IRON_GPU_IMAGE(transpose);

#define VECTOR_BYTES 16u

/* The size of a tile: columns and rows of A. */
typedef struct tile_size {
    uint32_t width, height;
} tile_size;

/* How a contender divides the matrix. If there is a kernels[1], kernels[0] is only for sides that
 * are a multiple of a vector. */
typedef struct shape {
    const tile_size (*tiles)[2]; /* of each kernel: for f32, for f64 */
    uint32_t threads;
    uint32_t along_b;    /* see kernel_params.h */
    bool has_local_size; /* the launch sets the size of local memory */
} shape;

static const tile_size lines[][2] = {{{TRANSPOSE_TILE, TRANSPOSE_THREADS / TRANSPOSE_TILE},
                                      {TRANSPOSE_TILE, TRANSPOSE_THREADS / TRANSPOSE_TILE}}};
static const tile_size square_tiles[][2] = {
    {{TRANSPOSE_TILE, TRANSPOSE_TILE}, {TRANSPOSE_TILE, TRANSPOSE_TILE}}};
static const tile_size wide_tiles[][2] = {
    {{TRANSPOSE_WIDE, TRANSPOSE_WIDE}, {TRANSPOSE_WIDE, TRANSPOSE_WIDE}},
    {{TRANSPOSE_WIDE, TRANSPOSE_WIDE}, {TRANSPOSE_WIDE, TRANSPOSE_WIDE}}};
static const tile_size champion_tiles[][2] = {
    {{TRANSPOSE_ACROSS * 4, TRANSPOSE_ROWS}, {TRANSPOSE_ACROSS * 2, TRANSPOSE_ROWS}},
    {{TRANSPOSE_ANY_COLS, TRANSPOSE_ANY_DOWN * 4}, {TRANSPOSE_ANY_COLS, TRANSPOSE_ANY_DOWN * 2}}};

static const shape naive = {.tiles = lines, .threads = TRANSPOSE_THREADS};
static const shape tiled = {.tiles = square_tiles, .threads = TRANSPOSE_THREADS};
static const shape wide = {.tiles = wide_tiles, .threads = TRANSPOSE_THREADS};
static const shape champion = {champion_tiles, TRANSPOSE_CHAMPION_THREADS, 1, true};
static const shape rows_first = {champion_tiles, TRANSPOSE_CHAMPION_THREADS, 0, true};

_Static_assert(TRANSPOSE_LOADS *TRANSPOSE_CHAMPION_THREADS >=
                       4 * TRANSPOSE_ANY_COLS * TRANSPOSE_ANY_DOWN &&
                   TRANSPOSE_LOADS * TRANSPOSE_THREADS >= TRANSPOSE_WIDE * TRANSPOSE_WIDE,
               "a thread can hold its share");

static const shape *shape_of(const iron__gpu_work *work) { return work->spec->own; }

static tile_size tile_of(const iron__gpu_work *work, bool is_any) {
    return shape_of(work)->tiles[is_any][work->c.element == IRON_F64];
}

/* Lines are padded by one element if elements are moved one by one. */
static size_t local_bytes(const iron__gpu_work *work, bool is_any) {
    tile_size tile = tile_of(work, is_any);

    return (size_t)tile.height * (tile.width + is_any) * iron__element_bytes(work->c.element);
}

/* Local memory of a launch. Tiles that are moved element by element make many small requests; three
 * groups per unit slow each other down, so each requests so much that only two fit. */
static size_t launch_bytes(const iron__gpu_work *work, bool is_any) {
    const iron__gpu_info *info = &work->device->info;
    size_t bytes = shape_of(work)->has_local_size ? local_bytes(work, is_any) : 0;
    size_t third = (size_t)info->local_bytes_max / 3 + 1;

    return is_any && bytes > 0 && bytes < third && info->is_gpu ? third : bytes;
}

static iron_status check_device(iron__gpu_work *work, iron_error *err) {
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
    tile_size tile = tile_of(work, is_any);
    uint64_t count =
        iron__kit_pieces(part.count, tile.height) * iron__kit_pieces(part.cols, tile.width);
    const iron__gpu_launch l = {.kernel = work->kernels[is_any],
                                .groups = {(uint32_t)count},
                                .threads = {s->threads},
                                IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]),
                                              IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(part),
                                              IRON_GPU_VALUE(s->along_b)),
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
    return IRON_OK; /* parts are independent */
}

#define CPU(function) IRON_ON_CPU, .passes = 1, .cpu_run = (function)
#define GPU(its_shape, ...)                                                                        \
    IRON_ON_GPU,                                                                                   \
        .passes = 1,                                                                               \
        .gpu = IRON_KIT(.kernels = {__VA_ARGS__}, .is_typed = true, .suits = iron__needs_element,  \
                        .set_up = check_device, .own = &(its_shape), .run = run,                   \
                        .run_part = run_part, .finish = finish)
#define CHAMPION(its_shape) GPU(its_shape, "transpose_champion", "transpose_champion_any")

static const iron__contender contenders[] = {
    {"naive", "two loops; each element of a row goes to another line of B", NULL, CPU(run_naive),
     .is_single = true},
    {"blocked", "blocks of 32 x 32 whose lines stay in the L1 cache", "naive", CPU(run_blocked),
     .is_single = true},
    {"vector", "small squares transposed in registers, tiles written in runs of 512 bytes",
     "blocked", CPU(run_vector), .is_single = true},
    {"threads", "vector's tiles on all threads", "vector", CPU(run_threads)},
    {"naive", "one thread per element: coalesced reads, writes one row of B apart", NULL,
     GPU(naive, "transpose_naive")},
    {"tiled", "32 x 32 tiles in local memory: whole lines on both sides, but bank conflicts",
     "naive", GPU(tiled, "transpose_tiled")},
    {"tiled-padded", "lines of 33 elements: a column of the tile covers all banks", "tiled",
     GPU(tiled, "transpose_tiled_padded")},
    {"tiled-swizzled", "column XOR row instead of padding: no unused memory", "tiled",
     GPU(tiled, "transpose_tiled_swizzled")},
    {"tiled-vector", "64 x 64 tiles, 16-byte loads and stores", "tiled-padded",
     GPU(wide, "transpose_tiled_vector", "transpose_tiled_vector_any")},
    {"champion",
     "vectors stored in local memory unchanged, no bank conflicts, tiles along B's rows",
     "tiled-vector", CHAMPION(champion)},
    {"champion-rows-first", "the same kernels, tiles along A's rows", "tiled-vector",
     CHAMPION(rows_first)},
};

static bool contender_at(size_t index, iron__contender *out) {
    return iron__row_at(contenders, IRON_KIT_COUNT(contenders), &index, out);
}

/* On a GPU the size at which libraries are compared. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    *rows = has_gpu ? iron__matrix_usual(16384, 16384, element, cache_bytes)
                    : iron__matrix_usual(4000, 1000, element, cache_bytes);
    *cols = *rows;
}

/* A is read and B is written. */
static uint64_t useful_bytes(const iron__case *c) {
    return 2 * c->rows * c->cols * iron__element_bytes(c->element);
}

static double operations(const iron__case *c) {
    (void)c;
    return 0;
}

const iron__op iron__op_transpose = {
    .name = "transpose",
    .contract = "B = A^T, both row-major",
    .why =
        "Nothing is computed here: every element moves to another place. In the straightforward "
        "version one of the two sides walks down columns. Memory delivers whole lines (32 to 128 "
        "bytes), so a walk down a column of 4-byte elements moves many times the requested bytes; "
        "and if rows are a power of two long, all lines of a column fall into the same few sets "
        "of a cache.\n"
        "\n"
        "Tiles solve this: read a block along rows, transpose it where that is cheap, and write "
        "it along rows. On a GPU the cheap place is local memory, but there a column initially "
        "lies in one bank, and 32 threads take turns. One unused element per line (padding) or a "
        "column number XORed with the row (swizzling) spreads it over all banks. What remains is "
        "the number of bytes in flight, 16 bytes per access, and the order of the tiles: tiles "
        "that are processed at the same time should write adjacent parts of B's rows. "
        "champion-rows-first is the champion without that order. The race shows each step "
        "separately, next to a plain copy of as many bytes, which no transpose can beat.",
    .traffic =
        "Useful: one read of A and one write of B, 2 * rows * cols elements, the same for all. "
        "naive requests that much as well, but each of its writes is 4 bytes of a 32-byte sector; "
        "all others move whole lines on both sides.",
    .unless =
        "It does not pay if the reader can use the matrix as it is (a matrix product with a flag, "
        "a loop exchanged as in atax.cpu.interchanged), or if both matrices fit a cache.",
    .used =
        "The kernel atax_transpose in src/ops/atax/atax_real.k makes the copy of the contender "
        "atax transposed through a padded tile; atax_load_tile in the same file pads its tile for "
        "the same reason. The layouts of src/ops/layout are transposes of particles by fields.",
    .elements = IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64),
    .usual = IRON_F32,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .baselines = {"naive", "naive"},
    IRON_SIZES({"size", "SMALL", 2048, 2048, NULL}, {"size", "STANDARD", 8192, 8192, NULL},
               {"size", "LARGE", 16384, 16384, NULL}, {"size", "ODD", 16383, 16381, NULL},
               {"size", "WIDE", 1024, 262144, NULL}, {"size", "TALL", 262144, 1024, NULL}),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = iron__matrix_accept,
    .make = iron__data_make,
    .fill = fill,
    .unmake = iron__data_unmake,
    .check = check,
    .contender_at = contender_at,
};
