/* SPDX-License-Identifier: MIT */
/*
 * tokens_avx512.c: contribution and seal on x86-64 with AVX-512. Traffic: one pass, 4 bytes per
 * token. The arithmetic is that of tokens_avx2.c, which explains it, in vectors twice as wide.
 *
 * The contribution, a group of 16 tokens per instruction. Operations per 16 tokens: 6.5 by mask,
 * 11.5 by quotient, 13.5 with an addend, on two vector ports. The half operation is vpternlogd: it
 * takes the XOR of three vectors, so groups are processed in pairs. Of an odd number of groups the
 * first is paired with zeros, which add nothing to any sum: the quotient of 0 is 0, since an addend
 * is below 2^32 and the shift at least 32. First rather than last, because gcc then keeps the sums
 * in the same registers from turn to turn.
 *
 * A core has too few line fill buffers to hide the memory's latency. Prefetching 32 KiB ahead into
 * the second-level cache, which has more, took 16 cores of a Xeon on a shared host from 80-94 to
 * 113-145 GB/s (one run of each, three vocabularies).
 *
 * The seal and the statistics, sixteen quads per turn. Unpacking leaves eight quads in the order
 * 0 4 1 5 2 6 3 7. Two things are new: a masked shuffle makes an M from k0 and k1 in one operation,
 * and there is a rotation with a count per lane. Operations per sixteen quads, on two ports: 18 for
 * the keys, 38 for products, 4 for T (12 without statistics), 4 for the largest token, 4 for the
 * smallest. For 16-bit tokens: 18, 38, 4, 2 and 2.
 */
#include "ops/tokens/tokens_cpu.h"

#if defined(__x86_64__)

#include "core/hash.h"

#include <immintrin.h>

/* The build has no -mavx512f: each function that holds vectors names its target. The small ones
 * must be inlined into the loop, so that sums stay in registers. */
#define TARGET        target("avx512f,avx512bw,avx512dq,avx512vl")
#define AVX512        __attribute__((TARGET))
#define AVX512_INLINE static inline __attribute__((TARGET, always_inline))

#define GROUP ((size_t)IRON_HASH_GROUP)

/* Modulo 2^64. The compiler's intrinsic adds signed numbers, which must not overflow. */
AVX512_INLINE uint64_t sum_of_lanes(__m512i x) {
    uint64_t lanes[8], sum = 0;

    _mm512_storeu_si512(lanes, x);
    for (int k = 0; k < 8; k++)
        sum += lanes[k];
    return sum;
}

#define XOR_OF_THREE 0x96 /* vpternlogd's truth table of a ^ b ^ c */

typedef enum method { METHOD_MASK, METHOD_QUOTIENT, METHOD_ADDEND } method;

/* The divisor, in every lane. */
typedef struct constants {
    __m512i mask, multiplier, addend, shift;
} constants;

typedef struct token_sums {
    __m512i xors;                   /* 32-bit lanes */
    __m512i pairs, odds, quotients; /* 64-bit lanes */
} token_sums;

AVX512_INLINE __m512i hashes_at(uint64_t position) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i steps = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(IRON_HASH_STEP));

    return _mm512_add_epi32(_mm512_set1_epi32((int)iron__position_hash(position)), steps);
}

AVX512_INLINE constants constants_of(const iron__divisor *d) {
    return (constants){.mask = _mm512_set1_epi32((int)(d->vocab - 1)),
                       .multiplier = _mm512_set1_epi64((long long)d->multiplier),
                       .addend = _mm512_set1_epi64((long long)d->addend),
                       .shift = _mm512_set1_epi64((long long)d->shift)};
}

/* Loads 16 tokens, adds their hashes and moves the hashes on to the next group. */
AVX512_INLINE __m512i next_group(const uint32_t *tokens, __m512i *hashes) {
    __m512i p = _mm512_add_epi32(_mm512_loadu_si512(tokens), *hashes);

    iron__tokens_prefetch(tokens);
    *hashes = _mm512_add_epi32(*hashes, _mm512_set1_epi32(IRON_HASH_GROUP_STEP));
    return p;
}

