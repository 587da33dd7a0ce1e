/* SPDX-License-Identifier: MIT */
/*
 * atax.h: shared by the files of the op atax: the data of a problem, and the rows.
 *
 * Letters as in the contract: y = A^T t with t = A x.
 */
#ifndef IRON_OPS_ATAX_ATAX_H
#define IRON_OPS_ATAX_ATAX_H

#include "ops/op.h"

/* `own` of a problem; its reference has cols doubles. */
typedef struct iron__atax_own {
    double scale;     /* the size of an element of y: see atax.c */
    double tolerance; /* how far an element may be from the reference */
} iron__atax_own;

#define IRON_ATAX_CPU_ROWS 7u
#define IRON_ATAX_GPU_ROWS 10u
extern const iron__contender iron__atax_cpu_rows[IRON_ATAX_CPU_ROWS];
extern const iron__contender iron__atax_gpu_rows[IRON_ATAX_GPU_ROWS];

#endif
