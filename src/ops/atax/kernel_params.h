/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of atax and the host agree on: sizes of groups, shapes of the
 * single pass, and what a launch is told. Text of both, so it holds macros and plain structs only.
 *
 * ATAX_SINGLE_SHAPES is where the single pass is tuned. A row of the list is a kernel:
 *
 *   name      of the kernel: atax_single_<name>
 *   threads   of a group; groups of that size that a unit holds at the same time: groups
 *   vectors   16 bytes each that a thread holds of a row
 *   rows      that a group reads at a time, one barrier for all of them
 *   slots     how many lines of rows a group may walk at once: 1, or more where rows are short
 *
 * A group holds rows of up to threads * vectors * 16 bytes; the list is ordered by that, and the
 * first that suffices is taken. rows * vectors is 8 at most, which is what the kernels have room
 * for. Each thread keeps 2 * rows * vectors * 4 registers of A and vectors * 4 of y, and threads *
 * groups * registers must stay within a unit's 65,536.
 */
#ifndef IRON_OPS_ATAX_KERNEL_PARAMS_H
#define IRON_OPS_ATAX_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

#define ATAX_THREADS      256   /* naive, constant, transposed, coalesced: threads of a group */
#define ATAX_TILE         32    /* tiled, the transpose: a tile's side */
#define ATAX_TILE_THREADS 256   /* and the threads that share one */
#define ATAX_SUM_COLS     32    /* the sum over partial answers: columns of a group */
#define ATAX_SUM_WAYS     16    /* and threads a column */
#define ATAX_BLOCK        65536 /* bytes of constant memory */

/*                            name, threads, groups, vectors, rows, slots */
#define ATAX_SINGLE_SHAPES(S)                                                                      \
    S(slim, 256, 2, 1, 8, 8)                                                                       \
    S(narrow, 256, 2, 4, 2, 2)                                                                     \
    S(middle, 512, 1, 4, 2, 1)                                                                     \
    S(broad, 512, 1, 8, 1, 1)

/* Rows that no group can hold, but whose share of y it can: read twice, the second time from the L2
 * cache. */
#define ATAX_WIDE_THREADS 512
#define ATAX_WIDE_VECTORS 20
/* And any others: so many rows at a time. */
#define ATAX_ANY_THREADS 512
#define ATAX_ANY_ROWS    4

/* Up to so many vectors of a row a thread keeps its x in registers, too. */
#define ATAX_X_VECTORS 4

/* Rows first ... first+count-1 of A, which has so many columns. */
typedef struct atax_span {
    k_u64 first, count, cols;
} atax_span;

#endif
