/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants and types that the kernels of transpose and the host share: tiles,
 * groups, and launch arguments. Macros and plain structs only, since the file is also part of the
 * kernels' text.
 *
 * The champion is a pair of kernels, one for matrices whose sides are both multiples of 16 bytes,
 * and one for all others. Tiles, bytes of a row of A by bytes of a row of B:
 *
 *   whole          256 x 256          8 (f64) to 64 KiB (u8)
 *   raw (CUDA)     384 x 128 (u8) to 1024 (f64); low: half as many rows, f32 and f64
 *   any (OpenCL)   64 columns by 128 rows (f64: 64), 33 KiB or less
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

#define TRANSPOSE_CHAMPION_THREADS 256
#define TRANSPOSE_ACROSS           16 /* whole: 16-byte vectors per line of a tile in A */
#define TRANSPOSE_DOWN             16 /* whole: the same in B */
/* whole: resident groups per unit, for n elements per vector */
#define TRANSPOSE_GROUPS(n) ((n) <= 4 ? 8 : (n) == 8 ? 4 : 3)

#define TRANSPOSE_ANY_THREADS 512
#define TRANSPOSE_ANY_COLS    64 /* any: columns of A per tile */
/* any: rows of A per tile, for n elements per vector */
#define TRANSPOSE_ANY_ROWS(n) ((n) == 2 ? 64 : 128)

/* ..._any: the maximum of loads in flight per thread, all of its elements. */
#define TRANSPOSE_LOADS 16

/* transpose.cu: bytes of A's row per tile, threads for 4 and 8, and for 1 and 2 bytes, rows of A
 * that a tile writes (low tiles: of 4 and 8 bytes), bytes of B that tiles overlap; for elements of
 * e bytes, bytes of a line in local memory, and rows of A that tiles go down, fewer if A's rows are
 * short. */
#define TRANSPOSE_RAW_BYTES      384
#define TRANSPOSE_RAW_THREADS    256
#define TRANSPOSE_PACKED_THREADS 384
#define TRANSPOSE_RAW_ROWS       128
#define TRANSPOSE_LOW_ROWS       64
#define TRANSPOSE_HALO           32
#define TRANSPOSE_RAW_PITCH(e)   ((e) < 4 ? TRANSPOSE_RAW_BYTES + 16 : 512)
#define TRANSPOSE_BAND(e)        ((e) == 1 ? 16384 : 32768)
#define TRANSPOSE_SHORT_BAND     2048
#define TRANSPOSE_SHORT_BYTES    8192

/* Rows first ... first+count-1 of A, which has rows x cols elements. */
typedef struct transpose_part {
    k_u64 rows, cols, first, count;
} transpose_part;

#endif
