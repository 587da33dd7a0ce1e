/* SPDX-License-Identifier: MIT */
/*
 * cpu_neon.c: the tokens op on 64-bit Arm, four tokens an instruction.
 *
 * Work goes by groups of 16 positions: four vectors with four running vectors of hashes. Instead of
 * remainders the loops sum positioned tokens and quotients, in 32-bit lanes modulo 2^32, and take
 * sum(p) - V * sum(q) a block at a time: the true value of a lane, a sum of remainders, stays below
 * 2^32, so nothing is lost. Which loop depends on the divisor (divisor.h):
 *
 *   mask      power of two up to 2^20                p & mask
 *   half      even vocabularies up to 2^20           one sqdmulh for four quotients
 *   quotient  others up to 2^20 without an addend    two umull and a uzp2
 *   wide      the rest                               64-bit lanes, any vocabulary
 *
 * Three things make them fast, each measured on a Neoverse V1 (one thread, from DRAM):
 *
 * 1. Lines are asked for 32 KiB ahead, into the second-level cache: the hardware's own prefetcher
 *    leaves a sixth of the bandwidth unused (mask: 23.4 -> 28.6 GB/s; closer or into the first
 *    level it hurts).
 * 2. XOR and sums of a group are taken by a tree where a product follows, so that the long-lived
 *    accumulators are touched once a group: operands that are not fresh from another operation cost
 *    a register-file read, and four of those a cycle are the limit (2.0 against 4.0 adds a cycle).
 * 3. `half` and `quotient` are bound by the vector units while the integer units idle; so of every
 *    five groups four go through vectors and one, a few tokens at a time in between, through the
 *    integer units (quotient: 16.3 -> 19.1 GB/s).
 *
 * The shift of `half` and `quotient` is an immediate of usra, shift-and-accumulate; so these loops
 * are written once and instantiated for each shift. Traffic: 4 bytes a token, one pass.
 */
#include "ops/tokens/tokens.h"

#if defined(__aarch64__)

#include "core/mix.h"

#include <arm_neon.h>

#define GROUP ((size_t)IRON_HASH_GROUP)

/* Lanes of 32 bits take 4 remainders a group: up to this vocabulary blocks are long enough. */
#define NARROW_VOCAB     (UINT32_C(1) << 20)
#define BLOCK_GROUPS_MAX 4095u

/* Groups that a turn of the mixed loops takes: VECTOR_GROUPS and one more for the integer units. */
#define VECTOR_GROUPS ((size_t)4)
#define TURN_GROUPS   (VECTOR_GROUPS + 1)
#define SIDE_TOKENS   (GROUP / VECTOR_GROUPS)

typedef struct group_hashes {
    uint32x4_t h0, h1, h2, h3;
} group_hashes;

typedef struct group_tokens {
    uint32x4_t p0, p1, p2, p3;
} group_tokens;

/* What the loops carry through the blocks of a run. */
typedef struct progress {
    const uint32_t *tokens;
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

/* Loads 16 tokens, adds their hashes and moves the hashes on to the next group. */
static inline group_tokens next_group(const uint32_t *tokens, group_hashes *h) {
    group_tokens g = {vaddq_u32(vld1q_u32(tokens), h->h0), vaddq_u32(vld1q_u32(tokens + 4), h->h1),
                      vaddq_u32(vld1q_u32(tokens + 8), h->h2),
                      vaddq_u32(vld1q_u32(tokens + 12), h->h3)};

    iron__tokens_prefetch(tokens);
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

/* Four accumulators instead of a tree: there is no product to hide the tree's latency behind
 * (23.4 against 22.0 GB/s from DRAM). */
static void block_mask(progress *at, size_t groups, const iron__divisor *d) {
    const uint32x4_t mask = vdupq_n_u32(d->vocab - 1);
    const uint32_t *tokens = at->tokens;
    group_hashes h = at->hashes;
    uint32x4_t zero = vdupq_n_u32(0);
    group_tokens s = {zero, zero, zero, zero}, x = {at->xors, zero, zero, zero};

    for (size_t k = 0; k < groups; k++, tokens += GROUP) {
        group_tokens g = next_group(tokens, &h);

        x = (group_tokens){veorq_u32(x.p0, g.p0), veorq_u32(x.p1, g.p1), veorq_u32(x.p2, g.p2),
                           veorq_u32(x.p3, g.p3)};
        s = (group_tokens){
            vaddq_u32(s.p0, vandq_u32(g.p0, mask)), vaddq_u32(s.p1, vandq_u32(g.p1, mask)),
            vaddq_u32(s.p2, vandq_u32(g.p2, mask)), vaddq_u32(s.p3, vandq_u32(g.p3, mask))};
    }
    *at = (progress){tokens, h, group_xor(x), at->sum + vaddlvq_u32(group_sum(s))};
}

/* High halves of four 32 x 32 bit products. */
static inline uint32x4_t high_product(uint32x4_t p, uint32x4_t multiplier) {
    uint64x2_t low = vmull_u32(vget_low_u32(p), vget_low_u32(multiplier));
    uint64x2_t high = vmull_high_u32(p, multiplier);

    return vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));
}

