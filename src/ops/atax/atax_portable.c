/* SPDX-License-Identifier: MIT */
/*
 * atax_portable.c: the loops of atax_vector.inc in the compiler's own vectors of 16 bytes, for
 * machines without code of their own; the compiler makes of them what it has, single elements if
 * need be. Products are rounded before they are added: a fused operation that the processor does
 * not have would be a call of a function for each element.
 */
#include "ops/atax/atax.h"

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

#define TARGET
#define FMA(a, b, c) ((a) * (b) + (c))

#define NAME(word) word##_f32
#define REAL       float
#define VECTOR     floats
#define LANES      ((size_t)4)
#include "ops/atax/atax_vector.inc"
#undef NAME
#undef REAL
#undef VECTOR
#undef LANES

#define NAME(word) word##_f64
#define REAL       double
#define VECTOR     doubles
#define LANES      ((size_t)2)
#include "ops/atax/atax_vector.inc"

const iron__atax_loops *iron__atax_portable(iron__element element) {
    return element == IRON_F32 ? &loops_f32 : &loops_f64;
}
