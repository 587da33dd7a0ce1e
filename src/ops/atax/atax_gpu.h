/* SPDX-License-Identifier: MIT */
/* atax_gpu.h: the contenders of atax on GPUs, by number; false past the last. */
#ifndef IRON_OPS_ATAX_GPU_H
#define IRON_OPS_ATAX_GPU_H

#include "ops/op.h"

bool iron__atax_gpu_contender_at(size_t index, iron__contender *out);

#endif
