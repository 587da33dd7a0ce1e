/* SPDX-License-Identifier: MIT */
/*
 * tokens_neon.c: contribution and seal on 64-bit Arm with NEON. Traffic of all loops: one pass, 4
 * bytes per token (2 for the seal of 16-bit tokens). All figures: one thread of a Neoverse V1.
 *
 * The contribution, four tokens per instruction. A group of 16 positions is four vectors with four
 * running vectors of hashes. Instead of remainders the loops sum positioned tokens and quotients in
 * 32-bit lanes modulo 2^32 and compute sum(p) - V * sum(q) once per block: the true value of a
 * lane, a sum of remainders, stays below 2^32, so nothing is lost. The divisor (core/divisor.h)
 * chooses the loop:
 *
 *   mask      power of two up to 2^20                p & mask
 *   half      even vocabularies up to 2^20           one sqdmulh for four quotients
 *   quotient  others up to 2^20 without an addend    two umull and a uzp2
 *   wide      the rest                               64-bit lanes, any vocabulary
 *
 * Three things make them fast (from DRAM):
 *
 * 1. Lines are prefetched 32 KiB ahead into the second-level cache: the hardware's own prefetcher
 *    leaves a sixth of the bandwidth unused (mask: 23.4 -> 28.6 GB/s; a shorter distance or the
 *    first level hurts).
 * 2. Where a product follows, XOR and sums of a group form a tree, so that the long-lived
 *    accumulators are touched once per group: operands that do not come straight from another
 *    operation cost a register-file read, and four of those per cycle are the limit (2.0 against
 *    4.0 additions per cycle).
 * 3. `half` and `quotient` are bound by the vector units while the integer units idle; so of every
 *    five groups four go through vectors and the integer units take the fifth, a few tokens between
 *    each two vector groups (quotient: 16.3 -> 19.1 GB/s).
 *
 * The shift of `half` and `quotient` is an immediate of usra, shift-and-accumulate; so these loops
 * are written once and instantiated for each shift.
 *
 * The seal and the statistics, four quads per instruction. Four quads are transposed: one vector
 * holds the first tokens of all four, another the second ones, and so on; keys use the same lanes,
 * and a widening multiply-add takes two products. Operations per four quads: 17 for the keys (the
 * first multiplication of the scramble is linear and becomes an addition), 8 to transpose, 8 sums
 * of token and key, 8 multiply-adds, 4 for T, 8 for the smallest and the largest token. Two more
 * quads go through the integer units meanwhile, 25 instructions each; their tokens are loaded as
 * vectors too, for T and the statistics, which takes 2 instructions instead of 8.
 *
 * What limits it, in cycles per turn of six quads, as measured by leaving operations out: the
 * integer units need 13, the vectors 16.1, both together 17. At four per cycle the vectors would
 * need 13.3. What matters:
 *
 * 1. The scramble is a chain of 35 cycles. Made in one piece, one turn before their use, keys alone
 *    take 9.8 cycles for 17 operations, and both units together 19.2: what waits for the chain
 *    seems to fill the queues of the vector units. So it is a pipeline over turns: a turn completes
 *    the keys of the next one, does the second round for the one after and the first round for the
 *    third.
 * 2. The products of the integer units are added one after the other, as they are written. gcc
 *    likes to add them in pairs: then they and the constants no longer fit the registers, and a
 *    turn has 134 instructions instead of 118 (11.8 instead of 14.0 GB/s).
 * 3. The order of the steps in the loop, from which the compiler makes that of the instructions:
 *    the worst of sixty orders gives 13.0 GB/s, the best 14.5.
 * 4. After a 0 no token can be smaller, so the search for the smallest stops (13.1 -> 14.4).
 *
 * The seal of 16-bit tokens does not widen them in memory first. The loop is the same with less to
 * do: half the loads, four operations instead of eight to transpose, the addition of a key widens
 * the token, and T and the statistics take eight tokens at a time. T uses 32-bit lanes: that of a
 * block is far below 2^32. 3.95 tokens per nanosecond in cache, against 3.6 from 32-bit tokens.
 */
#include "ops/tokens/tokens_cpu.h"

#if defined(__aarch64__)

#include "core/hash.h"

