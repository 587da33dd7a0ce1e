/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants and types that the kernels of atax and the host share: group sizes,
 * shapes of the single pass, and launch arguments. Macros and plain structs only, since the file is
 * also part of the kernels' text.
 *
 * ATAX_SINGLE_SHAPES is where the single pass is tuned. Each entry is a kernel atax_single_<name>:
 *
 *   threads   per group
 *   groups    resident per unit
 *   vectors   16-byte vectors of a row that a thread holds
 *   rows      that a group reads at a time, with one barrier for all of them
 *   slots     rows that a group may process in parallel: 1, or more if rows are short
 *
 * A group holds rows of up to threads * vectors * 16 bytes; the list is ordered by that, and the
 * host uses the first that suffices. rows * vectors is at most 8, the size of the kernels' arrays.
 * Each thread needs 2 * rows * vectors * 4 registers for A and vectors * 4 for y, and threads *
 * groups * registers must stay within the 65,536 of a unit.
 */
#ifndef IRON_OPS_ATAX_KERNEL_PARAMS_H
#define IRON_OPS_ATAX_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text contains it already and has no includes */
#include "gpu/kernel_words.h"
#endif

#define ATAX_THREADS      256   /* naive, constant, transposed, coalesced: threads per group */
#define ATAX_TILE         32    /* tiled, the transpose: side of a tile */
#define ATAX_TILE_THREADS 256   /* and threads per tile */
#define ATAX_SUM_COLS     32    /* the sum over partial answers: columns per group */
#define ATAX_SUM_WAYS     16    /* and threads per column */
#define ATAX_BLOCK        65536 /* bytes of constant memory */

/*                            name, threads, groups, vectors, rows, slots */
#define ATAX_SINGLE_SHAPES(S)                                                                      \
    S(slim, 256, 2, 1, 8, 8)                                                                       \
    S(narrow, 256, 2, 4, 2, 2)                                                                     \
    S(middle, 512, 1, 4, 2, 1)                                                                     \
    S(broad, 512, 1, 8, 1, 1)

/* Rows that no group can hold, but whose part of y it can: read twice, the second time from the L2
 * cache. */
#define ATAX_WIDE_THREADS 512
#define ATAX_WIDE_VECTORS 20
/* All longer rows: so many at a time. */
#define ATAX_ANY_THREADS 512
#define ATAX_ANY_ROWS    4

/* With up to so many vectors per row, a thread also keeps its x in registers. */
#define ATAX_X_VECTORS 4

/* Rows first ... first+count-1 of A, which has `cols` columns. */
typedef struct atax_span {
    k_u64 first, count, cols;
} atax_span;

#endif
