/* SPDX-License-Identifier: MIT */
/*
 * cpu_avx2.c: the tokens op on x86-64 with AVX2, eight tokens an instruction.
 *
 * A group of 16 positions is two vectors with two running vectors of hashes. Instead of remainders
 * the loop sums positioned tokens and quotients: sum(p mod V) = sum(p) - V * sum(floor(p / V)). The
 * one widening multiply there is, vpmuludq, reads the low halves of 64-bit lanes: the even tokens
 * as they lie, the odd ones after a shift by 32.
 *
 * All sums stand in 64-bit lanes modulo 2^64. The result is linear in them, so no overflow matters
 * and no run is too long, whatever the vocabulary. Nor need the even tokens be cut out of their
 * lanes, which are pairs, even + 2^32 * odd: with S the sum of whole pairs and O that of the odd
 * tokens the even ones come to S - 2^32 * O, all tokens to S - (2^32 - 1) * O.
 *
 * One loop, three ways through it, chosen by the divisor (divisor.h); operations per 8 tokens:
 *
 *   mask      power of two                  p & mask                     7
 *   quotient  others without an addend      p * multiplier >> shift     12
 *   addend    the rest                      the same with an addition   14
 *
 * Three vector ports need 4 cycles for 12 operations, longer than any of the sums waits for itself;
 * so a group a turn and one set of sums are enough. With two of either gcc runs out of the 16
 * registers: 10 moves and 16 trips to the stack for 48 operations.
 * Traffic: 4 bytes a token, one pass.
 */
#include "ops/tokens/tokens.h"

#if defined(__x86_64__)

#include "core/mix.h"

#include <immintrin.h>

#define GROUP IRON_HASH_GROUP

/* The build has no -mavx2: each function that holds vectors says so itself. The small ones must
 * dissolve in the loop, for the sums to stay in registers and the way to be a constant. */
#define AVX2        __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

typedef enum way { WAY_MASK, WAY_QUOTIENT, WAY_ADDEND } way;

typedef struct group_hashes {
    __m256i low, high;
} group_hashes;

/* The divisor, in every lane. */
typedef struct constants {
    __m256i mask, multiplier, addend, shift;
} constants;

typedef struct sums {
    __m256i xors;                   /* lanes of 32 bits */
    __m256i pairs, odds, quotients; /* lanes of 64 */
} sums;

AVX2_INLINE group_hashes hashes_at(uint64_t position) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i steps = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(IRON_HASH_STEP));
    __m256i base = _mm256_set1_epi32((int)iron__position_hash(position));
    __m256i low = _mm256_add_epi32(base, steps);

    return (group_hashes){low, _mm256_add_epi32(low, _mm256_set1_epi32(8 * IRON_HASH_STEP))};
}

AVX2_INLINE constants constants_of(const iron__divisor *d) {
    return (constants){.mask = _mm256_set1_epi32((int)(d->vocab - 1)),
                       .multiplier = _mm256_set1_epi64x((long long)d->multiplier),
                       .addend = _mm256_set1_epi64x((long long)d->addend),
                       .shift = _mm256_set1_epi64x((long long)d->shift)};
}

/* Quotients of the four tokens in the low halves of 64-bit lanes. The shift takes its count from
 * lanes: with one count for all, vpsrlq, it costs Intel's cores a shuffle more. */
AVX2_INLINE __m256i quotients_of(__m256i p, const constants *c, way by) {
    __m256i product = _mm256_mul_epu32(p, c->multiplier);

    if (by == WAY_ADDEND)
        product = _mm256_add_epi64(product, c->addend);
    return _mm256_srlv_epi64(product, c->shift);
}

/* Adds eight positioned tokens. */
AVX2_INLINE void add_vector(sums *s, __m256i p, const constants *c, way by) {
    __m256i odd;

    s->xors = _mm256_xor_si256(s->xors, p);
    if (by == WAY_MASK)
        p = _mm256_and_si256(p, c->mask);
    odd = _mm256_srli_epi64(p, 32);
    s->pairs = _mm256_add_epi64(s->pairs, p);
    s->odds = _mm256_add_epi64(s->odds, odd);
    if (by != WAY_MASK) {
        s->quotients = _mm256_add_epi64(s->quotients, quotients_of(p, c, by));
        s->quotients = _mm256_add_epi64(s->quotients, quotients_of(odd, c, by));
    }
}

/* Adds 16 tokens and moves the hashes on to the next group. */
AVX2_INLINE void add_group(sums *s, const uint32_t *tokens, group_hashes *h, const constants *c,
                           way by) {
    const __m256i step = _mm256_set1_epi32(IRON_HASH_GROUP_STEP);
    __m256i low = _mm256_loadu_si256((const __m256i *)tokens);
    __m256i high = _mm256_loadu_si256((const __m256i *)(tokens + 8));

    iron__tokens_prefetch(tokens);
    add_vector(s, _mm256_add_epi32(low, h->low), c, by);
    add_vector(s, _mm256_add_epi32(high, h->high), c, by);
    *h = (group_hashes){_mm256_add_epi32(h->low, step), _mm256_add_epi32(h->high, step)};
}

AVX2_INLINE uint64_t sum_of_lanes(__m256i x) {
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

    return (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
}

AVX2_INLINE uint32_t xor_of_lanes(__m256i x) {
    __m128i four = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    uint64_t two = (uint64_t)_mm_cvtsi128_si64(four) ^ (uint64_t)_mm_extract_epi64(four, 1);

    return (uint32_t)two ^ (uint32_t)(two >> 32);
}

/* The mask's way has no quotients: its sum of them is 0. */
AVX2_INLINE uint64_t sum_of_remainders(const sums *s, uint32_t vocab) {
    uint64_t tokens = sum_of_lanes(s->pairs) - UINT32_MAX * sum_of_lanes(s->odds);

    return tokens - vocab * sum_of_lanes(s->quotients);
}

AVX2_INLINE iron__contribution reduce_by(const iron__tokens_run *run, way by) {
    const uint32_t *end = run->tokens + run->count;
    const constants c = constants_of(run->divisor);
    group_hashes h = hashes_at(run->first);
    __m256i zero = _mm256_setzero_si256();
    sums s = {zero, zero, zero, zero};

    for (const uint32_t *tokens = run->tokens; tokens != end; tokens += GROUP)
        add_group(&s, tokens, &h, &c, by);
    return (iron__contribution){.count = run->count,
                                .sum = sum_of_remainders(&s, run->divisor->vocab),
                                .xors = xor_of_lanes(s.xors)};
}

static AVX2 iron__contribution reduce_mask(const iron__tokens_run *run) {
    return reduce_by(run, WAY_MASK);
}

static AVX2 iron__contribution reduce_quotient(const iron__tokens_run *run) {
    return reduce_by(run, WAY_QUOTIENT);
}

static AVX2 iron__contribution reduce_addend(const iron__tokens_run *run) {
    return reduce_by(run, WAY_ADDEND);
}

iron__contribution iron__tokens_avx2(const iron__tokens_run *run) {
    const iron__divisor *d = run->divisor;

    if (d->is_power_of_two)
        return iron__tokens_by_groups(run, reduce_mask);
    return iron__tokens_by_groups(run, d->addend ? reduce_addend : reduce_quotient);
}

#else

typedef int iron__tokens_avx2_is_for_x86_64;

#endif