#include <arm_neon.h>

/* The small functions must be inlined, so that sums and constants stay in registers. */
#define NEON_INLINE static inline __attribute__((always_inline))

#define GROUP ((size_t)IRON_HASH_GROUP)

/* 32-bit lanes take 4 remainders per group: up to this vocabulary blocks are long enough. */
#define NARROW_VOCAB     (UINT32_C(1) << 20)
#define BLOCK_GROUPS_MAX 4095u

/* Groups in one turn of the mixed loops: VECTOR_GROUPS and one more for the integer units. */
#define VECTOR_GROUPS  ((size_t)4)
#define TURN_GROUPS    (VECTOR_GROUPS + 1)
#define INTEGER_TOKENS (GROUP / VECTOR_GROUPS)

typedef struct group_hashes {
    uint32x4_t h0, h1, h2, h3;
} group_hashes;

typedef struct group_tokens {
    uint32x4_t p0, p1, p2, p3;
} group_tokens;

/* The state of a loop from block to block. */
typedef struct progress {
    const char *tokens; /* 32 or 16 bits each */
    group_hashes hashes;
    uint32x4_t xors;
    uint64_t sum;
} progress;

static inline group_hashes hashes_at(uint64_t position) {
    static const uint32_t lanes[4] = {0, IRON_HASH_STEP, 2 * IRON_HASH_STEP, 3 * IRON_HASH_STEP};
    uint32x4_t base = vaddq_u32(vld1q_u32(lanes), vdupq_n_u32(iron__position_hash(position)));

    return (group_hashes){base, vaddq_u32(base, vdupq_n_u32(4 * IRON_HASH_STEP)),
                          vaddq_u32(base, vdupq_n_u32(8 * IRON_HASH_STEP)),
                          vaddq_u32(base, vdupq_n_u32(12 * IRON_HASH_STEP))};
}

static inline void skip_group(group_hashes *h) {
    const uint32x4_t step = vdupq_n_u32(IRON_HASH_GROUP_STEP);

    *h = (group_hashes){vaddq_u32(h->h0, step), vaddq_u32(h->h1, step), vaddq_u32(h->h2, step),
                        vaddq_u32(h->h3, step)};
}

/* In these loops `is_u16` is a constant wherever they are used. */
NEON_INLINE size_t group_bytes(bool is_u16) { return GROUP * (is_u16 ? 2 : 4); }

/* Loads 16 tokens, adds their hashes and moves the hashes on to the next group. The addition widens
 * 16-bit tokens. */
NEON_INLINE group_tokens next_group(const char *tokens, bool is_u16, group_hashes *h) {
    const uint32_t *t = (const void *)tokens;
    const uint16_t *u = (const void *)tokens;
    group_tokens g;

    if (is_u16)
        g = (group_tokens){vaddw_u16(h->h0, vld1_u16(u)), vaddw_u16(h->h1, vld1_u16(u + 4)),
                           vaddw_u16(h->h2, vld1_u16(u + 8)), vaddw_u16(h->h3, vld1_u16(u + 12))};
    else
        g = (group_tokens){vaddq_u32(vld1q_u32(t), h->h0), vaddq_u32(vld1q_u32(t + 4), h->h1),
                           vaddq_u32(vld1q_u32(t + 8), h->h2), vaddq_u32(vld1q_u32(t + 12), h->h3)};
    iron__prefetch(tokens);
    skip_group(h);
    return g;
}

static inline uint32x4_t group_xor(group_tokens g) {
    return veorq_u32(veorq_u32(g.p0, g.p1), veorq_u32(g.p2, g.p3));
}

static inline uint32x4_t group_sum(group_tokens g) {
    return vaddq_u32(vaddq_u32(g.p0, g.p1), vaddq_u32(g.p2, g.p3));
}

static inline uint32_t xor_of_lanes(uint32x4_t x) {
    uint32x2_t pair = veor_u32(vget_low_u32(x), vget_high_u32(x));

    return vget_lane_u32(pair, 0) ^ vget_lane_u32(pair, 1);
}

typedef void (*block_function)(progress *at, size_t groups, const iron__divisor *d);

