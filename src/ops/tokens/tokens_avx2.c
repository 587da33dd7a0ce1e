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
#define AVX2        __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

#define GROUP IRON_HASH_GROUP

typedef enum method { METHOD_MASK, METHOD_QUOTIENT, METHOD_ADDEND } method;

typedef struct group_hashes {
    __m256i low, high;
} group_hashes;

/* The divisor, in every lane. */
typedef struct constants {
    __m256i mask, multiplier, addend, shift;
} constants;

typedef struct token_sums {
    __m256i xors;                   /* 32-bit lanes */
    __m256i pairs, odds, quotients; /* 64-bit lanes */
} token_sums;

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

/* Quotients of the four tokens in the low halves of 64-bit lanes. Each lane has its own shift
 * count: with one count for all, vpsrlq, Intel's cores need one more shuffle. */
AVX2_INLINE __m256i quotients_of(__m256i p, const constants *c, method by) {
    __m256i product = _mm256_mul_epu32(p, c->multiplier);

    if (by == METHOD_ADDEND)
        product = _mm256_add_epi64(product, c->addend);
    return _mm256_srlv_epi64(product, c->shift);
}

/* Adds eight positioned tokens. */
AVX2_INLINE void add_vector(token_sums *s, __m256i p, const constants *c, method by) {
    __m256i odd;

    s->xors = _mm256_xor_si256(s->xors, p);
    if (by == METHOD_MASK)
        p = _mm256_and_si256(p, c->mask);
    odd = _mm256_srli_epi64(p, 32);
    s->pairs = _mm256_add_epi64(s->pairs, p);
    s->odds = _mm256_add_epi64(s->odds, odd);
    if (by != METHOD_MASK) {
        s->quotients = _mm256_add_epi64(s->quotients, quotients_of(p, c, by));
        s->quotients = _mm256_add_epi64(s->quotients, quotients_of(odd, c, by));
    }
}

/* Adds 16 tokens and moves the hashes on to the next group. */
AVX2_INLINE void add_group(token_sums *s, const uint32_t *tokens, group_hashes *h,
                           const constants *c, method by) {
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

/* Method mask has no quotients: their sum is 0. */
AVX2_INLINE uint64_t sum_of_remainders(const token_sums *s, uint32_t vocab) {
    uint64_t tokens = sum_of_lanes(s->pairs) - UINT32_MAX * sum_of_lanes(s->odds);

    return tokens - vocab * sum_of_lanes(s->quotients);
}

AVX2_INLINE iron__contribution reduce_by(const iron__tokens_run *run, method by) {
    const uint32_t *end = run->tokens + run->count;
    const constants c = constants_of(run->divisor);
    group_hashes h = hashes_at(run->first);
    __m256i zero = _mm256_setzero_si256();
    token_sums s = {zero, zero, zero, zero};

    for (const uint32_t *tokens = run->tokens; tokens != end; tokens += GROUP)
        add_group(&s, tokens, &h, &c, by);
    return (iron__contribution){.count = run->count,
                                .sum = sum_of_remainders(&s, run->divisor->vocab),
                                .xors = xor_of_lanes(s.xors)};
}

static AVX2 iron__contribution reduce_mask(const iron__tokens_run *run) {
    return reduce_by(run, METHOD_MASK);
}

static AVX2 iron__contribution reduce_quotient(const iron__tokens_run *run) {
    return reduce_by(run, METHOD_QUOTIENT);
}

static AVX2 iron__contribution reduce_addend(const iron__tokens_run *run) {
    return reduce_by(run, METHOD_ADDEND);
}

static iron__contribution tokens_avx2(const iron__tokens_run *run) {
    const iron__divisor *d = run->divisor;

    if (d->is_power_of_two)
        return iron__tokens_by_groups(run, reduce_mask);
    return iron__tokens_by_groups(run, d->addend ? reduce_addend : reduce_quotient);
}

#define TURN_QUADS 8u
#define ODD_LANES  0xAA

typedef struct quad_sums {
    __m256i a, b; /* 64-bit lanes */
    __m256i pairs, odds;
    __m256i t;        /* with statistics, instead of pairs and odds; 32-bit lanes */
    __m256i min, max; /* 32-bit lanes */
} quad_sums;

/* The keys of eight quads. */
typedef struct quad_keys {
    __m256i k0, k1;
} quad_keys;

AVX2_INLINE __m256i all(uint32_t x) { return _mm256_set1_epi32((int)x); }

/* z of eight quads before the rounds; `order` says which quad of the turn each lane has. */
AVX2_INLINE __m256i start_at(uint32_t low_quad, __m256i order) {
    return _mm256_add_epi32(all(iron__quads_start(low_quad)),
                            _mm256_mullo_epi32(order, all(IRON_SEAL_STEP)));
}

AVX2_INLINE quad_keys keys_of(__m256i z, uint64_t window) {
    __m256i k0, k1;

    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, IRON_SEAL_SHIFT_0));
    z = _mm256_mullo_epi32(z, all(IRON_SEAL_FACTOR_0));
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, IRON_SEAL_SHIFT_1));
    z = _mm256_mullo_epi32(z, all(IRON_SEAL_FACTOR_1));
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, IRON_SEAL_SHIFT_2));
    k0 = _mm256_xor_si256(z, all((uint32_t)window));
    k1 = _mm256_add_epi32(_mm256_mullo_epi32(z, all(IRON_SEAL_STEP)), all(IRON_SEAL_OTHER));
    return (quad_keys){k0, _mm256_xor_si256(k1, all((uint32_t)(window >> 32)))};
}

