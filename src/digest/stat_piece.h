/* SPDX-License-Identifier: MIT */
/*
 * stat_piece.h: one thread's look at a piece of the stream.
 *
 * What depends on order goes into the piece, and pieces are appended in order. What does not is
 * counted in the thread's own lane, over all its pieces. Long documents are rare, so a piece has
 * room for all that can end inside it: no table of all lengths for every thread.
 */
#ifndef IRON_DIGEST_STAT_PIECE_H
#define IRON_DIGEST_STAT_PIECE_H

#include "digest/stat_range.h"
#include "formats/dtype.h"

/* 256 KiB of 32-bit tokens: in the second-level cache while it is looked at. */
#define IRON_PIECE_TOKENS    ((size_t)1 << 16)
#define IRON_SHORT_DOCUMENTS ((size_t)1 << 12) /* lengths up to here are counted in the lane */
#define IRON_PIECE_LONGS     (IRON_PIECE_TOKENS / IRON_SHORT_DOCUMENTS)

/* What is looked for. */
typedef struct iron__stat_rule {
    uint64_t vocab;
    uint64_t eos; /* IRON_COUNT_UNKNOWN: none */
} iron__stat_rule;

typedef struct iron__stat_piece {
    iron__stat_range range;
    uint32_t long_count;
    uint32_t longs[IRON_PIECE_LONGS]; /* documents inside the piece that are no short ones */
} iron__stat_piece;

typedef struct iron__stat_lane {
    uint32_t *histogram[2]; /* of vocab counters each, NULL without; even and odd tokens, so that
                               counting a value twice running does not wait for itself */
    uint64_t run_floor;     /* an earlier piece has a run of this length: shorter ones of later
                               pieces need not be found, nor those as long */
    uint64_t shorts[IRON_SHORT_DOCUMENTS + 1]; /* documents inside pieces, by length */
} iron__stat_lane;

/* Makes the piece of these tokens, at most IRON_PIECE_TOKENS that all are 0 ... 2^32-1. Pieces of a
 * lane come in the stream's order. */
void iron__stat_piece_take(iron__stat_piece *piece, iron__stat_lane *lane,
                           const iron__stat_rule *rule, const iron__tokens_view *view,
                           uint64_t position);

#endif