/* The loops for both widths of tokens. */
#define BOTH_WIDTHS(name)                                                                          \
    static void name(progress *at, size_t groups, const iron__divisor *d) {                        \
        name##_of(at, groups, d, false);                                                           \
    }                                                                                              \
    static void name##_u16(progress *at, size_t groups, const iron__divisor *d) {                  \
        name##_of(at, groups, d, true);                                                            \
    }

/* Four accumulators instead of a tree: there is no product to hide the tree's latency behind
 * (23.4 against 22.0 GB/s from DRAM). */
NEON_INLINE void mask_of(progress *at, size_t groups, const iron__divisor *d, bool is_u16) {
    const uint32x4_t mask = vdupq_n_u32(d->vocab - 1);
    const char *tokens = at->tokens;
    group_hashes h = at->hashes;
    uint32x4_t zero = vdupq_n_u32(0);
    group_tokens s = {zero, zero, zero, zero}, x = {at->xors, zero, zero, zero};

    for (size_t k = 0; k < groups; k++, tokens += group_bytes(is_u16)) {
        group_tokens g = next_group(tokens, is_u16, &h);

        x = (group_tokens){veorq_u32(x.p0, g.p0), veorq_u32(x.p1, g.p1), veorq_u32(x.p2, g.p2),
                           veorq_u32(x.p3, g.p3)};
        s = (group_tokens){
            vaddq_u32(s.p0, vandq_u32(g.p0, mask)), vaddq_u32(s.p1, vandq_u32(g.p1, mask)),
            vaddq_u32(s.p2, vandq_u32(g.p2, mask)), vaddq_u32(s.p3, vandq_u32(g.p3, mask))};
    }
    *at = (progress){tokens, h, group_xor(x), at->sum + vaddlvq_u32(group_sum(s))};
}

BOTH_WIDTHS(mask)

/* High halves of four 32 x 32 bit products. */
static inline uint32x4_t high_product(uint32x4_t p, uint32x4_t multiplier) {
    uint64x2_t low = vmull_u32(vget_low_u32(p), vget_low_u32(multiplier));
    uint64x2_t high = vmull_high_u32(p, multiplier);

    return vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));
}

/* (p >> k) * multiplier >> 31; all factors have 31 bits, so the signed multiply-high is right. */
static inline uint32x4_t half_product(uint32x4_t p, int32x4_t preshift, int32x4_t multiplier) {
    int32x4_t dividend = vreinterpretq_s32_u32(vshlq_u32(p, preshift));

    return vreinterpretq_u32_s32(vqdmulhq_s32(dividend, multiplier));
}

/* The sums of the integer units. */
typedef struct integer_sums {
    uint64_t tokens, quotients;
    uint32_t xors;
} integer_sums;

/* How the integer units divide: (p >> preshift) * multiplier >> shift; the shift is a constant
 * wherever this is used, so that adding and shifting are one instruction. */
typedef struct integer_divisor {
    uint32_t preshift, multiplier, shift;
} integer_divisor;

/* A quarter of the fifth group. */
NEON_INLINE void integer_step(integer_sums *s, const char *tokens, bool is_u16, uint32_t hash,
                              unsigned quarter, integer_divisor d) {
    for (unsigned lane = quarter * INTEGER_TOKENS; lane < (quarter + 1) * INTEGER_TOKENS; lane++) {
        uint32_t token = is_u16 ? ((const uint16_t *)(const void *)tokens)[lane]
                                : ((const uint32_t *)(const void *)tokens)[lane];
        uint32_t p = token + (hash + IRON_HASH_STEP * lane);

        s->xors ^= p;
        s->tokens += p;
        s->quotients += ((uint64_t)(p >> d.preshift) * d.multiplier) >> d.shift;
    }
}

/* One group in vectors and a quarter of one in the integer units. PRODUCT(p) gives quotients before
 * their last shift, which usra does while adding. */
#define STEP(group, PRODUCT, shift)                                                                \
    do {                                                                                           \
        group_tokens g = next_group(tokens + (group)*group_bytes(is_u16), is_u16, &h);             \
        x = veorq_u32(x, group_xor(g));                                                            \
        p = vaddq_u32(p, group_sum(g));                                                            \
        q0 = vsraq_n_u32(q0, PRODUCT(g.p0), shift);                                                \
        q1 = vsraq_n_u32(q1, PRODUCT(g.p1), shift);                                                \
        q2 = vsraq_n_u32(q2, PRODUCT(g.p2), shift);                                                \
        q3 = vsraq_n_u32(q3, PRODUCT(g.p3), shift);                                                \
        integer_step(&integer, fifth, is_u16, hash, group, by_integer);                            \
    } while (0)

