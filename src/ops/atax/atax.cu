/* SPDX-License-Identifier: MIT */
/*
 * atax.cu: y = A^T(A x) in one launch. CUDA only: all groups run at the same time and wait for each
 * other once.
 *
 *     the single pass       each group leaves its part of y, a line of partial answers
 *     -- barrier --         instead of a second launch, which takes longer than small matrices do
 *     the sum               each group adds all lines for some of the columns
 *
 * Traffic: A once; groups * cols elements written and read at the end, from the L2 cache. For
 * matrices of a few MiB the two launches of the single pass cost more than the reading: 256 x 256
 * floats are read in a tenth of a microsecond.
 *
 * The barrier has two words, 128 bytes apart so that arriving and waiting do not share a cache
 * line: how many groups have arrived, 0 between launches, and the number of barriers so far. One
 * thread per group waits. One word per group, which all threads look at, saves the atomic but loads
 * the cache more, and was no faster from 1024 x 1024 on.
 */
#define TOGETHER_WAITING 32 /* words between the two */

K_DEVICE void together_wait(k_u32 *barrier) {
    __syncthreads();
    if (K_THREAD == 0) {
        volatile k_u32 *barriers = barrier + TOGETHER_WAITING;
        k_u32 before = *barriers;

        __threadfence();
        if (atomicAdd(barrier, 1u) + 1 == K_GROUPS) {
            *(volatile k_u32 *)barrier = 0;
            __threadfence();
            *barriers = before + 1;
        } else {
            while (*barriers == before)
                ;
        }
        __threadfence();
    }
    __syncthreads();
}

/* Adds the columns of all lines, `width` of them per group at a time, so that a line is read in
 * whole sectors of 32 bytes; the other threads of the group read other lines. */
template <typename REAL, int THREADS>
K_DEVICE void together_sum(const REAL *partials, REAL *y, k_u64 cols, REAL *scratch) {
    k_u32 width = 32 / sizeof(REAL), lines = K_GROUPS, way;

    while (width < THREADS && (k_u64)width * K_GROUPS < cols)
        width *= 2;
    way = K_THREAD / width;
    for (k_u64 first = (k_u64)K_GROUP * width; first < cols; first += (k_u64)K_GROUPS * width) {
        k_u64 column = first + K_THREAD % width;
        REAL sum = 0;

        if (column < cols)
#pragma unroll 8
            for (k_u32 line = way; line < lines; line += THREADS / width)
                sum += __ldcg(partials + line * cols + column);
        scratch[K_THREAD] = sum;
        for (k_u32 half = THREADS / width / 2; half > 0; half /= 2) {
            __syncthreads();
            if (way < half)
                scratch[K_THREAD] += scratch[K_THREAD + half * width];
        }
        if (way == 0 && column < cols)
            y[column] = scratch[K_THREAD];
        __syncthreads();
    }
}

/* The single pass for each element type. */
#define TOGETHER_WALK(kind, real, vector)                                                          \
    K_DEVICE void together_walk(const real *a, const real *x, real *partial, const atax_span &s,   \
                                k_u32 width, vector *pool, real *scratch, k_u32 threads,           \
                                k_u32 vectors, k_u32 rows, k_u32 slots, int by_vector) {           \
        atax_walk_##kind(a, x, partial, s, width, pool, scratch, threads, vectors, rows, slots,    \
                         by_vector);                                                               \
    }

TOGETHER_WALK(f32, k_f32, k_f32x4)
TOGETHER_WALK(f64, k_f64, k_f64x2)

template <typename REAL, typename VECTOR, int THREADS, int VECTORS, int ROWS, int SLOTS,
          int BY_VECTOR>
K_DEVICE void together(const REAL *__restrict__ a, const REAL *__restrict__ x, REAL *partials,
                       REAL *y, k_u32 *barrier, const atax_span &s, k_u32 width) {
    constexpr int REALS = sizeof(VECTOR) / sizeof(REAL);
    __shared__ VECTOR pool[ATAX_POOL(THREADS, VECTORS, ROWS, SLOTS, REALS)];
    __shared__ REAL scratch[ROWS * THREADS];

    together_walk(a, x, partials + K_GROUP * s.cols, s, width, pool, scratch, THREADS, VECTORS,
                  ROWS, SLOTS, BY_VECTOR);
    together_wait(barrier);
    together_sum<REAL, THREADS>(partials, y, s.cols, scratch);
}

#define TOGETHER_KERNEL(name, kind, real, vector, threads, groups, vectors, rows, slots, aligned)  \
    K_KERNEL_DENSE(threads, groups)                                                                \
    name##_##kind(const real *__restrict__ a, const real *__restrict__ x, real *partials, real *y, \
                  k_u32 *barrier, const atax_span s, const k_u32 width) {                          \
        together<real, vector, threads, vectors, rows, slots, aligned>(a, x, partials, y, barrier, \
                                                                       s, width);                  \
    }

#define TOGETHER_KERNELS(name, threads, groups, vectors, rows, slots)                              \
    TOGETHER_KERNEL(atax_together_##name, f32, k_f32, k_f32x4, threads, groups, vectors, rows,     \
                    slots, 1)                                                                      \
    TOGETHER_KERNEL(atax_together_##name##_unaligned, f32, k_f32, k_f32x4, threads, groups,        \
                    vectors, rows, slots, 0)                                                       \
    TOGETHER_KERNEL(atax_together_##name, f64, k_f64, k_f64x2, threads, groups, vectors, rows,     \
                    slots, 1)                                                                      \
    TOGETHER_KERNEL(atax_together_##name##_unaligned, f64, k_f64, k_f64x2, threads, groups,        \
                    vectors, rows, slots, 0)

ATAX_SINGLE_SHAPES(TOGETHER_KERNELS)
