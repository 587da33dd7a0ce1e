/* SPDX-License-Identifier: MIT */
/*
 * atax_avx512.c: the loops of atax_vector.inc for x86-64 with AVX-512, a cache line at a time:
 * eight doubles or sixteen floats. One sum a row, so four multiply-adds of products are under way
 * at once; with those for y, which do not depend on them, two ports have enough to do.
 */
#include "ops/atax/atax.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* The build has no flags for this: each function that holds vectors says so itself. */
#define TARGET __attribute__((target("avx512f")))

#define NAME(word)   word##_f32
#define REAL         float
#define VECTOR       __m512
#define LANES        ((size_t)16)
#define FMA(a, b, c) _mm512_fmadd_ps((a), (b), (c))
#include "ops/atax/atax_vector.inc"
#undef NAME
#undef REAL
#undef VECTOR
#undef LANES
#undef FMA

#define NAME(word)   word##_f64
#define REAL         double
#define VECTOR       __m512d
#define LANES        ((size_t)8)
#define FMA(a, b, c) _mm512_fmadd_pd((a), (b), (c))
#include "ops/atax/atax_vector.inc"

const iron__atax_loops *iron__atax_avx512(iron__element element) {
    return element == IRON_F32 ? &loops_f32 : &loops_f64;
}

#else

const iron__atax_loops *iron__atax_avx512(iron__element element) {
    (void)element;
    return NULL;
}

#endif
