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
#define ATAX_SUM_WAYS     32    /* and threads per column */
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

/* ring.cu: groups of one size, one per unit; 14 of a team's warps have columns. */
#define ATAX_RING_THREADS  512
#define ATAX_TEAM_THREADS  448
#define ATAX_PACKETS       8    /* turns on their way between members, at least 2 * lag + 2 */
#define ATAX_BARRIER_WORDS 64   /* of the barrier across groups; packets follow */
#define ATAX_TWICE         8192 /* columns that a group adds at a time if A is read twice */
#define ATAX_TWICE_LINE    32   /* a group's columns are a multiple of it */
#define ATAX_TWICE_ROWS    4096 /* between two waits of all groups for each other */
#define ATAX_TWICE_GROUPS  2    /* per unit */

/* A thread has rows of `columns` columns, exactly or at most; warps of a group for f32 and f64. The
 * rows that it has at a time keep enough loads in flight. */
#define ATAX_THREAD_SHAPES(S)                                                                      \
    S(1, 15, 15, true)                                                                             \
    S(2, 15, 15, true)                                                                             \
    S(3, 15, 15, true)                                                                             \
    S(4, 15, 15, true)                                                                             \
    S(5, 15, 15, true)                                                                             \
    S(6, 15, 15, true)                                                                             \
    S(7, 15, 15, true)                                                                             \
    S(8, 15, 15, true)                                                                             \
    S(10, 15, 15, false)                                                                           \
    S(12, 15, 7, false)                                                                            \
    S(16, 15, 7, false)                                                                            \
    S(20, 15, 7, false)                                                                            \
    S(24, 15, 7, false)                                                                            \
    S(28, 15, 7, false)                                                                            \
    S(32, 15, 7, false)
#define ATAX_THREAD_BYTES(warps) ((warps) == 15 ? 128 : 256)
#define ATAX_THREAD_ROWS(row_bytes, warps)                                                         \
    ((row_bytes)*2 > ATAX_THREAD_BYTES(warps)   ? 1                                                \
     : (row_bytes)*8 > ATAX_THREAD_BYTES(warps) ? ATAX_THREAD_BYTES(warps) / (row_bytes)           \
                                                : 8)

/* A lane has up to `values` elements of a row, at least `sure`, and `rows` rows at a time. */
#define ATAX_WARP_SHAPES_F32(S)                                                                    \
    S(2, 1, 8) S(3, 2, 8) S(4, 3, 4) S(6, 4, 4) S(8, 6, 4) S(12, 8, 2) S(16, 12, 2)
#define ATAX_WARP_SHAPES_F64(S) S(2, 1, 8) S(3, 2, 4) S(4, 3, 4) S(6, 4, 2) S(8, 6, 2) S(12, 8, 1)

/* The same for a thread of a team. */
#define ATAX_TEAM_SHAPES_F32(S)                                                                    \
    S(2, 0, 8)                                                                                     \
    S(3, 2, 8)                                                                                     \
    S(4, 3, 4)                                                                                     \
    S(6, 4, 4)                                                                                     \
    S(8, 6, 2)                                                                                     \
    S(12, 8, 2)                                                                                    \
    S(4, 0, 1)                                                                                     \
    S(8, 4, 1)                                                                                     \
    S(12, 8, 1)                                                                                    \
    S(16, 12, 1)                                                                                   \
    S(20, 16, 1)                                                                                   \
    S(24, 20, 1)                                                                                   \
    S(32, 24, 1)                                                                                   \
    S(40, 32, 1)
#define ATAX_TEAM_SHAPES_F64(S)                                                                    \
    S(2, 0, 4)                                                                                     \
    S(3, 2, 4)                                                                                     \
    S(6, 3, 2)                                                                                     \
    S(4, 0, 1)                                                                                     \
    S(8, 4, 1)                                                                                     \
    S(12, 8, 1)                                                                                    \
    S(16, 12, 1)                                                                                   \
    S(20, 16, 1)

/* Arguments of the kernels in ring.cu. */
typedef struct atax_ring {
    k_u64 rows, cols;
    k_u32 members;                      /* groups that share a row */
    k_u32 lag;                          /* turns until the sum of a row is used */
    k_u32 tile_rows, slot_bytes, slots; /* rows that are loaded at once; the ring */
    k_u32 unused;
} atax_ring;

/* Rows first ... first+count-1 of A, which has `cols` columns. */
typedef struct atax_span {
    k_u64 first, count, cols;
    k_u32 passing; /* of 16 rows: so many leave the last-level cache first */
    k_u32 unused;
} atax_span;

#endif
