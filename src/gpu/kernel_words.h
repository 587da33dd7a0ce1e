/* SPDX-License-Identifier: MIT */
/*
 * kernel_words.h: the words in which kernels (*.k) are written, once for CUDA and OpenCL. A kernel
 * is C99 plus these words; each does exactly what is described here. docs/gpu.md explains them to
 * readers who know C but not GPUs.
 *
 *   K_KERNEL(n)            starts a kernel with n threads per group; K_KERNEL_2D(x, y) likewise
 *   K_KERNEL_DENSE(n, m)   the same; limits registers so that m groups fit on a unit, if it holds
 *                          that many threads
 *   K_DEVICE               a function called by kernels
 *   K_GLOBAL               address space of a pointer to device memory
 *   K_LOCAL_VAR            storage of a variable shared by a group; K_LOCAL_PTR points to one
 *   K_RESTRICT             no other pointer refers to this memory
 *   K_THREAD K_THREADS     number of this thread in its group, and how many there are; _Y: in y
 *   K_GROUP K_GROUPS       number of this group, and how many there are; _Y: in y
 *   K_BARRIER()            waits for all threads of the group; their writes are then visible
 *   K_DYNAMIC_ARG(t, name) last parameter of a kernel, with no comma before it: local memory whose
 *                          size the launch sets (local_bytes); K_DYNAMIC(t, name) at the start of
 *                          the body declares `name` as a K_LOCAL_PTR t * to it
 *   K_ATOMIC_...           on device or local memory, no result, relaxed; U64: device memory only
 *   K_ATOMIC_TAKE_U32(p)   adds 1 and returns the previous value
 *   K_ATOMIC_GET_ADD_U32(p, v) adds v and returns the previous value
 *   K_ATOMIC_SWAP_U32(p, v) stores v and returns the previous value
 *   K_FENCE()              makes earlier writes of this thread visible to other groups before its
 *                          later ones
 *
 *   A subgroup is 32 consecutive threads. All threads of the group must call these words, and the
 *   group size must be a multiple of 32. s is scratch in local memory for devices without such
 *   instructions.
 *   K_SUBGROUP_BARRIER()   threads of a subgroup see each other's writes to local memory
 *   K_SUBGROUP_RANK(f, n, s) the number of earlier threads of the subgroup with f set; n (a k_u32
 *                          variable) becomes the number of all such threads; s: one u32 per thread
 *   K_SUBGROUP_SAME(f, v)  true in all threads of a subgroup if f is set and v is equal in all of
 *                          them; a hint: false on devices without such instructions
 *   K_SUBGROUP_...(v, s)   XOR, MIN_U32, ADD_U32, ADD_U64: reduces over the subgroup; the first
 *                          thread has the result; s: one u64 per thread
 *   K_SUBGROUP_ADD_F32(v, s), ..._F64; K_SUBGROUP_SUMS_F32(v, n, s), ..._F64: the same for floats,
 *                          and for an array of n values per thread, changed in place; s: n values
 *                          per thread
 *
 *   K_CONSTANT_BLOCK(b)    declares 64 KiB of constant memory, once per program; a kernel takes it
 *                          as an argument K_CONSTANT_ARG(type, a) and reads *K_CONSTANT(type, b,
 *                          a),
 *                          a K_CONSTANT_PTR; the host finds it with iron__gpu_constant_find
 *   k_u8 ... k_f64         types of fixed width; k_u32x4 k_f32x4 k_f64x2 have members x y (z w)
 *   K_UNROLL               #pragma unroll K_UNROLL unrolls the whole loop, so that arrays indexed
 *                          by
 *                          it can be registers; no effect on devices that are not GPUs
 *   K_HAS_F64              0: the device has no k_f64 and none of the words named after it
 *   k_byte(w, k)           byte k of a k_u32; byte 0 is the lowest
 *   k_pick_bytes(a, b, s)  four bytes of a (numbers 0 to 3) and b (4 to 7), the lowest first; the
 *                          digits of s, a hexadecimal constant, are their numbers
 *   k_load_u32x4(p)        16 bytes at once; p is aligned to 16 bytes
 *   k_load_past(p)         the same past the L1 cache: no other thread of the unit reads them
 *   k_load_ahead(p)        the same, and the L2 cache should read the 256 bytes around them
 *   k_load_once(p)         a float or 16 bytes of floats that are not read again soon
 *   k_store_once(p, v)     a word or 16 bytes that are not read soon
 *   k_fma(a, b, c)         a * b + c, rounded once; nothing else is fused
 *   k_dot_f32x4(a, b, c) k_fma_f32x4(a, b, c) k_zero_f32x4() k_gather_f32x4
 *   k_scatter_f32x4, ..._f64x2: below
 *   k_mul_high_u64(a, b)   upper 64 bits of a * b; k_leading_zeros_u64(v): v must not be 0
 *   k_f32_of_bits k_ceil k_abs
 *
 * kernel_real.h compiles one source for several types.
 */
