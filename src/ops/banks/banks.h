/* SPDX-License-Identifier: MIT */
/*
 * banks.h: what the files of the op banks share: the problem, its rows, and what follows from a
 * stride.
 */
#ifndef IRON_OPS_BANKS_BANKS_H
#define IRON_OPS_BANKS_BANKS_H

#include "ops/banks/kernel_params.h"
#include "ops/op.h"

#define IRON_BANKS 32u /* of local memory; and the largest stride */

static inline uint32_t iron__banks_stride(const iron__case *c) { return (uint32_t)c->at[0]; }

/* The power of two in a stride of 1 to 32, which is its greatest common divisor with 32: so many
 * lanes of a warp meet in a bank of the plain layout. */
static inline uint32_t iron__banks_ways(uint32_t stride) { return stride & (0u - stride); }

/* kernel_params.h: 2^block steps of the walk until it moves on by one word. */
static inline uint32_t iron__banks_block(uint32_t stride) {
    return (uint32_t)__builtin_ctz(BANKS_TILE / iron__banks_ways(stride));
}

static inline uint64_t iron__banks_tiles(const iron__case *c) {
    return (c->rows + BANKS_TILE - 1) / BANKS_TILE;
}

iron_status iron__banks_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__banks_unmake(iron__problem *problem);
bool iron__banks_check(const iron__problem *problem, const void *output, char *text, size_t size);

bool iron__banks_contender_at(size_t index, iron__contender *out);

#endif
