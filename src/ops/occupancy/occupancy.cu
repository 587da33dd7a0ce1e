/* SPDX-License-Identifier: MIT */
/*
 * occupancy.cu: one streaming kernel in several shapes. The bytes in flight on a unit are the
 * number of its threads times the loads in flight per thread; the shapes vary the two
 * independently.
 *
 * Traffic: 4 bytes read and 4 written per word, coalesced, 16 bytes per thread.
 *
 * A thread waits for its loads at their first use, so a thread with a single load has only 16 bytes
 * in flight: the loop is not unrolled, and since input and output might overlap as far as the
 * compiler knows, no load moves ahead of a store. For the same reason a thread with many loads
 * holds all their words before it stores the first; if it has too few registers, they are spilled.
 *
 *     turns     | group 0 | group 1 | ... | group 0 | group 1 | ...
 *     a turn    load 0 of all threads | load 1 of all threads | ...
 */
static __device__ __forceinline__ k_u32 occupancy_mix(k_u32 x) {
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    return x ^ x >> 15;
}

static __device__ __forceinline__ k_u32x4 occupancy_mix4(k_u32x4 v) {
    return make_uint4(occupancy_mix(v.x), occupancy_mix(v.y), occupancy_mix(v.z),
                      occupancy_mix(v.w));
}

/* The rest after the last complete turn: quads from `quad` on, then words. */
template <int THREADS>
static __device__ __forceinline__ void occupancy_rest(const k_u32 *from, k_u32 *to, k_u64 quad,
                                                      k_u64 count) {
    k_u64 word = count / 4 * 4 + threadIdx.x;

#pragma unroll 1
    for (quad += threadIdx.x; quad < count / 4; quad += THREADS)
        ((k_u32x4 *)to)[quad] = occupancy_mix4(((const k_u32x4 *)from)[quad]);
    if (word < count)
        to[word] = occupancy_mix(from[word]);
}

template <int THREADS, int LOADS>
static __device__ __forceinline__ void occupancy_walk(const k_u32 *from, k_u32 *to, k_u64 count) {
    const k_u32x4 *from4 = (const k_u32x4 *)from;
    k_u32x4 *to4 = (k_u32x4 *)to;
    const k_u64 turn = THREADS * LOADS, whole = count / 4 / turn * turn;

#pragma unroll 1
    for (k_u64 at = blockIdx.x * turn + threadIdx.x; at < whole; at += gridDim.x * turn) {
        k_u32x4 v[LOADS];

#pragma unroll
        for (int k = 0; k < LOADS; k++)
            v[k] = from4[at + k * THREADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            to4[at + k * THREADS] = occupancy_mix4(v[k]);
    }
    if (blockIdx.x == 0)
        occupancy_rest<THREADS>(from, to, whole, count);
}

#define OCCUPANCY_KERNEL(name, threads, loads)                                                     \
    K_KERNEL(threads)                                                                              \
    occupancy_##name(const k_u32 *from, k_u32 *to, const k_u64 count) {                            \
        occupancy_walk<threads, loads>(from, to, count);                                           \
    }
OCCUPANCY_SHAPES(OCCUPANCY_KERNEL)

/* Limits the registers per thread; compilers before 12.4 only accept a number of groups per
 * unit. */
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4)
#define OCCUPANCY_LIMITED(threads, registers) extern "C" __global__ void __maxnreg__(registers)
#else
#define OCCUPANCY_LIMITED(threads, registers) K_KERNEL_DENSE(threads, 65536 / (threads * registers))
#endif

#define OCCUPANCY_TIGHT_KERNEL(name, threads, registers)                                           \
    OCCUPANCY_LIMITED(threads, registers)                                                          \
    occupancy_##name(const k_u32 *from, k_u32 *to, const k_u64 count) {                            \
        occupancy_walk<threads, OCCUPANCY_HELD>(from, to, count);                                  \
    }
OCCUPANCY_TIGHT(OCCUPANCY_TIGHT_KERNEL)

K_KERNEL(OCCUPANCY_WORDS_THREADS)
occupancy_words(const k_u32 *from, k_u32 *to, const k_u64 count) {
    const k_u64 step = (k_u64)gridDim.x * OCCUPANCY_WORDS_THREADS;

#pragma unroll 1
    for (k_u64 at = (k_u64)blockIdx.x * OCCUPANCY_WORDS_THREADS + threadIdx.x; at < count;
         at += step)
        to[at] = occupancy_mix(from[at]);
}
