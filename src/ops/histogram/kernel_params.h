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
#define HISTOGRAM_PACKED_BINS    58112u /* the champion's limit; u16 have more */

/* mixed: counters of 16 and 8 bits; see histogram.k. One group per unit: a large table leaves no
 * space for more. An epoch is long enough for its end, a scan of the table, to cost 1 %. */
#define HISTOGRAM_MIXED_THREADS 1024
#define HISTOGRAM_MIXED_LOADS   4
#define HISTOGRAM_PART_LOADS    2      /* with far values: the cache is small, see histogram.k */
#define HISTOGRAM_MIXED_GROUPS  192u   /* maximum; each stores its table in device memory */
#define HISTOGRAM_EPOCH_MOST    786432 /* elements */
#define HISTOGRAM_WIDE_LEAST    2048u  /* 16-bit counters if not all values are held */
#define HISTOGRAM_ROOM_LEAST    4096u  /* bytes of counters that pay */
#define HISTOGRAM_CONTROL       (67u + HISTOGRAM_MIXED_THREADS) /* words behind the counters */

/* Counters of at least this are moved at the end of an epoch. In the first three epochs, of 1, 4
 * and 16 turns, they are also listed, and the limits are lower: START times 1, 4, 16 (wide) and
 * times 1, 2, 4 (narrow). So 1 % of the elements is listed if it is wide, and 1 / 10,000 if it is
 * narrow. */
#define HISTOGRAM_WIDE_FULL    32768u
#define HISTOGRAM_NARROW_FULL  128u
#define HISTOGRAM_WIDE_START   256u
#define HISTOGRAM_NARROW_START 8u

/* The least frequent values have 4-bit counters if all bins fit with them and enough of the others
 * have 8 bits. They are added to bytes in device memory at the end of each epoch, and never listed.
 * At least TINY_LEAST: so many that the sample shows how often they occur. */
#define HISTOGRAM_NEVER_TINY  0x10000u /* in the sample: one of them is frequent */
#define HISTOGRAM_TINY_LEAST  16384u
#define HISTOGRAM_TINY_OTHERS 65536u /* least values with more bits */

/* The list after an epoch that was counted again: values with more than 1 / AGAIN_SHARE of it.
 * Words of narrow values with 1 / OFTEN_SHARE are drained often. */
#define HISTOGRAM_AGAIN_SHARE 5000u
#define HISTOGRAM_OFTEN_SHARE 1024u

/* Of a sample of 1024 elements: a value that is hot, a narrow one that is listed. */
#define HISTOGRAM_HOT_LEAST      32u
#define HISTOGRAM_WIDE_HOT_LEAST 128u
#define HISTOGRAM_SAMPLE_LEAST   4u

/* histogram_add_tables: threads that share a quad. */
#define HISTOGRAM_TABLE_PARTS 8u

/* Copies of the far counters, and their maximum bytes: so few that they stay in the last-level
 * cache. There is always at least one copy. */
#define HISTOGRAM_FAR_COPIES 64
#define HISTOGRAM_FAR_BYTES  8388608

/* Maximum local memory of a table: Hopper's, so that a device with more (an OpenCL CPU device) runs
 * the same kernels as a GPU. */
#define HISTOGRAM_LOCAL_MOST 232448u

/* mixed uses no more than this if it has space for all bins; see histogram.k. */
#define HISTOGRAM_LOCAL_LEAN 199680u

/* Arguments of a launch. */
typedef struct histogram_span {
    k_u64 count;  /* elements */
    k_u32 bins;   /* values are below it */
    k_u32 copies; /* shared-replicated: tables per group; mixed: copies of the far counters */
    k_u32 wide;   /* mixed: 16-bit counters, a multiple of 8; packed: words of two counters */
    k_u32 narrow; /* mixed: where 8-bit counters end, may be less than `wide`; 4-bit ones follow */
    k_u32 held;   /* mixed: values with a counter in local memory */
    k_u32 unused;
} histogram_span;

#endif