/* Quotients of the eight tokens in the low halves of 64-bit lanes. */
AVX512_INLINE __m512i quotients_of(__m512i p, const constants *c, method by) {
    __m512i product = _mm512_mul_epu32(p, c->multiplier);

    if (by == METHOD_ADDEND)
        product = _mm512_add_epi64(product, c->addend);
    return _mm512_srlv_epi64(product, c->shift);
}

AVX512_INLINE void add_remainders(token_sums *s, __m512i p, const constants *c, method by) {
    __m512i odd;

    if (by == METHOD_MASK)
        p = _mm512_and_si512(p, c->mask);
    odd = _mm512_srli_epi64(p, 32);
    s->pairs = _mm512_add_epi64(s->pairs, p);
    s->odds = _mm512_add_epi64(s->odds, odd);
    if (by != METHOD_MASK) {
        s->quotients = _mm512_add_epi64(s->quotients, quotients_of(p, c, by));
        s->quotients = _mm512_add_epi64(s->quotients, quotients_of(odd, c, by));
    }
}

/* Adds two groups of positioned tokens. */
AVX512_INLINE void add_groups(token_sums *s, __m512i p0, __m512i p1, const constants *c,
                              method by) {
    s->xors = _mm512_ternarylogic_epi32(s->xors, p0, p1, XOR_OF_THREE);
    add_remainders(s, p0, c, by);
    add_remainders(s, p1, c, by);
}

AVX512_INLINE uint32_t xor_of_lanes(__m512i x) {
    uint32_t lanes[GROUP], all = 0;

    _mm512_storeu_si512(lanes, x);
    for (size_t k = 0; k < GROUP; k++)
        all ^= lanes[k];
    return all;
}

/* Method mask has no quotients: their sum is 0. */
AVX512_INLINE uint64_t sum_of_remainders(const token_sums *s, uint32_t vocab) {
    uint64_t tokens = sum_of_lanes(s->pairs) - UINT32_MAX * sum_of_lanes(s->odds);

    return tokens - vocab * sum_of_lanes(s->quotients);
}

AVX512_INLINE iron__contribution reduce_by(const iron__tokens_run *run, method by) {
    const uint32_t *tokens = run->tokens, *end = tokens + run->count;
    const constants c = constants_of(run->divisor);
    const __m512i zero = _mm512_setzero_si512();
    __m512i hashes = hashes_at(run->first);
    token_sums s = {zero, zero, zero, zero};

    if (run->count / GROUP % 2 == 1) {
        add_groups(&s, next_group(tokens, &hashes), zero, &c, by);
        tokens += GROUP;
    }
    for (; tokens != end; tokens += 2 * GROUP) {
        __m512i p0 = next_group(tokens, &hashes);
        __m512i p1 = next_group(tokens + GROUP, &hashes);

        add_groups(&s, p0, p1, &c, by);
    }
    return (iron__contribution){.count = run->count,
                                .sum = sum_of_remainders(&s, run->divisor->vocab),
                                .xors = xor_of_lanes(s.xors)};
}

static AVX512 iron__contribution reduce_mask(const iron__tokens_run *run) {
    return reduce_by(run, METHOD_MASK);
}

static AVX512 iron__contribution reduce_quotient(const iron__tokens_run *run) {
    return reduce_by(run, METHOD_QUOTIENT);
}

static AVX512 iron__contribution reduce_addend(const iron__tokens_run *run) {
    return reduce_by(run, METHOD_ADDEND);
}

static iron__contribution tokens_avx512(const iron__tokens_run *run) {
    const iron__divisor *d = run->divisor;

    if (d->is_power_of_two)
        return iron__tokens_by_groups(run, reduce_mask);
    return iron__tokens_by_groups(run, d->addend ? reduce_addend : reduce_quotient);
}

#define TURN_QUADS 16u
#define EVEN_LANES 0x5555
#define ODD_LANES  0xAAAA

typedef struct quad_sums {
    __m512i a, b; /* 64-bit lanes */
    __m512i pairs, odds;
    __m512i t;        /* with statistics, instead of pairs and odds; 32-bit lanes */
    __m512i min, max; /* 32-bit lanes */
} quad_sums;

