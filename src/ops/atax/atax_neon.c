/* SPDX-License-Identifier: MIT */
/*
 * atax_neon.c: the loops of atax_vector.inc for 64-bit Arm, two doubles or four floats at a time.
 * Advanced SIMD is part of the baseline, so nothing has to be asked for; 32 registers hold the
 * eight sums and four scales with room to spare.
 */
#include "ops/atax/atax.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET

#define NAME(word)   word##_f32
#define REAL         float
#define VECTOR       float32x4_t
#define LANES        ((size_t)4)
#define FMA(a, b, c) vfmaq_f32((c), (a), (b))
#include "ops/atax/atax_vector.inc"
#undef NAME
#undef REAL
#undef VECTOR
#undef LANES
#undef FMA

#define NAME(word)   word##_f64
#define REAL         double
#define VECTOR       float64x2_t
#define LANES        ((size_t)2)
#define FMA(a, b, c) vfmaq_f64((c), (a), (b))
#include "ops/atax/atax_vector.inc"

const iron__atax_loops *iron__atax_neon(iron__element element) {
    return element == IRON_F32 ? &loops_f32 : &loops_f64;
}

#else

const iron__atax_loops *iron__atax_neon(iron__element element) {
    (void)element;
    return NULL;
}

#endif
