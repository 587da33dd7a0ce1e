/* SPDX-License-Identifier: MIT */
/*
 * adaptive.h: what the files of the op adaptive share: the function, applied to runs of values, and
 * the rows.
 */
#ifndef IRON_OPS_ADAPTIVE_ADAPTIVE_H
#define IRON_OPS_ADAPTIVE_ADAPTIVE_H

#include "ops/adaptive/kernel_params.h"
#include "ops/op.h"

/* Products and sums of one value. */
#define IRON_ADAPTIVE_OPERATIONS (8.0 * ADAPTIVE_TURNS)

/* Values that the function takes at a time on the CPU: four vectors hide each other's waiting. */
#define IRON_ADAPTIVE_BLOCK 16u

/* The share of elements that are not 0. */
static inline double iron__adaptive_density(const iron__case *c) { return c->at[0]; }

/* Each of the values becomes its function. */
void iron__adaptive_apply(float *values, size_t count);
/* Is there another value than 0? */
bool iron__adaptive_has_any(const float *values, size_t count);

iron_status iron__adaptive_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__adaptive_unmake(iron__problem *problem);
bool iron__adaptive_check(const iron__problem *problem, const void *output, char *text,
                          size_t size);

/* Rows on the CPU, and on GPUs; false past the last. */
bool iron__adaptive_cpu_contender_at(size_t index, iron__contender *out);
size_t iron__adaptive_cpu_contender_count(void);
bool iron__adaptive_gpu_contender_at(size_t index, iron__contender *out);

#endif
