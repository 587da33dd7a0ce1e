/* SPDX-License-Identifier: MIT */
/*
 * divergence.h: what the files of the op divergence share: the two paths, and the rows.
 */
#ifndef IRON_OPS_DIVERGENCE_DIVERGENCE_H
#define IRON_OPS_DIVERGENCE_DIVERGENCE_H

#include "ops/divergence/kernel_params.h"
#include "ops/op.h"

/* Values of the axis `keys`. */
enum { IRON_DIVERGENCE_ALTERNATING, IRON_DIVERGENCE_RANDOM };

static inline bool iron__divergence_alternates(const iron__case *c) {
    return c->at[0] == IRON_DIVERGENCE_ALTERNATING;
}

static inline uint32_t iron__divergence_odd(uint32_t x) {
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++) {
        x = x * DIVERGENCE_ODD_P + DIVERGENCE_ODD_Q;
        x ^= x >> 15;
    }
    return x;
}

static inline uint32_t iron__divergence_even(uint32_t x) {
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++) {
        x ^= x << 11 ^ DIVERGENCE_EVEN_R;
        x *= DIVERGENCE_EVEN_S;
    }
    return x;
}

/* An element's own lowest bit chooses. */
static inline uint32_t iron__divergence_value(uint32_t x) {
    return x & 1 ? iron__divergence_odd(x) : iron__divergence_even(x);
}

/* Rows on the CPU, and on GPUs; false past the last. */
bool iron__divergence_cpu_contender_at(size_t index, iron__contender *out);
size_t iron__divergence_cpu_contender_count(void);
bool iron__divergence_gpu_contender_at(size_t index, iron__contender *out);

#endif
