/* SPDX-License-Identifier: MIT */
/*
 * histogram.h: what the files of the op histogram share: the cases, the problem and its judge, and
 * the rows on the CPU and on GPUs.
 *
 * Bins are the values an element can have: 256 for u8, 65,536 for u16, and case.vocab for u32,
 * which are tokens and always below it. An answer is a uint64_t a bin.
 */
#ifndef IRON_OPS_HISTOGRAM_HISTOGRAM_H
#define IRON_OPS_HISTOGRAM_HISTOGRAM_H

#include "ops/op.h"

/* The words of the axis `data`, in its order. */
typedef enum iron__histogram_data {
    IRON_HISTOGRAM_UNIFORM,
    IRON_HISTOGRAM_ZIPF,
    IRON_HISTOGRAM_ONE,
    IRON_HISTOGRAM_SORTED,
    IRON_HISTOGRAM_DATA
} iron__histogram_data;

static inline iron__histogram_data iron__histogram_data_of(const iron__case *c) {
    return (iron__histogram_data)c->at[0];
}

static inline uint32_t iron__histogram_bins(const iron__case *c) {
    return c->element == IRON_U8 ? 256u : c->element == IRON_U16 ? 65536u : c->vocab;
}

/* Fills the problem's elements, which have memory, as its case says. */
iron_status iron__histogram_fill(iron__problem *problem, iron__team *team, iron_error *err);

iron_status iron__histogram_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__histogram_unmake(iron__problem *problem);
bool iron__histogram_check(const iron__problem *problem, const void *output, char *text,
                           size_t size);

bool iron__histogram_cpu_contender_at(size_t index, iron__contender *out);
size_t iron__histogram_cpu_count(void);
bool iron__histogram_gpu_contender_at(size_t index, iron__contender *out);

#endif