/* (k2, k3) from (k0, k1). */
AVX2_INLINE __m256i rotated(__m256i m) {
    const __m256i left =
        _mm256_set1_epi64x((long long)IRON_SEAL_ROTATE_3 << 32 | IRON_SEAL_ROTATE_2);
    const __m256i right = _mm256_sub_epi32(all(32), left);

    return _mm256_or_si256(_mm256_sllv_epi32(m, left), _mm256_srlv_epi32(m, right));
}

AVX2_INLINE __m256i upper(__m256i x) { return _mm256_srli_epi64(x, 32); }

AVX2_INLINE __m256i add_product(__m256i sum, __m256i x, __m256i y) {
    return _mm256_add_epi64(sum, _mm256_mul_epu32(x, y));
}

AVX2_INLINE __m256i load(const void *tokens) { return _mm256_loadu_si256(tokens); }

AVX2_INLINE void add_pairs(quad_sums *s, __m256i pairs) {
    s->pairs = _mm256_add_epi64(s->pairs, pairs);
    s->odds = _mm256_add_epi64(s->odds, upper(pairs));
}

/* T and the statistics. */
AVX2_INLINE void look_at(quad_sums *s, __m256i tokens, iron__quads_want want) {
    s->t = _mm256_add_epi32(s->t, tokens);
    s->max = _mm256_max_epu32(s->max, tokens);
    if (want == IRON_QUADS_WANT_MIN_MAX)
        s->min = _mm256_min_epu32(s->min, tokens);
}

/* Four quads; m is (k0, k1) of each. */
AVX2_INLINE void add_quads(quad_sums *s, const uint32_t *tokens, __m256i m, iron__quads_want want) {
    __m256i r0 = load(tokens), r1 = load(tokens + 8);
    __m256i p = _mm256_unpacklo_epi64(r0, r1), q = _mm256_unpackhi_epi64(r0, r1);
    __m256i n = rotated(m);
    __m256i pm = _mm256_add_epi32(p, m), qn = _mm256_add_epi32(q, n);
    __m256i pn = _mm256_add_epi32(p, n), qm = _mm256_add_epi32(q, m);

    s->a = add_product(s->a, pm, upper(pm));
    s->a = add_product(s->a, qn, upper(qn));
    s->b = add_product(s->b, pn, qm);
    s->b = add_product(s->b, upper(pn), upper(qm));
    if (want == IRON_QUADS_WANT_NONE) {
        add_pairs(s, p);
        add_pairs(s, q);
    } else {
        look_at(s, r0, want);
        look_at(s, r1, want);
    }
}

AVX2_INLINE uint64_t sum_of_narrow_lanes(__m256i x) {
    return sum_of_lanes(_mm256_and_si256(x, _mm256_set1_epi64x(UINT32_MAX))) +
           sum_of_lanes(upper(x));
}

