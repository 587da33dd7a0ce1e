/* SPDX-License-Identifier: MIT */
/*
 * transpose.c: B = A^T, both row-major. A has rows x cols elements, B has cols x rows, and B[j][i]
 * is A[i][j].
 *
 * A's elements are random functions of their index with all the bits that the type has. Two of them
 * are equal by chance once in 2^23 pairs (f32; u8: in 2^8), and then exchanging them changes
 * nothing. So the check compares bits, and an answer that is shifted, permuted, not transposed, or
 * from another seed differs nearly everywhere. A itself is the reference. The check reads both
 * matrices along their rows, one tile at a time that is transposed in between; walking down the
 * columns of a GiB would take minutes.
 *
 * transpose_cpu.inc has the loops of the CPU rows for one type; the vectors are the compiler's, 16
 * bytes, which every 64-bit processor has. On GPUs one function launches all rows, since they
 * differ only in kernels, tiles and the order of tiles. A part of A's rows is a part of B's
 * columns, so parts are independent.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"
#include "ops/transpose/kernel_params.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The side of the check's tiles: 32 KiB of doubles, on the threads' stacks. */
#define SIDE ((size_t)64)

static iron_status fill(iron__op_problem *p, iron_error *err) {
    return iron__data_input(p, "A", (size_t)p->c.rows * (size_t)p->c.cols, NULL, err);
}

typedef struct place {
    size_t row, col, height, width; /* in A */
} place;

typedef struct comparison {
    const char *a, *b;
    size_t rows, cols;      /* of A */
    size_t element;         /* bytes */
    size_t across;          /* tiles per row of tiles */
    _Atomic uint64_t first; /* index in B of the first difference found so far */
} comparison;

/* Copies a tile of A transposed; a line of the copy has SIDE elements. `element`, their bytes, is
 * always a constant. */
static inline __attribute__((always_inline)) void copy_tile(const comparison *c, place p,
                                                            char *copy, size_t element) {
    for (size_t i = 0; i < p.height; i++)
        for (size_t j = 0; j < p.width; j++)
            memcpy(copy + (j * SIDE + i) * element,
                   c->a + ((p.row + i) * c->cols + p.col + j) * element, element);
}

/* Compares lines and elements in order and reports the first difference of the tile. */
static void compare_tile(void *context, size_t index) {
    comparison *c = context;
    place p = {.row = index / c->across * SIDE, .col = index % c->across * SIDE};
    _Alignas(double) char tile[SIDE * SIDE * sizeof(double)];

    if (p.col * c->rows + p.row > atomic_load(&c->first))
        return;
    p.height = iron__min_size(c->rows - p.row, SIDE);
    p.width = iron__min_size(c->cols - p.col, SIDE);
    if (c->element == 1)
        copy_tile(c, p, tile, 1);
    else if (c->element == 2)
        copy_tile(c, p, tile, 2);
    else if (c->element == 4)
        copy_tile(c, p, tile, 4);
    else
        copy_tile(c, p, tile, 8);
    for (size_t j = 0; j < p.width; j++) {
        size_t line = (p.col + j) * c->rows + p.row, i = 0;
        const char *is = c->b + line * c->element, *should = tile + j * SIDE * c->element;

        if (memcmp(is, should, p.height * c->element) == 0)
            continue;
        while (memcmp(is + i * c->element, should + i * c->element, c->element) == 0)
            i++;
        iron__lower(&c->first, line + i);
        return;
    }
}

static double element_at(const void *array, iron__element element, size_t index) {
    switch (element) {
    case IRON_U8:
        return ((const uint8_t *)array)[index];
    case IRON_U16:
        return ((const uint16_t *)array)[index];
    case IRON_F32:
        return (double)((const float *)array)[index];
    default:
        return ((const double *)array)[index];
    }
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
    int digits = problem->c.element == IRON_F64 ? 17 : 9;
    size_t at;

    iron__thread_pool_run(problem->pool, compare_tile, &c, c.across * ((rows + SIDE - 1) / SIDE));
    at = (size_t)c.first;
    if (at == rows * cols)
        return true;
    snprintf(text, size, "B[%zu][%zu] is %.*g, should be %.*g", at / rows, at % rows, digits,
             element_at(c.b, problem->c.element, at), digits,
             element_at(c.a, problem->c.element, at % rows * cols + at / rows));
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
    size_t rows, cols;   /* of A */
    size_t across, down; /* in tiles, which are numbered along the rows of A */
} matrices;

typedef struct loops {
    void (*naive)(const matrices *m);
    void (*blocked)(const matrices *m);
    void (*tiles)(void *matrices, size_t task);
    size_t tile_rows;
} loops;

