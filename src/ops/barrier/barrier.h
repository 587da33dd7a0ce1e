/* SPDX-License-Identifier: MIT */
/*
 * barrier.h: what the files of the op barrier share: the problem and its rows.
 *
 * The answer is one u32 a segment where reach is `block`, and one u64 where it is `grid`.
 */
#ifndef IRON_OPS_BARRIER_BARRIER_H
#define IRON_OPS_BARRIER_BARRIER_H

#include "ops/barrier/kernel_params.h"
#include "ops/op.h"

/* The words of the axis `reach`, by index. */
enum { IRON_BARRIER_BLOCK = 0, IRON_BARRIER_GRID = 1 };

/* Elements are 1 ... LIMIT-1: a segment's sum fits 32 bits, and none can be left out unseen. */
#define IRON_BARRIER_LIMIT (UINT32_C(1) << 22)

static inline bool iron__barrier_is_grid(const iron__case *c) {
    return c->at[0] == (double)IRON_BARRIER_GRID;
}

static inline uint64_t iron__barrier_segments(const iron__case *c) {
    return (c->rows + BARRIER_SEGMENT - 1) / BARRIER_SEGMENT;
}

static inline size_t iron__barrier_output_bytes(const iron__case *c) {
    return iron__barrier_is_grid(c) ? sizeof(uint64_t)
                                    : (size_t)iron__barrier_segments(c) * sizeof(uint32_t);
}

iron_status iron__barrier_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__barrier_unmake(iron__problem *problem);
bool iron__barrier_check(const iron__problem *problem, const void *output, char *text, size_t size);

/* The rows of the CPU, and of GPUs; false past the last. */
bool iron__barrier_cpu_contender_at(size_t index, iron__contender *out);
bool iron__barrier_gpu_contender_at(size_t index, iron__contender *out);

#define IRON_BARRIER_CPU_ROWS 2u

#endif
