/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of gather and the host share: sizes of groups and
 * their blocks. Macros only, since the file is also part of the kernels' text.
 */
#ifndef IRON_OPS_GATHER_KERNEL_PARAMS_H
#define IRON_OPS_GATHER_KERNEL_PARAMS_H

#define GATHER_THREADS 256 /* global, read-only, texture, vector: threads per group */
#define GATHER_QUADS   2   /* vector: 16-byte loads of indices per thread */

/* The windowed order: the index of an element lies in a window of so many words. */
#define GATHER_WINDOW 4096

/* shared-staged: a group takes GATHER_STAGED_BLOCK indices and stages GATHER_STAGED_WORDS words of
 * the table, with LOADS 16-byte loads in flight per thread. In the windowed order the indices of a
 * block lie within GATHER_WINDOW + GATHER_STAGED_BLOCK words, and these are staged: 48 KiB, which
 * every NVIDIA card has. DENSE: resident groups per unit. */
#define GATHER_STAGED_THREADS 512
#define GATHER_STAGED_QUADS   4
#define GATHER_STAGED_BLOCK   (4 * GATHER_STAGED_QUADS * GATHER_STAGED_THREADS)
#define GATHER_STAGED_WORDS   (GATHER_WINDOW + GATHER_STAGED_BLOCK)
#define GATHER_STAGED_LOADS   2
#define GATHER_STAGED_DENSE   3

/* sorted-first: a group sorts GATHER_SORTED_BLOCK indices into GATHER_SORTED_BUCKETS buckets, a
 * multiple of the number of threads. */
#define GATHER_SORTED_THREADS 256
#define GATHER_SORTED_QUADS   4
#define GATHER_SORTED_BLOCK   (4 * GATHER_SORTED_QUADS * GATHER_SORTED_THREADS)
#define GATHER_SORTED_BUCKETS 1024

#endif
