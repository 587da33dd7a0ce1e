/* SPDX-License-Identifier: MIT */
/* stat_lengths.c: see stat_lengths.h. */
#include "digest/stat_lengths.h"

#define FINE_BITS  10u
#define FINE       (1u << FINE_BITS)
#define EXACT_BITS 20u

static size_t counter_of(uint64_t length) {
    unsigned bits;

    if (length <= IRON_LENGTHS_EXACT)
        return (size_t)length;
    bits = 63u - (unsigned)__builtin_clzll(length);
    return (size_t)(IRON_LENGTHS_EXACT + 1) + (size_t)(bits - EXACT_BITS) * FINE +
           (size_t)(length >> (bits - FINE_BITS)) % FINE;
}

static uint64_t smallest_of(size_t counter) {
    size_t shared = counter - (size_t)(IRON_LENGTHS_EXACT + 1);
    uint64_t smallest;

    if (counter <= IRON_LENGTHS_EXACT)
        return counter;
    smallest = (uint64_t)(FINE + shared % FINE) << (EXACT_BITS - FINE_BITS + shared / FINE);
    /* 2^20 itself has a counter of its own */
    return smallest > IRON_LENGTHS_EXACT ? smallest : smallest + 1;
}

static void note_longer(iron__stat_lengths *t, uint64_t length) {
    if (t->longer_max == 0 || length < t->longer_min)
        t->longer_min = length;
    if (length > t->longer_max)
        t->longer_max = length;
}

void iron__stat_lengths_add(iron__stat_lengths *t, uint64_t length, uint64_t count) {
    t->counts[counter_of(length)] += count;
    if (length > IRON_LENGTHS_EXACT && count > 0)
        note_longer(t, length);
}

void iron__stat_lengths_merge(iron__stat_lengths *t, const iron__stat_lengths *more) {
    for (size_t k = 0; k < IRON_LENGTHS_COUNTERS; k++)
        t->counts[k] += more->counts[k];
    if (more->longer_max > 0) {
        note_longer(t, more->longer_min);
        note_longer(t, more->longer_max);
    }
}

uint64_t iron__stat_lengths_total(const iron__stat_lengths *t) {
    uint64_t total = 0;

    for (size_t k = 0; k < IRON_LENGTHS_COUNTERS; k++)
        total += t->counts[k];
    return total;
}

uint64_t iron__stat_lengths_tokens(const iron__stat_lengths *t) {
    uint64_t sum = 0, tokens;

    for (size_t k = 1; k < IRON_LENGTHS_COUNTERS; k++)
        if (t->counts[k] > 0 && (__builtin_mul_overflow(smallest_of(k), t->counts[k], &tokens) ||
                                 __builtin_add_overflow(sum, tokens, &sum)))
            return UINT64_MAX;
    return sum;
}

uint64_t iron__stat_lengths_min(const iron__stat_lengths *t) {
    for (size_t k = 1; k <= IRON_LENGTHS_EXACT; k++)
        if (t->counts[k] > 0)
            return k;
    return t->longer_min;
}

uint64_t iron__stat_lengths_max(const iron__stat_lengths *t) {
    if (t->longer_max > 0)
        return t->longer_max;
    for (size_t k = (size_t)IRON_LENGTHS_EXACT; k > 0; k--)
        if (t->counts[k] > 0)
            return k;
    return 0;
}

uint64_t iron__stat_lengths_at(const iron__stat_lengths *t, const uint64_t *extra, size_t extras,
                               uint64_t rank) {
    size_t counters[2] = {0, 0};
    uint64_t below = 0;

    for (size_t e = 0; e < extras; e++)
        counters[e] = counter_of(extra[e]);
    for (size_t k = 1; k < IRON_LENGTHS_COUNTERS; k++) {
        below += t->counts[k] + (counters[0] == k) + (counters[1] == k);
        if (below >= rank)
            return smallest_of(k);
    }
    return 0;
}
