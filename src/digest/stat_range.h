/* SPDX-License-Identifier: MIT */
/*
 * stat_range.h: statistics of a range of the stream that cannot be added up in any order: where
 * things are, and what goes on over the range's ends.
 *
 * An ordered monoid: a range is continued by tokens or by the range that follows it. A run of one
 * value, or a document, may span ranges; so a range keeps the run it begins with and the one it
 * ends with, the tokens before its first end of a document, and those after its last.
 *
 *     tokens    7 7 7 | 5 E 9 9 E 4 4 4          E: the eos
 *     run head  ------                 -- tail
 *     document head -------  (inside)    ----- tail
 *
 * Lengths of documents that begin and end inside are counted in tables (stat_lengths.h), which add
 * up in any order, like the histogram.
 */
#ifndef IRON_DIGEST_STAT_RANGE_H
#define IRON_DIGEST_STAT_RANGE_H

#include <iron/iron_digest.h>

#include <stdbool.h>

typedef struct iron__stat_run {
    uint64_t length; /* 0: there is none */
    uint64_t position;
    uint32_t value;
} iron__stat_run;

typedef struct iron__stat_range {
    uint64_t first, tokens, zeros, out_of_vocab;
    uint32_t min, max; /* of no tokens: UINT32_MAX and 0 */
    uint32_t place_count;
    iron_stat_place places[IRON_STAT_PLACES];
    iron__stat_run head, tail, longest; /* runs; head and tail are one if all tokens are equal */
    uint64_t ends;                      /* how often the eos stands here */
    uint64_t document_head;             /* tokens up to the first of them, itself counted */
    uint64_t document_tail;             /* tokens after the last; all, if there is none */
} iron__stat_range;

iron__stat_range iron__stat_range_at(uint64_t first);

/* Continues a with b. Returns the length of the document that began in a, behind its first end, and
 * ended in b: nobody has counted it yet. 0: there is none. */
uint64_t iron__stat_range_append(iron__stat_range *a, const iron__stat_range *b);

/* Is this what a range can be? false: the fields contradict each other. */
bool iron__stat_range_is_sound(const iron__stat_range *r, uint64_t vocab, bool has_eos);

#endif
