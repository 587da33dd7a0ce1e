/* SPDX-License-Identifier: MIT */
/*
 * tokens_cpu.h: what the CPU's loops of tokens.h share.
 *
 * Contribution: iron__tokens_by_groups cuts a run into whole groups of 16 positions, in which the
 * position hash is linear, and a few tokens before and after them.
 *
 * Seal: iron__quads_by_parts cuts a run where the window key changes and, with statistics, into
 * blocks that fit the first-level cache. A vector loop sees one such part at a time: whole quads,
 * one window key, no wrap of lo32(quad). It does not know the vocabulary: only when the largest
 * token of a block is not below the vocabulary is the block read again, from the cache, to count
 * such tokens and to find the first.
 */
#ifndef IRON_OPS_TOKENS_TOKENS_CPU_H
#define IRON_OPS_TOKENS_TOKENS_CPU_H

#include "ops/tokens/tokens.h"

/* The contribution token by token without division: for short runs and the ends of long ones. */
iron__contribution iron__tokens_one_by_one(const iron__tokens_run *run);

/* Tokens begin ... begin + count - 1 of a run. */
iron__tokens_run iron__tokens_part(const iron__tokens_run *run, size_t begin, size_t count);

/* Reduces the whole groups of a run by reduce_groups, which is never called for zero groups, and
 * the tokens before and after them one by one. */
iron__contribution iron__tokens_by_groups(const iron__tokens_run *run,
                                          iron__tokens_reduce reduce_groups);

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

/* Quads of a block with statistics, 31.5 KiB: a multiple of what one turn of any loop reads. */
#define IRON_QUADS_BLOCK ((size_t)2016)

typedef struct iron__quads_part {
    const void *tokens; /* 32 bits each; 16 bits where quad_bytes is 8 */
    size_t quad_bytes;  /* 16 or 8 */
    size_t quads;
    uint32_t low_quad; /* lo32 of the first; low_quad + quads <= 2^32 */
    uint64_t window;   /* W */
    size_t ahead;      /* bytes to prefetch ahead; see iron__quads_prefetch */
} iron__quads_part;

typedef struct iron__quads_sums {
    uint64_t t, a, b;
    uint32_t min, max;
} iron__quads_sums;

/* Adds a part to the sums. A loop without statistics leaves min and max alone. */
typedef void (*iron__quads_reduce)(const iron__quads_part *part, iron__quads_sums *sums);

typedef struct iron__quads_loops {
    iron__quads_reduce seal, seal_stats;
    /* (optional; NULL: seal_stats) Leaves min alone: for streams that already had a 0. */
    iron__quads_reduce seal_max;
} iron__quads_loops;

/* A row's `take` or `take_u16`, made from its loops. `tokens` are the run's, with quads of
 * quad_bytes; loops for 16-bit tokens see only blocks. */
void iron__quads_by_parts(const iron__quads_run *run, const void *tokens, size_t quad_bytes,
                          const iron__quads_loops *loops, iron__seal_words *words,
                          iron__token_stats *stats);

/* Quad by quad in plain C, tokens of either width. */
void iron__quads_one_by_one(const iron__quads_part *part, iron__quads_sums *sums);
void iron__quads_one_by_one_stats(const iron__quads_part *part, iron__quads_sums *sums);

static inline uint32_t iron__quads_start(uint32_t low_quad) {
    return low_quad * IRON_SEAL_STEP + IRON_SEAL_START;
}

/* What is left of a part after its first `taken` quads. */
static inline iron__quads_part iron__quads_rest(const iron__quads_part *part, size_t taken) {
    iron__quads_part rest = *part;

    rest.tokens = (const char *)part->tokens + taken * part->quad_bytes;
    rest.quads -= taken;
    rest.low_quad += (uint32_t)taken;
    return rest;
}

/* Like iron__prefetch, but part->ahead is 0 for a run shorter than the distance. Such a run
 * is a small buffer, and beyond its end pages may not be mapped: each prefetch of those walks the
 * page tables (0.6 instead of 2.5 tokens per nanosecond for widened tokens on a stack). */
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

/* What a loop computes besides the seal. */
typedef enum iron__quads_want {
    IRON_QUADS_WANT_NONE,
    IRON_QUADS_WANT_MAX,
    IRON_QUADS_WANT_MIN_MAX
} iron__quads_want;

/* The loops of a row: whole turns by seal_turns<suffix>, the remaining quads one by one.
 * `want` is a constant in each. The file defines TURN_QUADS and ROW_FUNCTION: static, and its
 * target. */
#define IRON_QUADS_DEFINE_LOOP(name, suffix, want, one_by_one)                                     \
    ROW_FUNCTION void name##suffix(const iron__quads_part *part, iron__quads_sums *sums) {         \
        size_t turns = part->quads / TURN_QUADS;                                                   \
        iron__quads_part rest = iron__quads_rest(part, turns * TURN_QUADS);                        \
                                                                                                   \
        seal_turns##suffix(part, turns, want, sums);                                               \
        one_by_one(&rest, sums);                                                                   \
    }