/* `groups` is a multiple of TURN_GROUPS. */
#define DEFINE_BLOCK(name, shift, CONSTANTS, PRODUCT)                                              \
    NEON_INLINE void name##_##shift##_of(progress *at, size_t groups, const iron__divisor *d,      \
                                         bool is_u16) {                                            \
        const char *tokens = at->tokens;                                                           \
        group_hashes h = at->hashes;                                                               \
        uint32_t hash = vgetq_lane_u32(h.h0, 0) + VECTOR_GROUPS * IRON_HASH_GROUP_STEP;            \
        uint32x4_t x = at->xors, p = vdupq_n_u32(0), q0 = p, q1 = p, q2 = p, q3 = p;               \
        integer_sums integer = {0, 0, 0};                                                          \
        CONSTANTS(shift);                                                                          \
        for (size_t k = 0; k < groups; k += TURN_GROUPS) {                                         \
            const char *fifth = tokens + VECTOR_GROUPS * group_bytes(is_u16);                      \
            STEP(0, PRODUCT, shift);                                                               \
            STEP(1, PRODUCT, shift);                                                               \
            STEP(2, PRODUCT, shift);                                                               \
            STEP(3, PRODUCT, shift);                                                               \
            iron__prefetch(fifth);                                                                 \
            skip_group(&h);                                                                        \
            hash += TURN_GROUPS * IRON_HASH_GROUP_STEP;                                            \
            tokens += TURN_GROUPS * group_bytes(is_u16);                                           \
        }                                                                                          \
        q0 = vaddq_u32(vaddq_u32(q0, q1), vaddq_u32(q2, q3));                                      \
        p = vmlsq_n_u32(p, q0, d->vocab);                                                          \
        x = veorq_u32(x, vsetq_lane_u32(integer.xors, vdupq_n_u32(0), 0));                         \
        *at =                                                                                      \
            (progress){tokens, h, x,                                                               \
                       at->sum + vaddlvq_u32(p) + integer.tokens - d->vocab * integer.quotients};  \
    }                                                                                              \
    BOTH_WIDTHS(name##_##shift)

#define QUOTIENT_CONSTANTS(s)                                                                      \
    const integer_divisor by_integer = {0, d->multiplier, 32 + (s)};                               \
    const uint32x4_t m = vdupq_n_u32(d->multiplier)
#define QUOTIENT_PRODUCT(p) high_product((p), m)
#define HALF_CONSTANTS(s)                                                                          \
    const integer_divisor by_integer = {d->half_preshift, d->half_multiplier, 31 + (s)};           \
    const int32x4_t preshift = vdupq_n_s32(-(int32_t)d->half_preshift);                            \
    const int32x4_t m = vdupq_n_s32((int32_t)d->half_multiplier)
#define HALF_PRODUCT(p) half_product((p), preshift, m)
#define QUOTIENT(s)     DEFINE_BLOCK(quotient, s, QUOTIENT_CONSTANTS, QUOTIENT_PRODUCT)
#define HALF(s)         DEFINE_BLOCK(half, s, HALF_CONSTANTS, HALF_PRODUCT)

/* floor(log2 V) of the vocabularies that take these loops: 3 ... 2^20 */
#define SHIFTS(X)                                                                                  \
    X(1)                                                                                           \
    X(2)                                                                                           \
    X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)

SHIFTS(QUOTIENT)
SHIFTS(HALF)

/* For each shift: of 32-bit and of 16-bit tokens. */
#define QUOTIENT_NAMES(s) [s] = {quotient_##s, quotient_##s##_u16},
#define HALF_NAMES(s)     [s] = {half_##s, half_##s##_u16},
static const block_function quotient_blocks[][2] = {SHIFTS(QUOTIENT_NAMES)};
static const block_function half_blocks[][2] = {SHIFTS(HALF_NAMES)};

