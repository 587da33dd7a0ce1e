/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: the shapes of the kernel of occupancy. Each list entry is a kernel named
 * occupancy_<name>. Macros only, since the file is also part of the kernels' text.
 *
 *   threads     per group
 *   loads       16-byte loads in flight per thread
 *   registers   limit per thread; other values are spilled
 */
#ifndef IRON_OPS_OCCUPANCY_KERNEL_PARAMS_H
#define IRON_OPS_OCCUPANCY_KERNEL_PARAMS_H

/*                        name, threads, loads */
#define OCCUPANCY_SHAPES(S)                                                                        \
    S(threads_32, 32, 1)                                                                           \
    S(threads_64, 64, 1)                                                                           \
    S(threads_256, 256, 1)                                                                         \
    S(threads_1024, 1024, 1)                                                                       \
    S(ilp_4, 64, 4)                                                                                \
    S(ilp_8, 64, 8)

/* 64 words that must all be loaded before the first is stored. */
#define OCCUPANCY_HELD 16

/*                        name, threads, registers */
#define OCCUPANCY_TIGHT(S)                                                                         \
    S(registers_32, 256, 32)                                                                       \
    S(registers_64, 256, 64)                                                                       \
    S(registers_128, 256, 128)

/* One 4-byte load per thread. */
#define OCCUPANCY_WORDS_THREADS 256

#endif
