/* SPDX-License-Identifier: MIT */
/*
 * quads_neon.c: the seal and the statistics on aarch64, four quads an instruction and two beside.
 *
 * Four quads are transposed, so that a vector holds the first tokens of all four, another the
 * second ones, and so on; keys stand in the same lanes, and a widening multiply-add takes two
 * products. Operations per four quads: 17 for the keys (the first multiplication of the scramble
 * is an addition, as it is linear), 8 to transpose, 8 sums of token and key, 8 multiply-adds, 4 for
 * T, 8 for the smallest and the largest token.
 *
 * On a Neoverse V1 these do not run at four a cycle: operands that are not fresh from another
 * operation have to be read from the registers, and two operations with two such operands are all
 * that a cycle takes. So a loop of vectors alone gives 7.0 GB/s (one thread). What helps:
 *
 * 1. Of every six quads two go through the integer units, which have no such limit (10.6 GB/s).
 *    More than two do not pay: at 6.5 instructions a cycle it is their number that counts.
 * 2. Keys are made a turn before they are used, in the registers of those just used: their chain is
 *    35 cycles long, longer than the scheduler looks ahead. With an order of the steps in which
 *    the compiler finds a good one for the instructions, that makes 11.6 GB/s. The best order that
 *    some ten thousand trials of all instructions found would give 12.2.
 * 3. Once a 0 was seen, nothing can be smaller, and the smallest is not looked for (12.2).
 *
 * Traffic: 4 bytes a token, one pass.
 */
#include "ops/tokens/quads_cpu.h"

#if defined(__aarch64__)

#include "ops/tokens/quads_neon.h"

#define TURN_TOKENS ((size_t)4 * IRON_TURN_QUADS)

typedef struct lane_sums {
    iron__neon_products products;
    uint64x2_t t0, t1;
    uint32x4_t min, max;
} lane_sums;

/* Four quads, as they lie. */
typedef struct rows {
    uint32x4_t q0, q1, q2, q3;
} rows;

IRON_NEON_INLINE rows load(const uint32_t *tokens) {
    return (rows){vld1q_u32(tokens), vld1q_u32(tokens + 4), vld1q_u32(tokens + 8),
                  vld1q_u32(tokens + 12)};
}

IRON_NEON_INLINE iron__neon_factors factors_of(rows r, iron__neon_keys k) {
    uint32x4_t ac01 = vuzp1q_u32(r.q0, r.q1), bd01 = vuzp2q_u32(r.q0, r.q1);
    uint32x4_t ac23 = vuzp1q_u32(r.q2, r.q3), bd23 = vuzp2q_u32(r.q2, r.q3);
    uint32x4_t a = vuzp1q_u32(ac01, ac23), c = vuzp2q_u32(ac01, ac23);
    uint32x4_t b = vuzp1q_u32(bd01, bd23), d = vuzp2q_u32(bd01, bd23);

    return (iron__neon_factors){
        .a0 = vaddq_u32(a, k.k0),
        .a2 = vaddq_u32(a, k.k2),
        .b1 = vaddq_u32(b, k.k1),
        .b3 = vaddq_u32(b, k.k3),
        .c0 = vaddq_u32(c, k.k0),
        .c2 = vaddq_u32(c, k.k2),
        .d1 = vaddq_u32(d, k.k1),
        .d3 = vaddq_u32(d, k.k3),
    };
}

IRON_NEON_INLINE void look_at(lane_sums *s, uint32x4_t q, iron__neon_stats want) {
    if (want == IRON_NEON_MIN_MAX)
        s->min = vminq_u32(s->min, q);
    if (want != IRON_NEON_NONE)
        s->max = vmaxq_u32(s->max, q);
}

/* T, and what is wanted. */
IRON_NEON_INLINE void look_at_rows(lane_sums *s, rows r, iron__neon_stats want) {
    s->t0 = vpadalq_u32(s->t0, r.q0);
    s->t1 = vpadalq_u32(s->t1, r.q1);
    s->t0 = vpadalq_u32(s->t0, r.q2);
    s->t1 = vpadalq_u32(s->t1, r.q3);
    look_at(s, r.q0, want);
    look_at(s, r.q1, want);
    look_at(s, r.q2, want);
    look_at(s, r.q3, want);
}

/* Whole turns. The order of the steps matters, see above. */
IRON_NEON_INLINE void reduce_turns(const iron__quads_part *part, size_t turns,
                                   iron__neon_stats want, iron__quads_sums *out) {
    const iron__neon_constants c = iron__neon_constants_of(part->window);
    const uint64x2_t zero = vdupq_n_u64(0);
    const uint32_t *tokens = part->tokens;
    uint32x4_t z = iron__neon_start(part->low_quad);
    uint32_t side_z = iron__quads_start(part->low_quad + IRON_NEON_QUADS);
    lane_sums s = {{zero, zero, zero, zero}, zero, zero, vdupq_n_u32(UINT32_MAX), vdupq_n_u32(0)};
    iron__quads_sums beside = {0, 0, 0, 0, 0};
    iron__neon_keys k = iron__neon_keys_of(iron__neon_rounds(z, &c), &c);

    for (size_t turn = 0; turn < turns; turn++, tokens += TURN_TOKENS) {
        const uint32_t *side = tokens + (size_t)4 * IRON_NEON_QUADS;
        iron__neon_factors f;
        uint32x4_t next;
        rows r;

        iron__quads_prefetch(part, side);
        z = vaddq_u32(z, c.turn);
        next = iron__neon_rounds(z, &c);
        iron__quads_prefetch(part, tokens);
        iron__quads_add(&beside, side, side_z, part->window);
        iron__quads_add(&beside, side + 4, side_z + IRON_SEAL_STEP, part->window);
        side_z += IRON_TURN_QUADS * IRON_SEAL_STEP;
        r = load(tokens);
        look_at_rows(&s, r, want);
        look_at(&s, vld1q_u32(side), want);
        f = factors_of(r, k);
        k = iron__neon_keys_of(next, &c);
        iron__neon_add_products(&s.products, &f);
        look_at(&s, vld1q_u32(side + 4), want);
    }
    iron__neon_put(out, &s.products, &beside);
    out->t += vaddvq_u64(vaddq_u64(s.t0, s.t1));
    iron__quads_extremes(out, vminvq_u32(s.min), vmaxvq_u32(s.max), want != IRON_NEON_NONE);
}

#include "ops/tokens/quads_neon_loops.inc"

void iron__quads_neon(const iron__quads_run *run, iron__seal_words *words,
                      iron__token_stats *stats) {
    iron__quads_by_parts(run, &loops, words, stats);
}

#else

typedef int iron__quads_neon_is_for_aarch64;

#endif