#ifndef IRON_GPU_KERNEL_WORDS_H
#define IRON_GPU_KERNEL_WORDS_H

#if defined(__CUDACC__)

typedef unsigned char k_u8;
typedef unsigned short k_u16;
typedef unsigned int k_u32;
typedef int k_i32;
typedef unsigned long long k_u64;
typedef long long k_i64;
typedef float k_f32;
typedef double k_f64;
typedef uint4 k_u32x4;
typedef float4 k_f32x4;
typedef double2 k_f64x2;

enum { K_UNROLL = 64 }; /* not a macro: nvcc expands none in a pragma */

/* Threads per unit: the compiler rejects requests for more. */
#if __CUDA_ARCH__ == 750
#define K_UNIT_THREADS 1024
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
#define K_UNIT_THREADS 1536
#else
#define K_UNIT_THREADS 2048
#endif
#define K_DENSE(n, m) ((n) * (m) <= K_UNIT_THREADS ? (m) : 1)

#define K_HAS_F64            1
#define K_KERNEL(n)          extern "C" __global__ void __launch_bounds__(n)
#define K_KERNEL_2D(x, y)    extern "C" __global__ void __launch_bounds__((x) * (y))
#define K_KERNEL_DENSE(n, m) extern "C" __global__ void __launch_bounds__((n), K_DENSE(n, m))
#define K_DEVICE             static __device__ __forceinline__
#define K_WORD               K_DEVICE
#define K_GLOBAL
#define K_LOCAL_VAR __shared__
#define K_LOCAL_PTR
#define K_RESTRICT __restrict__

#define K_THREAD    threadIdx.x
#define K_THREAD_Y  threadIdx.y
#define K_THREADS   blockDim.x
#define K_GROUP     blockIdx.x
#define K_GROUP_Y   blockIdx.y
#define K_GROUPS    gridDim.x
#define K_GROUPS_Y  gridDim.y
#define K_BARRIER() __syncthreads()

#define K_ATOMIC_ADD_U32(p, v) ((void)atomicAdd((p), (v)))
#define K_ATOMIC_XOR_U32(p, v) ((void)atomicXor((p), (v)))
#define K_ATOMIC_ADD_U64(p, v) ((void)atomicAdd((p), (v)))
#define K_ATOMIC_TAKE_U32(p)   atomicAdd((p), 1u)
#define K_FENCE()              __threadfence()
#define K_SUBGROUP_BARRIER()   __syncwarp()

#define K_ATOMIC_GET_ADD_U32(p, v) atomicAdd((p), (v))
#define K_ATOMIC_SWAP_U32(p, v)    atomicExch((p), (v))

/* No parameter in CUDA, and the host passes none; OpenCL's version includes the comma. */
#define K_DYNAMIC_ARG(type, name)
#define K_DYNAMIC(type, name)                                                                      \
    extern __shared__ uint4 k_dynamic[];                                                           \
    type *name = (type *)k_dynamic

K_DEVICE k_u32 k_subgroup_rank(int flag, k_u32 *count) {
    k_u32 lane = (threadIdx.x + threadIdx.y * blockDim.x) % 32;
    k_u32 all = __ballot_sync(0xFFFFFFFFu, flag);

    *count = (k_u32)__popc(all);
    return (k_u32)__popc(all & ((1u << lane) - 1u));
}
#define K_SUBGROUP_RANK(f, n, s) ((void)(s), k_subgroup_rank((f) != 0, &(n)))

K_DEVICE int k_subgroup_same(int flag, k_u32 v) {
    return __all_sync(0xFFFFFFFFu, flag) &&
           __all_sync(0xFFFFFFFFu, v == __shfl_sync(0xFFFFFFFFu, v, 0));
}
#define K_SUBGROUP_SAME(f, v) k_subgroup_same((f), (v))

