/* SPDX-License-Identifier: MIT */
/* row_support.h: helpers for tests of all ops: a pool, and running a CPU row as a race does. */
#ifndef TESTS_UNIT_ROW_SUPPORT_H
#define TESTS_UNIT_ROW_SUPPORT_H

#include "support.h"

#include "ops/op.h"

static inline iron__thread_pool *make_team(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    return pool;
}

/* Fills output and scratch with ones; scratch has exactly the requested size. */
static inline void run_row(const iron__contender *row, const iron__op_problem *p,
                           iron__thread_pool *pool, void *output) {
    size_t bytes = 0;
    iron__cpu_work work = {.row = row, .problem = p, .pool = pool, .output = output};

    if (row->cpu_scratch_bytes)
        bytes = row->cpu_scratch_bytes(p, iron__thread_pool_threads(pool));
    work.scratch = iron__allocate(iron__allocator_default(), bytes, 1, "scratch", NULL);
    assert_non_null(work.scratch);
    memset(work.scratch, 0xFF, bytes);
    memset(output, 0xFF, p->output_bytes);
    row->cpu_run(&work);
    iron__release(iron__allocator_default(), work.scratch);
}

#endif
