/* SPDX-License-Identifier: MIT */
/*
 * arena.h: the arena's object: a plan, a racer a row, and the report that comes of them.
 */
#ifndef IRON_ARENA_ARENA_H
#define IRON_ARENA_ARENA_H

#include "arena/plan.h"
#include "arena/report.h"

struct iron_arena {
    iron_arena_options options; /* its pointers were for opening alone, but progress and context */
    iron__plan plan;
    iron__racer *racers;    /* as the plan's rows */
    iron__kernels *kernels; /* likewise: what each launched; none on the CPU */
    /* Of each device of the plan, while its ceilings are measured and it races. */
    iron__samples *ceiling_samples;
    iron__report report;
    bool has_begun, has_raced; /* whether to its end or not; to its end */
};

/* iron_arena_open over other ops than this build's. */
iron_status iron__arena_open(const iron_arena_options *options, iron__op_lister op_at,
                             iron_arena **out, iron_error *err);

/* Measures the ceilings of the devices that take part and races, case by case, device by device;
 * fills racers, and ceilings and devices of the report. */
iron_status iron__arena_run(iron_arena *arena, iron_error *err);

/* Fills the report's rows and figures from the racers. */
iron_status iron__arena_conclude(iron_arena *arena, iron_error *err);

#define IRON_CEILINGS_MAX 32u /* seven a device at most */

/* Every op and contender of this build, as JSON. */
void iron__registry_json(FILE *to);

/* What this machine and this build are. */
void iron__report_host_fill(iron__report_host *host);

#endif