/* T of whole turns, for tokens of any size. */
static AVX2 uint64_t sum_of_tokens(const uint32_t *tokens, size_t turns) {
    quad_sums s = {.pairs = _mm256_setzero_si256(), .odds = _mm256_setzero_si256()};

    for (size_t k = 0; k < 4 * turns; k++)
        add_pairs(&s, load(tokens + k * 8));
    return sum_of_lanes(s.pairs) - UINT32_MAX * sum_of_lanes(s.odds);
}

AVX2_INLINE void fold_extremes(const quad_sums *s, iron__quads_sums *out) {
    uint32_t min[8], max[8];

    _mm256_storeu_si256((__m256i *)min, s->min);
    _mm256_storeu_si256((__m256i *)max, s->max);
    for (int k = 0; k < 8; k++)
        iron__quads_extremes(out, min[k], max[k], true);
}

AVX2_INLINE void seal_turns(const iron__quads_part *part, size_t turns, iron__quads_want want,
                            iron__quads_sums *out) {
    const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
    const __m256i zero = _mm256_setzero_si256();
    const uint32_t *tokens = part->tokens;
    __m256i z = start_at(part->low_quad, order);
    quad_sums s = {zero, zero, zero, zero, zero, all(UINT32_MAX), zero};

    for (size_t k = 0; k < turns; k++, tokens += (size_t)4 * TURN_QUADS) {
        quad_keys keys = keys_of(z, part->window);
        __m256i first = _mm256_blend_epi32(keys.k0, _mm256_slli_epi64(keys.k1, 32), ODD_LANES);
        __m256i other = _mm256_blend_epi32(upper(keys.k0), keys.k1, ODD_LANES);

        iron__quads_prefetch(part, tokens);
        iron__quads_prefetch(part, tokens + 16);
        add_quads(&s, tokens, first, want);
        add_quads(&s, tokens + 16, other, want);
        z = _mm256_add_epi32(z, all(TURN_QUADS * IRON_SEAL_STEP));
    }
    out->a += sum_of_lanes(s.a);
    out->b += sum_of_lanes(s.b);
    if (want == IRON_QUADS_WANT_NONE) {
        out->t += sum_of_lanes(s.pairs) - UINT32_MAX * sum_of_lanes(s.odds);
        return;
    }
    if (turns > 0)
        fold_extremes(&s, out);
    out->t += iron__quads_t_fits(out->max, 4 * turns) ? sum_of_narrow_lanes(s.t)
                                                      : sum_of_tokens(part->tokens, turns);
}

#define ROW_FUNCTION static AVX2
IRON_QUADS_DEFINE_LOOPS()

static void quads_avx2(const iron__quads_run *run, iron__seal_words *words,
                       iron__token_stats *stats) {
    iron__quads_by_parts(run, run->tokens, 4 * sizeof(uint32_t), &loops, words, stats);
}

typedef struct quad_sums_u16 {
    __m256i a, b;     /* 64-bit lanes */
    __m256i t;        /* 32-bit lanes */
    __m256i min, max; /* 16-bit lanes */
} quad_sums_u16;

AVX2_INLINE __m256i rotated_by(__m256i x, int by) {
    return _mm256_or_si256(_mm256_slli_epi32(x, by), _mm256_srli_epi32(x, 32 - by));
}

/* Adds the products x * y of all 32-bit lanes. */
AVX2_INLINE __m256i add_products(__m256i sum, __m256i x, __m256i y) {
    return add_product(add_product(sum, x, y), upper(x), upper(y));
}

/* Eight quads. Loads one token pair apart move odd lanes to even ones and back without a
 * shuffle. */
