/* SPDX-License-Identifier: MIT */
/*
 * contribution.h: the reduced values of a run of tokens: (count, xor, sum), and statistics of the
 * token values.
 *
 * Both are commutative monoids under merge: parts may be reduced anywhere, in any order and
 * grouping, and merged. That is why every mode gives the same bits.
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

/* The range of the token values, and the tokens outside the vocabulary. */
typedef struct iron__token_stats {
    uint64_t out_of_vocab;   /* number of tokens outside the vocabulary */
    uint64_t first_position; /* stream position of the first one; UINT64_MAX if there are none */
    uint32_t first_value;
    uint32_t min, max; /* UINT32_MAX and 0 if there are no tokens */
} iron__token_stats;

static inline iron__token_stats iron__token_stats_neutral(void) {
    return (iron__token_stats){0, UINT64_MAX, 0, UINT32_MAX, 0};
}

static inline iron__token_stats iron__token_stats_merge(iron__token_stats a, iron__token_stats b) {
    const iron__token_stats *first = a.first_position <= b.first_position ? &a : &b;

    return (iron__token_stats){a.out_of_vocab + b.out_of_vocab, first->first_position,
                               first->first_value, a.min < b.min ? a.min : b.min,
                               a.max > b.max ? a.max : b.max};
}

#endif