/* Selects elements of a and b; b's indices follow a's. */
#if defined(__clang__)
#define PICK(indices, a, b, ...) __builtin_shufflevector((a), (b), __VA_ARGS__)
#else
#define PICK(indices, a, b, ...) __builtin_shuffle((a), (b), (indices){__VA_ARGS__})
#endif

typedef uint8_t vector_u8 __attribute__((vector_size(16)));
typedef uint16_t vector_u16 __attribute__((vector_size(16)));
typedef float vector_f32 __attribute__((vector_size(16)));
typedef int32_t vector_i32 __attribute__((vector_size(16)));
typedef double vector_f64 __attribute__((vector_size(16)));
typedef int64_t vector_i64 __attribute__((vector_size(16)));

#define NAME(word) word##_u8
#define REAL       uint8_t
#define VECTOR     vector_u8
#define LANES      ((size_t)16)
#define LOW(a, b)  PICK(vector_u8, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b)                                                                                 \
    PICK(vector_u8, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#include "ops/transpose/transpose_cpu.inc"

#define NAME(word) word##_u16
#define REAL       uint16_t
#define VECTOR     vector_u16
#define LANES      ((size_t)8)
#define LOW(a, b)  PICK(vector_u16, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) PICK(vector_u16, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#include "ops/transpose/transpose_cpu.inc"

#define NAME(word) word##_f32
#define REAL       float
#define VECTOR     vector_f32
#define LANES      ((size_t)4)
#define LOW(a, b)  PICK(vector_i32, a, b, 0, 4, 1, 5)
#define HIGH(a, b) PICK(vector_i32, a, b, 2, 6, 3, 7)
#include "ops/transpose/transpose_cpu.inc"

#define NAME(word) word##_f64
#define REAL       double
#define VECTOR     vector_f64
#define LANES      ((size_t)2)
#define LOW(a, b)  PICK(vector_i64, a, b, 0, 2)
#define HIGH(a, b) PICK(vector_i64, a, b, 1, 3)
#include "ops/transpose/transpose_cpu.inc"

static const loops *loops_of(const iron__cpu_work *work) {
    static const loops *const all[IRON_ELEMENTS] = {[IRON_F32] = &loops_f32,
                                                    [IRON_F64] = &loops_f64,
                                                    [IRON_U8] = &loops_u8,
                                                    [IRON_U16] = &loops_u16};

    return all[work->problem->c.element];
}

static matrices matrices_of(const iron__cpu_work *work) {
    size_t rows = (size_t)work->problem->c.rows, cols = (size_t)work->problem->c.cols;

    return (matrices){.a = work->problem->inputs[0].data,
                      .b = work->output,
                      .rows = rows,
                      .cols = cols,
                      .across = iron__kit_pieces(cols, TILE_COLS),
                      .down = iron__kit_pieces(rows, loops_of(work)->tile_rows)};
}

static void run_naive(const iron__cpu_work *work) {
    matrices m = matrices_of(work);

    loops_of(work)->naive(&m);
}

static void run_blocked(const iron__cpu_work *work) {
    matrices m = matrices_of(work);

    loops_of(work)->blocked(&m);
}

static void run_tiles(const iron__cpu_work *work) {
    matrices m = matrices_of(work);

    iron__thread_pool_run(work->pool, loops_of(work)->tiles, &m,
                          iron__kit_pieces(m.across * m.down, TASK_TILES));
}

_Static_assert(sizeof(transpose_part) == 32, "kernels see the same layout");

IRON_KIT_IMAGE(transpose)

#define VECTOR_BYTES 16u
#define LINE_BYTES   128u
/* What WHOLE reads ahead, and for how many rows that stays in the L2 cache until it is used. */
#define AHEAD_BYTES 256u
#define AHEAD_ROWS  32768u

/* How a kernel divides the matrix, for elements of some size. */
typedef struct division {
    uint32_t width, height; /* of a tile: columns and rows of A */
    uint32_t threads;
    uint32_t overlap; /* rows of A that two tiles read */
    size_t local_bytes;
} division;

typedef enum way {
    NONE,
    BY_LINES,
    BY_TILE,
    BY_WIDE_TILE,
    BY_SQUARE,
    BY_ELEMENT,
    BY_RAW,
    BY_LOW
} way;

static division divide(way by, size_t element) {
    uint32_t e = (uint32_t)element, lanes = VECTOR_BYTES / e, overlap = TRANSPOSE_HALO / e, rows;

    switch (by) {
    case BY_LINES:
        return (division){TRANSPOSE_TILE, TRANSPOSE_THREADS / TRANSPOSE_TILE, TRANSPOSE_THREADS, 0,
                          0};
    case BY_TILE:
        return (division){TRANSPOSE_TILE, TRANSPOSE_TILE, TRANSPOSE_THREADS, 0, 0};
    case BY_WIDE_TILE:
        return (division){TRANSPOSE_WIDE, TRANSPOSE_WIDE, TRANSPOSE_THREADS, 0, 0};
    case BY_SQUARE:
        return (division){TRANSPOSE_ACROSS * lanes, TRANSPOSE_DOWN * lanes,
                          TRANSPOSE_CHAMPION_THREADS, 0,
                          (size_t)TRANSPOSE_ACROSS * (lanes * TRANSPOSE_DOWN + 1) * VECTOR_BYTES};
    case BY_ELEMENT: /* lines are padded by one element */
        rows = TRANSPOSE_ANY_ROWS(lanes);
        return (division){TRANSPOSE_ANY_COLS, rows, TRANSPOSE_ANY_THREADS, 0,
                          (size_t)rows * (TRANSPOSE_ANY_COLS + 1) * element};
    default:
        rows = by == BY_LOW && e >= 4 ? TRANSPOSE_LOW_ROWS : TRANSPOSE_RAW_ROWS;
        return (division){TRANSPOSE_RAW_BYTES / e, rows,
                          e < 4 ? TRANSPOSE_PACKED_THREADS : TRANSPOSE_RAW_THREADS, overlap,
                          (rows + overlap) * (size_t)TRANSPOSE_RAW_PITCH(e)};
    }
}

/* How a contender divides it. WHOLE is the kernel for sides that are multiples of `unit` bytes, ANY
 * for all others, LOW for those with LOW_ROWS or less, so that fewer tiles are half empty, and FEW
 * for FEW_ROWS or less: then B's rows are so short that scattered writes fill whole lines. */
enum { WHOLE, ANY, LOW, FEW, KERNELS };
#define LOW_ROWS 512u
#define FEW_ROWS 8u
typedef struct shape {
    way by[KERNELS]; /* NONE: no such kernel */
    uint32_t unit;
    uint32_t along_b; /* see kernel_params.h */
} shape;

static const shape naive = {{BY_LINES}, 1, 0};
static const shape tiled = {{BY_TILE}, 1, 0};
static const shape wide = {{BY_WIDE_TILE, BY_WIDE_TILE}, VECTOR_BYTES, 0};
static const shape champion = {{BY_SQUARE, BY_RAW, BY_LOW, BY_LINES}, LINE_BYTES, 1};
static const shape champion_opencl = {{BY_SQUARE, BY_ELEMENT}, VECTOR_BYTES, 1};
static const shape rows_first = {{BY_SQUARE, BY_ELEMENT}, VECTOR_BYTES, 0};

_Static_assert(TRANSPOSE_LOADS *TRANSPOSE_ANY_THREADS >=
                       TRANSPOSE_ANY_COLS * TRANSPOSE_ANY_ROWS(4) &&
                   TRANSPOSE_LOADS * TRANSPOSE_THREADS >= TRANSPOSE_WIDE * TRANSPOSE_WIDE,
               "a thread can hold its share");

static const shape *shape_of(const iron__gpu_work *work) { return work->spec->own; }

/* The smallest kernel for all sides must fit; which_kernel takes others where those fit as well. */
static iron_status check_device(iron__gpu_work *work, iron_error *err) {
    const shape *s = shape_of(work);
    division d = divide(s->by[s->by[LOW]   ? LOW
                              : s->by[ANY] ? ANY
                                           : WHOLE],
                        iron__element_bytes(work->c.element));

    IRON_TRY(iron__needs_threads(work->device, d.threads, err));
    return iron__needs_local(work->device, d.local_bytes, err);
}

static bool fits(const iron__gpu_work *work, size_t which, size_t element) {
    return divide(shape_of(work)->by[which], element).local_bytes <=
           work->device->info.local_bytes_max;
}

static size_t which_kernel(const iron__gpu_work *work, const transpose_part *p, size_t element) {
    const shape *s = shape_of(work);
    uint64_t sides = (p->rows | p->cols | p->first | p->count) * element;
    bool is_ahead = p->cols * element % AHEAD_BYTES != 0;

    if (s->by[FEW] && p->rows <= FEW_ROWS)
        return FEW;
    if (!s->by[ANY] || (sides % s->unit == 0 && fits(work, WHOLE, element) &&
                        !(s->by[LOW] && is_ahead && p->rows > AHEAD_ROWS)))
        return WHOLE;
    return s->by[LOW] && (p->rows <= LOW_ROWS || !fits(work, ANY, element)) ? LOW : ANY;
}

static iron_status run_part(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_part rows,
                            iron__gpu_queue *queue, iron_error *err) {
    const shape *s = shape_of(work);
    transpose_part part = {work->c.rows, work->c.cols, rows.first, rows.count};
    size_t element = iron__element_bytes(work->c.element);
    size_t which = which_kernel(work, &part, element);
    division d = divide(s->by[which], element);
    uint64_t count =
        iron__kit_pieces(part.count + d.overlap, d.height) * iron__kit_pieces(part.cols, d.width);
    const iron__gpu_launch l = {.kernel = work->kernels[which],
                                .groups = {(uint32_t)count},
                                .threads = {d.threads},
                                IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]),
                                              IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(part),
                                              IRON_GPU_VALUE(s->along_b)),
                                .local_bytes = d.local_bytes};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    iron__gpu_part all = {.first = 0, .count = work->c.rows};

    return run_part(work, data, all, queue, err);
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
#define ON(backends, its_shape, ...)                                                               \
    backends,                                                                                      \
        .passes = 1,                                                                               \
        .gpu = IRON_KIT(.kernels = {__VA_ARGS__}, .is_typed = true, .suits = iron__needs_element,  \
                        .set_up = check_device, .own = &(its_shape), .run = run,                   \
                        .run_part = run_part, .finish = finish)
