/* SPDX-License-Identifier: MIT */
/*
 * quads_cpu.h: what the CPU's rows of quads.h share: the numbers of the seal's keys, how a run is
 * cut, and quads one by one, for loose ends.
 *
 * A run is cut where the window key changes, and with statistics into blocks as well. A vector loop
 * sees one such part at a time: whole quads, one window key, lo32 of the quad does not wrap. Of the
 * vocabulary it knows nothing: only where a block's largest token is not below it is the block read
 * again, while it is in the cache, to count those and to find the first.
 */
#ifndef IRON_OPS_TOKENS_QUADS_CPU_H
#define IRON_OPS_TOKENS_QUADS_CPU_H

#include "ops/tokens/quads.h"

/* z = lo32(q) * STEP + START, then two rounds of (z ^ z >> SHIFT) * FACTOR, and a last shift. The
 * first is linear in q: from quad to quad z rises by STEP. */
#define IRON_SEAL_STEP     UINT32_C(0x9E3779B1)
#define IRON_SEAL_START    UINT32_C(0x165667B1)
#define IRON_SEAL_SHIFT_0  16
#define IRON_SEAL_FACTOR_0 UINT32_C(0x7FEB352D)
#define IRON_SEAL_SHIFT_1  15
#define IRON_SEAL_FACTOR_1 UINT32_C(0x846CA68B)
#define IRON_SEAL_SHIFT_2  16
/* k0 = z ^ lo32(W); k1 = (z * STEP + OTHER) ^ hi32(W); k2 and k3: these rotated left. */
#define IRON_SEAL_OTHER    UINT32_C(0x7F4A7C15)
#define IRON_SEAL_ROTATE_2 13
#define IRON_SEAL_ROTATE_3 19

/* Quads of a block with statistics, 31.5 KiB: a multiple of what any loop takes a turn. */
#define IRON_QUADS_BLOCK ((size_t)2016)

typedef struct iron__quads_part {
    const void *tokens; /* of 32 bits; of 16 in a loop of by_parts_u16 */
    size_t quad_bytes;  /* 16; 8 */
    size_t quads;
    uint32_t low_quad; /* lo32 of the first; low_quad + quads <= 2^32 */
    uint64_t window;   /* W */
    size_t ahead;      /* bytes; see iron__quads_prefetch */
} iron__quads_part;

typedef struct iron__quads_sums {
    uint64_t t, a, b;
    uint32_t min, max;
} iron__quads_sums;

/* Adds a part to the sums. Without statistics min and max stay as they are. */
typedef void (*iron__quads_reduce)(const iron__quads_part *part, iron__quads_sums *sums);

typedef struct iron__quads_loops {
    iron__quads_reduce seal, seal_stats;
    /* (optional: seal_stats) Leaves min as it is: for streams in which a 0 was seen already. */
    iron__quads_reduce seal_max;
} iron__quads_loops;

/* A row's `take`, from its loops; and its `take_u16`, whose loops see blocks only. */
void iron__quads_by_parts(const iron__quads_run *run, const iron__quads_loops *loops,
                          iron__seal_words *words, iron__token_stats *stats);
void iron__quads_by_parts_u16(const iron__quads_run_u16 *run, const iron__quads_loops *loops,
                              iron__seal_words *words, iron__token_stats *stats);

/* Quad by quad in plain C, of tokens of either width. */
void iron__quads_few(const iron__quads_part *part, iron__quads_sums *sums);
void iron__quads_few_stats(const iron__quads_part *part, iron__quads_sums *sums);

static inline uint32_t iron__quads_start(uint32_t low_quad) {
    return low_quad * IRON_SEAL_STEP + IRON_SEAL_START;
}

static inline iron__quads_part iron__quads_rest(const iron__quads_part *part, size_t taken) {
    iron__quads_part rest = *part;

    rest.tokens = (const char *)part->tokens + taken * part->quad_bytes;
    rest.quads -= taken;
    rest.low_quad += (uint32_t)taken;
    return rest;
}

/* Asks for the line so far ahead, as tokens.h does; but not within a run shorter than that, which
 * is some small buffer: beyond its end there may be pages that are nobody's, and to ask for those
 * takes a walk through the page tables each time (0.6 instead of 2.5 tokens a nanosecond, widened
 * ones on a stack). */
static inline void iron__quads_prefetch(const iron__quads_part *part, const void *tokens) {
    __builtin_prefetch((const char *)tokens + part->ahead, 0, 2);
}

static inline void iron__quads_extremes(iron__quads_sums *sums, uint32_t min, uint32_t max,
                                        bool is_wanted) {
    if (is_wanted) {
        sums->min = min < sums->min ? min : sums->min;
        sums->max = max > sums->max ? max : sums->max;
    }
}

static inline uint32_t iron__quads_rotate(uint32_t x, unsigned by) {
    return x << by | x >> (32 - by);
}

/* One quad whose z, before the rounds, is given. */
static inline void iron__quads_add(iron__quads_sums *s, const uint32_t t[4], uint32_t z,
                                   uint64_t window) {
    uint32_t k0, k1, k2, k3;

    z = (z ^ z >> IRON_SEAL_SHIFT_0) * IRON_SEAL_FACTOR_0;
    z = (z ^ z >> IRON_SEAL_SHIFT_1) * IRON_SEAL_FACTOR_1;
    z ^= z >> IRON_SEAL_SHIFT_2;
    k0 = z ^ (uint32_t)window;
    k1 = (z * IRON_SEAL_STEP + IRON_SEAL_OTHER) ^ (uint32_t)(window >> 32);
    k2 = iron__quads_rotate(k0, IRON_SEAL_ROTATE_2);
    k3 = iron__quads_rotate(k1, IRON_SEAL_ROTATE_3);
    s->a += (uint64_t)(t[0] + k0) * (t[1] + k1);
    s->a += (uint64_t)(t[2] + k2) * (t[3] + k3);
    s->b += (uint64_t)(t[0] + k2) * (t[2] + k0);
    s->b += (uint64_t)(t[1] + k3) * (t[3] + k1);
    s->t += (uint64_t)t[0] + t[1] + t[2] + t[3];
}

/* One file each; not all are there on every architecture. */
void iron__quads_reference(const iron__quads_run *run, iron__seal_words *words,
                           iron__token_stats *stats);
void iron__quads_portable(const iron__quads_run *run, iron__seal_words *words,
                          iron__token_stats *stats);
void iron__quads_neon(const iron__quads_run *run, iron__seal_words *words,
                      iron__token_stats *stats);
void iron__quads_neon_u16(const iron__quads_run_u16 *run, iron__seal_words *words,
                          iron__token_stats *stats);
void iron__quads_avx2(const iron__quads_run *run, iron__seal_words *words,
                      iron__token_stats *stats);
void iron__quads_avx512(const iron__quads_run *run, iron__seal_words *words,
                        iron__token_stats *stats);

#endif
