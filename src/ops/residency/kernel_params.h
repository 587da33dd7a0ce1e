/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of residency and the host agree on. Text of both, so it holds
 * macros only.
 */
#ifndef IRON_OPS_RESIDENCY_KERNEL_PARAMS_H
#define IRON_OPS_RESIDENCY_KERNEL_PARAMS_H

/* Words of a record, the first of which is a key: 128 bytes of the stream to one look-up. More
 * look-ups would keep the table in the cache by themselves; fewer would not matter. */
#define RESIDENCY_RECORD 32

#define RESIDENCY_THREADS 256 /* threads of a group */
#define RESIDENCY_LOADS   4   /* of 16 bytes under way a thread */
#define RESIDENCY_DENSE   6   /* groups that a unit holds at a time */

/* A group's share of the answer stands in a list of so many. */
#define RESIDENCY_GROUPS_MAX 4096

#endif
