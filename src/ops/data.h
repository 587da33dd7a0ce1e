/* SPDX-License-Identifier: MIT */
/*
 * data.h: what problems are made of: large arrays, numbers that look random, work over long arrays
 * by all threads, and the search for the first element that differs.
 *
 * Every number is a function of the seed, a stream (the op's number for one of its arrays) and the
 * element's own index, so threads fill pieces in any order and the data are the same for any number
 * of them; which thread touches a page first decides where it lies.
 */
#ifndef IRON_OPS_DATA_H
#define IRON_OPS_DATA_H

#include "core/mix.h"
#include "ops/op.h"

/* Takes memory, zeroed. */
iron_status iron__data_take(iron__array *array, const char *name, size_t bytes, iron_error *err);
/* Gives back all inputs of a problem, whose input_count is that of those that were begun. */
void iron__data_release(iron__problem *problem);

/* The base of a stream, and its bits by index. */
static inline uint64_t iron__data_base(uint64_t seed, uint64_t stream) {
    return iron__mix64(seed + stream * IRON_GOLDEN_GAMMA);
}

static inline uint64_t iron__data_bits(uint64_t base, uint64_t index) {
    return iron__mix64(base + (index + 1) * IRON_GOLDEN_GAMMA);
}

/* Strictly between -1 and 1, never 0, with as many digits as the type holds: odd numerators over a
 * power of two. */
static inline float iron__data_f32(uint64_t bits) {
    return (float)((int64_t)(bits >> 41 << 1 | 1) - (INT64_C(1) << 23)) * 0x1p-23f;
}

static inline double iron__data_f64(uint64_t bits) {
    return (double)((int64_t)(bits >> 12 << 1 | 1) - (INT64_C(1) << 52)) * 0x1p-52;
}

/* 0 ... limit-1, all as likely. */
static inline uint32_t iron__data_below(uint64_t bits, uint32_t limit) {
    return (uint32_t)(((bits >> 32) * limit) >> 32);
}

/* The array's elements, f32 or f64 as the case says, from that stream. */
void iron__data_fill_reals(const iron__array *array, const iron__case *c, uint64_t stream,
                           iron__team *team);

/* Calls piece(context, begin, end) for disjoint ranges that make up 0 ... count, on all threads. */
typedef void (*iron__data_piece)(void *context, size_t begin, size_t end);
void iron__data_pieces(iron__team *team, size_t count, iron__data_piece piece, void *context);

/* The first index of 0 ... count-1 at which differs(context, index); count: there is none. On all
 * threads, so differs must only read. */
typedef bool (*iron__data_differs)(const void *context, size_t index);
size_t iron__data_first(iron__team *team, size_t count, iron__data_differs differs,
                        const void *context);

#endif