/* The keys of sixteen quads. */
typedef struct quad_keys {
    __m512i k0, k1;
} quad_keys;

AVX512_INLINE __m512i all(uint32_t x) { return _mm512_set1_epi32((int)x); }

/* z of sixteen quads before the rounds; `order` says which quad of the turn each lane has. */
AVX512_INLINE __m512i start_at(uint32_t low_quad, __m512i order) {
    return _mm512_add_epi32(all(iron__quads_start(low_quad)),
                            _mm512_mullo_epi32(order, all(IRON_SEAL_STEP)));
}

AVX512_INLINE quad_keys keys_of(__m512i z, uint64_t window) {
    __m512i k0, k1;

    z = _mm512_xor_si512(z, _mm512_srli_epi32(z, IRON_SEAL_SHIFT_0));
    z = _mm512_mullo_epi32(z, all(IRON_SEAL_FACTOR_0));
    z = _mm512_xor_si512(z, _mm512_srli_epi32(z, IRON_SEAL_SHIFT_1));
    z = _mm512_mullo_epi32(z, all(IRON_SEAL_FACTOR_1));
    z = _mm512_xor_si512(z, _mm512_srli_epi32(z, IRON_SEAL_SHIFT_2));
    k0 = _mm512_xor_si512(z, all((uint32_t)window));
    k1 = _mm512_add_epi32(_mm512_mullo_epi32(z, all(IRON_SEAL_STEP)), all(IRON_SEAL_OTHER));
    return (quad_keys){k0, _mm512_xor_si512(k1, all((uint32_t)(window >> 32)))};
}

/* (k2, k3) from (k0, k1). */
AVX512_INLINE __m512i rotated(__m512i m) {
    return _mm512_rolv_epi32(
        m, _mm512_set1_epi64((long long)IRON_SEAL_ROTATE_3 << 32 | IRON_SEAL_ROTATE_2));
}

/* The even lanes of x, and between them those of y; or the odd ones. */
AVX512_INLINE __m512i even_lanes(__m512i x, __m512i y) {
    return _mm512_mask_shuffle_epi32(x, ODD_LANES, y, _MM_PERM_CCAA);
}

AVX512_INLINE __m512i odd_lanes(__m512i x, __m512i y) {
    return _mm512_mask_shuffle_epi32(y, EVEN_LANES, x, _MM_PERM_DDBB);
}

AVX512_INLINE __m512i upper(__m512i x) { return _mm512_srli_epi64(x, 32); }

AVX512_INLINE __m512i add_product(__m512i sum, __m512i x, __m512i y) {
    return _mm512_add_epi64(sum, _mm512_mul_epu32(x, y));
}

AVX512_INLINE void add_pairs(quad_sums *s, __m512i pairs) {
    s->pairs = _mm512_add_epi64(s->pairs, pairs);
    s->odds = _mm512_add_epi64(s->odds, upper(pairs));
}

/* T and the statistics. */
AVX512_INLINE void look_at(quad_sums *s, __m512i tokens, iron__quads_want want) {
    s->t = _mm512_add_epi32(s->t, tokens);
    s->max = _mm512_max_epu32(s->max, tokens);
    if (want == IRON_QUADS_WANT_MIN_MAX)
        s->min = _mm512_min_epu32(s->min, tokens);
}

