/* SPDX-License-Identifier: MIT */
/*
 * kernel_f32.h: words for kernels written once for floats and doubles (*_real.k), here for floats.
 * The build puts this header before such kernels, and kernel_f64.h before a second copy of them.
 * K_NAMED generates the names of everything in them, so both copies fit into one program.
 *
 *   K_HAS_REAL       0: the device lacks the type; the kernels are left out
 *   k_real           an element; k_reals: 16 bytes of K_REALS elements
 *   K_NAMED(name)    name_f32 or name_f64
 *   K_SUBGROUP_ADD_REAL, K_SUBGROUP_SUMS_REAL, k_zero, k_dot, k_fma_reals, k_gather, k_scatter: see
 *   kernel_words.h
 */
#define K_HAS_REAL           1
#define K_REALS              4
#define K_NAMED(name)        name##_f32
#define K_SUBGROUP_ADD_REAL  K_SUBGROUP_ADD_F32
#define K_SUBGROUP_SUMS_REAL K_SUBGROUP_SUMS_F32
#define k_real               k_f32
#define k_reals              k_f32x4
#define k_zero               k_zero_f32x4
#define k_dot                k_dot_f32x4
#define k_fma_reals          k_fma_f32x4
#define k_gather             k_gather_f32x4
#define k_scatter            k_scatter_f32x4
