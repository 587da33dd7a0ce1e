/* SPDX-License-Identifier: MIT */
/*
 * diff_lockstep.h: two texts compared token by token on all threads, at the speed of reading.
 */
#ifndef IRON_DIGEST_DIFF_LOCKSTEP_H
#define IRON_DIGEST_DIFF_LOCKSTEP_H

#include "core/team.h"
#include "digest/diff_bits.h"
#include "digest/diff_text.h"

/* Who works on a comparison and who is told how far it is. */
typedef struct iron__diff_crew {
    iron__team *team;
    iron_progress progress; /* NULL: nobody */
    void *context;
} iron__diff_crew;

/* IRON_E_CANCELLED if whoever is told wants no more. */
iron_status iron__diff_tell(const iron__diff_crew *crew, uint64_t done, uint64_t total,
                            iron_error *err);

/* `count` tokens of both, from these positions on; with one text NULL the other is only read and
 * checked. */
typedef struct iron__lockstep {
    const iron__diff_text *text[2];
    uint64_t from[2];
    uint64_t count;
    iron__diff_bits *bits; /* NULL: only the first difference is wanted; else from[] must be 0 */
} iron__lockstep;

/* *first: how many tokens agree before the first that differs; count if all do. */
iron_status iron__lockstep_run(const iron__lockstep *what, const iron__diff_crew *crew,
                               uint64_t *first, iron_error *err);

#endif
