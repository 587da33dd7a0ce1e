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
#define TARGET       target("avx512f,avx512bw,avx512dq,avx512vl")
#define ROW_FUNCTION static __attribute__((TARGET))
#define INLINE       static inline __attribute__((TARGET, always_inline))

#define VECTOR        __m512i
#define OP(name)      _mm512_##name
#define OP_BITS(name) _mm512_##name##_si512
#define ALL64(x)      _mm512_set1_epi64(x)
#define LOAD(pointer) _mm512_loadu_si512(pointer)

#define TURN_QUADS 16u
#define ORDER      _mm512_setr_epi32(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15)
#define ORDER_U16  _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
#define EVEN_LANES 0x5555
#define ODD_LANES  0xAAAA

#define GROUP ((size_t)IRON_HASH_GROUP)

/* The keys of sixteen quads. */
typedef struct quad_keys {
    __m512i k0, k1;
} quad_keys;

/* The compiler's intrinsic adds signed numbers, which must not overflow. */
INLINE uint64_t sum_of_lanes(__m512i x) {
    uint64_t lanes[8], sum = 0;

    _mm512_storeu_si512(lanes, x);
    for (int k = 0; k < 8; k++)
        sum += lanes[k];
    return sum;
}

INLINE uint32_t xor_of_lanes(__m512i x) {
    uint32_t lanes[GROUP], xors = 0;

    _mm512_storeu_si512(lanes, x);
    for (size_t k = 0; k < GROUP; k++)
        xors ^= lanes[k];
    return xors;
}

#define min_of_lanes(x) _mm512_reduce_min_epu32(x)
#define max_of_lanes(x) _mm512_reduce_max_epu32(x)

INLINE uint32_t min_of_lanes_u16(__m512i x) {
    __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    __m128i quarter =
        _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));

    return (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
}

#define ROTATED(x, by) _mm512_rol_epi32(x, by)

INLINE __m512i rotated(__m512i m) {
    return _mm512_rolv_epi32(
        m, _mm512_set1_epi64((long long)IRON_SEAL_ROTATE_3 << 32 | IRON_SEAL_ROTATE_2));
}

/* The even lanes of x, and between them those of y; or the odd ones. */
INLINE __m512i even_lanes(__m512i x, __m512i y) {
    return _mm512_mask_shuffle_epi32(x, ODD_LANES, y, _MM_PERM_CCAA);
}

INLINE __m512i odd_lanes(__m512i x, __m512i y) {
    return _mm512_mask_shuffle_epi32(y, EVEN_LANES, x, _MM_PERM_DDBB);
}

#define first_pairs(keys) even_lanes((keys).k0, (keys).k1)
#define other_pairs(keys) odd_lanes((keys).k0, (keys).k1)

INLINE void split_u16(const uint16_t *tokens, __m512i r0, __m512i r1, __m512i *p, __m512i *q) {
    (void)tokens;
    *p = even_lanes(r0, r1);
    *q = odd_lanes(r0, r1);
}

/* Shifts are done by one port and shuffles by the other. */
#define upper_factor(y) _mm512_shuffle_epi32(y, _MM_PERM_DDBB)

#include "ops/tokens/tokens_x86.inc"

#define XOR_OF_THREE 0x96 /* vpternlogd's truth table of a ^ b ^ c */

INLINE __m512i hashes_at(uint64_t position) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i steps = _mm512_mullo_epi32(lanes, all(IRON_HASH_STEP));

    return _mm512_add_epi32(all(iron__position_hash(position)), steps);
}

/* Loads 16 tokens, adds their hashes and moves the hashes on to the next group. */
INLINE __m512i next_group(const char *tokens, bool is_u16, __m512i *hashes) {
    __m512i t =
        is_u16 ? _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)tokens)) : LOAD(tokens);
    __m512i p = _mm512_add_epi32(t, *hashes);

    iron__prefetch(tokens);
    *hashes = _mm512_add_epi32(*hashes, all(IRON_HASH_GROUP_STEP));
    return p;
}

/* Adds two groups of positioned tokens. */
INLINE void add_groups(token_sums *s, __m512i p0, __m512i p1, const constants *c, method by) {
    s->xors = _mm512_ternarylogic_epi32(s->xors, p0, p1, XOR_OF_THREE);
    add_remainders(s, p0, c, by);
    add_remainders(s, p1, c, by);
}

INLINE iron__contribution reduce_groups(const iron__tokens_run *run, const char *tokens,
                                        bool is_u16, method by) {
    const size_t group = group_bytes(is_u16);
    const char *end = tokens + run->count / GROUP * group;
    const constants c = constants_of(run->divisor);
    const __m512i zero = all(0);
    __m512i hashes = hashes_at(run->first);
    token_sums s = {zero, zero, zero, zero};

    if (run->count / GROUP % 2 == 1) {
        add_groups(&s, next_group(tokens, is_u16, &hashes), zero, &c, by);
        tokens += group;
    }
    for (; tokens != end; tokens += 2 * group) {
        __m512i p0 = next_group(tokens, is_u16, &hashes);
        __m512i p1 = next_group(tokens + group, is_u16, &hashes);

        add_groups(&s, p0, p1, &c, by);
    }
    return contribution_of(&s, run);
}

const iron__vector_rows iron__rows_avx512 =
    IRON_VECTOR_ROWS("avx512", IRON_CPU_AVX512, reduce_tokens,
                     "16 tokens per operation, quotients summed instead of remainders", take,
                     take_u16, "the keys of 16 quads per operation, 8 products per multiply");

#else

typedef int iron__tokens_avx512_is_for_x86_64;

#endif