#define K_SUBGROUP_OF(name, type, combined)                                                        \
    K_DEVICE type name(type v) {                                                                   \
        for (int lane = 16; lane > 0; lane /= 2) {                                                 \
            type other = __shfl_xor_sync(0xFFFFFFFFu, v, lane);                                    \
                                                                                                   \
            v = combined;                                                                          \
        }                                                                                          \
        return v;                                                                                  \
    }
K_SUBGROUP_OF(k_subgroup_xor, k_u32, v ^ other)
K_SUBGROUP_OF(k_subgroup_add_u32, k_u32, v + other)
K_SUBGROUP_OF(k_subgroup_add_u64, k_u64, v + other)
K_SUBGROUP_OF(k_subgroup_min_u32, k_u32, other < v ? other : v)

#define K_SUBGROUP_OF_REALS(real, sums_name, add_name)                                             \
    K_DEVICE void sums_name(real *v, int n) {                                                      \
        _Pragma("unroll") for (int lane = 16; lane > 0; lane /= 2)                                 \
            _Pragma("unroll") for (int k = 0; k < n; k++) v[k] +=                                  \
            __shfl_xor_sync(0xFFFFFFFFu, v[k], lane);                                              \
    }                                                                                              \
    K_DEVICE real add_name(real v) {                                                               \
        sums_name(&v, 1);                                                                          \
        return v;                                                                                  \
    }
K_SUBGROUP_OF_REALS(k_f32, k_subgroup_sums_f32, k_subgroup_add_f32)
K_SUBGROUP_OF_REALS(k_f64, k_subgroup_sums_f64, k_subgroup_add_f64)

#define K_SUBGROUP_XOR(v, s)         ((void)(s), k_subgroup_xor(v))
#define K_SUBGROUP_MIN_U32(v, s)     ((void)(s), k_subgroup_min_u32(v))
#define K_SUBGROUP_ADD_U32(v, s)     ((void)(s), k_subgroup_add_u32(v))
#define K_SUBGROUP_ADD_U64(v, s)     ((void)(s), k_subgroup_add_u64(v))
#define K_SUBGROUP_ADD_F32(v, s)     ((void)(s), k_subgroup_add_f32(v))
#define K_SUBGROUP_ADD_F64(v, s)     ((void)(s), k_subgroup_add_f64(v))
#define K_SUBGROUP_SUMS_F32(v, n, s) ((void)(s), k_subgroup_sums_f32((v), (n)))
#define K_SUBGROUP_SUMS_F64(v, n, s) ((void)(s), k_subgroup_sums_f64((v), (n)))

/* Reads the block itself, because only such loads use the constant bank. */
#define K_CONSTANT_BLOCK(block)      __constant__ __align__(16) unsigned char block[65536];
#define K_CONSTANT_ARG(type, arg)    const type *arg
#define K_CONSTANT(type, block, arg) ((void)(arg), (const type *)(block))
#define K_CONSTANT_PTR

#define k_load_once(p)         __ldcs(p)
#define k_store_once(p, v)     __stcs((p), (v))
#define k_fma(a, b, c)         fma((a), (b), (c))
#define k_byte(w, k)           __byte_perm((w), 0, 0x4440 + (k)) /* one instruction, not two */
#define k_pick_bytes(a, b, s)  __byte_perm((a), (b), (s))
#define k_load_u32x4(p)        (*(p))
#define k_mul_high_u64(a, b)   __umul64hi((a), (b))
#define k_leading_zeros_u64(v) ((k_u32)__clzll((k_i64)(v)))
#define k_f32_of_bits(v)       __uint_as_float(v)
#define k_ceil(v)              ceilf(v)
#define k_abs(v)               fabsf(v)

#define K_LOAD_HINTED(name, hint)                                                                  \
    K_WORD k_u32x4 name(const k_u32x4 *p) {                                                        \
        k_u32x4 v;                                                                                 \
                                                                                                   \
        asm volatile("ld.global.L1::no_allocate" hint ".v4.u32 {%0, %1, %2, %3}, [%4];"            \
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                                  \
                     : "l"(p));                                                                    \
        return v;                                                                                  \
    }
K_LOAD_HINTED(k_load_past, "")
#if __CUDA_ARCH__ >= 800
K_LOAD_HINTED(k_load_ahead, ".L2::256B")
#else
K_LOAD_HINTED(k_load_ahead, "")
#endif
#undef K_LOAD_HINTED

