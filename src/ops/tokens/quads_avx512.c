/* SPDX-License-Identifier: MIT */
/*
 * quads_avx512.c: the seal and the statistics on x86-64 with AVX-512, sixteen quads a turn.
 *
 * The arithmetic is that of quads_avx2.c, which explains it: P and Q are pairs of tokens, M and N
 * pairs of keys, a multiply takes the low halves of 64-bit lanes. Vectors are twice as wide, so
 * that unpacking leaves eight quads in the order 0 4 1 5 2 6 3 7. Two things are new: a masked
 * shuffle makes an M of k0 and k1 in one operation, and there is a rotation by lanes. Operations
 * per sixteen quads: 19 for the keys, 36 for products, 16 for T, 8 for the extremes, on two ports.
 * Traffic: 4 bytes a token, one pass.
 */
#include "ops/tokens/quads_cpu.h"

#if defined(__x86_64__)

#include "ops/tokens/avx512.h"

#define TURN_QUADS 16u
#define EVEN_LANES 0x5555
#define ODD_LANES  0xAAAA

typedef struct lane_sums {
    __m512i a, b, pairs, odds; /* lanes of 64 bits */
    __m512i min, max;          /* of 32 */
} lane_sums;

/* Of sixteen quads: (k0, k1) of the first eight and of the others. */
typedef struct key_pairs {
    __m512i first, other;
} key_pairs;

AVX512_INLINE __m512i all(uint32_t x) { return _mm512_set1_epi32((int)x); }

/* z of the sixteen quads from this one on, before the rounds. */
AVX512_INLINE __m512i start_at(uint32_t low_quad) {
    const __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15);

    return _mm512_add_epi32(all(iron__quads_start(low_quad)),
                            _mm512_mullo_epi32(order, all(IRON_SEAL_STEP)));
}

AVX512_INLINE key_pairs keys_of(__m512i z, uint64_t window) {
    __m512i k0, k1;

    z = _mm512_xor_si512(z, _mm512_srli_epi32(z, IRON_SEAL_SHIFT_0));
    z = _mm512_mullo_epi32(z, all(IRON_SEAL_FACTOR_0));
    z = _mm512_xor_si512(z, _mm512_srli_epi32(z, IRON_SEAL_SHIFT_1));
    z = _mm512_mullo_epi32(z, all(IRON_SEAL_FACTOR_1));
    z = _mm512_xor_si512(z, _mm512_srli_epi32(z, IRON_SEAL_SHIFT_2));
    k0 = _mm512_xor_si512(z, all((uint32_t)window));
    k1 = _mm512_add_epi32(_mm512_mullo_epi32(z, all(IRON_SEAL_STEP)), all(IRON_SEAL_OTHER));
    k1 = _mm512_xor_si512(k1, all((uint32_t)(window >> 32)));
    return (key_pairs){_mm512_mask_shuffle_epi32(k0, ODD_LANES, k1, _MM_PERM_CCAA),
                       _mm512_mask_shuffle_epi32(k1, EVEN_LANES, k0, _MM_PERM_DDBB)};
}

/* (k2, k3) of (k0, k1). */
AVX512_INLINE __m512i rotated(__m512i m) {
    return _mm512_rolv_epi32(
        m, _mm512_set1_epi64((long long)IRON_SEAL_ROTATE_3 << 32 | IRON_SEAL_ROTATE_2));
}

AVX512_INLINE __m512i upper(__m512i x) { return _mm512_srli_epi64(x, 32); }

AVX512_INLINE __m512i add_product(__m512i sum, __m512i x, __m512i y) {
    return _mm512_add_epi64(sum, _mm512_mul_epu32(x, y));
}

AVX512_INLINE void add_pairs(lane_sums *s, __m512i pairs) {
    s->pairs = _mm512_add_epi64(s->pairs, pairs);
    s->odds = _mm512_add_epi64(s->odds, upper(pairs));
}

AVX512_INLINE void look_at(lane_sums *s, __m512i tokens) {
    s->min = _mm512_min_epu32(s->min, tokens);
    s->max = _mm512_max_epu32(s->max, tokens);
}

/* Eight quads. */
AVX512_INLINE void add_quads(lane_sums *s, const uint32_t *tokens, __m512i m, bool with_stats) {
    __m512i r0 = _mm512_loadu_si512(tokens), r1 = _mm512_loadu_si512(tokens + 16);
    __m512i p = _mm512_unpacklo_epi64(r0, r1), q = _mm512_unpackhi_epi64(r0, r1);
    __m512i n = rotated(m);
    __m512i pm = _mm512_add_epi32(p, m), qn = _mm512_add_epi32(q, n);
    __m512i pn = _mm512_add_epi32(p, n), qm = _mm512_add_epi32(q, m);

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

AVX512_INLINE void reduce_turns(const iron__quads_part *part, size_t turns, bool with_stats,
                                iron__quads_sums *out) {
    const __m512i zero = _mm512_setzero_si512();
    const uint32_t *tokens = part->tokens;
    __m512i z = start_at(part->low_quad);
    lane_sums s = {zero, zero, zero, zero, all(UINT32_MAX), zero};

    for (size_t k = 0; k < turns; k++, tokens += (size_t)4 * TURN_QUADS) {
        key_pairs m = keys_of(z, part->window);

        for (size_t line = 0; line < 64; line += 16)
            iron__quads_prefetch(part, tokens + line);
        add_quads(&s, tokens, m.first, with_stats);
        add_quads(&s, tokens + 32, m.other, with_stats);
        z = _mm512_add_epi32(z, all(TURN_QUADS * IRON_SEAL_STEP));
    }
    out->a += sum_of_lanes(s.a);
    out->b += sum_of_lanes(s.b);
    out->t += sum_of_lanes(s.pairs) - UINT32_MAX * sum_of_lanes(s.odds);
    iron__quads_extremes(out, _mm512_reduce_min_epu32(s.min), _mm512_reduce_max_epu32(s.max),
                         with_stats);
}

static AVX512 void reduce(const iron__quads_part *part, iron__quads_sums *sums) {
    size_t turns = part->quads / TURN_QUADS;
    iron__quads_part rest = iron__quads_rest(part, turns * TURN_QUADS);

    reduce_turns(part, turns, false, sums);
    iron__quads_few(&rest, sums);
}

static AVX512 void reduce_stats(const iron__quads_part *part, iron__quads_sums *sums) {
    size_t turns = part->quads / TURN_QUADS;
    iron__quads_part rest = iron__quads_rest(part, turns * TURN_QUADS);

    reduce_turns(part, turns, true, sums);
    iron__quads_few_stats(&rest, sums);
}

void iron__quads_avx512(const iron__quads_run *run, iron__seal_words *words,
                        iron__token_stats *stats) {
    static const iron__quads_loops loops = {reduce, reduce_stats, NULL};

    iron__quads_by_parts(run, &loops, words, stats);
}

#else

typedef int iron__quads_avx512_is_for_x86_64;

#endif
