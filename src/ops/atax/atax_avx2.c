/* SPDX-License-Identifier: MIT */
/*
 * atax_avx2.c: the loops of atax_vector.inc for x86-64 with AVX2 and FMA, four doubles or eight
 * floats at a time. Of 16 registers the eight sums and four scales take twelve; x, y and a row of A
 * get along with the rest, since a multiply-add takes one operand from memory.
 */
#include "ops/atax/atax.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* The build has no flags for this: each function that holds vectors says so itself. */
#define TARGET __attribute__((target("avx2,fma")))

#define NAME(word)   word##_f32
#define REAL         float
#define VECTOR       __m256
#define LANES        ((size_t)8)
#define FMA(a, b, c) _mm256_fmadd_ps((a), (b), (c))
#include "ops/atax/atax_vector.inc"
#undef NAME
#undef REAL
#undef VECTOR
#undef LANES
#undef FMA

#define NAME(word)   word##_f64
#define REAL         double
#define VECTOR       __m256d
#define LANES        ((size_t)4)
#define FMA(a, b, c) _mm256_fmadd_pd((a), (b), (c))
#include "ops/atax/atax_vector.inc"

const iron__atax_loops *iron__atax_avx2(iron__element element) {
    return element == IRON_F32 ? &loops_f32 : &loops_f64;
}

#else

const iron__atax_loops *iron__atax_avx2(iron__element element) {
    (void)element;
    return NULL;
}

#endif
