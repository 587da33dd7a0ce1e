/* SPDX-License-Identifier: MIT */
/*
 * tokens_avx2.c: contribution and seal on x86-64 with AVX2. Traffic: one pass, 4 bytes per token.
 *
 * The contribution, eight tokens per instruction. A group of 16 positions is two vectors with two
 * running vectors of hashes. Instead of remainders the loop sums positioned tokens and quotients:
 * sum(p mod V) = sum(p) - V * sum(floor(p / V)). The only widening multiply, vpmuludq, reads the
 * low halves of 64-bit lanes: the even tokens as they are, the odd ones after a shift by 32.
 *
 * All sums are in 64-bit lanes modulo 2^64. The result is linear in them, so overflow does not
 * matter and a run may have any length, whatever the vocabulary. Nor must the even tokens be cut
 * out of their lanes, which are pairs, even + 2^32 * odd: with S the sum of whole pairs and O that
 * of the odd tokens, the even ones sum to S - 2^32 * O, all tokens to S - (2^32 - 1) * O.
 *
 * One loop with three methods, chosen by the divisor (core/divisor.h); operations per 8 tokens:
 *
 *   mask      power of two                  p & mask                     7
 *   quotient  others without an addend      p * multiplier >> shift     12
 *   addend    the rest                      the same with an addition   14
 *
 * Three vector ports need 4 cycles for 12 operations, longer than the latency of any of the sums;
 * so one group per turn and one set of sums are enough. With two of either gcc runs out of the 16
 * registers: 10 moves and 16 trips to the stack for 48 operations.
 *
 * The seal and the statistics, eight quads per turn. For vpmuludq a lane is a pair of tokens, and a
 * vector has the pairs of four quads: P the first two tokens of each, (a, b), and Q the other two,
 * (c, d). Keys are paired likewise, M = (k0, k1) and N = (k2, k3), and with X >> 32 for the upper
 * halves,
 *
 *     A += (P + M) * (P + M >> 32) + (Q + N) * (Q + N >> 32)
 *     B += (P + N) * (Q + M)       + (P + N >> 32) * (Q + M >> 32)
 *
 * Two shuffles, unpacklo and unpackhi, turn rows of tokens into P and Q and leave the quads in the
 * order 0 2 1 3; z is made in an order that fits. The scramble works on eight quads at a time: the
 * first four in even lanes, the other four in odd ones, so that one shift and one blend make an M
 * from k0 and k1. T uses pairs and odd tokens, as above; with statistics, a block's tokens are
 * summed in 32-bit lanes, and once more in the other way if its largest token shows that these may
 * have overflowed: they cannot for vocabularies up to 2^22. Operations per eight quads: 28 for the
 * keys, 36 for products, 4 for T (12 without statistics), 4 for the largest token, 4 for the
 * smallest.
 *
 * 16-bit tokens are read as they are stored. Each 64-bit lane is a quad, and two vectors become P
 * and Q with the first and the second half of eight quads in 32-bit lanes, four of one vector in
 * even lanes and four of the other in odd ones. From these come t0 ... t3, a lane per quad, as the
 * keys are: no pairing. Both lanes of all sums are multiplied, the odd ones after a shift.
 * Operations per eight quads: 22 for the keys, 38 for products, 4 for T, 2 for each extreme.
 */
#include "ops/tokens/tokens_cpu.h"

#if defined(__x86_64__)

#include "core/hash.h"

#include <immintrin.h>

/* The build has no -mavx2: each function that holds vectors names its target. The small ones must
 * be inlined into the loop, so that sums stay in registers and `by` is a constant. */
#define ROW_FUNCTION static __attribute__((target("avx2")))
#define INLINE       static inline __attribute__((target("avx2"), always_inline))

#define VECTOR        __m256i
#define OP(name)      _mm256_##name
#define OP_BITS(name) _mm256_##name##_si256
#define ALL64(x)      _mm256_set1_epi64x(x)
#define LOAD(pointer) _mm256_loadu_si256((const __m256i *)(pointer))

#define TURN_QUADS 8u
#define ORDER      _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7)
#define ORDER_U16  _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)
#define ODD_LANES  0xAA

/* The keys of eight quads. */
typedef struct quad_keys {
    __m256i k0, k1;
} quad_keys;