/* The remainders themselves; their sums use 64-bit lanes. The product may need its addend. */
static inline uint32x4_t wide_remainder(uint32x4_t p, const iron__divisor *d) {
    const uint64x2_t addend = vdupq_n_u64(d->addend);
    const uint32x2_t m = vdup_n_u32(d->multiplier);
    const int64x2_t shift = vdupq_n_s64(-(int64_t)d->shift);
    uint64x2_t low = vshlq_u64(vmlal_u32(addend, vget_low_u32(p), m), shift);
    uint64x2_t high = vshlq_u64(vmlal_u32(addend, vget_high_u32(p), m), shift);
    uint32x4_t q = vuzp1q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));

    return vmlsq_n_u32(p, q, d->vocab);
}

NEON_INLINE void wide_of(progress *at, size_t groups, const iron__divisor *d, bool is_u16) {
    const char *tokens = at->tokens;
    group_hashes h = at->hashes;
    uint32x4_t x = at->xors;
    uint64x2_t s0 = vdupq_n_u64(0), s1 = s0;

    for (size_t k = 0; k < groups; k++, tokens += group_bytes(is_u16)) {
        group_tokens g = next_group(tokens, is_u16, &h);

        x = veorq_u32(x, group_xor(g));
        s0 = vpadalq_u32(s0, wide_remainder(g.p0, d));
        s1 = vpadalq_u32(s1, wide_remainder(g.p1, d));
        s0 = vpadalq_u32(s0, wide_remainder(g.p2, d));
        s1 = vpadalq_u32(s1, wide_remainder(g.p3, d));
    }
    *at = (progress){tokens, h, x, at->sum + vaddvq_u64(vaddq_u64(s0, s1))};
}

BOTH_WIDTHS(wide)

/* The loop for a divisor, and how many groups one turn of it takes. */
static block_function choose_block(const iron__divisor *d, bool is_u16, size_t *turn) {
    *turn = 1;
    if (d->is_power_of_two && d->vocab <= NARROW_VOCAB)
        return is_u16 ? mask_u16 : mask;
    if (d->vocab > NARROW_VOCAB || (!d->has_half && d->addend))
        return is_u16 ? wide_u16 : wide;
    *turn = TURN_GROUPS;
    return d->has_half ? half_blocks[d->half_shift][is_u16]
                       : quotient_blocks[d->shift - 32][is_u16];
}

/* A 32-bit lane takes 4 remainders per group and must stay below 2^32; whole turns only. */
static size_t block_groups(const iron__divisor *d, size_t turn) {
    size_t most = d->vocab > NARROW_VOCAB ? BLOCK_GROUPS_MAX : UINT32_MAX / 4 / d->vocab;

    return (most < BLOCK_GROUPS_MAX ? most : BLOCK_GROUPS_MAX) / turn * turn;
}

static iron__contribution reduce_groups(const iron__tokens_run *run) {
    const iron__divisor *d = run->divisor;
    bool is_u16 = run->tokens_u16 != NULL;
    size_t turn;
    block_function block = choose_block(d, is_u16, &turn);
    size_t most = block_groups(d, turn);
    size_t left = run->count / GROUP / turn * turn, done = left * GROUP;
    iron__tokens_run last = iron__tokens_part(run, done, run->count - done);
    progress at = {is_u16 ? (const char *)run->tokens_u16 : (const char *)run->tokens,
                   hashes_at(run->first), vdupq_n_u32(0), 0};
    iron__contribution c;

    while (left > 0) {
        size_t groups = left < most ? left : most;

        block(&at, groups, d);
        left -= groups;
    }
    c = (iron__contribution){done, at.sum, xor_of_lanes(at.xors)};
    return iron__contribution_merge(c, iron__tokens_one_by_one(&last));
}

static iron__contribution tokens_neon(const iron__tokens_run *run) {
    return iron__tokens_by_groups(run, reduce_groups);
}

/* Quads of a turn: in vectors, and in the integer units. */
#define VECTOR_QUADS  4u
#define INTEGER_QUADS 2u
#define TURN_QUADS    (VECTOR_QUADS + INTEGER_QUADS)

#define ROW_FUNCTION static

