/* SPDX-License-Identifier: MIT */
/*
 * fusion.h: what the files of the op fusion share: the two chains, as lists of steps for those who
 * take one after the other, and as functions for those who take all at once.
 *
 * Every operation rounds once, to f32 (nothing is contracted, see CMakeLists.txt), so all ways give
 * the same bits, and the judge wants these.
 */
#ifndef IRON_OPS_FUSION_FUSION_H
#define IRON_OPS_FUSION_FUSION_H

#include "ops/fusion/kernel_params.h"
#include "ops/op.h"

/* t is what the step before left; the first step's is a. */
typedef enum iron__fusion_step {
    IRON_FUSION_ADD,      /* t + b */
    IRON_FUSION_SCALE,    /* t * FUSION_SCALE */
    IRON_FUSION_MULTIPLY, /* t * a */
    IRON_FUSION_CLAMP,    /* t, but from FUSION_LOW to FUSION_HIGH */
    IRON_FUSION_SUBTRACT, /* t - b */
    IRON_FUSION_STEPS
} iron__fusion_step;

#define IRON_FUSION_LENGTH 6u

typedef struct iron__fusion_chain {
    iron__fusion_step steps[IRON_FUSION_LENGTH];
    size_t count;
    /* Arrays between the steps; two in turns are enough for any chain. */
    size_t between;
} iron__fusion_chain;

/* Values of the axis `chain`. */
enum { IRON_FUSION_SHORT, IRON_FUSION_LONG };

static inline bool iron__fusion_is_long(const iron__case *c) {
    return c->at[0] == IRON_FUSION_LONG;
}

const iron__fusion_chain *iron__fusion_chain_of(const iron__case *c);

static inline float iron__fusion_clamp(float t) {
    t = t < FUSION_LOW ? FUSION_LOW : t;
    return t > FUSION_HIGH ? FUSION_HIGH : t;
}

static inline float iron__fusion_short(float a, float b) { return (a + b) * FUSION_SCALE; }

static inline float iron__fusion_long(float a, float b) {
    return iron__fusion_clamp((iron__fusion_short(a, b) + b) * a) - b;
}

/* Rows on the CPU, and on GPUs; false past the last. */
bool iron__fusion_cpu_contender_at(size_t index, iron__contender *out);
size_t iron__fusion_cpu_contender_count(void);
bool iron__fusion_gpu_contender_at(size_t index, iron__contender *out);

#endif
