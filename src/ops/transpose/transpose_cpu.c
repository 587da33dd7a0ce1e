/* SPDX-License-Identifier: MIT */
/*
 * transpose_cpu.c: the rows of the op transpose on the CPU. Their loops are in transpose_cpu.inc,
 * once for floats and once for doubles; this file chooses, and deals tiles out to threads.
 *
 * Vectors are the compiler's own of 16 bytes, which every 64-bit processor has.
 */
#include "core/memory.h"
#include "ops/transpose/transpose.h"

#include <string.h>

/* blocked: a block's side in elements; 32 lines of A and 32 of B stay in any L1 cache. */
#define BLOCK ((size_t)32)
/* vector, threads: a tile is what is turned between A and B. It leaves in runs of 512 bytes: with
 * the half or the double of it a core moves less. 32 KiB in all. */
#define TILE_RUN_BYTES ((size_t)512)
#define TILE_COLS      ((size_t)64)
/* threads: tiles that a thread takes at a time. */
#define TASK_TILES ((size_t)16)

/* A and B. */
typedef struct matrices {
    const void *a;
    void *b;
    size_t rows, cols; /* of A */
} matrices;

typedef struct loops {
    void (*naive)(const matrices *m);
    void (*blocked)(const matrices *m);
    void (*tile)(const matrices *m, size_t row, size_t col); /* the one that begins there */
    size_t tile_rows;
} loops;

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

/* Elements of a and then b by number. */
#if defined(__clang__)
#define PICK_F32(a, b, i, j, k, l) __builtin_shufflevector((a), (b), (i), (j), (k), (l))
#define PICK_F64(a, b, i, j)       __builtin_shufflevector((a), (b), (i), (j))
#else
typedef int32_t numbers32 __attribute__((vector_size(16)));
typedef int64_t numbers64 __attribute__((vector_size(16)));
#define PICK_F32(a, b, i, j, k, l) __builtin_shuffle((a), (b), (numbers32){(i), (j), (k), (l)})
#define PICK_F64(a, b, i, j)       __builtin_shuffle((a), (b), (numbers64){(i), (j)})
#endif

/* Four vectors become their transposed: pairs first, then pairs of pairs. */
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
#undef NAME
#undef REAL
#undef VECTOR
#undef LANES
#undef TURN

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

void iron__transpose_run_naive(const iron__cpu_work *work) {
    matrices m = matrices_of(work);

    loops_of(work)->naive(&m);
}

void iron__transpose_run_blocked(const iron__cpu_work *work) {
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

void iron__transpose_run_vector(const iron__cpu_work *work) {
    tiling t = tiling_of(work);

    run_tiles(&t, 0, t.count);
}

static void run_task(void *context, size_t index) {
    const tiling *t = context;
    size_t begin = index * TASK_TILES, left = t->count - begin;

    run_tiles(t, begin, begin + (left < TASK_TILES ? left : TASK_TILES));
}

void iron__transpose_run_threads(const iron__cpu_work *work) {
    tiling t = tiling_of(work);

    iron__team_run(work->team, run_task, &t, (t.count + TASK_TILES - 1) / TASK_TILES);
}