#define IRON_QUADS_DEFINE_LOOPS(suffix)                                                            \
    IRON_QUADS_DEFINE_LOOP(seal, suffix, IRON_QUADS_WANT_NONE, iron__quads_one_by_one)             \
    IRON_QUADS_DEFINE_LOOP(seal_max, suffix, IRON_QUADS_WANT_MAX, iron__quads_one_by_one_stats)    \
    IRON_QUADS_DEFINE_LOOP(seal_stats, suffix, IRON_QUADS_WANT_MIN_MAX,                            \
                           iron__quads_one_by_one_stats)                                           \
    static const iron__quads_loops loops##suffix = {seal##suffix, seal_stats##suffix,              \
                                                    seal_max##suffix};

/* A row's `take` and `take_u16`, from its two sets of loops. */
#define IRON_QUADS_DEFINE_TAKES                                                                    \
    static void take(const iron__quads_run *run, iron__seal_words *words,                          \
                     iron__token_stats *stats) {                                                   \
        iron__quads_by_parts(run, run->tokens, 4 * sizeof(uint32_t), &loops, words, stats);        \
    }                                                                                              \
    static void take_u16(const iron__quads_run_u16 *run, iron__seal_words *words,                  \
                         iron__token_stats *stats) {                                               \
        const iron__quads_run shape = {NULL, run->quads, run->first_quad, run->vocab};             \
                                                                                                   \
        iron__quads_by_parts(&shape, run->tokens, 4 * sizeof(uint16_t), &loops_u16, words, stats); \
    }

/* Whether the sum of `count` tokens that are at most `max` fits 32 bits. */
static inline bool iron__quads_t_fits(uint32_t max, size_t count) {
    return (uint64_t)max * count <= UINT32_MAX;
}

static inline uint32_t iron__quads_rotate(uint32_t x, unsigned by) {
    return x << by | x >> (32 - by);
}

static inline uint32_t iron__quads_scrambled(uint32_t z) {
    z = (z ^ z >> IRON_SEAL_SHIFT_0) * IRON_SEAL_FACTOR_0;
    z = (z ^ z >> IRON_SEAL_SHIFT_1) * IRON_SEAL_FACTOR_1;
    return z ^ z >> IRON_SEAL_SHIFT_2;
}

/* Keeps the compiler from computing x in another order: gcc would add products in pairs, with more
 * instructions and registers. */
#define IRON_KEEP(x) __asm__("" : "+r"(x))

/* Adds the products of one quad to A and B; z is iron__quads_start of its number. */
static inline void iron__quads_add_products(iron__quads_sums *s, const uint32_t t[4], uint32_t z,
                                            uint64_t window) {
    uint32_t k0, k1, k2, k3;

    z = iron__quads_scrambled(z);
    k0 = z ^ (uint32_t)window;
    k1 = (z * IRON_SEAL_STEP + IRON_SEAL_OTHER) ^ (uint32_t)(window >> 32);
    k2 = iron__quads_rotate(k0, IRON_SEAL_ROTATE_2);
    k3 = iron__quads_rotate(k1, IRON_SEAL_ROTATE_3);
    s->a += (uint64_t)(t[0] + k0) * (t[1] + k1);
    IRON_KEEP(s->a);
    s->b += (uint64_t)(t[0] + k2) * (t[2] + k0);
    IRON_KEEP(s->b);
    s->a += (uint64_t)(t[2] + k2) * (t[3] + k3);
    IRON_KEEP(s->a);
    s->b += (uint64_t)(t[1] + k3) * (t[3] + k1);
    IRON_KEEP(s->b);
}

/* Rows with vector code, on one thread and on all. One file per instruction set: tokens_neon.c,
 * tokens_avx2.c, tokens_avx512.c. A build has those of its architecture. */
typedef struct iron__vector_rows {
    iron__tokens_variant tokens, tokens_threads;
    iron__seal_variant seal, seal_threads;
} iron__vector_rows;

#define IRON_VECTOR_ROW(op, its_mode, set, features, on_all, text, slower, ...)                    \
    {                                                                                              \
        .name = op ".cpu." its_mode "." set, .mode = its_mode, .needs = (features),                \
        .all_threads = (on_all), .idea = text, .beats = slower, __VA_ARGS__                        \
    }
#define IRON_VECTOR_ROWS(set, features, reduce_run, text, take_run, take_narrow, seal_text)        \
    {                                                                                              \
        .tokens = IRON_VECTOR_ROW("tokens", "vector", set, features, false, text,                  \
                                  "tokens.cpu.scalar", .reduce = (reduce_run), .reads_u16 = true), \
        .tokens_threads =                                                                          \
            IRON_VECTOR_ROW("tokens", "champion", set, features, true, text ", on all threads",    \
                            "tokens.cpu.vector." set, .reduce = (reduce_run), .reads_u16 = true),  \
        .seal =                                                                                    \
            IRON_VECTOR_ROW("seal", "vector", set, features, false, seal_text,                     \
                            "seal.cpu.reference", .take = (take_run), .take_u16 = (take_narrow)),  \
        .seal_threads = IRON_VECTOR_ROW("seal", "champion", set, features, true,                   \
                                        seal_text ", on all threads", "seal.cpu.vector." set,      \
                                        .take = (take_run), .take_u16 = (take_narrow)),            \
    }

extern const iron__vector_rows iron__rows_neon, iron__rows_avx2, iron__rows_avx512;

#endif
