/* SPDX-License-Identifier: MIT */
/*
 * stat_lengths.h: how many documents have which length: a table of counts that add up.
 *
 * A length up to 2^20 tokens has a counter of its own. Longer ones share counters: 1024 to each
 * doubling, so that the lengths of one counter differ by less than 1/1024 of the smallest. With the
 * largest length there is, 44 doublings, that is 9 MB, however many documents there are.
 */
#ifndef IRON_DIGEST_STAT_LENGTHS_H
#define IRON_DIGEST_STAT_LENGTHS_H

#include <stddef.h>
#include <stdint.h>

#define IRON_LENGTHS_EXACT    (UINT64_C(1) << 20)
#define IRON_LENGTHS_COUNTERS ((size_t)(IRON_LENGTHS_EXACT + 1 + UINT64_C(44) * 1024))

/* All zeros: no documents. */
typedef struct iron__stat_lengths {
    uint64_t longer_min, longer_max;        /* of lengths beyond 2^20, exactly; 0: there are none */
    uint64_t counts[IRON_LENGTHS_COUNTERS]; /* counts[0] stays 0: a document has a token */
} iron__stat_lengths;

/* `count` documents more of this length, 1 or more. */
void iron__stat_lengths_add(iron__stat_lengths *t, uint64_t length, uint64_t count);
void iron__stat_lengths_merge(iron__stat_lengths *t, const iron__stat_lengths *more);

uint64_t iron__stat_lengths_total(const iron__stat_lengths *t);
/* The fewest tokens such documents can have together: exactly what they have, if none is longer
 * than 2^20; UINT64_MAX: more than a stream can have. */
uint64_t iron__stat_lengths_tokens(const iron__stat_lengths *t);
/* 0: there are no documents. */
uint64_t iron__stat_lengths_min(const iron__stat_lengths *t);
uint64_t iron__stat_lengths_max(const iron__stat_lengths *t);

/* The length with number rank (1 ... total) in ascending order; of a shared counter, the smallest
 * length it can stand for. `extra` are up to two lengths that the table does not hold. */
uint64_t iron__stat_lengths_at(const iron__stat_lengths *t, const uint64_t *extra, size_t extras,
                               uint64_t rank);

#endif
