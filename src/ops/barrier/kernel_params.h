/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of barrier and the host agree on. Text of both, so it holds
 * macros only.
 */
#ifndef IRON_OPS_BARRIER_KERNEL_PARAMS_H
#define IRON_OPS_BARRIER_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

/* Elements that have a sum of their own where reach is `block`. A group of BARRIER_THREADS takes
 * them with one load of 16 bytes a thread: adding up is then as much work as it can be. */
#define BARRIER_SEGMENT 1024
#define BARRIER_THREADS 256 /* threads of a group, everywhere */

/* Where reach is `grid`: 16-byte loads that a thread has under way, and groups that a unit gets at
 * most. Few groups make few partial sums, and these loads are enough for the memory's full rate. */
#define BARRIER_LOADS  4
#define BARRIER_GROUPS 4
/* Partial sums that there is room for: as many units have a GPU's worth of groups. */
#define BARRIER_PARTIALS 4096

#endif
