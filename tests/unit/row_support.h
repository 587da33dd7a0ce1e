/* SPDX-License-Identifier: MIT */
/* row_support.h: what tests of all ops share: a team, and a row of the CPU run as a race does. */
#ifndef TESTS_UNIT_ROW_SUPPORT_H
#define TESTS_UNIT_ROW_SUPPORT_H

#include "support.h"

#include "ops/op.h"

static inline iron__team *make_team(uint32_t threads) {
    iron__team *team = NULL;
    iron_error err;

    assert_ok(iron__team_create(threads, iron__allocator_default(), &team, &err), &err);
    return team;
}

/* Output poisoned, scratch exactly as large as it was asked for, with rubbish in it. */
static inline void run_row(const iron__contender *row, const iron__problem *p, iron__team *team,
                           void *output) {
    size_t bytes = 0;
    iron__cpu_work work = {.row = row, .problem = p, .team = team, .output = output};

    if (row->cpu_scratch_bytes)
        bytes = row->cpu_scratch_bytes(p, iron__team_threads(team));
    work.scratch = iron__allocate(iron__allocator_default(), bytes, 1, "scratch", NULL);
    assert_non_null(work.scratch);
    memset(work.scratch, 0xFF, bytes);
    memset(output, 0xFF, p->output_bytes);
    row->cpu_run(&work);
    iron__release(iron__allocator_default(), work.scratch);
}

#endif
