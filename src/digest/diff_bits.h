/* SPDX-License-Identifier: MIT */
/*
 * diff_bits.h: which chunks of two streams differ: a bit a chunk, which many threads may set at
 * once, and the ranges of neighbouring ones that come of it. A terabyte of tokens in chunks of a
 * million is a hundred kilobytes of bits.
 */
#ifndef IRON_DIGEST_DIFF_BITS_H
#define IRON_DIGEST_DIFF_BITS_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

typedef struct iron__diff_bits {
    uint64_t chunk_tokens;
    uint64_t chunks; /* that there is room for */
    _Atomic uint64_t *words;
} iron__diff_bits;

typedef struct iron__diff_range {
    uint64_t first, end; /* chunks, then positions */
} iron__diff_range;

/* Makes room for the chunks of so many tokens; what was set stays. One thread alone. */
iron_status iron__diff_bits_reach(iron__diff_bits *bits, uint64_t tokens, iron_error *err);
void iron__diff_bits_clear(iron__diff_bits *bits);

void iron__diff_bits_set(iron__diff_bits *bits, uint64_t chunk);
bool iron__diff_bits_has(const iron__diff_bits *bits, uint64_t chunk);
/* All chunks that hold a position first ... end-1. */
void iron__diff_bits_set_tokens(iron__diff_bits *bits, uint64_t first, uint64_t end);

/* How many of the first `chunks` are set, and the ranges they form, as chunks; free(*ranges). */
iron_status iron__diff_bits_ranges(const iron__diff_bits *bits, uint64_t chunks, uint64_t *set,
                                   iron__diff_range **ranges, size_t *count, iron_error *err);

static inline uint64_t iron__chunks_of(uint64_t tokens, uint64_t chunk_tokens) {
    return tokens / chunk_tokens + (tokens % chunk_tokens != 0);
}

#endif
