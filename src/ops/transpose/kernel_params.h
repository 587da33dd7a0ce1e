/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of transpose and the host agree on: tiles, groups, the shape
 * of the champion, and what a launch is told. Text of both, so it holds macros and plain structs
 * only.
 *
 * The champion is a pair of kernels, one for matrices whose both sides are whole vectors of 16
 * bytes, and one for all others (..._any). Tiles, columns by rows of A:
 *
 *            f32                       f64
 *   whole    64 x 64,  16 KiB          32 x 64, 16 KiB         2 loads of 16 bytes a thread
 *   any      64 x 128, 32.5 KiB        64 x 64, 32.5 KiB       16 of 4 bytes, 8 of 8
 *
 * Local memory stays below the 48 KiB that a group may have everywhere on NVIDIA's devices.
 *
 * Tiles are numbered in one of two orders: along the rows of A, or, where along_b is not 0, along
 * those of B, which is down the columns of A:
 *
 *     along_b 0:  | 0  1  2  3       along_b 1:  | 0  3  6  9
 *                 | 4  5  6  7                   | 1  4  7 10
 *                 | 8  9 10 11                   | 2  5  8 11
 *
 * Groups of near numbers run at the same time. Along B what they write are whole rows of B, piece
 * beside piece, and what they read are pieces of many rows of A: memory bears scattered reads
 * better than scattered writes.
 */
#ifndef IRON_OPS_TRANSPOSE_KERNEL_PARAMS_H
#define IRON_OPS_TRANSPOSE_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

#define TRANSPOSE_THREADS 256 /* naive, tiled...: threads of a group */
#define TRANSPOSE_TILE    32  /* tiled, tiled-padded, tiled-swizzled: a tile's side in elements */
#define TRANSPOSE_WIDE    64  /* tiled-vector: the same */

#define TRANSPOSE_CHAMPION_THREADS 512
#define TRANSPOSE_GROUPS           4  /* whole: that a unit should hold at a time */
#define TRANSPOSE_ACROSS           16 /* whole: vectors of 16 bytes of a tile's line in A */
#define TRANSPOSE_ROWS             64 /* whole: rows of A of a tile */
#define TRANSPOSE_ANY_COLS         64 /* any: columns of A of a tile */
#define TRANSPOSE_ANY_DOWN         32 /* any: 16 bytes each of a tile's line in B */

/* Elements that a thread has in flight at most in ..._any: all of its own. */
#define TRANSPOSE_LOADS 16

/* Rows first ... first+count-1 of A, which has rows x cols elements. */
typedef struct transpose_part {
    k_u64 rows, cols, first, count;
} transpose_part;

#endif
