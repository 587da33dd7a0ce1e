/* SPDX-License-Identifier: MIT */
/*
 * planning.h: what the files that make a plan share: plan.c goes through the ops, plan_cases.c
 * through an op's sizes and parameters, plan_rows.c through who could race over a case.
 */
#ifndef IRON_ARENA_PLANNING_H
#define IRON_ARENA_PLANNING_H

#include "arena/plan.h"

typedef struct iron__planning {
    iron__plan *plan;
    const iron_arena_options *o;
    uint32_t memory, scopes; /* bits of strategies and scopes that are asked for */
    const iron__op *op;      /* whose turn it is */
    bool *is_used;           /* of each glob: it chose something */
    bool *is_known;          /* of each parameter: a chosen op has it */
    const iron__plan_device
        *passed_over; /* not here; globs chose some of its rows without its name */
} iron__planning;

/* Makes room for one more of what there are `count` of; NULL when memory is out. */
void *iron__plan_grow(void *array, size_t count, size_t *room, size_t size, iron_error *err);

/* Is the name chosen by a glob? All globs that choose it are marked as used. */
bool iron__plan_chooses(const iron__planning *p, const char *name);

/* Does any glob choose something of the op whose turn it is on that device? */
bool iron__plan_touches(const iron__planning *p, const iron__plan_device *d);

/* Is it a row of this op on this backend? */
bool iron__plan_has_peer(const iron_peer *peer, const iron__op *op, const iron__plan_device *d);

/* Adds the cases of the op whose turn it is, each with its rows. */
iron_status iron__plan_cases(iron__planning *p, iron_error *err);
/* Adds the rows of a case: contenders and peers, on all devices. */
iron_status iron__plan_rows(iron__planning *p, size_t case_index, iron_error *err);
/* When all rows are there: those whose runs take too long for their case's share of the time. */
void iron__plan_pass_over_slow(iron__planning *p);

#endif
