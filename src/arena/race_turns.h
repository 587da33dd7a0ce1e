/* SPDX-License-Identifier: MIT */
/*
 * race_turns.h: what race.c and race_turns.c share: the verdicts of a race are race.c's, the turns
 * and the sharing of time race_turns.c's.
 */
#ifndef IRON_ARENA_RACE_TURNS_H
#define IRON_ARENA_RACE_TURNS_H

#include "arena/race.h"

/* How far the race is, as told to the one who waits. What was shown never goes back. */
typedef struct iron__race_progress {
    const iron__race_rules *rules;
    uint64_t shown; /* thousandths */
} iron__race_progress;

/* fraction: 0 ... 1 of the whole race. IRON_E_CANCELLED when told to stop. */
iron_status iron__race_show(iron__race_progress *p, double fraction, iron_error *err);

/* Takes a racer that returned an error out of the race: its reason is the error's text. */
void iron__racer_fail(iron__racer *r, iron_status status, const iron_error *why);

/* Does it race, and is it still in? */
bool iron__racer_is_in(const iron__racer *r);

/* Is the scope among those that can be timed? */
static inline bool iron__racer_has(const iron__racer *r, iron__scope scope) {
    return (r->entrant->scopes >> scope & 1u) != 0;
}

/* All turns of all racers that are in. Shows progress from `from` to `to`. */
iron_status iron__race_turns(iron__racer *racers, size_t count, iron__race_progress *progress,
                             double from, double to, iron_error *err);

#endif
