/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of histogram and the host agree on, and all that can be tuned:
 * threads of a group, groups a unit, loads under way. Text of both, so it holds macros and plain
 * structs only.
 *
 * What the figures below cost: a thread keeps four registers a load under way, and threads * groups
 * * registers must stay within a unit's 65,536; tables must fit into a group's local memory, and
 * with two groups a unit both of them.
 */
#ifndef IRON_OPS_HISTOGRAM_KERNEL_PARAMS_H
#define IRON_OPS_HISTOGRAM_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

/* global-atomic, and the champion's table where groups are small: what every GPU has. */
#define HISTOGRAM_SMALL_THREADS 256
#define HISTOGRAM_SMALL_GROUPS  8
#define HISTOGRAM_SMALL_LOADS   2

/* Rows with a table in local memory. A large table leaves room for one group a unit, so groups are
 * as large as they can be. */
#define HISTOGRAM_TABLE_THREADS 1024
#define HISTOGRAM_TABLE_GROUPS  2 /* where that many tables fit */
#define HISTOGRAM_VECTOR_LOADS  1 /* vector-loads */
#define HISTOGRAM_TABLE_LOADS   4 /* the champion */

/* shared-replicated: copies of the table a group at most; warps take turns at them. */
#define HISTOGRAM_COPIES 8

/* lane-private, and the champion for few bins: a copy of the table a lane, a bank each. */
#define HISTOGRAM_LANES           32
#define HISTOGRAM_LANES_THREADS   1024
#define HISTOGRAM_LANES_GROUPS    2
#define HISTOGRAM_LANES_ONE_LOADS 1   /* lane-private */
#define HISTOGRAM_LANES_LOADS     4   /* the champion */
#define HISTOGRAM_LANES_BINS      512 /* the champion's few bins */

/* Two counters of 16 bits a word. Between two barriers a group counts one turn or more of
 * HISTOGRAM_PACKED_THREADS times LOADS times 16 bytes, and histogram_packed.k proves why that must
 * not exceed HISTOGRAM_PACKED_MOST elements. One group a unit: two tables of 50,000 bins would fit,
 * the registers of two groups do not, and the second one would have to wait for the first to end
 * (97 % of an H200's read ceiling, with two 93). */
#define HISTOGRAM_PACKED_THREADS 1024
#define HISTOGRAM_PACKED_GROUPS  1
#define HISTOGRAM_PACKED_LOADS   4
#define HISTOGRAM_PACKED_FULL    16384u
#define HISTOGRAM_PACKED_MOST    (65535 - HISTOGRAM_PACKED_FULL)
#define HISTOGRAM_PACKED_SPARE   32u /* words behind the counters */

/* Two counters of 16 bits a word, swept before one could overflow: see histogram_swept.k. One group
 * a unit: that is what a table leaves room for where it matters, and its threads may have as many
 * registers as they like. */
#define HISTOGRAM_SWEPT_THREADS 1024
#define HISTOGRAM_SWEPT_GROUPS  1
#define HISTOGRAM_SWEPT_LOADS   3
#define HISTOGRAM_SWEPT_KEPT    4096u                          /* a power of 2 */
#define HISTOGRAM_SWEPT_MOST    (65536 - HISTOGRAM_SWEPT_KEPT) /* elements from sweep to sweep */

/* Copies of the counters of values without room, and bytes that they take at most: so little that
 * the last-level cache keeps them. There is one copy, however large. */
#define HISTOGRAM_FAR_COPIES 64
#define HISTOGRAM_FAR_BYTES  8388608

/* The most local memory that a table takes, however much there is: a Hopper's, so that a device
 * with more of it (a CPU behind OpenCL) runs what GPUs run. */
#define HISTOGRAM_LOCAL_MOST 232448u

/* What a launch is told. */
typedef struct histogram_span {
    k_u64 count;  /* elements */
    k_u32 bins;   /* values are below it */
    k_u32 copies; /* shared-replicated: of the table a group; swept: of the far counters */
    k_u32 pairs; /* words of packed counters: values below 2 * pairs have one, the others are far */
    k_u32 unused;
} histogram_span;

#endif
