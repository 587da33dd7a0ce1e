/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of divergence and the host share: the two paths and
 * the group sizes. Macros only, since the file is also part of the kernels' text.
 *
 * A round of either path has four operations, but different ones in a different order, so that a
 * compiler cannot merge both paths into one that only selects constants.
 *
 *     odd     x = x * P + Q;  x ^= x >> 15
 *     even    x ^= x << 11 ^ R;  x *= S
 *
 * Both are bijective on 32 bits: different elements stay different.
 */
#ifndef IRON_OPS_DIVERGENCE_KERNEL_PARAMS_H
#define IRON_OPS_DIVERGENCE_KERNEL_PARAMS_H

#define DIVERGENCE_ROUNDS 24

#define DIVERGENCE_ODD_P  0x9E3779B1u
#define DIVERGENCE_ODD_Q  0x7F4A7C15u
#define DIVERGENCE_EVEN_R 0x165667B1u
#define DIVERGENCE_EVEN_S 0x85EBCA6Bu

#define DIVERGENCE_THREADS 256
#define DIVERGENCE_GROUPS  5 /* sorted: resident groups per unit */
#define DIVERGENCE_QUADS   4 /* sorted: 16-byte vectors per thread, at most 7 */
#define DIVERGENCE_CHUNK                                                                           \
    (4u * DIVERGENCE_QUADS * DIVERGENCE_THREADS) /* sorted: elements per group */

#endif
