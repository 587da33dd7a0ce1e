/* SPDX-License-Identifier: MIT */
/*
 * atax_problem.c: the data of the op atax: a matrix and a vector of numbers that look random, from
 * a seed.
 *
 * Nothing is symmetric, of low rank or rounded by luck, so a contender that takes A for A^T, drops
 * a row or reads one twice is found out. (Suites are known whose matrix hides all of that.)
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/atax/atax.h"
#include "ops/data.h"

/* Streams of numbers of one seed. */
enum { STREAM_A = 1, STREAM_X = 2 };

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    size_t element = iron__element_bytes(p->c.element);
    size_t cols_bytes = (size_t)p->c.cols * element;
    iron__atax_own *own;

    p->input_count = 2;
    p->output_bytes = cols_bytes;
    own = iron__allocate(iron__allocator_default(), 1, sizeof *own, "atax's problem", err);
    if (!own)
        return IRON_E_NOMEM;
    p->own = own;
    IRON_TRY(iron__data_take(&p->inputs[0], "A", (size_t)p->c.rows * cols_bytes, err));
    IRON_TRY(iron__data_take(&p->inputs[1], "x", cols_bytes, err));
    iron__data_fill_reals(&p->inputs[0], &p->c, STREAM_A, team);
    iron__data_fill_reals(&p->inputs[1], &p->c, STREAM_X, team);
    IRON_TRY(iron__atax_refer(p, team, own, err));
    own->tolerance = iron__atax_tolerance(&p->c, own->scale);
    return IRON_OK;
}

iron_status iron__atax_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__atax_unmake(out);
    return status;
}

void iron__atax_unmake(iron__problem *problem) {
    iron__atax_own *own = problem->own;

    iron__data_release(problem);
    if (own)
        iron__release(iron__allocator_default(), own->reference);
    iron__release(iron__allocator_default(), own);
    *problem = (iron__problem){.c = problem->c};
}
