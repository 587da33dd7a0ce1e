/* SPDX-License-Identifier: MIT */
/*
 * kernels.h: what a row launched on its device, and what that takes of it.
 *
 * Kernels of the answer are what a row is about; those that were only seen while it was prepared,
 * as one that makes a transposed copy, may be larger, and are told apart.
 */
#ifndef IRON_ARENA_KERNELS_H
#define IRON_ARENA_KERNELS_H

#include "gpu/gpu.h"

typedef struct iron__kernels {
    iron__gpu_watch answer, prepare;
} iron__kernels;

/* Each kernel once: those of the first answer, then those that only prepared it. NULL past the
 * last; kernels: NULL where there are none. */
const iron__gpu_sighting *iron__kernels_at(const iron__kernels *kernels, size_t index,
                                           bool *is_prepare);

/* The kernel that a row is about: of the answer's the one with the most threads launched in all,
 * the first of equals; of the others, where the answer has none. NULL: none was seen. */
const iron__gpu_sighting *iron__kernels_main(const iron__kernels *kernels);

/* What a driver tells of a kernel, as figures: -1 where it does not tell. One that tells of
 * registers tells of spills and local memory, too: then 0 is a figure. */
typedef struct iron__kernel_figures {
    double registers, local_bytes, spill_bytes, groups_per_unit, occupancy_percent;
} iron__kernel_figures;
iron__kernel_figures iron__kernel_figures_of(const iron__gpu_sighting *kernel); /* takes NULL */

#endif
