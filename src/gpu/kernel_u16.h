/* SPDX-License-Identifier: MIT */
/* kernel_u16.h: like kernel_u8.h, for 16-bit integers. */
#undef K_HAS_REAL
#undef K_REALS
#undef K_NAMED
#undef k_real

#define K_HAS_REAL    1
#define K_REALS       8
#define K_NAMED(name) name##_u16
#define k_real        k_u16
