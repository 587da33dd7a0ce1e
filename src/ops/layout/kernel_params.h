/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of layout, its CPU rows and the host agree on: what a step is,
 * and how particles lie. Text of all of them, so it holds macros and plain structs only.
 *
 * The step, one rounding an operation and nothing fused, so that all answers are the same bits:
 *
 *   fields all   vz' = vz - LAYOUT_FALL;  x' = x + vx * LAYOUT_DT, likewise y, and z with vz'
 *   fields one   x' = x + LAYOUT_SHIFT
 *
 * The layouts of n particles, 6 n floats each:
 *
 *   aos     x y z vx vy vz | x y z vx vy vz | ...
 *   soa     all x | all y | all z | all vx | all vy | all vz
 *   aosoa   blocks of 32 particles, each an soa: 32 x | 32 y | ... | 32 vz | 32 x | ...; the last
 *           block is of as many particles as are left
 */
#ifndef IRON_OPS_LAYOUT_KERNEL_PARAMS_H
#define IRON_OPS_LAYOUT_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

#define LAYOUT_FIELDS 6
#define LAYOUT_BLOCK  32 /* aosoa: particles of a block */

#define LAYOUT_DT    0.01f   /* seconds of a step */
#define LAYOUT_FALL  0.0981f /* what gravity adds to a speed in one */
#define LAYOUT_SHIFT 0.1f    /* fields one */

#define LAYOUT_THREADS 256 /* threads of a group */
#define LAYOUT_LOADS   8   /* fields one: elements that a thread has in flight */
#define LAYOUT_QUADS   2   /* fields one: vectors of 16 bytes that it has */

/* In the order of the op. */
typedef struct layout_particle {
    k_f32 x, y, z, vx, vy, vz;
} layout_particle;

#endif