typedef struct quad_keys {
    uint32x4_t k0, k1, k2, k3;
} quad_keys;

/* The three factors are lanes of one register: there are few. */
typedef struct quad_constants {
    uint32x4_t turn, factors, other, window_low, window_high;
} quad_constants;

typedef struct quad_products {
    uint64x2_t a0, a1, b0, b1;
} quad_products;

/* Sums of token and key, by the token's letter and the key's number. */
typedef struct quad_factors {
    uint32x4_t a0, a2, b1, b3, c0, c2, d1, d3;
} quad_factors;

NEON_INLINE quad_constants constants_of(uint64_t window) {
    static const uint32_t factors[4] = {IRON_SEAL_FACTOR_0, IRON_SEAL_FACTOR_1, IRON_SEAL_STEP, 0};

    return (quad_constants){.turn = vdupq_n_u32(TURN_QUADS * IRON_SEAL_STEP),
                            .factors = vld1q_u32(factors),
                            .other = vdupq_n_u32(IRON_SEAL_OTHER),
                            .window_low = vdupq_n_u32((uint32_t)window),
                            .window_high = vdupq_n_u32((uint32_t)(window >> 32))};
}

/* The scramble, in the steps of a pipeline: see the top of the file. */
typedef struct key_pipeline {
    uint32x4_t z, first, second;
    quad_keys keys;
} key_pipeline;

NEON_INLINE quad_keys keys_of(uint32x4_t z, const quad_constants *c) {
    quad_keys k;

    z = veorq_u32(z, vshrq_n_u32(z, IRON_SEAL_SHIFT_2));
    k.k1 = veorq_u32(vmlaq_laneq_u32(c->other, z, c->factors, 2), c->window_high);
    k.k0 = veorq_u32(z, c->window_low);
    k.k2 = vsriq_n_u32(vshlq_n_u32(k.k0, IRON_SEAL_ROTATE_2), k.k0, 32 - IRON_SEAL_ROTATE_2);
    k.k3 = vsriq_n_u32(vshlq_n_u32(k.k1, IRON_SEAL_ROTATE_3), k.k1, 32 - IRON_SEAL_ROTATE_3);
    return k;
}

/* Moves everything on by a step; call it after the last use of the current keys. */
NEON_INLINE void next_keys(key_pipeline *p, const quad_constants *c) {
    uint32x4_t z = p->second;

    p->keys = keys_of(z, c);
    z = veorq_u32(p->first, vshrq_n_u32(p->first, IRON_SEAL_SHIFT_1));
    p->second = vmulq_laneq_u32(z, c->factors, 1);
    z = veorq_u32(p->z, vshrq_n_u32(p->z, IRON_SEAL_SHIFT_0));
    p->first = vmulq_laneq_u32(z, c->factors, 0);
    p->z = vaddq_u32(p->z, c->turn);
}

/* The pipeline of the turn that begins with this quad. */
NEON_INLINE key_pipeline pipeline_at(uint32_t low_quad, const quad_constants *c) {
    static const uint32_t lanes[4] = {0, IRON_SEAL_STEP, 2 * IRON_SEAL_STEP, 3 * IRON_SEAL_STEP};
    key_pipeline p = {.z = vaddq_u32(vdupq_n_u32(iron__quads_start(low_quad)), vld1q_u32(lanes))};

    for (int step = 0; step < 3; step++)
        next_keys(&p, c);
    return p;
}

NEON_INLINE void multiply_add(uint64x2_t *low, uint64x2_t *high, uint32x4_t x, uint32x4_t y) {
    *low = vmlal_u32(*low, vget_low_u32(x), vget_low_u32(y));
    *high = vmlal_high_u32(*high, x, y);
}

NEON_INLINE void add_products(quad_products *p, const quad_factors *f) {
    multiply_add(&p->a0, &p->a1, f->a0, f->b1);
    multiply_add(&p->a0, &p->a1, f->c2, f->d3);
    multiply_add(&p->b0, &p->b1, f->a2, f->c0);
    multiply_add(&p->b0, &p->b1, f->b3, f->d1);
}

