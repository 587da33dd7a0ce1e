/* SPDX-License-Identifier: MIT */
/* The words of OpenCL that the cheats use, for CUDA: before the text of a .cl file. */
#define __kernel extern "C" __global__
#define __global
#define DEVICE                static __device__
#define uint                  unsigned int
#define ulong                 unsigned long long
#define get_global_id(axis)   (blockIdx.x * (size_t)blockDim.x + threadIdx.x)
#define get_global_size(axis) (gridDim.x * (size_t)blockDim.x)
#define atomic_inc(word)      atomicAdd(word, 1u)
