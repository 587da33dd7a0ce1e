/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: the shapes of the one kernel of occupancy. A row of a list is a kernel, named
 * occupancy_<name>. Text of host and device, so it holds macros only.
 *
 *   threads     of a group
 *   loads       of 16 bytes that a thread has under way before it uses the first
 *   registers   that a thread may have; what does not fit is spilled
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

/* 64 words that must all be there before the first is stored. */
#define OCCUPANCY_HELD 16

/*                        name, threads, registers */
#define OCCUPANCY_TIGHT(S)                                                                         \
    S(registers_32, 256, 32)                                                                       \
    S(registers_64, 256, 64)                                                                       \
    S(registers_128, 256, 128)

/* One load of 4 bytes a thread. */
#define OCCUPANCY_WORDS_THREADS 256

#endif
