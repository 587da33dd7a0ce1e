/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants and types that the kernels of layout and the host share: the time step
 * and the layouts. Macros and plain structs only, since the file is also part of the kernels' text.
 *
 * The step. Each operation rounds once and nothing is fused, so all answers have the same bits:
 *
 *   fields all   vz' = vz - LAYOUT_FALL;  x' = x + vx * LAYOUT_DT, likewise y, and z with vz'
 *   fields one   x' = x + LAYOUT_SHIFT
 *
 * The layouts of n particles, 6 n floats each:
 *
 *   aos     x y z vx vy vz | x y z vx vy vz | ...
 *   soa     all x | all y | all z | all vx | all vy | all vz
 *   aosoa   blocks of 32 particles, each an soa: 32 x | 32 y | ... | 32 vz | 32 x | ...; the last
 *           block has as many particles as are left
 */
#ifndef IRON_OPS_LAYOUT_KERNEL_PARAMS_H
#define IRON_OPS_LAYOUT_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text contains it already and has no includes */
#include "gpu/kernel_words.h"
#endif

#define LAYOUT_FIELDS 6
#define LAYOUT_BLOCK  32 /* aosoa: particles per block */

#define LAYOUT_DT    0.01f   /* seconds per step */
#define LAYOUT_FALL  0.0981f /* change of speed per step */
#define LAYOUT_SHIFT 0.1f    /* fields one */

#define LAYOUT_THREADS 256 /* threads per group */
#define LAYOUT_LOADS   8   /* fields one: loads in flight per thread */
#define LAYOUT_QUADS   2   /* fields one: 16-byte loads in flight per thread */

/* A particle in the op's order. */
typedef struct layout_particle {
    k_f32 x, y, z, vx, vy, vz;
} layout_particle;

#endif
