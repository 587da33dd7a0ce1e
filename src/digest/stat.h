/* SPDX-License-Identifier: MIT */
/*
 * stat.h: the inside of iron_stat: a range, and tables of what adds up in any order.
 */
#ifndef IRON_DIGEST_STAT_H
#define IRON_DIGEST_STAT_H

#include "digest/stat_lengths.h"
#include "digest/stat_piece.h"

/* A histogram of 64-bit counters is half a gigabyte then. */
#define IRON_STAT_HISTOGRAM_MAX (UINT64_C(1) << 26)

struct iron_stat {
    iron__stat_rule rule;
    iron__stat_range range;
    iron__stat_lengths *lengths; /* of documents inside the range; NULL without an eos */
    uint64_t *histogram;         /* of vocab ids, or NULL */
};

/* Checks the rule; statistics of no tokens at `first`. */
iron_status iron__stat_create(const iron__stat_rule *rule, bool wants_histogram, uint64_t first,
                              iron_stat **out, iron_error *err);

/* Appends a piece, which follows directly. */
void iron__stat_take_piece(iron_stat *stat, const iron__stat_piece *piece);
/* Adds what a lane has counted in its pieces, and clears it there. */
void iron__stat_take_lane(iron_stat *stat, iron__stat_lane *lane);

#endif
