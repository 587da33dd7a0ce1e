/* SPDX-License-Identifier: MIT */
/*
 * quads_neon_u16.c: the seal and the statistics of tokens of 16 bits on aarch64, without widening
 * them in memory first.
 *
 * As quads_neon.c, which explains the loop, with less to do: half as many loads, four operations
 * instead of eight bring the letters of four quads together, the sum of a key and a token widens on
 * the way, and T and the extremes take eight tokens at a time. T stands in lanes of 32 bits: a
 * block's is far below 2^32. On a Neoverse V1 this takes 3.2 tokens a nanosecond, widening first
 * and then the loop of 32 bits 2.5 (one thread, in cache).
 * Traffic: 2 bytes a token, one pass.
 */
#include "ops/tokens/quads_cpu.h"

#if defined(__aarch64__)

#include "ops/tokens/quads_neon.h"

#define TURN_TOKENS ((size_t)4 * IRON_TURN_QUADS)

/* A lane of T takes two pairs of tokens a turn. */
_Static_assert(IRON_QUADS_BLOCK / IRON_TURN_QUADS * 4 <= UINT32_MAX / UINT16_MAX,
               "T of a block stands in lanes of 32 bits");

typedef struct lane_sums {
    iron__neon_products products;
    uint32x4_t t;
    uint16x8_t min, max;
} lane_sums;

/* Four quads, as they lie. */
typedef struct rows {
    uint16x8_t q01, q23;
} rows;

IRON_NEON_INLINE iron__neon_factors factors_of(rows r, iron__neon_keys k) {
    uint16x8_t ac = vuzp1q_u16(r.q01, r.q23), bd = vuzp2q_u16(r.q01, r.q23);
    uint16x8_t ab = vuzp1q_u16(ac, bd), cd = vuzp2q_u16(ac, bd);

    return (iron__neon_factors){
        .a0 = vaddw_u16(k.k0, vget_low_u16(ab)),
        .a2 = vaddw_u16(k.k2, vget_low_u16(ab)),
        .b1 = vaddw_high_u16(k.k1, ab),
        .b3 = vaddw_high_u16(k.k3, ab),
        .c0 = vaddw_u16(k.k0, vget_low_u16(cd)),
        .c2 = vaddw_u16(k.k2, vget_low_u16(cd)),
        .d1 = vaddw_high_u16(k.k1, cd),
        .d3 = vaddw_high_u16(k.k3, cd),
    };
}

IRON_NEON_INLINE void look_at(lane_sums *s, uint16x8_t q, iron__neon_stats want) {
    if (want == IRON_NEON_MIN_MAX)
        s->min = vminq_u16(s->min, q);
    if (want != IRON_NEON_NONE)
        s->max = vmaxq_u16(s->max, q);
}

/* A quad in the integer units. */
IRON_NEON_INLINE void add_beside(iron__quads_sums *s, const uint16_t *tokens, uint32_t z,
                                 uint64_t window) {
    const uint32_t t[4] = {tokens[0], tokens[1], tokens[2], tokens[3]};

    iron__quads_add(s, t, z, window);
}

/* Whole turns. */
IRON_NEON_INLINE void reduce_turns(const iron__quads_part *part, size_t turns,
                                   iron__neon_stats want, iron__quads_sums *out) {
    const iron__neon_constants c = iron__neon_constants_of(part->window);
    const uint64x2_t zero = vdupq_n_u64(0);
    const uint16_t *tokens = part->tokens;
    uint32x4_t z = iron__neon_start(part->low_quad);
    uint32_t side_z = iron__quads_start(part->low_quad + IRON_NEON_QUADS);
    lane_sums s = {
        {zero, zero, zero, zero}, vdupq_n_u32(0), vdupq_n_u16(UINT16_MAX), vdupq_n_u16(0)};
    iron__quads_sums beside = {0, 0, 0, 0, 0};
    iron__neon_keys k = iron__neon_keys_of(iron__neon_rounds(z, &c), &c);

    for (size_t turn = 0; turn < turns; turn++, tokens += TURN_TOKENS) {
        const uint16_t *side = tokens + (size_t)4 * IRON_NEON_QUADS;
        rows r = {vld1q_u16(tokens), vld1q_u16(tokens + 8)};
        iron__neon_factors f;
        uint32x4_t next;

        iron__quads_prefetch(part, tokens);
        z = vaddq_u32(z, c.turn);
        next = iron__neon_rounds(z, &c);
        add_beside(&beside, side, side_z, part->window);
        f = factors_of(r, k);
        add_beside(&beside, side + 4, side_z + IRON_SEAL_STEP, part->window);
        side_z += IRON_TURN_QUADS * IRON_SEAL_STEP;
        s.t = vpadalq_u16(vpadalq_u16(s.t, r.q01), r.q23);
        look_at(&s, r.q01, want);
        look_at(&s, r.q23, want);
        k = iron__neon_keys_of(next, &c);
        iron__neon_add_products(&s.products, &f);
        look_at(&s, vld1q_u16(side), want);
    }
    iron__neon_put(out, &s.products, &beside);
    out->t += vaddlvq_u32(s.t);
    iron__quads_extremes(out, vminvq_u16(s.min), vmaxvq_u16(s.max),
                         turns > 0 && want != IRON_NEON_NONE);
}

#include "ops/tokens/quads_neon_loops.inc"

void iron__quads_neon_u16(const iron__quads_run_u16 *run, iron__seal_words *words,
                          iron__token_stats *stats) {
    iron__quads_by_parts_u16(run, &loops, words, stats);
}

#else

typedef int iron__quads_neon_u16_is_for_aarch64;

#endif
