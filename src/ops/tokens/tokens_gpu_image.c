/* SPDX-License-Identifier: MIT */
/* tokens_gpu_image.c: the kernels as cmake/Kernels.cmake embeds them. */
#include "ops/tokens/tokens_gpu.h"

IRON_GPU_EMBEDDED(tokens)

const iron__gpu_image iron__tokens_image = IRON_GPU_IMAGE(tokens);