/* Eight quads; m is (k0, k1) of each. */
AVX512_INLINE void add_quads(quad_sums *s, const uint32_t *tokens, __m512i m,
                             iron__quads_want want) {
    __m512i r0 = _mm512_loadu_si512(tokens), r1 = _mm512_loadu_si512(tokens + 16);
    __m512i p = _mm512_unpacklo_epi64(r0, r1), q = _mm512_unpackhi_epi64(r0, r1);
    __m512i n = rotated(m);
    __m512i pm = _mm512_add_epi32(p, m), qn = _mm512_add_epi32(q, n);
    __m512i pn = _mm512_add_epi32(p, n), qm = _mm512_add_epi32(q, m);

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

AVX512_INLINE uint64_t sum_of_narrow_lanes(__m512i x) {
    return sum_of_lanes(_mm512_and_si512(x, _mm512_set1_epi64(UINT32_MAX))) +
           sum_of_lanes(upper(x));
}

/* T of whole turns, for tokens of any size. */
static AVX512 uint64_t sum_of_tokens(const uint32_t *tokens, size_t turns) {
    quad_sums s = {.pairs = _mm512_setzero_si512(), .odds = _mm512_setzero_si512()};

    for (size_t k = 0; k < 4 * turns; k++)
        add_pairs(&s, _mm512_loadu_si512(tokens + k * 16));
    return sum_of_lanes(s.pairs) - UINT32_MAX * sum_of_lanes(s.odds);
}

AVX512_INLINE void seal_turns(const iron__quads_part *part, size_t turns, iron__quads_want want,
                              iron__quads_sums *out) {
    const __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15);
    const __m512i zero = _mm512_setzero_si512();
    const uint32_t *tokens = part->tokens;
    __m512i z = start_at(part->low_quad, order);
    quad_sums s = {zero, zero, zero, zero, zero, all(UINT32_MAX), zero};
    uint32_t max;

    for (size_t k = 0; k < turns; k++, tokens += (size_t)4 * TURN_QUADS) {
        quad_keys keys = keys_of(z, part->window);

        for (size_t line = 0; line < 64; line += 16)
            iron__quads_prefetch(part, tokens + line);
        add_quads(&s, tokens, even_lanes(keys.k0, keys.k1), want);
        add_quads(&s, tokens + 32, odd_lanes(keys.k0, keys.k1), want);
        z = _mm512_add_epi32(z, all(TURN_QUADS * IRON_SEAL_STEP));
    }
    out->a += sum_of_lanes(s.a);
    out->b += sum_of_lanes(s.b);
    if (want == IRON_QUADS_WANT_NONE) {
        out->t += sum_of_lanes(s.pairs) - UINT32_MAX * sum_of_lanes(s.odds);
        return;
    }
    max = _mm512_reduce_max_epu32(s.max);
    iron__quads_extremes(out, _mm512_reduce_min_epu32(s.min), max, turns > 0);
    out->t += iron__quads_t_fits(max, 4 * turns) ? sum_of_narrow_lanes(s.t)
                                                 : sum_of_tokens(part->tokens, turns);
}

#define ROW_FUNCTION static AVX512
IRON_QUADS_DEFINE_LOOPS()

static void quads_avx512(const iron__quads_run *run, iron__seal_words *words,
                         iron__token_stats *stats) {
    iron__quads_by_parts(run, run->tokens, 4 * sizeof(uint32_t), &loops, words, stats);
}

typedef struct quad_sums_u16 {
    __m512i a, b;     /* 64-bit lanes */
    __m512i t;        /* 32-bit lanes */
    __m512i min, max; /* 16-bit lanes */
} quad_sums_u16;

/* Adds the products x * y of all 32-bit lanes. Shifts are done by one port and shuffles by the
 * other. */
AVX512_INLINE __m512i add_products(__m512i sum, __m512i x, __m512i y) {
    return add_product(add_product(sum, x, y), upper(x), _mm512_shuffle_epi32(y, _MM_PERM_DDBB));
}

/* Sixteen quads. */
AVX512_INLINE void add_quads_u16(quad_sums_u16 *s, const uint16_t *tokens, quad_keys k,
                                 iron__quads_want want) {
    __m512i r0 = _mm512_loadu_si512(tokens), r1 = _mm512_loadu_si512(tokens + 32);
    __m512i p = even_lanes(r0, r1), q = odd_lanes(r0, r1);
    __m512i t0 = _mm512_and_si512(p, all(UINT16_MAX)), t1 = _mm512_srli_epi32(p, 16);
    __m512i t2 = _mm512_and_si512(q, all(UINT16_MAX)), t3 = _mm512_srli_epi32(q, 16);
    __m512i k2 = _mm512_rol_epi32(k.k0, IRON_SEAL_ROTATE_2);
    __m512i k3 = _mm512_rol_epi32(k.k1, IRON_SEAL_ROTATE_3);

    s->a = add_products(s->a, _mm512_add_epi32(t0, k.k0), _mm512_add_epi32(t1, k.k1));
    s->a = add_products(s->a, _mm512_add_epi32(t2, k2), _mm512_add_epi32(t3, k3));
    s->b = add_products(s->b, _mm512_add_epi32(t0, k2), _mm512_add_epi32(t2, k.k0));
    s->b = add_products(s->b, _mm512_add_epi32(t1, k3), _mm512_add_epi32(t3, k.k1));
    s->t = _mm512_add_epi32(s->t,
                            _mm512_add_epi32(_mm512_add_epi32(t0, t1), _mm512_add_epi32(t2, t3)));
    if (want != IRON_QUADS_WANT_NONE)
        s->max = _mm512_max_epu16(s->max, _mm512_max_epu16(r0, r1));
    if (want == IRON_QUADS_WANT_MIN_MAX)
        s->min = _mm512_min_epu16(s->min, _mm512_min_epu16(r0, r1));
}

