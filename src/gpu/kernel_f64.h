/* SPDX-License-Identifier: MIT */
/* kernel_f64.h: like kernel_f32.h, for doubles. */
#undef K_HAS_REAL
#undef K_REALS
#undef K_NAMED
#undef K_SUBGROUP_ADD_REAL
#undef K_SUBGROUP_SUMS_REAL
#undef k_real
#undef k_reals
#undef k_zero
#undef k_dot
#undef k_fma_reals
#undef k_gather
#undef k_scatter

#define K_HAS_REAL           K_HAS_F64
#define K_REALS              2
#define K_NAMED(name)        name##_f64
#define K_SUBGROUP_ADD_REAL  K_SUBGROUP_ADD_F64
#define K_SUBGROUP_SUMS_REAL K_SUBGROUP_SUMS_F64
#define k_real               k_f64
#define k_reals              k_f64x2
#define k_zero               k_zero_f64x2
#define k_dot                k_dot_f64x2
#define k_fma_reals          k_fma_f64x2
#define k_gather             k_gather_f64x2
#define k_scatter            k_scatter_f64x2
