/* SPDX-License-Identifier: MIT */
/*
 * contribution.h: what a run of tokens comes down to.
 *
 * (count, xor, sum) with merge is a commutative monoid: parts may be reduced anywhere, in any order
 * and grouping, and merged. That is the reason why every mode gives the same bits.
 */
#ifndef IRON_CORE_CONTRIBUTION_H
#define IRON_CORE_CONTRIBUTION_H

#include <stdint.h>

typedef struct iron__contribution {
    uint64_t count;
    uint64_t sum;  /* of p mod vocab, modulo 2^64 */
    uint32_t xors; /* of p */
} iron__contribution;

static inline iron__contribution iron__contribution_neutral(void) {
    return (iron__contribution){0, 0, 0};
}

static inline iron__contribution iron__contribution_merge(iron__contribution a,
                                                          iron__contribution b) {
    return (iron__contribution){a.count + b.count, a.sum + b.sum, a.xors ^ b.xors};
}

/* The batch's potential: one int64 -> double conversion, one product, one rounding to float. */
static inline float iron__contribution_potential(iron__contribution c, uint32_t vocab) {
    uint64_t half = vocab / 2;
    double inverse = 1.0 / (double)half;

    return (float)((double)(int64_t)(c.sum - c.count * half) * inverse);
}

#endif
