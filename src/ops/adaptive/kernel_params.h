/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of adaptive and the host share: the function and the
 * group sizes. Macros only, since the file is also part of the kernels' text.
 *
 * The function is v = sin(v) cos(v) = sin(2v)/2, a hundred times, approximated up to v^7 by
 *
 *     v (1 - 2/3 v^2 + 2/15 v^4 - 4/315 v^6)
 *
 * It consists of products and sums, each rounded once, so every device gives the same bits.
 */
#ifndef IRON_OPS_ADAPTIVE_KERNEL_PARAMS_H
#define IRON_OPS_ADAPTIVE_KERNEL_PARAMS_H

#define ADAPTIVE_TURNS 100
#define ADAPTIVE_C3    (-0.666666687f)
#define ADAPTIVE_C5    0.133333340f
#define ADAPTIVE_C7    (-0.0126984129f)

#define ADAPTIVE_THREADS 256
#define ADAPTIVE_GROUPS  6 /* compact, auto: resident groups per unit */
#define ADAPTIVE_QUADS   4 /* compact, auto: 16-byte vectors per thread, at most 7 */
#define ADAPTIVE_CHUNK   (4u * ADAPTIVE_QUADS * ADAPTIVE_THREADS) /* elements per group */

/* auto computes all elements of a group, including zeros, if at least this many are nonzero:
 * packing costs about as much as one element in 64. */
#define ADAPTIVE_DENSE (ADAPTIVE_CHUNK - ADAPTIVE_CHUNK / 64)

#endif
