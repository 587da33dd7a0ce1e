/* SPDX-License-Identifier: MIT */
/*
 * token_stats.h: what one pass over tokens can say of their values: the smallest, the largest, and
 * those that are not in the vocabulary. A commutative monoid, like the contribution and the seal.
 */
#ifndef IRON_CORE_TOKEN_STATS_H
#define IRON_CORE_TOKEN_STATS_H

#include <stdint.h>

typedef struct iron__token_stats {
    uint64_t out_of_vocab;   /* how many */
    uint64_t first_position; /* of the first of them in the stream; UINT64_MAX: there is none */
    uint32_t first_value;
    uint32_t min, max; /* of no tokens: UINT32_MAX and 0 */
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