#define GPU(its_shape, ...) ON(IRON_ON_GPU, its_shape, __VA_ARGS__)
#define CHAMPION_IDEA                                                                              \
    "squares transposed in registers, 16 bytes per access everywhere, tiles along B's rows"

static const iron__contender contenders[] = {
    {"naive", "two loops; each element of a row goes to another line of B", NULL, CPU(run_naive),
     .is_single = true},
    {"blocked", "blocks of 32 x 32 whose lines stay in the L1 cache", "naive", CPU(run_blocked),
     .is_single = true},
    {"vector", "small squares transposed in registers, tiles written in runs of 512 bytes",
     "blocked", CPU(run_tiles), .is_single = true},
    {"threads", "vector's tiles on all threads", "vector", CPU(run_tiles)},
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
    {"champion", CHAMPION_IDEA ", whole sectors also where rows begin anywhere", "tiled-vector",
     ON(IRON_ON_CUDA, champion, "transpose_champion", "transpose_raw", "transpose_low",
        "transpose_naive")},
    {"champion", CHAMPION_IDEA, "tiled-vector",
     ON(IRON_ON_OPENCL, champion_opencl, "transpose_champion", "transpose_champion_any")},
    {"champion-rows-first", "the champion's squares, tiles along A's rows", "tiled-vector",
     GPU(rows_first, "transpose_champion", "transpose_champion_any")},
};

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