AVX2_INLINE void add_quads_u16(quad_sums_u16 *s, const uint16_t *tokens, quad_keys k,
                               iron__quads_want want) {
    __m256i r0 = load(tokens), r1 = load(tokens + 16);
    __m256i p = _mm256_blend_epi32(r0, load(tokens + 14), ODD_LANES);
    __m256i q = _mm256_blend_epi32(load(tokens + 2), r1, ODD_LANES);
    __m256i t0 = _mm256_and_si256(p, all(UINT16_MAX)), t1 = _mm256_srli_epi32(p, 16);
    __m256i t2 = _mm256_and_si256(q, all(UINT16_MAX)), t3 = _mm256_srli_epi32(q, 16);
    __m256i k2 = rotated_by(k.k0, IRON_SEAL_ROTATE_2);
    __m256i k3 = rotated_by(k.k1, IRON_SEAL_ROTATE_3);

    s->a = add_products(s->a, _mm256_add_epi32(t0, k.k0), _mm256_add_epi32(t1, k.k1));
    s->a = add_products(s->a, _mm256_add_epi32(t2, k2), _mm256_add_epi32(t3, k3));
    s->b = add_products(s->b, _mm256_add_epi32(t0, k2), _mm256_add_epi32(t2, k.k0));
    s->b = add_products(s->b, _mm256_add_epi32(t1, k3), _mm256_add_epi32(t3, k.k1));
    s->t = _mm256_add_epi32(s->t,
                            _mm256_add_epi32(_mm256_add_epi32(t0, t1), _mm256_add_epi32(t2, t3)));
    if (want != IRON_QUADS_WANT_NONE)
        s->max = _mm256_max_epu16(s->max, _mm256_max_epu16(r0, r1));
    if (want == IRON_QUADS_WANT_MIN_MAX)
        s->min = _mm256_min_epu16(s->min, _mm256_min_epu16(r0, r1));
}

AVX2_INLINE uint32_t min_of_lanes_u16(__m256i x) {
    __m128i half = _mm_min_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

    return (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(half), 0);
}

AVX2_INLINE uint32_t max_of_lanes_u16(__m256i x) {
    return UINT16_MAX - min_of_lanes_u16(_mm256_xor_si256(x, all(UINT32_MAX)));
}

/* A lane of T takes one quad per turn. */
_Static_assert(IRON_QUADS_BLOCK / TURN_QUADS * 4 <= UINT32_MAX / UINT16_MAX,
               "T of a block fits 32-bit lanes");

AVX2_INLINE void seal_turns_u16(const iron__quads_part *part, size_t turns, iron__quads_want want,
                                iron__quads_sums *out) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i zero = _mm256_setzero_si256();
    const uint16_t *tokens = part->tokens;
    __m256i z = start_at(part->low_quad, order);
    quad_sums_u16 s = {zero, zero, zero, all(UINT32_MAX), zero};

    for (size_t k = 0; k < turns; k++, tokens += (size_t)4 * TURN_QUADS) {
        iron__quads_prefetch(part, tokens);
        add_quads_u16(&s, tokens, keys_of(z, part->window), want);
        z = _mm256_add_epi32(z, all(TURN_QUADS * IRON_SEAL_STEP));
    }
    out->a += sum_of_lanes(s.a);
    out->b += sum_of_lanes(s.b);
    out->t += sum_of_narrow_lanes(s.t);
    iron__quads_extremes(out, min_of_lanes_u16(s.min), max_of_lanes_u16(s.max),
                         turns > 0 && want != IRON_QUADS_WANT_NONE);
}

IRON_QUADS_DEFINE_LOOPS(_u16)

static void quads_avx2_u16(const iron__quads_run_u16 *run, iron__seal_words *words,
                           iron__token_stats *stats) {
    const iron__quads_run shape = {NULL, run->quads, run->first_quad, run->vocab};

    iron__quads_by_parts(&shape, run->tokens, 4 * sizeof(uint16_t), &loops_u16, words, stats);
}

#define TOKENS_IDEA "8 tokens per operation, quotients summed instead of remainders"
#define SEAL_IDEA   "the keys of 8 quads per operation, 4 products per multiply"

const iron__vector_rows iron__rows_avx2 = {
    .tokens = {"tokens.cpu.vector.avx2", "vector", IRON_CPU_AVX2, tokens_avx2, false, false,
               TOKENS_IDEA, "tokens.cpu.scalar"},
    .tokens_threads = {"tokens.cpu.champion.avx2", "champion", IRON_CPU_AVX2, tokens_avx2, true,
                       false, TOKENS_IDEA ", on all threads", "tokens.cpu.vector.avx2"},
    .seal = {"seal.cpu.vector.avx2", "vector", IRON_CPU_AVX2, quads_avx2, quads_avx2_u16, false,
             SEAL_IDEA, "seal.cpu.reference"},
    .seal_threads = {"seal.cpu.champion.avx2", "champion", IRON_CPU_AVX2, quads_avx2,
                     quads_avx2_u16, true, SEAL_IDEA ", on all threads", "seal.cpu.vector.avx2"},
};

#else

typedef int iron__tokens_avx2_is_for_x86_64;

#endif
