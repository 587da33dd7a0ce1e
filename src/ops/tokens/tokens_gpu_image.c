/* SPDX-License-Identifier: MIT */
/* tokens_gpu_image.c: the kernels as cmake/Kernels.cmake embeds them. */
#include "ops/tokens/tokens_gpu.h"

IRON_GPU_EMBEDDED(tokens)

/* A unit of 65,536 registers shall hold all groups that the densest kernels are written for: those
 * of the seal (quads.k). Left alone, NVIDIA's OpenCL gives them more, and fewer loads are under
 * way. */
const iron__gpu_image iron__tokens_image =
    IRON_GPU_IMAGE_WITHIN(tokens, 65536 / (QUADS_THREADS * QUADS_UNIT_GROUPS));
