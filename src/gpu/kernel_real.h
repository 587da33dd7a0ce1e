/* SPDX-License-Identifier: MIT */
/*
 * kernel_real.h: words for kernels written once for several types: for floats and doubles
 * (*_real.k), and for elements of four sizes that are only moved (*_move.k). The build puts this
 * header before each copy of such kernels, and each time it goes on to the next type: f32, f64, u8,
 * u16. K_NAMED generates the names of everything in them, so all copies fit into one program.
 *
 *   K_HAS_REAL       0: the device lacks the type; the kernels are left out
 *   k_real           an element; k_reals: 16 bytes of K_REALS elements
 *   K_NAMED(name)    name_f32, name_f64, name_u8 or name_u16
 *   K_SUBGROUP_ADD_REAL, K_SUBGROUP_SUMS_REAL, k_zero, k_dot, k_fma_reals, k_gather, k_scatter: of
 *   f32 and f64; see kernel_words.h
 */
#ifndef K_HAS_REAL

#define K_HAS_REAL           1
#define K_REALS              4
#define K_KIND               f32
#define K_WORD_KIND          F32
#define K_VECTOR_KIND        f32x4
#define K_JOIN(a, b)         a##_##b
#define K_JOINED(a, b)       K_JOIN(a, b)
#define K_NAMED(name)        K_JOINED(name, K_KIND)
#define K_SUBGROUP_ADD_REAL  K_JOINED(K_SUBGROUP_ADD, K_WORD_KIND)
#define K_SUBGROUP_SUMS_REAL K_JOINED(K_SUBGROUP_SUMS, K_WORD_KIND)
#define k_real               K_JOINED(k, K_KIND)
#define k_reals              K_JOINED(k, K_VECTOR_KIND)
#define k_zero               K_JOINED(k_zero, K_VECTOR_KIND)
#define k_dot                K_JOINED(k_dot, K_VECTOR_KIND)
#define k_fma_reals          K_JOINED(k_fma, K_VECTOR_KIND)
#define k_gather             K_JOINED(k_gather, K_VECTOR_KIND)
#define k_scatter            K_JOINED(k_scatter, K_VECTOR_KIND)

#elif K_REALS == 4

#undef K_HAS_REAL
#undef K_REALS
#undef K_KIND
#undef K_WORD_KIND
#undef K_VECTOR_KIND
#define K_HAS_REAL    K_HAS_F64
#define K_REALS       2
#define K_KIND        f64
#define K_WORD_KIND   F64
#define K_VECTOR_KIND f64x2

#elif K_REALS == 2

#undef K_HAS_REAL
#undef K_REALS
#undef K_KIND
#define K_HAS_REAL 1
#define K_REALS    16
#define K_KIND     u8

#else

#undef K_REALS
#undef K_KIND
#define K_REALS 8
#define K_KIND  u16

#endif