/* (p >> k) * multiplier >> 31; all in 31 bits, so the signed multiply-high is as good as one
 * without sign. */
static inline uint32x4_t half_product(uint32x4_t p, int32x4_t preshift, int32x4_t multiplier) {
    int32x4_t dividend = vreinterpretq_s32_u32(vshlq_u32(p, preshift));

    return vreinterpretq_u32_s32(vqdmulhq_s32(dividend, multiplier));
}

/* What the integer units sum up. */
typedef struct side {
    uint64_t tokens, quotients;
    uint32_t xors;
} side;

/* How the integer units divide: (p >> preshift) * multiplier >> shift; the shift is a constant
 * wherever this is used, so that adding and shifting are one instruction. */
typedef struct side_divisor {
    uint32_t preshift, multiplier, shift;
} side_divisor;

/* A quarter of the fifth group. */
static inline void side_step(side *s, const uint32_t *tokens, uint32_t hash, unsigned quarter,
                             side_divisor d) {
    for (unsigned lane = quarter * SIDE_TOKENS; lane < (quarter + 1) * SIDE_TOKENS; lane++) {
        uint32_t p = tokens[lane] + (hash + IRON_HASH_STEP * lane);

        s->xors ^= p;
        s->tokens += p;
        s->quotients += ((uint64_t)(p >> d.preshift) * d.multiplier) >> d.shift;
    }
}

/* One group in vectors, a quarter of one beside it. PRODUCT(p) gives quotients before their last
 * shift, which usra does while adding. */
#define STEP(group, PRODUCT, shift)                                                                \
    do {                                                                                           \
        group_tokens g = next_group(tokens + (group)*GROUP, &h);                                   \
        x = veorq_u32(x, group_xor(g));                                                            \
        p = vaddq_u32(p, group_sum(g));                                                            \
        q0 = vsraq_n_u32(q0, PRODUCT(g.p0), shift);                                                \
        q1 = vsraq_n_u32(q1, PRODUCT(g.p1), shift);                                                \
        q2 = vsraq_n_u32(q2, PRODUCT(g.p2), shift);                                                \
        q3 = vsraq_n_u32(q3, PRODUCT(g.p3), shift);                                                \
        side_step(&beside, tokens + VECTOR_GROUPS * GROUP, hash, group, side_d);                   \
    } while (0)

/* `groups` is a multiple of TURN_GROUPS. */
#define DEFINE_BLOCK(name, shift, CONSTANTS, PRODUCT)                                              \
    static void name##_##shift(progress *at, size_t groups, const iron__divisor *d) {              \
        const uint32_t *tokens = at->tokens;                                                       \
        group_hashes h = at->hashes;                                                               \
        uint32_t hash = vgetq_lane_u32(h.h0, 0) + VECTOR_GROUPS * IRON_HASH_GROUP_STEP;            \
        uint32x4_t x = at->xors, p = vdupq_n_u32(0), q0 = p, q1 = p, q2 = p, q3 = p;               \
        side beside = {0, 0, 0};                                                                   \
        CONSTANTS(shift);                                                                          \
        for (size_t k = 0; k < groups; k += TURN_GROUPS) {                                         \
            STEP(0, PRODUCT, shift);                                                               \
            STEP(1, PRODUCT, shift);                                                               \
            STEP(2, PRODUCT, shift);                                                               \
            STEP(3, PRODUCT, shift);                                                               \
            iron__tokens_prefetch(tokens + VECTOR_GROUPS * GROUP);                                 \
            skip_group(&h);                                                                        \
            hash += TURN_GROUPS * IRON_HASH_GROUP_STEP;                                            \
            tokens += TURN_GROUPS * GROUP;                                                         \
        }                                                                                          \
        q0 = vaddq_u32(vaddq_u32(q0, q1), vaddq_u32(q2, q3));                                      \
        p = vmlsq_n_u32(p, q0, d->vocab);                                                          \
        x = veorq_u32(x, vsetq_lane_u32(beside.xors, vdupq_n_u32(0), 0));                          \
        *at = (progress){tokens, h, x,                                                             \
                         at->sum + vaddlvq_u32(p) + beside.tokens - d->vocab * beside.quotients};  \
    }

