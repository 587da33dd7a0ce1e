/* SPDX-License-Identifier: MIT */
/*
 * kernel_words.h: the words in which kernels (*.k) are written, once, for CUDA and OpenCL. A kernel
 * is C99 with these words, and no word pretends to be more than it says here. docs/gpu.md explains
 * them to someone who knows C but no GPU.
 *
 *   K_KERNEL(n)            begins a kernel whose groups have n threads; K_KERNEL_2D(x, y) likewise
 *   K_DEVICE               a function that kernels call
 *   K_GLOBAL               address space of a pointer to device memory
 *   K_LOCAL_VAR            storage of a variable that a group shares; K_LOCAL_PTR points to one
 *   K_RESTRICT             nothing else points there
 *   K_LID K_LSZ            this thread's number in its group, and how many there are; _Y: in y
 *   K_GRP K_NGRP           this group's number, and how many there are; _Y: in y
 *   K_BARRIER()            all threads of the group arrive before one goes on, their writes seen
 *   K_ATOMIC_...           on device memory, no result, relaxed
 *   K_SUBGROUP_...(v, s)   reduces over 32 consecutive threads, the result is in the first of them;
 *                          all threads of the group must call it; s is K_LOCAL_VAR scratch of a u64
 *                          a thread, which devices without such instructions reduce in
 *   k_u8 ... k_f32         types of a certain width; k_u32x4 has members x y z w
 *   k_load4(p)             16 bytes at once; p is aligned to 16 bytes
 *   k_mulhi64 k_clz64 k_f32_of_bits k_ceil k_abs
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
typedef uint4 k_u32x4;

#define K_KERNEL(n)       extern "C" __global__ void __launch_bounds__(n)
#define K_KERNEL_2D(x, y) extern "C" __global__ void __launch_bounds__((x) * (y))
#define K_DEVICE          static __device__ __forceinline__
#define K_GLOBAL
#define K_LOCAL_VAR __shared__
#define K_LOCAL_PTR
#define K_RESTRICT __restrict__

#define K_LID       threadIdx.x
#define K_LID_Y     threadIdx.y
#define K_LSZ       blockDim.x
#define K_GRP       blockIdx.x
#define K_GRP_Y     blockIdx.y
#define K_NGRP      gridDim.x
#define K_NGRP_Y    gridDim.y
#define K_BARRIER() __syncthreads()

#define K_ATOMIC_ADD_U32(p, v) ((void)atomicAdd((p), (v)))
#define K_ATOMIC_XOR_U32(p, v) ((void)atomicXor((p), (v)))
#define K_ATOMIC_ADD_U64(p, v) ((void)atomicAdd((p), (v)))

K_DEVICE k_u32 k_subgroup_xor(k_u32 v) {
    for (int lane = 16; lane > 0; lane /= 2)
        v ^= __shfl_xor_sync(0xFFFFFFFFu, v, lane);
    return v;
}

K_DEVICE k_u64 k_subgroup_add(k_u64 v) {
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xFFFFFFFFu, v, lane);
    return v;
}

#define K_SUBGROUP_XOR(v, s)     ((void)(s), k_subgroup_xor(v))
#define K_SUBGROUP_ADD_U64(v, s) ((void)(s), k_subgroup_add(v))

#define k_load4(p)       (*(p))
#define k_mulhi64(a, b)  __umul64hi((a), (b))
#define k_clz64(v)       ((k_u32)__clzll((k_i64)(v)))
#define k_f32_of_bits(v) __uint_as_float(v)
#define k_ceil(v)        ceilf(v)
#define k_abs(v)         fabsf(v)

#elif defined(__OPENCL_C_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
#ifndef K_HAS_U64_ATOMICS
#define K_HAS_U64_ATOMICS 0
#endif
#if K_HAS_U64_ATOMICS
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

typedef uchar k_u8;
typedef ushort k_u16;
typedef uint k_u32;
typedef int k_i32;
typedef ulong k_u64;
typedef long k_i64;
typedef float k_f32;
typedef uint4 k_u32x4;

#define K_KERNEL(n)       __kernel __attribute__((reqd_work_group_size(n, 1, 1))) void
#define K_KERNEL_2D(x, y) __kernel __attribute__((reqd_work_group_size(x, y, 1))) void
#define K_DEVICE          static
#define K_GLOBAL          __global
#define K_LOCAL_VAR       __local
#define K_LOCAL_PTR       __local
#define K_RESTRICT        restrict

#define K_LID       ((k_u32)get_local_id(0))
#define K_LID_Y     ((k_u32)get_local_id(1))
#define K_LSZ       ((k_u32)get_local_size(0))
#define K_GRP       ((k_u32)get_group_id(0))
#define K_GRP_Y     ((k_u32)get_group_id(1))
#define K_NGRP      ((k_u32)get_num_groups(0))
#define K_NGRP_Y    ((k_u32)get_num_groups(1))
#define K_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#define K_ATOMIC_ADD_U32(p, v) ((void)atomic_add((p), (v)))
#define K_ATOMIC_XOR_U32(p, v) ((void)atomic_xor((p), (v)))

#if K_HAS_U64_ATOMICS
#define K_ATOMIC_ADD_U64(p, v) ((void)atom_add((p), (v)))
#else
/* Two halves, the carry of the lower one going into the upper: right once all adders have come
 * through, which is all that a sum needs. Little-endian. */
static void k_add_u64_in_halves(__global k_u64 *to, k_u64 value) {
    volatile __global k_u32 *parts = (volatile __global k_u32 *)to;
    k_u32 low = (k_u32)value;
    k_u32 before = atomic_add(parts, low);

    atomic_add(parts + 1, (k_u32)(value >> 32) + (before + low < low));
}
#define K_ATOMIC_ADD_U64(p, v) k_add_u64_in_halves((p), (v))
#endif

/* OpenCL promises no subgroups: a tree of five steps in local memory. */
static k_u64 k_subgroup_reduce(k_u64 v, __local k_u64 *scratch, int is_xor) {
    k_u32 lid = (k_u32)(get_local_id(0) + get_local_id(1) * get_local_size(0));

    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lid] = v;
    for (k_u32 step = 16; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid % 32 < step) {
            k_u64 other = scratch[lid + step];

            scratch[lid] = is_xor ? scratch[lid] ^ other : scratch[lid] + other;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[lid];
}

#define K_SUBGROUP_XOR(v, s)     ((k_u32)k_subgroup_reduce((v), (s), 1))
#define K_SUBGROUP_ADD_U64(v, s) k_subgroup_reduce((v), (s), 0)

#define k_load4(p)       (*(p))
#define k_mulhi64(a, b)  mul_hi((k_u64)(a), (k_u64)(b))
#define k_clz64(v)       ((k_u32)clz((k_u64)(v)))
#define k_f32_of_bits(v) as_float(v)
#define k_ceil(v)        ceil(v)
#define k_abs(v)         fabs(v)

#else /* the host, for the structs that are passed to kernels */

#include <stdint.h>

typedef uint8_t k_u8;
typedef uint16_t k_u16;
typedef uint32_t k_u32;
typedef int32_t k_i32;
typedef uint64_t k_u64;
typedef int64_t k_i64;
typedef float k_f32;

#endif

#endif
