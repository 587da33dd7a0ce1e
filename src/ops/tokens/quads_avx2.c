/* SPDX-License-Identifier: MIT */
/*
 * quads_avx2.c: the seal and the statistics on x86-64 with AVX2, eight quads a turn.
 *
 * The one widening multiply, vpmuludq, reads the low halves of 64-bit lanes. So a lane is a pair of
 * tokens, and a vector has the pairs of four quads: P the first two tokens of each, (a, b), and Q
 * the other two, (c, d). Keys come in pairs likewise, M = (k0, k1) and N = (k2, k3), and with
 * X >> 32 for the upper halves,
 *
 *     A += (P + M) * (P + M >> 32) + (Q + N) * (Q + N >> 32)
 *     B += (P + N) * (Q + M)       + (P + N >> 32) * (Q + M >> 32)
 *
 * Rows of tokens become P and Q by two shuffles, unpacklo and unpackhi, which leave the quads in
 * the order 0 2 1 3; z is made in an order that fits. The scramble works on eight quads at a time:
 * those of the first four stand in even lanes, those of the other four in odd ones, so that one
 * shift and one blend make an M of k0 and k1. T goes by pairs and odd tokens, as in cpu_avx2.c.
 * Operations per eight quads: 29 for the keys, 36 for products, 16 for T, 8 for the extremes.
 * Traffic: 4 bytes a token, one pass.
 */
#include "ops/tokens/quads_cpu.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TURN_QUADS 8u
#define ODD_LANES  0xAA

/* The build has no -mavx2: each function that holds vectors says so itself. The small ones must
 * dissolve in the loop, for the sums to stay in registers. */
#define AVX2        __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

typedef struct lane_sums {
    __m256i a, b, pairs, odds; /* lanes of 64 bits */
    __m256i min, max;          /* of 32 */
} lane_sums;

/* Of eight quads: (k0, k1) of the first four and of the others. */
typedef struct key_pairs {
    __m256i first, other;
} key_pairs;

AVX2_INLINE __m256i all(uint32_t x) { return _mm256_set1_epi32((int)x); }

/* z of the eight quads from this one on, before the rounds. */
AVX2_INLINE __m256i start_at(uint32_t low_quad) {
    const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);

    return _mm256_add_epi32(all(iron__quads_start(low_quad)),
                            _mm256_mullo_epi32(order, all(IRON_SEAL_STEP)));
}

AVX2_INLINE key_pairs keys_of(__m256i z, uint64_t window) {
    __m256i k0, k1;

    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, IRON_SEAL_SHIFT_0));
    z = _mm256_mullo_epi32(z, all(IRON_SEAL_FACTOR_0));
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, IRON_SEAL_SHIFT_1));
    z = _mm256_mullo_epi32(z, all(IRON_SEAL_FACTOR_1));
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, IRON_SEAL_SHIFT_2));
    k0 = _mm256_xor_si256(z, all((uint32_t)window));
    k1 = _mm256_add_epi32(_mm256_mullo_epi32(z, all(IRON_SEAL_STEP)), all(IRON_SEAL_OTHER));
    k1 = _mm256_xor_si256(k1, all((uint32_t)(window >> 32)));
    return (key_pairs){_mm256_blend_epi32(k0, _mm256_slli_epi64(k1, 32), ODD_LANES),
                       _mm256_blend_epi32(_mm256_srli_epi64(k0, 32), k1, ODD_LANES)};
}

/* (k2, k3) of (k0, k1). */
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

AVX2_INLINE void add_pairs(lane_sums *s, __m256i pairs) {
    s->pairs = _mm256_add_epi64(s->pairs, pairs);
    s->odds = _mm256_add_epi64(s->odds, upper(pairs));
}

AVX2_INLINE void look_at(lane_sums *s, __m256i tokens) {
    s->min = _mm256_min_epu32(s->min, tokens);
    s->max = _mm256_max_epu32(s->max, tokens);
}

/* Four quads. */
AVX2_INLINE void add_quads(lane_sums *s, const uint32_t *tokens, __m256i m, bool with_stats) {
    __m256i r0 = _mm256_loadu_si256((const __m256i *)tokens);
    __m256i r1 = _mm256_loadu_si256((const __m256i *)(tokens + 8));
    __m256i p = _mm256_unpacklo_epi64(r0, r1), q = _mm256_unpackhi_epi64(r0, r1);
    __m256i n = rotated(m);
    __m256i pm = _mm256_add_epi32(p, m), qn = _mm256_add_epi32(q, n);
    __m256i pn = _mm256_add_epi32(p, n), qm = _mm256_add_epi32(q, m);

    s->a = add_product(s->a, pm, upper(pm));
    s->a = add_product(s->a, qn, upper(qn));
    s->b = add_product(s->b, pn, qm);
    s->b = add_product(s->b, upper(pn), upper(qm));
    add_pairs(s, p);
    add_pairs(s, q);
    if (with_stats) {
        look_at(s, r0);
        look_at(s, r1);
    }
}

AVX2_INLINE uint64_t sum_of_lanes(__m256i x) {
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

    return (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
}

AVX2_INLINE void fold_extremes(const lane_sums *s, iron__quads_sums *out) {
    uint32_t min[8], max[8];

    _mm256_storeu_si256((__m256i *)min, s->min);
    _mm256_storeu_si256((__m256i *)max, s->max);
    for (int k = 0; k < 8; k++)
        iron__quads_extremes(out, min[k], max[k], true);
}

AVX2_INLINE void reduce_turns(const iron__quads_part *part, size_t turns, bool with_stats,
                              iron__quads_sums *out) {
    const __m256i zero = _mm256_setzero_si256();
    const uint32_t *tokens = part->tokens;
    __m256i z = start_at(part->low_quad);
    lane_sums s = {zero, zero, zero, zero, all(UINT32_MAX), zero};

    for (size_t k = 0; k < turns; k++, tokens += (size_t)4 * TURN_QUADS) {
        key_pairs m = keys_of(z, part->window);

        iron__quads_prefetch(part, tokens);
        iron__quads_prefetch(part, tokens + 16);
        add_quads(&s, tokens, m.first, with_stats);
        add_quads(&s, tokens + 16, m.other, with_stats);
        z = _mm256_add_epi32(z, all(TURN_QUADS * IRON_SEAL_STEP));
    }
    out->a += sum_of_lanes(s.a);
    out->b += sum_of_lanes(s.b);
    out->t += sum_of_lanes(s.pairs) - UINT32_MAX * sum_of_lanes(s.odds);
    if (with_stats)
        fold_extremes(&s, out);
}

static AVX2 void reduce(const iron__quads_part *part, iron__quads_sums *sums) {
    size_t turns = part->quads / TURN_QUADS;
    iron__quads_part rest = iron__quads_rest(part, turns * TURN_QUADS);

    reduce_turns(part, turns, false, sums);
    iron__quads_few(&rest, sums);
}

static AVX2 void reduce_stats(const iron__quads_part *part, iron__quads_sums *sums) {
    size_t turns = part->quads / TURN_QUADS;
    iron__quads_part rest = iron__quads_rest(part, turns * TURN_QUADS);

    reduce_turns(part, turns, true, sums);
    iron__quads_few_stats(&rest, sums);
}

void iron__quads_avx2(const iron__quads_run *run, iron__seal_words *words,
                      iron__token_stats *stats) {
    static const iron__quads_loops loops = {reduce, reduce_stats, NULL};

    iron__quads_by_parts(run, &loops, words, stats);
}

#else

typedef int iron__quads_avx2_is_for_x86_64;

#endif