#elif defined(__OPENCL_C_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
#ifndef K_HAS_U64_ATOMICS
#define K_HAS_U64_ATOMICS 0
#endif
#if K_HAS_U64_ATOMICS
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif
#ifndef K_HAS_F64
#define K_HAS_F64 0
#endif
#ifndef K_IS_GPU
#define K_IS_GPU 1
#endif
/* always_inline: constant arguments must become constants in the code. A compiler that decides not
 * to inline would look them up for every token. */
#if K_IS_GPU
#define K_UNROLL 64
#define K_DEVICE static __attribute__((always_inline))
#else /* few registers, and inlining takes compilers minutes */
#define K_UNROLL 1
#define K_DEVICE static
#endif
#if K_HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double k_f64;
typedef double2 k_f64x2;
#endif

typedef uchar k_u8;
typedef ushort k_u16;
typedef uint k_u32;
typedef int k_i32;
typedef ulong k_u64;
typedef long k_i64;
typedef float k_f32;
typedef uint4 k_u32x4;
typedef float4 k_f32x4;

#define K_KERNEL(n)       __kernel __attribute__((reqd_work_group_size(n, 1, 1))) void
#define K_KERNEL_2D(x, y) __kernel __attribute__((reqd_work_group_size(x, y, 1))) void
/* NVIDIA's compiler takes one register limit for the whole source (registers_max in gpu.h), and
 * applies it to kernels without a required group size. */
#ifdef K_REGISTERS_ARE_LIMITED
#define K_KERNEL_DENSE(n, m) __kernel void
#else
#define K_KERNEL_DENSE(n, m) K_KERNEL(n)
#endif
#define K_WORD      static __attribute__((unused)) /* a program uses only some */
#define K_GLOBAL    __global
#define K_LOCAL_VAR __local
#define K_LOCAL_PTR __local
#define K_RESTRICT  restrict

#define K_THREAD    ((k_u32)get_local_id(0))
#define K_THREAD_Y  ((k_u32)get_local_id(1))
#define K_THREADS   ((k_u32)get_local_size(0))
#define K_GROUP     ((k_u32)get_group_id(0))
#define K_GROUP_Y   ((k_u32)get_group_id(1))
#define K_GROUPS    ((k_u32)get_num_groups(0))
#define K_GROUPS_Y  ((k_u32)get_num_groups(1))
#define K_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#define K_ATOMIC_ADD_U32(p, v) ((void)atomic_add((p), (v)))
#define K_ATOMIC_XOR_U32(p, v) ((void)atomic_xor((p), (v)))
#define K_ATOMIC_TAKE_U32(p)   atomic_inc(p)
#define K_FENCE()              mem_fence(CLK_GLOBAL_MEM_FENCE)
#define K_SUBGROUP_BARRIER()   barrier(CLK_LOCAL_MEM_FENCE)

#define K_ATOMIC_GET_ADD_U32(p, v) atomic_add((p), (v))
#define K_ATOMIC_SWAP_U32(p, v)    atomic_xchg((p), (v))

#define K_DYNAMIC_ARG(type, name) , __local type *name
#define K_DYNAMIC(type, name)

