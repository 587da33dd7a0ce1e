/* SPDX-License-Identifier: MIT */
/*
 * cuda.h: the CUDA backend, as gpu.c sees it: one table. What stands behind it is declared in
 * cuda_backend.h.
 */
#ifndef IRON_GPU_CUDA_H
#define IRON_GPU_CUDA_H

#include "gpu/gpu.h"

extern const iron__gpu_ops iron__cuda_ops;

#endif
