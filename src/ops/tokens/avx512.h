/* SPDX-License-Identifier: MIT */
/*
 * avx512.h: what this op's files with AVX-512 share: the words before their functions, and sums
 * over lanes. Included by cpu_avx512.c and quads_avx512.c alone.
 */
#ifndef IRON_OPS_TOKENS_AVX512_H
#define IRON_OPS_TOKENS_AVX512_H

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

/* The build has no -mavx512f: each function that holds vectors says so itself. The small ones must
 * dissolve in the loop, for the sums to stay in registers. */
#define TARGET        target("avx512f,avx512bw,avx512dq,avx512vl")
#define AVX512        __attribute__((TARGET))
#define AVX512_INLINE static inline __attribute__((TARGET, always_inline))

/* Modulo 2^64. The compiler's own sum over lanes adds signed numbers, which must not overflow. */
AVX512_INLINE uint64_t sum_of_lanes(__m512i x) {
    uint64_t lanes[8], sum = 0;

    _mm512_storeu_si512(lanes, x);
    for (int k = 0; k < 8; k++)
        sum += lanes[k];
    return sum;
}

#endif

#endif