#define QUOTIENT_CONSTANTS(s)                                                                      \
    const side_divisor side_d = {0, d->multiplier, 32 + (s)};                                      \
    const uint32x4_t m = vdupq_n_u32(d->multiplier)
#define QUOTIENT_PRODUCT(p) high_product((p), m)
#define HALF_CONSTANTS(s)                                                                          \
    const side_divisor side_d = {d->half_preshift, d->half_multiplier, 31 + (s)};                  \
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

#define QUOTIENT_NAME(s) [s] = quotient_##s,
#define HALF_NAME(s)     [s] = half_##s,
static const block_function quotient_blocks[] = {SHIFTS(QUOTIENT_NAME)};
static const block_function half_blocks[] = {SHIFTS(HALF_NAME)};

/* Remainders themselves, into 64-bit lanes. The product may need its addend. */
static inline uint32x4_t wide_remainder(uint32x4_t p, const iron__divisor *d) {
    const uint64x2_t addend = vdupq_n_u64(d->addend);
    const uint32x2_t m = vdup_n_u32(d->multiplier);
    const int64x2_t shift = vdupq_n_s64(-(int64_t)d->shift);
    uint64x2_t low = vshlq_u64(vmlal_u32(addend, vget_low_u32(p), m), shift);
    uint64x2_t high = vshlq_u64(vmlal_u32(addend, vget_high_u32(p), m), shift);
    uint32x4_t q = vuzp1q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));

    return vmlsq_n_u32(p, q, d->vocab);
}

static void block_wide(progress *at, size_t groups, const iron__divisor *d) {
    const uint32_t *tokens = at->tokens;
    group_hashes h = at->hashes;
    uint32x4_t x = at->xors;
    uint64x2_t s0 = vdupq_n_u64(0), s1 = s0;

    for (size_t k = 0; k < groups; k++, tokens += GROUP) {
        group_tokens g = next_group(tokens, &h);

        x = veorq_u32(x, group_xor(g));
        s0 = vpadalq_u32(s0, wide_remainder(g.p0, d));
        s1 = vpadalq_u32(s1, wide_remainder(g.p1, d));
        s0 = vpadalq_u32(s0, wide_remainder(g.p2, d));
        s1 = vpadalq_u32(s1, wide_remainder(g.p3, d));
    }
    *at = (progress){tokens, h, x, at->sum + vaddvq_u64(vaddq_u64(s0, s1))};
}

/* The loop for a divisor, and how many groups it takes a turn. */
static block_function choose_block(const iron__divisor *d, size_t *turn) {
    *turn = 1;
    if (d->vocab > NARROW_VOCAB)
        return block_wide;
    if (d->is_power_of_two)
        return block_mask;
    if (!d->has_half && d->addend)
        return block_wide;
    *turn = TURN_GROUPS;
    return d->has_half ? half_blocks[d->half_shift] : quotient_blocks[d->shift - 32];
}

/* A lane of 32 bits takes 4 remainders a group and must stay below 2^32; whole turns only. */
static size_t block_groups(const iron__divisor *d, size_t turn) {
    size_t most = d->vocab > NARROW_VOCAB ? BLOCK_GROUPS_MAX : UINT32_MAX / 4 / d->vocab;

    return (most < BLOCK_GROUPS_MAX ? most : BLOCK_GROUPS_MAX) / turn * turn;
}

static iron__contribution reduce_groups(const iron__tokens_run *run) {
    const iron__divisor *d = run->divisor;
    size_t turn;
    block_function block = choose_block(d, &turn);
    size_t most = block_groups(d, turn);
    size_t left = run->count / GROUP / turn * turn;
    size_t rest = run->count - left * GROUP;
    iron__tokens_run last = {run->tokens + left * GROUP, rest, run->first + left * GROUP, d};
    progress at = {run->tokens, hashes_at(run->first), vdupq_n_u32(0), 0};
    iron__contribution c;

    while (left > 0) {
        size_t groups = left < most ? left : most;

        block(&at, groups, d);
        left -= groups;
    }
    c = (iron__contribution){run->count - rest, at.sum, xor_of_lanes(at.xors)};
    return iron__contribution_merge(c, iron__tokens_few(&last));
}

iron__contribution iron__tokens_neon(const iron__tokens_run *run) {
    return iron__tokens_by_groups(run, reduce_groups);
}

#else

typedef int iron__tokens_neon_is_for_aarch64;

#endif