/* Adds the sums of the vectors and of the integer units. */
NEON_INLINE void put_sums(iron__quads_sums *out, const quad_products *p,
                          const iron__quads_sums *integer) {
    out->a += integer->a + vaddvq_u64(vaddq_u64(p->a0, p->a1));
    out->b += integer->b + vaddvq_u64(vaddq_u64(p->b0, p->b1));
}

#define TURN_TOKENS ((size_t)4 * TURN_QUADS)

typedef struct lane_sums {
    quad_products products;
    uint64x2_t t0, t1;
    uint32x4_t min, max;
} lane_sums;

/* Four quads as they are in memory. */
typedef struct quad_rows {
    uint32x4_t q0, q1, q2, q3;
} quad_rows;

NEON_INLINE quad_rows load_rows(const uint32_t *tokens) {
    return (quad_rows){vld1q_u32(tokens), vld1q_u32(tokens + 4), vld1q_u32(tokens + 8),
                       vld1q_u32(tokens + 12)};
}

NEON_INLINE quad_factors factors_of(quad_rows r, quad_keys k) {
    uint32x4_t ac01 = vuzp1q_u32(r.q0, r.q1), bd01 = vuzp2q_u32(r.q0, r.q1);
    uint32x4_t ac23 = vuzp1q_u32(r.q2, r.q3), bd23 = vuzp2q_u32(r.q2, r.q3);
    uint32x4_t a = vuzp1q_u32(ac01, ac23), c = vuzp2q_u32(ac01, ac23);
    uint32x4_t b = vuzp1q_u32(bd01, bd23), d = vuzp2q_u32(bd01, bd23);

    return (quad_factors){
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

NEON_INLINE void look_at(lane_sums *s, uint32x4_t q, iron__quads_want want) {
    if (want == IRON_QUADS_WANT_MIN_MAX)
        s->min = vminq_u32(s->min, q);
    if (want != IRON_QUADS_WANT_NONE)
        s->max = vmaxq_u32(s->max, q);
}

/* T and the statistics. */
NEON_INLINE void look_at_pair(lane_sums *s, uint32x4_t q, uint32x4_t r, iron__quads_want want) {
    s->t0 = vpadalq_u32(s->t0, q);
    s->t1 = vpadalq_u32(s->t1, r);
    look_at(s, q, want);
    look_at(s, r, want);
}

/* Whole turns. The order of the steps matters: see the top of the file. */
NEON_INLINE void seal_turns(const iron__quads_part *part, size_t turns, iron__quads_want want,
                            iron__quads_sums *out) {
    const quad_constants c = constants_of(part->window);
    const uint64x2_t zero = vdupq_n_u64(0);
    const uint32_t *tokens = part->tokens;
    key_pipeline p = pipeline_at(part->low_quad, &c);
    uint32_t integer_z = iron__quads_start(part->low_quad + VECTOR_QUADS);
    const uint64_t window = part->window;
    lane_sums s = {{zero, zero, zero, zero}, zero, zero, vdupq_n_u32(UINT32_MAX), vdupq_n_u32(0)};
    iron__quads_sums integer = {0, 0, 0, 0, 0};

    for (size_t turn = 0; turn < turns; turn++, tokens += TURN_TOKENS) {
        const uint32_t *integer_tokens = tokens + (size_t)4 * VECTOR_QUADS;
        quad_rows r = load_rows(tokens);
        quad_factors f;

        look_at_pair(&s, vld1q_u32(integer_tokens), vld1q_u32(integer_tokens + 4), want);
        look_at_pair(&s, r.q2, r.q3, want);
        look_at_pair(&s, r.q0, r.q1, want);
        iron__quads_add_products(&integer, integer_tokens, integer_z, window);
        iron__quads_add_products(&integer, integer_tokens + 4, integer_z + IRON_SEAL_STEP, window);
        f = factors_of(r, p.keys);
        next_keys(&p, &c);
        add_products(&s.products, &f);
        iron__quads_prefetch(part, tokens);
        iron__quads_prefetch(part, integer_tokens);
        integer_z += TURN_QUADS * IRON_SEAL_STEP;
    }
    put_sums(out, &s.products, &integer);
    out->t += vaddvq_u64(vaddq_u64(s.t0, s.t1));
    iron__quads_extremes(out, vminvq_u32(s.min), vmaxvq_u32(s.max), want != IRON_QUADS_WANT_NONE);
}

IRON_QUADS_DEFINE_LOOPS()

/* A lane of T takes three pairs of tokens per turn. */
_Static_assert(IRON_QUADS_BLOCK / TURN_QUADS * 6 <= UINT32_MAX / UINT16_MAX,
               "T of a block fits 32-bit lanes");

typedef struct lane_sums_u16 {
    quad_products products;
    uint32x4_t t;
    uint16x8_t min, max;
} lane_sums_u16;

/* Four quads as they are in memory. */
typedef struct quad_rows_u16 {
    uint16x8_t q01, q23;
} quad_rows_u16;

NEON_INLINE quad_factors factors_of_u16(quad_rows_u16 r, quad_keys k) {
    uint16x8_t ac = vuzp1q_u16(r.q01, r.q23), bd = vuzp2q_u16(r.q01, r.q23);
    uint16x8_t ab = vuzp1q_u16(ac, bd), cd = vuzp2q_u16(ac, bd);

    return (quad_factors){
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

NEON_INLINE void look_at_u16(lane_sums_u16 *s, uint16x8_t q, iron__quads_want want) {
    s->t = vpadalq_u16(s->t, q);
    if (want == IRON_QUADS_WANT_MIN_MAX)
        s->min = vminq_u16(s->min, q);
    if (want != IRON_QUADS_WANT_NONE)
        s->max = vmaxq_u16(s->max, q);
}

/* One quad in the integer units. */
NEON_INLINE void add_products_u16(iron__quads_sums *s, const uint16_t *tokens, uint32_t z,
                                  uint64_t window) {
    const uint32_t t[4] = {tokens[0], tokens[1], tokens[2], tokens[3]};

    iron__quads_add_products(s, t, z, window);
}

/* Whole turns. */
NEON_INLINE void seal_turns_u16(const iron__quads_part *part, size_t turns, iron__quads_want want,
                                iron__quads_sums *out) {
    const quad_constants c = constants_of(part->window);
    const uint64x2_t zero = vdupq_n_u64(0);
    const uint16_t *tokens = part->tokens;
    key_pipeline p = pipeline_at(part->low_quad, &c);
    uint32_t integer_z = iron__quads_start(part->low_quad + VECTOR_QUADS);
    const uint64_t window = part->window;
    lane_sums_u16 s = {
        {zero, zero, zero, zero}, vdupq_n_u32(0), vdupq_n_u16(UINT16_MAX), vdupq_n_u16(0)};
    iron__quads_sums integer = {0, 0, 0, 0, 0};

    for (size_t turn = 0; turn < turns; turn++, tokens += TURN_TOKENS) {
        const uint16_t *integer_tokens = tokens + (size_t)4 * VECTOR_QUADS;
        quad_rows_u16 r = {vld1q_u16(tokens), vld1q_u16(tokens + 8)};
        quad_factors f;

        add_products_u16(&integer, integer_tokens + 4, integer_z + IRON_SEAL_STEP, window);
        look_at_u16(&s, r.q23, want);
        iron__quads_prefetch(part, tokens);
        look_at_u16(&s, vld1q_u16(integer_tokens), want);
        f = factors_of_u16(r, p.keys);
        add_products(&s.products, &f);
        add_products_u16(&integer, integer_tokens, integer_z, window);
        look_at_u16(&s, r.q01, want);
        next_keys(&p, &c);
        integer_z += TURN_QUADS * IRON_SEAL_STEP;
    }
    put_sums(out, &s.products, &integer);
    out->t += vaddlvq_u32(s.t);
    iron__quads_extremes(out, vminvq_u16(s.min), vmaxvq_u16(s.max),
                         turns > 0 && want != IRON_QUADS_WANT_NONE);
}

IRON_QUADS_DEFINE_LOOPS(_u16)

IRON_QUADS_DEFINE_TAKES

const iron__vector_rows iron__rows_neon =
    IRON_VECTOR_ROWS("neon", IRON_CPU_NEON, tokens_neon,
                     "4 tokens per operation, quotients summed instead of remainders", take,
                     take_u16, "four quads in vectors while the integer units do two");

#else

typedef int iron__tokens_neon_is_for_aarch64;

#endif
