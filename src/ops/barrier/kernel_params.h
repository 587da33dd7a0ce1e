/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of barrier and the host share. Macros only, since the
 * file is also part of the kernels' text.
 */
#ifndef IRON_OPS_BARRIER_KERNEL_PARAMS_H
#define IRON_OPS_BARRIER_KERNEL_PARAMS_H

/* Elements per sum for reach=block. A group loads them with one 16-byte load per thread, so that
 * adding is as large a part of the work as possible. */
#define BARRIER_SEGMENT 1024
#define BARRIER_THREADS 256 /* threads per group, in all kernels */

/* For reach=grid: 16-byte loads in flight per thread, and the maximum of groups per unit. Few
 * groups make few partial sums, and these loads reach the full memory bandwidth. */
#define BARRIER_LOADS  4
#define BARRIER_GROUPS 4
/* The maximum number of partial sums; enough for 1024 units. */
#define BARRIER_PARTIALS 4096

#endif