AVX512_INLINE uint32_t min_of_lanes_u16(__m512i x) {
    __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    __m128i quarter =
        _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));

    return (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
}

AVX512_INLINE uint32_t max_of_lanes_u16(__m512i x) {
    return UINT16_MAX - min_of_lanes_u16(_mm512_xor_si512(x, all(UINT32_MAX)));
}

/* A lane of T takes one quad per turn. */
_Static_assert(IRON_QUADS_BLOCK / TURN_QUADS * 4 <= UINT32_MAX / UINT16_MAX,
               "T of a block fits 32-bit lanes");

AVX512_INLINE void seal_turns_u16(const iron__quads_part *part, size_t turns, iron__quads_want want,
                                  iron__quads_sums *out) {
    const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const __m512i zero = _mm512_setzero_si512();
    const uint16_t *tokens = part->tokens;
    __m512i z = start_at(part->low_quad, order);
    quad_sums_u16 s = {zero, zero, zero, all(UINT32_MAX), zero};

    for (size_t k = 0; k < turns; k++, tokens += (size_t)4 * TURN_QUADS) {
        iron__quads_prefetch(part, tokens);
        iron__quads_prefetch(part, tokens + 32);
        add_quads_u16(&s, tokens, keys_of(z, part->window), want);
        z = _mm512_add_epi32(z, all(TURN_QUADS * IRON_SEAL_STEP));
    }
    out->a += sum_of_lanes(s.a);
    out->b += sum_of_lanes(s.b);
    out->t += sum_of_narrow_lanes(s.t);
    iron__quads_extremes(out, min_of_lanes_u16(s.min), max_of_lanes_u16(s.max),
                         turns > 0 && want != IRON_QUADS_WANT_NONE);
}

IRON_QUADS_DEFINE_LOOPS(_u16)

static void quads_avx512_u16(const iron__quads_run_u16 *run, iron__seal_words *words,
                             iron__token_stats *stats) {
    const iron__quads_run shape = {NULL, run->quads, run->first_quad, run->vocab};

    iron__quads_by_parts(&shape, run->tokens, 4 * sizeof(uint16_t), &loops_u16, words, stats);
}

#define TOKENS_IDEA "16 tokens per operation, quotients summed instead of remainders"
#define SEAL_IDEA   "the keys of 16 quads per operation, 8 products per multiply"

const iron__vector_rows iron__rows_avx512 = {
    .tokens = {"tokens.cpu.vector.avx512", "vector", IRON_CPU_AVX512, tokens_avx512, false, false,
               TOKENS_IDEA, "tokens.cpu.scalar"},
    .tokens_threads = {"tokens.cpu.champion.avx512", "champion", IRON_CPU_AVX512, tokens_avx512,
                       true, false, TOKENS_IDEA ", on all threads", "tokens.cpu.vector.avx512"},
    .seal = {"seal.cpu.vector.avx512", "vector", IRON_CPU_AVX512, quads_avx512, quads_avx512_u16,
             false, SEAL_IDEA, "seal.cpu.reference"},
    .seal_threads = {"seal.cpu.champion.avx512", "champion", IRON_CPU_AVX512, quads_avx512,
                     quads_avx512_u16, true, SEAL_IDEA ", on all threads",
                     "seal.cpu.vector.avx512"},
};

#else

typedef int iron__tokens_avx512_is_for_x86_64;

#endif
