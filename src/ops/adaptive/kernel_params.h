/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of adaptive and the host agree on: the function, and the sizes
 * of groups. Text of both, so it holds macros only.
 *
 * The function is v = sin(v) cos(v), a hundred times. That is sin(2v)/2, and up to v^7
 *
 *     v (1 - 2/3 v^2 + 2/15 v^4 - 4/315 v^6)
 *
 * Products and sums alone, each rounded once: every device gives the same bits.
 */
#ifndef IRON_OPS_ADAPTIVE_KERNEL_PARAMS_H
#define IRON_OPS_ADAPTIVE_KERNEL_PARAMS_H

#define ADAPTIVE_TURNS 100
#define ADAPTIVE_C3    (-0.666666687f)
#define ADAPTIVE_C5    0.133333340f
#define ADAPTIVE_C7    (-0.0126984129f)

#define ADAPTIVE_THREADS 256
#define ADAPTIVE_GROUPS  6 /* compact, auto: that a unit should hold at a time */
#define ADAPTIVE_QUADS   4 /* of 16 bytes that a thread of theirs takes: up to 7 go */
#define ADAPTIVE_CHUNK   (4u * ADAPTIVE_QUADS * ADAPTIVE_THREADS) /* elements of a group */

/* auto computes a group's elements as they lie, zeros too, from so many others on: what packing
 * costs is worth about one element of 64. */
#define ADAPTIVE_DENSE (ADAPTIVE_CHUNK - ADAPTIVE_CHUNK / 64)

#endif
