/* SPDX-License-Identifier: MIT */
/* kernel_u8.h: after kernel_f64.h, for kernels that only move elements (*_move.k), here bytes. */
#undef K_HAS_REAL
#undef K_REALS
#undef K_NAMED
#undef k_real

#define K_HAS_REAL    1
#define K_REALS       16
#define K_NAMED(name) name##_u8
#define k_real        k_u8
