/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of residency and the host share. Macros only, since
 * the file is also part of the kernels' text.
 */
#ifndef IRON_OPS_RESIDENCY_KERNEL_PARAMS_H
#define IRON_OPS_RESIDENCY_KERNEL_PARAMS_H

/* Words per record; the first is a key: one lookup per 128 bytes of the stream. More lookups would
 * keep the table in the cache by themselves; fewer would not matter. */
#define RESIDENCY_RECORD 32

#define RESIDENCY_THREADS 256 /* threads per group */
#define RESIDENCY_LOADS   4   /* 16-byte loads in flight per thread */
#define RESIDENCY_DENSE   6   /* resident groups per unit */

/* The list of the groups' partial answers has so many entries. */
#define RESIDENCY_GROUPS_MAX 4096

#endif