K_WORD k_u32 k_subgroup_rank(int flag, k_u32 *count, __local k_u32 *scratch) {
    k_u32 thread = (k_u32)(get_local_id(0) + get_local_id(1) * get_local_size(0));
    k_u32 first = thread / 32 * 32, before = 0, all = 0;

    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[thread] = (k_u32)flag;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (k_u32 k = 0; k < 32; k++) {
        before += k < thread - first ? scratch[first + k] : 0;
        all += scratch[first + k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    *count = all;
    return before;
}
#define K_SUBGROUP_RANK(f, n, s) k_subgroup_rank((f) != 0, &(n), (s))
#define K_SUBGROUP_SAME(f, v)    ((void)(f), (void)(v), 0)

#if K_HAS_U64_ATOMICS
#define K_ATOMIC_ADD_U64(p, v) ((void)atom_add((p), (v)))
#else
/* Adds in two halves; the carry of the lower goes into the upper. The value is correct once all
 * adds are done, which is enough for a sum. Little-endian. */
K_WORD void k_add_u64_in_halves(__global k_u64 *to, k_u64 value) {
    volatile __global k_u32 *parts = (volatile __global k_u32 *)to;
    k_u32 low = (k_u32)value;
    k_u32 before = atomic_add(parts, low);

    atomic_add(parts + 1, (k_u32)(value >> 32) + (before + low < low));
}
#define K_ATOMIC_ADD_U64(p, v) k_add_u64_in_halves((p), (v))
#endif

/* OpenCL does not guarantee subgroups: a tree of five steps in local memory. */
enum { K_REDUCE_ADD, K_REDUCE_XOR, K_REDUCE_MIN };

K_WORD k_u64 k_subgroup_reduce(k_u64 v, __local k_u64 *scratch, int kind) {
    k_u32 thread = (k_u32)(get_local_id(0) + get_local_id(1) * get_local_size(0));

    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[thread] = v;
    for (k_u32 step = 16; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread % 32 < step) {
            k_u64 own = scratch[thread], other = scratch[thread + step];

            scratch[thread] = kind == K_REDUCE_XOR   ? own ^ other
                              : kind == K_REDUCE_ADD ? own + other
                              : other < own          ? other
                                                     : own;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[thread];
}

/* Sums of floats: 32 to 8 to 1, for few barriers, which many values share. */
#define K_SUBGROUP_OF_REALS(real, sums_name, add_name)                                             \
    K_WORD void sums_name(real *v, k_u32 n, __local real *scratch) {                               \
        k_u32 size = (k_u32)(get_local_size(0) * get_local_size(1));                               \
        k_u32 thread = (k_u32)(get_local_id(0) + get_local_id(1) * get_local_size(0));             \
        __local real *at = scratch + thread;                                                       \
                                                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        for (k_u32 k = 0; k < n; k++)                                                              \
            at[k * size] = v[k];                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (thread % 32 < 8)                                                                       \
            for (k_u32 k = 0; k < n; k++)                                                          \
                at[k * size] =                                                                     \
                    (at[k * size] + at[k * size + 8]) + (at[k * size + 16] + at[k * size + 24]);   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (thread % 32 == 0)                                                                      \
            for (k_u32 k = 0; k < n; k++)                                                          \
                v[k] =                                                                             \
                    ((at[k * size] + at[k * size + 1]) + (at[k * size + 2] + at[k * size + 3])) +  \
                    ((at[k * size + 4] + at[k * size + 5]) +                                       \
                     (at[k * size + 6] + at[k * size + 7]));                                       \
    }                                                                                              \
    K_WORD real add_name(real v, __local real *scratch) {                                          \
        sums_name(&v, 1, scratch);                                                                 \
        return v;                                                                                  \
    }
K_SUBGROUP_OF_REALS(k_f32, k_subgroup_sums_f32, k_subgroup_add_f32)
#if K_HAS_F64
K_SUBGROUP_OF_REALS(k_f64, k_subgroup_sums_f64, k_subgroup_add_f64)
#endif

#define K_SUBGROUP_XOR(v, s)         ((k_u32)k_subgroup_reduce((v), (s), K_REDUCE_XOR))
#define K_SUBGROUP_MIN_U32(v, s)     ((k_u32)k_subgroup_reduce((v), (s), K_REDUCE_MIN))
#define K_SUBGROUP_ADD_U32(v, s)     ((k_u32)k_subgroup_reduce((v), (s), K_REDUCE_ADD))
#define K_SUBGROUP_ADD_U64(v, s)     k_subgroup_reduce((v), (s), K_REDUCE_ADD)
#define K_SUBGROUP_ADD_F32(v, s)     k_subgroup_add_f32((v), (s))
#define K_SUBGROUP_ADD_F64(v, s)     k_subgroup_add_f64((v), (s))
#define K_SUBGROUP_SUMS_F32(v, n, s) k_subgroup_sums_f32((v), (n), (s))
#define K_SUBGROUP_SUMS_F64(v, n, s) k_subgroup_sums_f64((v), (n), (s))

#define K_CONSTANT_BLOCK(block)
#define K_CONSTANT_ARG(type, arg)    __constant const type *arg
#define K_CONSTANT(type, block, arg) (arg)
#define K_CONSTANT_PTR               __constant

#define k_load_once(p)     (*(p))
#define k_store_once(p, v) (*(p) = (v))
#define k_fma(a, b, c)     fma((a), (b), (c))

#define k_byte(w, k) ((w) >> 8 * (k)&255u)
#define k_pick_bytes(a, b, s)                                                                      \
    as_uint(shuffle2(as_uchar4(a), as_uchar4(b),                                                   \
                     (uchar4)((s)&7, (s) >> 4 & 7, (s) >> 8 & 7, (s) >> 12 & 7)))
#define k_load_u32x4(p)        (*(p))
#define k_load_past(p)         (*(p))
#define k_load_ahead(p)        (*(p))
#define k_mul_high_u64(a, b)   mul_hi((k_u64)(a), (k_u64)(b))
#define k_leading_zeros_u64(v) ((k_u32)clz((k_u64)(v)))
#define k_f32_of_bits(v)       as_float(v)
#define k_ceil(v)              ceil(v)
#define k_abs(v)               fabs(v)

#else /* the host, for structs that are passed to kernels */

#include <stdint.h>

typedef uint8_t k_u8;
typedef uint16_t k_u16;
typedef uint32_t k_u32;
typedef int32_t k_i32;
typedef uint64_t k_u64;
typedef int64_t k_i64;
typedef float k_f32;
typedef double k_f64;

#endif

#if defined(__CUDACC__) || defined(__OPENCL_C_VERSION__)

K_WORD k_f32x4 k_zero_f32x4(void) {
    k_f32x4 v;

    v.x = v.y = v.z = v.w = 0.0f;
    return v;
}

/* dot: a . b + c; fma: a * b + c for each member. */
K_WORD k_f32 k_dot_f32x4(k_f32x4 a, k_f32x4 b, k_f32 c) {
    return k_fma(a.w, b.w, k_fma(a.z, b.z, k_fma(a.y, b.y, k_fma(a.x, b.x, c))));
}

K_WORD k_f32x4 k_fma_f32x4(k_f32 a, k_f32x4 b, k_f32x4 c) {
    c.x = k_fma(a, b.x, c.x);
    c.y = k_fma(a, b.y, c.y);
    c.z = k_fma(a, b.z, c.z);
    c.w = k_fma(a, b.w, c.w);
    return c;
}

/* gather: elements at, at + step, ... of p; 0 from `end` on. scatter stores to the same places. */
K_WORD k_f32x4 k_gather_f32x4(K_GLOBAL const k_f32 *p, k_u32 at, k_u32 step, k_u32 end) {
    k_f32x4 v;

    v.x = at < end ? p[at] : 0.0f;
    v.y = at + step < end ? p[at + step] : 0.0f;
    v.z = at + 2 * step < end ? p[at + 2 * step] : 0.0f;
    v.w = at + 3 * step < end ? p[at + 3 * step] : 0.0f;
    return v;
}

K_WORD void k_scatter_f32x4(K_GLOBAL k_f32 *p, k_u32 at, k_u32 step, k_u32 end, k_f32x4 v) {
    if (at < end)
        p[at] = v.x;
    if (at + step < end)
        p[at + step] = v.y;
    if (at + 2 * step < end)
        p[at + 2 * step] = v.z;
    if (at + 3 * step < end)
        p[at + 3 * step] = v.w;
}

#if K_HAS_F64
K_WORD k_f64x2 k_zero_f64x2(void) {
    k_f64x2 v;

    v.x = v.y = 0.0;
    return v;
}

K_WORD k_f64 k_dot_f64x2(k_f64x2 a, k_f64x2 b, k_f64 c) {
    return k_fma(a.y, b.y, k_fma(a.x, b.x, c));
}

K_WORD k_f64x2 k_fma_f64x2(k_f64 a, k_f64x2 b, k_f64x2 c) {
    c.x = k_fma(a, b.x, c.x);
    c.y = k_fma(a, b.y, c.y);
    return c;
}

K_WORD k_f64x2 k_gather_f64x2(K_GLOBAL const k_f64 *p, k_u32 at, k_u32 step, k_u32 end) {
    k_f64x2 v;

    v.x = at < end ? p[at] : 0.0;
    v.y = at + step < end ? p[at + step] : 0.0;
    return v;
}

K_WORD void k_scatter_f64x2(K_GLOBAL k_f64 *p, k_u32 at, k_u32 step, k_u32 end, k_f64x2 v) {
    if (at < end)
        p[at] = v.x;
    if (at + step < end)
        p[at + step] = v.y;
}
#endif

#endif

#endif
