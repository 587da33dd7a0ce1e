/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: the parameters that the host passes to the kernels of this op, by value. Read by
 * C, CUDA and OpenCL: 8-byte members first, then an even number of 4-byte ones, so that all three
 * see the same layout.
 */
#ifndef IRON_OPS_TOKENS_KERNEL_PARAMS_H
#define IRON_OPS_TOKENS_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* the OpenCL text already contains it, and cannot include */
#include "gpu/kernel_words.h"
#endif

/* Tokens begin ... begin+count-1 of a buffer. They continue an open batch that already has `open`
 * tokens and whose contribution is entry `slot`; the next batches are slot+1, slot+2, ... */
typedef struct tokens_span {
    k_u64 begin, count;
    k_u64 first; /* position of the first token, as configured: in the stream, or in its batch */
    k_u64 batch, open;
    k_u64 addend; /* floor(p / vocab) = (p * multiplier + addend) >> 32 >> shift */
    k_u32 multiplier, shift, vocab;
    k_u32 slot;
    k_u32 by_batch; /* positions restart at 0 with each batch */
    k_u32 nodes;
} tokens_span;

/* The lattice, which turns contributions into states. */
typedef struct tokens_lattice {
    k_u64 span_addend; /* x / span, as with the vocabulary above */
    k_u32 span_multiplier, span_shift;
    k_u32 count, first, last, span, first_fold;
    k_u32 nodes;
} tokens_lattice;

/* `count` closed batches in entries 0, 1, ...; the open one is entry `count`. */
typedef struct tokens_closing {
    k_u64 batch;        /* tokens in every batch but the last */
    k_u64 last;         /* tokens in the last */
    k_u64 inverse_bits; /* 1.0 / middle, as the bits of a double */
    k_u32 middle;       /* floor(vocab / 2) */
    k_u32 count;
} tokens_closing;

/* Whole quads of a buffer, for the seal and for statistics: tokens begin ... begin + 4 quads - 1,
 * all in one window of the seal. */
typedef struct quads_span {
    k_u64 begin, quads;
    k_u64 position; /* in the stream, of the first token; a multiple of 4 */
    k_u32 window_low, window_high;
    k_u32 last; /* the largest token of the vocabulary */
    k_u32 padding;
} quads_span;

/* Sums and statistics of one group of threads, over all launches of a stream. */
typedef struct quads_found {
    k_u64 t, a, b;
    k_u64 outside; /* tokens that are not in the vocabulary */
    k_u64 first;   /* position of the first of them; all ones: not found */
    k_u32 first_value;
    k_u32 min, max;
    k_u32 padding;
} quads_found;

/* Threads of a group, for kernels and launches. */
#define TOKENS_PAIRS_SIDE         16 /* atomic2d: 16 tokens x 16 nodes */
#define TOKENS_NODE_THREADS       256
#define TOKENS_HYBRID_THREADS     256
#define TOKENS_TILED_THREADS      256
#define TOKENS_TILED_WIDE_THREADS 32
#define TOKENS_REDUCE_THREADS     256
#define TOKENS_REDUCE_GROUPS      256
#define TOKENS_CHAMPION_THREADS   256 /* every GPU has them; 512 read no faster on an H200 */
#define TOKENS_FEW_THREADS        64
#define TOKENS_STEP_THREADS       512
#define TOKENS_STEP_GROUPS        320 /* at most: two per unit */
#define TOKENS_APPLY_THREADS      256
#define TOKENS_WIDEN_THREADS      256
#define QUADS_THREADS             256
#define QUADS_UNIT_GROUPS         4    /* groups that fit one unit */
#define QUADS_GROUPS              2048 /* at most: each has its own quads_found */
#define QUADS_EDGE_THREADS        32

/* Batches per row of groups when many are applied at once. */
#define TOKENS_CHUNK 32
/* The most batches that can be pending, and so be applied at once. */
#define TOKENS_PENDING_MAX 4096
#define TOKENS_CHUNKS      (TOKENS_PENDING_MAX / TOKENS_CHUNK)
/* The most points of a lattice. */
#define TOKENS_POINTS 64

#endif
