/* SPDX-License-Identifier: MIT */
/*
 * histogram.h: shared by histogram.c (problem, check, CPU rows, the op) and histogram_gpu.c (GPU
 * rows).
 *
 * Bins are the values that an element can have: 256 for u8, 65,536 for u16, and case.vocab for u32,
 * whose elements are tokens and always below it. An answer is one uint64_t per bin.
 */
#ifndef IRON_OPS_HISTOGRAM_HISTOGRAM_H
#define IRON_OPS_HISTOGRAM_HISTOGRAM_H

#include "ops/op.h"

/* The values of the axis `data`. */
typedef enum iron__histogram_data {
    IRON_HISTOGRAM_UNIFORM,
    IRON_HISTOGRAM_ZIPF,
    IRON_HISTOGRAM_ONE,
    IRON_HISTOGRAM_SORTED,
    IRON_HISTOGRAM_SKEWED,
    IRON_HISTOGRAM_DATA
} iron__histogram_data;

static inline iron__histogram_data iron__histogram_data_of(const iron__case *c) {
    return (iron__histogram_data)c->at[0];
}

static inline uint32_t iron__histogram_bins(const iron__case *c) {
    return c->element == IRON_U8 ? 256u : c->element == IRON_U16 ? 65536u : c->vocab;
}

#define IRON_HISTOGRAM_GPU_ROWS 10u
extern const iron__contender iron__histogram_gpu_rows[IRON_HISTOGRAM_GPU_ROWS];

#endif
