/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of divergence and the host agree on: the two paths, and the
 * sizes of groups. Text of both, so it holds macros only.
 *
 * A round of either path is four operations, but in another order and with other ones: a compiler
 * that could make one path of both by choosing constants would have nothing left to diverge.
 *
 *     odd     x = x * P + Q;  x ^= x >> 15
 *     even    x ^= x << 11 ^ R;  x *= S
 *
 * Both are one-to-one on 32 bits: different elements stay different.
 */
#ifndef IRON_OPS_DIVERGENCE_KERNEL_PARAMS_H
#define IRON_OPS_DIVERGENCE_KERNEL_PARAMS_H

#define DIVERGENCE_ROUNDS 24

#define DIVERGENCE_ODD_P  0x9E3779B1u
#define DIVERGENCE_ODD_Q  0x7F4A7C15u
#define DIVERGENCE_EVEN_R 0x165667B1u
#define DIVERGENCE_EVEN_S 0x85EBCA6Bu

#define DIVERGENCE_THREADS 256
#define DIVERGENCE_GROUPS  5 /* sorted: that a unit should hold at a time */
#define DIVERGENCE_QUADS   4 /* sorted: of 16 bytes that a thread takes; up to 7 go */
#define DIVERGENCE_CHUNK                                                                           \
    (4u * DIVERGENCE_QUADS * DIVERGENCE_THREADS) /* elements of a group of it */

#endif
