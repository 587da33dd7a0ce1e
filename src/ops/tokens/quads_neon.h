/* SPDX-License-Identifier: MIT */
/*
 * quads_neon.h: what the NEON loops of quads.h share, for tokens of 32 and of 16 bits: keys of four
 * quads, one a lane, and the products. Why the loops are as they are is told in quads_neon.c.
 */
#ifndef IRON_OPS_TOKENS_QUADS_NEON_H
#define IRON_OPS_TOKENS_QUADS_NEON_H

#include "ops/tokens/quads_cpu.h"

#if defined(__aarch64__)

#include <arm_neon.h>

/* Quads of a turn: in vectors, and beside them in the integer units. */
#define IRON_NEON_QUADS 4u
#define IRON_SIDE_QUADS 2u
#define IRON_TURN_QUADS (IRON_NEON_QUADS + IRON_SIDE_QUADS)

/* All must dissolve in the loop, for sums and constants to stay in registers. */
#define IRON_NEON_INLINE static inline __attribute__((always_inline))

/* What else a loop looks for. */
typedef enum iron__neon_stats { IRON_NEON_NONE, IRON_NEON_MAX, IRON_NEON_MIN_MAX } iron__neon_stats;

typedef struct iron__neon_keys {
    uint32x4_t k0, k1, k2, k3;
} iron__neon_keys;

typedef struct iron__neon_constants {
    uint32x4_t turn, factor_0, factor_1, step, other, window_low, window_high;
} iron__neon_constants;

typedef struct iron__neon_products {
    uint64x2_t a0, a1, b0, b1;
} iron__neon_products;

/* Sums of token and key, by the token's letter and the key's number. */
typedef struct iron__neon_factors {
    uint32x4_t a0, a2, b1, b3, c0, c2, d1, d3;
} iron__neon_factors;

IRON_NEON_INLINE iron__neon_constants iron__neon_constants_of(uint64_t window) {
    return (iron__neon_constants){.turn = vdupq_n_u32(IRON_TURN_QUADS * IRON_SEAL_STEP),
                                  .factor_0 = vdupq_n_u32(IRON_SEAL_FACTOR_0),
                                  .factor_1 = vdupq_n_u32(IRON_SEAL_FACTOR_1),
                                  .step = vdupq_n_u32(IRON_SEAL_STEP),
                                  .other = vdupq_n_u32(IRON_SEAL_OTHER),
                                  .window_low = vdupq_n_u32((uint32_t)window),
                                  .window_high = vdupq_n_u32((uint32_t)(window >> 32))};
}

/* z of the four quads from this one on, before the rounds. */
IRON_NEON_INLINE uint32x4_t iron__neon_start(uint32_t low_quad) {
    static const uint32_t lanes[4] = {0, IRON_SEAL_STEP, 2 * IRON_SEAL_STEP, 3 * IRON_SEAL_STEP};

    return vaddq_u32(vdupq_n_u32(iron__quads_start(low_quad)), vld1q_u32(lanes));
}

/* Both rounds of the scramble, and the rest of it. */
IRON_NEON_INLINE uint32x4_t iron__neon_rounds(uint32x4_t z, const iron__neon_constants *c) {
    z = vmulq_u32(veorq_u32(z, vshrq_n_u32(z, IRON_SEAL_SHIFT_0)), c->factor_0);
    return vmulq_u32(veorq_u32(z, vshrq_n_u32(z, IRON_SEAL_SHIFT_1)), c->factor_1);
}

IRON_NEON_INLINE iron__neon_keys iron__neon_keys_of(uint32x4_t z, const iron__neon_constants *c) {
    iron__neon_keys k;

    z = veorq_u32(z, vshrq_n_u32(z, IRON_SEAL_SHIFT_2));
    k.k1 = veorq_u32(vaddq_u32(vmulq_u32(z, c->step), c->other), c->window_high);
    k.k0 = veorq_u32(z, c->window_low);
    k.k2 = vsriq_n_u32(vshlq_n_u32(k.k0, IRON_SEAL_ROTATE_2), k.k0, 32 - IRON_SEAL_ROTATE_2);
    k.k3 = vsriq_n_u32(vshlq_n_u32(k.k1, IRON_SEAL_ROTATE_3), k.k1, 32 - IRON_SEAL_ROTATE_3);
    return k;
}

IRON_NEON_INLINE void iron__neon_multiply(uint64x2_t *low, uint64x2_t *high, uint32x4_t x,
                                          uint32x4_t y) {
    *low = vmlal_u32(*low, vget_low_u32(x), vget_low_u32(y));
    *high = vmlal_high_u32(*high, x, y);
}

IRON_NEON_INLINE void iron__neon_add_products(iron__neon_products *p, const iron__neon_factors *f) {
    iron__neon_multiply(&p->a0, &p->a1, f->a0, f->b1);
    iron__neon_multiply(&p->a0, &p->a1, f->c2, f->d3);
    iron__neon_multiply(&p->b0, &p->b1, f->a2, f->c0);
    iron__neon_multiply(&p->b0, &p->b1, f->b3, f->d1);
}

/* Adds what vectors and integer units have summed up. */
IRON_NEON_INLINE void iron__neon_put(iron__quads_sums *out, const iron__neon_products *p,
                                     const iron__quads_sums *beside) {
    out->a += beside->a + vaddvq_u64(vaddq_u64(p->a0, p->a1));
    out->b += beside->b + vaddvq_u64(vaddq_u64(p->b0, p->b1));
    out->t += beside->t;
}

#endif

#endif
