/* SPDX-License-Identifier: MIT */
/*
 * kernel_params.h: what the kernels of banks and the host agree on: the walk through a tile, and
 * where its words lie in local memory. Text of both, so it holds macros only.
 *
 * The walk. Step i of a tile is at word
 *
 *   BANKS_PLACE(i, stride, block) = (i * stride + (i >> block)) mod BANKS_TILE
 *
 * where 2^block is BANKS_TILE / g, and g the power of two in the stride. In 2^block steps
 * i * stride goes through all multiples of g once (stride / g is odd), and the second term moves
 * them on by one: all steps together go through all words, each once. Steps that a warp makes at
 * the same time, 32 from a multiple of 32 on, lie `stride` apart: 2^block is a multiple of 32.
 *
 * The banks. Local memory has 32 of them, word a of it in bank a mod 32; a bank serves one word at
 * a time. Words of a warp are a = a0 + stride * lane, lane = 0 ... 31:
 *
 *   plain      a. Lanes meet in a bank where stride * lane is the same mod 32, and there are
 *              gcd(stride, 32) of those: every power of two costs itself.
 *   padded     a + a / 32: one word left out after 32.
 *   swizzled   a xor (a / 32 mod 32): each row of 32 words in an order of its own.
 *
 * The last two are free of conflicts for every power of two s up to 32. There a0 is a multiple of
 * 32 s, plus some b < s. With lane = (32 / s) u + l, where u < s and l < 32 / s, word a lies in row
 * a / 32 = q s + u, at s l + b in it. Its bank is, mod 32,
 *
 *   padded     s l + u + (b + q s): s l and u < s tell all lanes apart;
 *   swizzled   (s l + b) xor (q s + u): the lower log2(s) bits are b xor u, the upper ones l xor q,
 *              and b and q are the same for all lanes.
 *
 * For other strides they are no improvement: odd ones have no conflicts in plain, but up to 2 lanes
 * a bank in padded and 11 in swizzled, and with stride 31 both have 31. (The unit test counts.)
 */
#ifndef IRON_OPS_BANKS_KERNEL_PARAMS_H
#define IRON_OPS_BANKS_KERNEL_PARAMS_H

#ifndef IRON_GPU_KERNEL_WORDS_H /* OpenCL's text has it already, and has no includes */
#include "gpu/kernel_words.h"
#endif

#define BANKS_TILE    2048 /* words of a tile */
#define BANKS_THREADS 256  /* threads that share one */
#define BANKS_ROUNDS  64   /* over a tile: far more local memory than device memory is moved */
#define BANKS_NEXT    32   /* how many steps on the other word of a round is: another warp's */

#define BANKS_PLACE(i, stride, block) (((i) * (stride) + ((i) >> (block))) % BANKS_TILE)

#define BANKS_PLAIN(a)    (a)
#define BANKS_PADDED(a)   ((a) + (a) / 32u)
#define BANKS_SWIZZLED(a) ((a) ^ ((a) / 32u % 32u))

/* What a word becomes in a round, modulo 2^32: one instruction, so that memory is what counts. The
 * factor is odd: nothing is lost. */
#define BANKS_MIXED(word, next) ((word)*0x2545F491u + (next))

#endif
