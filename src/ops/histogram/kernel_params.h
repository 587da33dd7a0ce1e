/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants and types that the kernels of histogram and the host share, and all
 * tuning parameters: threads per group, groups per unit, loads in flight. Macros and plain structs
 * only, since the file is also part of the kernels' text.
 *
 * Limits: a thread needs four registers per load in flight, and threads * groups * registers must
 * stay within the 65,536 of a unit; a table must fit a group's local memory, and with two groups
 * per unit both tables must fit.
 */
#ifndef IRON_OPS_HISTOGRAM_KERNEL_PARAMS_H
#define IRON_OPS_HISTOGRAM_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text contains it already and has no includes */
#include "gpu/kernel_words.h"
#endif

/* global-atomic, and the champion's table for small groups: supported by every GPU. */
#define HISTOGRAM_SMALL_THREADS 256
#define HISTOGRAM_SMALL_GROUPS  8
#define HISTOGRAM_SMALL_LOADS   2

/* Rows with a table in local memory. A large table leaves space for one group per unit, so groups
 * are as large as possible. */
#define HISTOGRAM_TABLE_THREADS 1024
#define HISTOGRAM_TABLE_GROUPS  2 /* if that many tables fit */
#define HISTOGRAM_VECTOR_LOADS  1 /* vector-loads */
#define HISTOGRAM_TABLE_LOADS   4 /* the champion */

/* shared-replicated: maximum copies of the table per group; warps take turns using them. */
#define HISTOGRAM_COPIES 8

/* lane-private, and the champion for few bins: one copy of the table per lane and bank. */
#define HISTOGRAM_LANES           32
#define HISTOGRAM_LANES_THREADS   1024
#define HISTOGRAM_LANES_GROUPS    2
#define HISTOGRAM_LANES_ONE_LOADS 1   /* lane-private */
#define HISTOGRAM_LANES_LOADS     4   /* the champion */
#define HISTOGRAM_LANES_BINS      512 /* the champion's limit for few bins */

/* packed: two 16-bit counters per word. Between two barriers a group counts one or more turns of
 * HISTOGRAM_PACKED_THREADS * LOADS * 16 bytes; histogram.k proves why that must not exceed
 * HISTOGRAM_PACKED_MOST elements. One group per unit: two tables of 50,000 bins would fit, but the
 * registers of two groups do not, and the second would wait for the first to end (97 % of an H200's
 * read ceiling; 93 % with two). */
#define HISTOGRAM_PACKED_THREADS 1024
#define HISTOGRAM_PACKED_GROUPS  1
#define HISTOGRAM_PACKED_LOADS   4
#define HISTOGRAM_PACKED_FULL    16384u
#define HISTOGRAM_PACKED_MOST    (65535 - HISTOGRAM_PACKED_FULL)
#define HISTOGRAM_PACKED_SPARE   32u /* unused words behind the counters */

/* swept: two 16-bit counters per word, swept before one can overflow; see histogram.k. One group
 * per unit: a large table leaves no space for more, and its threads may use as many registers as
 * they need. */
#define HISTOGRAM_SWEPT_THREADS 1024
#define HISTOGRAM_SWEPT_GROUPS  1
#define HISTOGRAM_SWEPT_LOADS   3
#define HISTOGRAM_SWEPT_LOW     4096u                         /* a power of 2 */
#define HISTOGRAM_SWEPT_MOST    (65536 - HISTOGRAM_SWEPT_LOW) /* elements from sweep to sweep */

/* Copies of the far counters, and their maximum bytes: so few that they stay in the last-level
 * cache. There is always at least one copy. */
#define HISTOGRAM_FAR_COPIES 64
#define HISTOGRAM_FAR_BYTES  8388608

/* Maximum local memory of a table: Hopper's, so that a device with more (an OpenCL CPU device) runs
 * the same kernels as a GPU. */
#define HISTOGRAM_LOCAL_MOST 232448u

/* Arguments of a launch. */
typedef struct histogram_span {
    k_u64 count;  /* elements */
    k_u32 bins;   /* values are below it */
    k_u32 copies; /* shared-replicated: tables per group; swept: copies of the far counters */
    k_u32 pairs;  /* words of 16-bit counters: values from 2 * pairs on are far */
    k_u32 unused;
} histogram_span;

#endif
