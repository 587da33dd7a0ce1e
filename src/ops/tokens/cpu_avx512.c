/* SPDX-License-Identifier: MIT */
/*
 * cpu_avx512.c: the tokens op on x86-64 with AVX-512, a group of 16 tokens an instruction.
 *
 * The arithmetic is that of cpu_avx2.c, which explains it: tokens and quotients are summed instead
 * of remainders, in 64-bit lanes modulo 2^64, for whole pairs of tokens and for the odd ones, from
 * which the even ones follow. Operations per 16 tokens: 6.5 by mask, 11.5 by quotient, 13.5 with an
 * addend, on two vector ports.
 *
 * What is new is the half operation: vpternlogd takes the XOR of three vectors, so that groups go
 * by twos. Of an odd number of groups the first is paired with zeros, which add nothing to any sum:
 * the quotient of 0 is 0, since an addend is below 2^32 and the shift at least 32. First rather
 * than last, because gcc then keeps the sums where they are from turn to turn.
 *
 * A core has too few line fill buffers to hide the memory's latency. Asking 32 KiB ahead for lines
 * into the second-level cache, which has more, took 16 cores of a Xeon, on a shared host, from
 * 80-94 to 113-145 GB/s (one run of each, three vocabularies).
 * Traffic: 4 bytes a token, one pass.
 */
#include "ops/tokens/tokens.h"

#if defined(__x86_64__)

#include "core/mix.h"
#include "ops/tokens/avx512.h"

#define GROUP ((size_t)IRON_HASH_GROUP)

#define XOR_OF_THREE 0x96 /* vpternlogd's truth table of a ^ b ^ c */

typedef enum way { WAY_MASK, WAY_QUOTIENT, WAY_ADDEND } way;

/* The divisor, in every lane. */
typedef struct constants {
    __m512i mask, multiplier, addend, shift;
} constants;

typedef struct sums {
    __m512i xors;                   /* lanes of 32 bits */
    __m512i pairs, odds, quotients; /* lanes of 64 */
} sums;

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
AVX512_INLINE __m512i quotients_of(__m512i p, const constants *c, way by) {
    __m512i product = _mm512_mul_epu32(p, c->multiplier);

    if (by == WAY_ADDEND)
        product = _mm512_add_epi64(product, c->addend);
    return _mm512_srlv_epi64(product, c->shift);
}

AVX512_INLINE void add_remainders(sums *s, __m512i p, const constants *c, way by) {
    __m512i odd;

    if (by == WAY_MASK)
        p = _mm512_and_si512(p, c->mask);
    odd = _mm512_srli_epi64(p, 32);
    s->pairs = _mm512_add_epi64(s->pairs, p);
    s->odds = _mm512_add_epi64(s->odds, odd);
    if (by != WAY_MASK) {
        s->quotients = _mm512_add_epi64(s->quotients, quotients_of(p, c, by));
        s->quotients = _mm512_add_epi64(s->quotients, quotients_of(odd, c, by));
    }
}

/* Adds two groups of positioned tokens. */
AVX512_INLINE void add_groups(sums *s, __m512i p0, __m512i p1, const constants *c, way by) {
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

/* The mask's way has no quotients: its sum of them is 0. */
AVX512_INLINE uint64_t sum_of_remainders(const sums *s, uint32_t vocab) {
    uint64_t tokens = sum_of_lanes(s->pairs) - UINT32_MAX * sum_of_lanes(s->odds);

    return tokens - vocab * sum_of_lanes(s->quotients);
}

AVX512_INLINE iron__contribution reduce_by(const iron__tokens_run *run, way by) {
    const uint32_t *tokens = run->tokens, *end = tokens + run->count;
    const constants c = constants_of(run->divisor);
    const __m512i zero = _mm512_setzero_si512();
    __m512i hashes = hashes_at(run->first);
    sums s = {zero, zero, zero, zero};

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
    return reduce_by(run, WAY_MASK);
}

static AVX512 iron__contribution reduce_quotient(const iron__tokens_run *run) {
    return reduce_by(run, WAY_QUOTIENT);
}

static AVX512 iron__contribution reduce_addend(const iron__tokens_run *run) {
    return reduce_by(run, WAY_ADDEND);
}

iron__contribution iron__tokens_avx512(const iron__tokens_run *run) {
    const iron__divisor *d = run->divisor;

    if (d->is_power_of_two)
        return iron__tokens_by_groups(run, reduce_mask);
    return iron__tokens_by_groups(run, d->addend ? reduce_addend : reduce_quotient);
}

#else

typedef int iron__tokens_avx512_is_for_x86_64;

#endif