INLINE uint64_t sum_of_lanes(__m256i x) {
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

    return (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
}

INLINE uint32_t xor_of_lanes(__m256i x) {
    __m128i four = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    uint64_t two = (uint64_t)_mm_cvtsi128_si64(four) ^ (uint64_t)_mm_extract_epi64(four, 1);

    return (uint32_t)two ^ (uint32_t)(two >> 32);
}

INLINE uint32_t max_of_lanes(__m256i x) {
    uint32_t lanes[8], max = 0;

    _mm256_storeu_si256((__m256i *)lanes, x);
    for (int k = 0; k < 8; k++)
        max = lanes[k] > max ? lanes[k] : max;
    return max;
}

INLINE uint32_t min_of_lanes(__m256i x) {
    return ~max_of_lanes(_mm256_xor_si256(x, _mm256_set1_epi32(-1)));
}

INLINE uint32_t min_of_lanes_u16(__m256i x) {
    __m128i half = _mm_min_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

    return (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(half), 0);
}

#define ROTATED(x, by) _mm256_or_si256(_mm256_slli_epi32(x, by), _mm256_srli_epi32(x, 32 - (by)))

INLINE __m256i rotated(__m256i m) {
    const __m256i left =
        _mm256_set1_epi64x((long long)IRON_SEAL_ROTATE_3 << 32 | IRON_SEAL_ROTATE_2);
    const __m256i right = _mm256_sub_epi32(_mm256_set1_epi32(32), left);

    return _mm256_or_si256(_mm256_sllv_epi32(m, left), _mm256_srlv_epi32(m, right));
}

INLINE __m256i first_pairs(quad_keys k) {
    return _mm256_blend_epi32(k.k0, _mm256_slli_epi64(k.k1, 32), ODD_LANES);
}

INLINE __m256i other_pairs(quad_keys k) {
    return _mm256_blend_epi32(_mm256_srli_epi64(k.k0, 32), k.k1, ODD_LANES);
}

/* Loads one token pair apart move odd lanes to even ones and back without a shuffle. */
INLINE void split_u16(const uint16_t *tokens, __m256i r0, __m256i r1, __m256i *p, __m256i *q) {
    *p = _mm256_blend_epi32(r0, LOAD(tokens + 14), ODD_LANES);
    *q = _mm256_blend_epi32(LOAD(tokens + 2), r1, ODD_LANES);
}

#define upper_factor(y) upper(y)

#include "ops/tokens/tokens_x86.inc"

typedef struct group_hashes {
    __m256i low, high;
} group_hashes;

INLINE group_hashes hashes_at(uint64_t position) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i steps = _mm256_mullo_epi32(lanes, all(IRON_HASH_STEP));
    __m256i low = _mm256_add_epi32(all(iron__position_hash(position)), steps);

    return (group_hashes){low, _mm256_add_epi32(low, all(8 * IRON_HASH_STEP))};
}

/* Adds eight positioned tokens. */
INLINE void add_vector(token_sums *s, __m256i p, const constants *c, method by) {
    s->xors = _mm256_xor_si256(s->xors, p);
    add_remainders(s, p, c, by);
}

/* Adds 16 tokens and moves the hashes on to the next group. */
INLINE void add_group(token_sums *s, const char *tokens, bool is_u16, group_hashes *h,
                      const constants *c, method by) {
    const __m256i step = all(IRON_HASH_GROUP_STEP);
    __m256i low, high;

    if (is_u16) {
        low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)tokens));
        high = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(tokens + 16)));
    } else {
        low = LOAD(tokens);
        high = LOAD(tokens + 32);
    }
    iron__prefetch(tokens);
    add_vector(s, _mm256_add_epi32(low, h->low), c, by);
    add_vector(s, _mm256_add_epi32(high, h->high), c, by);
    *h = (group_hashes){_mm256_add_epi32(h->low, step), _mm256_add_epi32(h->high, step)};
}

INLINE iron__contribution reduce_groups(const iron__tokens_run *run, const char *tokens,
                                        bool is_u16, method by) {
    const char *end = tokens + run->count / IRON_HASH_GROUP * group_bytes(is_u16);
    const constants c = constants_of(run->divisor);
    group_hashes h = hashes_at(run->first);
    token_sums s = {all(0), all(0), all(0), all(0)};

    for (; tokens != end; tokens += group_bytes(is_u16))
        add_group(&s, tokens, is_u16, &h, &c, by);
    return contribution_of(&s, run);
}

const iron__vector_rows iron__rows_avx2 =
    IRON_VECTOR_ROWS("avx2", IRON_CPU_AVX2, reduce_tokens,
                     "8 tokens per operation, quotients summed instead of remainders", take,
                     take_u16, "the keys of 8 quads per operation, 4 products per multiply");

#else

typedef int iron__tokens_avx2_is_for_x86_64;

#endif
