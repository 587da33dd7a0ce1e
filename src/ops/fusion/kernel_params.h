/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of fusion and the host share: the numbers of the
 * chain and the group sizes. Macros only, since the file is also part of the kernels' text.
 *
 * The scale is not a short binary fraction, so a product fused with the following addition would
 * round differently, and the check would fail.
 */
#ifndef IRON_OPS_FUSION_KERNEL_PARAMS_H
#define IRON_OPS_FUSION_KERNEL_PARAMS_H

#define FUSION_SCALE 0.7f
#define FUSION_LOW   (-0.6f) /* the long chain's clamp */
#define FUSION_HIGH  0.55f

#define FUSION_THREADS 256
#define FUSION_EACH    4 /* separate, graph, fused: elements per thread */
#define FUSION_QUADS   2 /* fused-vector: 16-byte loads of each input in flight per thread */

#endif
