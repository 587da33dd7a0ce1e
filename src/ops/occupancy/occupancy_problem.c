/* SPDX-License-Identifier: MIT */
/*
 * occupancy_problem.c: the data of the op occupancy, random words, and its judge, which computes
 * every word of the answer anew.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/occupancy/occupancy.h"

#include <stdio.h>

/* The only stream of numbers of a seed. */
enum { STREAM_WORDS = 1 };

typedef struct making {
    uint32_t *words;
    uint64_t base;
} making;

static void fill(void *context, size_t begin, size_t end) {
    const making *m = context;

    for (size_t k = begin; k < end; k++)
        m->words[k] = (uint32_t)(iron__data_bits(m->base, k) >> 32);
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    making m = {.base = iron__data_base(p->c.seed, STREAM_WORDS)};

    p->input_count = 1;
    p->output_bytes = (size_t)p->c.rows * sizeof(uint32_t);
    p->team = team;
    IRON_TRY(iron__data_take(&p->inputs[0], "in", p->output_bytes, err));
    m.words = p->inputs[0].data;
    iron__data_pieces(team, (size_t)p->c.rows, fill, &m);
    return IRON_OK;
}

iron_status iron__occupancy_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__occupancy_unmake(out);
    return status;
}

void iron__occupancy_unmake(iron__problem *problem) {
    iron__data_release(problem);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct judging {
    const uint32_t *in, *out;
} judging;

static bool differs(const void *context, size_t i) {
    const judging *j = context;

    return j->out[i] != iron__occupancy_mix(j->in[i]);
}

bool iron__occupancy_check(const iron__problem *problem, const void *output, char *text,
                           size_t size) {
    judging j = {problem->inputs[0].data, output};
    size_t rows = (size_t)problem->c.rows;
    size_t i = iron__data_first(problem->team, rows, differs, &j);

    if (i == rows)
        return true;
    snprintf(text, size, "out[%zu] is %u, should be %u", i, j.out[i], iron__occupancy_mix(j.in[i]));
    return false;
}
