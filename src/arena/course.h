/* SPDX-License-Identifier: MIT */
/*
 * course.h: the race as it goes, for the files that run it: arena_ceilings.c measures the limits of
 * the devices that take part, arena_run.c races case by case.
 */
#ifndef IRON_ARENA_COURSE_H
#define IRON_ARENA_COURSE_H

#include "arena/arena.h"
#include "arena/clock_watch.h"
#include "arena/entrants.h"

#define IRON_PROGRESS_WHOLE    1000u
#define IRON_PROGRESS_CEILINGS 100u /* of it */

typedef struct iron__course {
    iron_arena *arena;
    iron__team *team, *alone;
    size_t racing;                                /* rows that will race */
    size_t raced;                                 /* and have */
    size_t now;                                   /* rows in the race that is on */
    double spent;                                 /* seconds that all turns so far took */
    iron__cpu_stage cpu;                          /* flush is kept from case to case */
    iron__gpu_device *devices[IRON_PLAN_DEVICES]; /* likewise: open while cases need them */
    iron__gpu_device *watched;                    /* whose clocks are looked at; NULL: the CPU's */
    iron__report_device *seen;                    /* where they are noted */
    iron__clock_watch watch;
} iron__course;

/* Does that row race? */
bool iron__course_races(const iron__course *c, size_t row);

/* IRON_E_CANCELLED when told to stop. */
iron_status iron__course_tell(iron__course *c, uint64_t thousandths, iron_error *err);

/* Seconds that the rows of this race may take of the time for all. Those before them leave what
 * they did not need; if they took more, these have half of an equal share nevertheless. */
double iron__course_share(const iron__course *c);

/* Of every device that takes part, once; a device that has none does not race. */
iron_status iron__course_ceilings(iron__course *c, iron_error *err);
/* A CPU has neighbours that no GPU has: its ceilings are measured once more in the end. */
iron_status iron__course_ceilings_again(iron__course *c, iron_error *err);

#endif
