/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of fusion and the host agree on: the numbers of the chain, and
 * the sizes of groups. Text of both, so it holds macros only.
 *
 * The scale is no short binary fraction: a product that were fused with the addition behind it
 * would round differently, and the check would see it.
 */
#ifndef IRON_OPS_FUSION_KERNEL_PARAMS_H
#define IRON_OPS_FUSION_KERNEL_PARAMS_H

#define FUSION_SCALE 0.7f
#define FUSION_LOW   (-0.6f) /* the long chain's clamp */
#define FUSION_HIGH  0.55f

#define FUSION_THREADS 256
#define FUSION_EACH    4 /* separate, graph, fused: elements of a thread */
#define FUSION_QUADS   2 /* fused-vector: 16 bytes of each input, so many under way a thread */

#endif
