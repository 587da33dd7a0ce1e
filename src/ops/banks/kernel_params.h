/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: constants that the kernels of banks and the host share: the walk through a tile
 * and the layouts of local memory. Macros only, since the file is also part of the kernels' text.
 *
 * The walk. Step i of a tile is at word
 *
 *   BANKS_PLACE(i, stride, block) = (i * stride + (i >> block)) mod BANKS_TILE
 *
 * where 2^block is BANKS_TILE / g and g is the power of two in the stride. In 2^block steps i *
 * stride visits each multiple of g once (stride / g is odd), and the second term then moves on by
 * one, so all steps together visit each word once. The 32 steps that a warp makes at the same time
 * begin at a multiple of 32 and are `stride` apart, since 2^block is a multiple of 32.
 *
 * The banks. Word a of local memory lies in bank a mod 32; each bank serves one word at a time. The
 * words of a warp are a = a0 + stride * lane, lane = 0 ... 31:
 *
 *   plain      a. gcd(stride, 32) lanes share a bank: those with equal stride * lane mod 32.
 *   padded     a + a / 32: one unused word after 32.
 *   swizzled   a xor (a / 32 mod 32): each row of 32 words in its own order.
 *
 * The last two have no conflicts for any power of two s up to 32. There a0 is a multiple of 32 s,
 * plus some b < s. With lane = (32 / s) u + l, where u < s and l < 32 / s, word a lies in row
 * a / 32 = q s + u, at position s l + b. Its bank is, mod 32,
 *
 *   padded     s l + u + (b + q s): s l and u < s distinguish all lanes;
 *   swizzled   (s l + b) xor (q s + u): the lower log2(s) bits are b xor u, the upper ones l xor q,
 *              and b and q are the same for all lanes.
 *
 * For other strides they do not help: odd strides have no conflicts in plain, but up to 2 lanes per
 * bank in padded and 11 in swizzled, and with stride 31 both have 31 (counted by the unit test).
 */
#ifndef IRON_OPS_BANKS_KERNEL_PARAMS_H
#define IRON_OPS_BANKS_KERNEL_PARAMS_H

#define BANKS_TILE    2048 /* words of a tile */
#define BANKS_THREADS 256  /* threads that share one */
#define BANKS_ROUNDS  64   /* over a tile, so that local memory dominates */
#define BANKS_NEXT    32   /* distance in steps of the second word of a round: another warp's */

#define BANKS_PLACE(i, stride, block) (((i) * (stride) + ((i) >> (block))) % BANKS_TILE)

#define BANKS_PLAIN(a)    (a)
#define BANKS_PADDED(a)   ((a) + (a) / 32u)
#define BANKS_SWIZZLED(a) ((a) ^ ((a) / 32u % 32u))

/* The new value of a word, modulo 2^32: one instruction, so that memory dominates. The factor is
 * odd, so the mapping is invertible. */
#define BANKS_MIXED(word, next) ((word)*0x2545F491u + (next))

#endif
