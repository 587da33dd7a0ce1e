/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants and types that the kernels of transpose and the host share: tiles,
 * groups, and launch arguments. Macros and plain structs only, since the file is also part of the
 * kernels' text.
 *
 * The champion is a pair of kernels, one for matrices whose sides are both multiples of 16 bytes,
 * and one for all others (..._any). Tiles, columns by rows of A:
 *
 *            f32                       f64
 *   whole    64 x 64,  16 KiB          32 x 64, 16 KiB         2 loads of 16 bytes per thread
 *   any      64 x 128, 32.5 KiB        64 x 64, 32.5 KiB       16 of 4 bytes, 8 of 8
 *
 * Local memory stays below 48 KiB, which every NVIDIA device gives a group.
 *
 * Tiles are numbered in one of two orders: along the rows of A, or, if along_b is not 0, along the
 * rows of B, that is, down the columns of A:
 *
 *     along_b 0:  | 0  1  2  3       along_b 1:  | 0  3  6  9
 *                 | 4  5  6  7                   | 1  4  7 10
 *                 | 8  9 10 11                   | 2  5  8 11
 *
 * Groups with similar numbers run at the same time. Along B they write adjacent pieces of rows of B
 * and read pieces of many rows of A: memory handles scattered reads better than scattered writes.
 */
#ifndef IRON_OPS_TRANSPOSE_KERNEL_PARAMS_H
#define IRON_OPS_TRANSPOSE_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text contains it already and has no includes */
#include "gpu/kernel_words.h"
#endif

#define TRANSPOSE_THREADS 256 /* naive, tiled...: threads per group */
#define TRANSPOSE_TILE    32  /* tiled, tiled-padded, tiled-swizzled: side of a tile in elements */
#define TRANSPOSE_WIDE    64  /* tiled-vector: the same */

#define TRANSPOSE_CHAMPION_THREADS 512
#define TRANSPOSE_GROUPS           4  /* whole: resident groups per unit */
#define TRANSPOSE_ACROSS           16 /* whole: 16-byte vectors per line of a tile in A */
#define TRANSPOSE_ROWS             64 /* whole: rows of A per tile */
#define TRANSPOSE_ANY_COLS         64 /* any: columns of A per tile */
#define TRANSPOSE_ANY_DOWN         32 /* any: 16-byte vectors per line of a tile in B */

/* ..._any: the maximum of loads in flight per thread, all of its elements. */
#define TRANSPOSE_LOADS 16

/* Rows first ... first+count-1 of A, which has rows x cols elements. */
typedef struct transpose_part {
    k_u64 rows, cols, first, count;
} transpose_part;

#endif
