/* SPDX-License-Identifier: MIT */
/*
 * layout.h: what the files of the op layout share: the axis, the problem and its judge, the ways
 * from layout to layout, the rows. How particles lie and what a step is: see kernel_params.h.
 */
#ifndef IRON_OPS_LAYOUT_LAYOUT_H
#define IRON_OPS_LAYOUT_LAYOUT_H

#include "ops/layout/kernel_params.h"
#include "ops/op.h"

/* The axis `fields`: which of them a step touches. */
static inline bool iron__layout_is_one(const iron__case *c) { return c->at[0] != 0; }

/* layout_problem.c */
iron_status iron__layout_make_problem(iron__problem *out, iron__team *team, iron_error *err);
void iron__layout_unmake_problem(iron__problem *problem);
bool iron__layout_check(const iron__problem *problem, const void *output, char *text, size_t size);

/* layout_order.c: element `index` of the x of an aosoa, and from there to the next field. */
typedef struct iron__layout_spot {
    size_t at, pitch;
} iron__layout_spot;

iron__layout_spot iron__layout_spot_of(size_t particle, size_t count);

/* Particles from the op's order into another, on all threads of the team. */
void iron__layout_to_soa(iron__team *team, const layout_particle *from, float *to, size_t count);
void iron__layout_to_aosoa(iron__team *team, const layout_particle *from, float *to, size_t count);
/* Answers back: a contender's unpack. */
void iron__layout_from_soa(const iron__problem *problem, const void *own_order, void *output);
void iron__layout_from_aosoa(const iron__problem *problem, const void *own_order, void *output);

/* layout_cpu.c, layout_gpu.c: row number `index`; false past the last. */
bool iron__layout_cpu_contender_at(size_t index, iron__contender *out);
bool iron__layout_gpu_contender_at(size_t index, iron__contender *out);
size_t iron__layout_cpu_count(void);

#endif
