/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of gather and the host agree on: sizes of groups, and of what
 * each of them takes at a time. Text of both, so it holds macros only.
 */
#ifndef IRON_OPS_GATHER_KERNEL_PARAMS_H
#define IRON_OPS_GATHER_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

#define GATHER_THREADS 256 /* global, read-only, texture, vector: threads of a group */
#define GATHER_QUADS   2   /* vector: 16-byte loads of indices a thread */

/* The windowed order: indices of an element lie within so many words of the table. */
#define GATHER_WINDOW 4096

/* shared-staged: a group takes GATHER_STAGED_BLOCK indices and stages so many words of the table,
 * LOADS loads of 16 bytes a thread at a time. In the windowed order a block's indices lie within
 * GATHER_WINDOW + GATHER_STAGED_BLOCK words, which is what is staged: 48 KiB, as much as every
 * NVIDIA card has. DENSE such groups should fit a unit at a time. */
#define GATHER_STAGED_THREADS 512
#define GATHER_STAGED_QUADS   4
#define GATHER_STAGED_BLOCK   (4 * GATHER_STAGED_QUADS * GATHER_STAGED_THREADS)
#define GATHER_STAGED_WORDS   (GATHER_WINDOW + GATHER_STAGED_BLOCK)
#define GATHER_STAGED_LOADS   2
#define GATHER_STAGED_DENSE   3

/* sorted-first: a group sorts GATHER_SORTED_BLOCK indices into so many buckets, which are whole
 * numbers a thread. */
#define GATHER_SORTED_THREADS 256
#define GATHER_SORTED_QUADS   4
#define GATHER_SORTED_BLOCK   (4 * GATHER_SORTED_QUADS * GATHER_SORTED_THREADS)
#define GATHER_SORTED_BUCKETS 1024

#endif