const iron__op iron__op_transpose = {
    .name = "transpose",
    .contract = "B = A^T, both row-major",
    .why =
        "Every element moves to another place. In the straightforward version one of the two sides "
        "walks down columns. Memory delivers whole lines (32 to 128 bytes), so a walk down a "
        "column of 4-byte elements moves many times the requested bytes; and if rows are a power "
        "of two long, all lines of a column fall into the same few sets of a cache.\n"
        "\n"
        "Tiles solve this: read a block along rows, transpose it where that is cheap, and write it "
        "along rows. On a GPU the cheap place is local memory, but there a column initially lies "
        "in one bank, and 32 threads take turns: padding or swizzling spreads it over all banks "
        "(see banks). What remains is the number of bytes in flight, 16 bytes per access, and the "
        "order of the tiles: those that are processed at the same time should write adjacent parts "
        "of B's rows. A plain copy of as many bytes, which no transpose can beat, is next to the "
        "contenders.",
    .traffic =
        "Useful: one read of A and one write of B, 2 * rows * cols elements. naive requests that "
        "much as well, but each of its writes is one element of a 32-byte sector; all others move "
        "whole lines on both sides. Where rows begin anywhere, the champion reads the few rows "
        "that two of its tiles need twice, so that it writes whole sectors.",
    .unless =
        "It does not pay if the reader can use the matrix as it is (a matrix product with a flag, "
        "a loop exchanged as in atax.cpu.interchanged), or if both matrices fit a cache.",
    .used =
        "The kernel atax_transpose in src/ops/atax/atax_real.k makes the copy of the contender "
        "atax transposed through a padded tile; atax_load_tile in the same file pads its tile for "
        "the same reason. The layouts of src/ops/layout are transposes of particles by fields.",
    .elements = IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64) | IRON_BIT(IRON_U8) | IRON_BIT(IRON_U16),
    .usual = IRON_F32,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .baselines = {"naive", "naive"},
    IRON_SIZES({"size", "SMALL", 2048, 2048, NULL}, {"size", "STANDARD", 8192, 8192, NULL},
               {"size", "LARGE", 16384, 16384, NULL}, {"size", "ODD", 16383, 16381, NULL},
               {"size", "WIDE", 1024, 262144, NULL}, {"size", "TALL", 262144, 1024, NULL}),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .accept = iron__matrix_accept,
    IRON_DATA_OP,
    IRON_CONTENDERS(contenders),
};
