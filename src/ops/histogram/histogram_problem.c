/* SPDX-License-Identifier: MIT */
/*
 * histogram_problem.c: makes the problem of the op histogram, finds the right answer, and judges
 * others.
 *
 * The right answer comes from the plainest of loops, on all threads: each counts a strip of the
 * elements into 64-bit counters of its own, and these are added up. Counts are whole numbers, so an
 * answer is right if every one is equal. An answer that misses elements, counts some twice or is
 * that of other data differs in a count.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/data.h"
#include "ops/histogram/histogram.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct counting {
    const iron__problem *problem;
    uint64_t *strips; /* bins counters each; the answer is the first */
    size_t count;     /* of strips */
    size_t bins;
} counting;

static void count_strip(void *context, size_t index) {
    const counting *w = context;
    const iron__array *elements = &w->problem->inputs[0];
    size_t rows = (size_t)w->problem->c.rows, begin = rows / w->count * index;
    size_t end = index + 1 < w->count ? begin + rows / w->count : rows;
    uint64_t *counts = w->strips + index * w->bins;

    if (w->problem->c.element == IRON_U8)
        for (size_t k = begin; k < end; k++)
            counts[((const uint8_t *)elements->data)[k]]++;
    else if (w->problem->c.element == IRON_U16)
        for (size_t k = begin; k < end; k++)
            counts[((const uint16_t *)elements->data)[k]]++;
    else
        for (size_t k = begin; k < end; k++)
            counts[((const uint32_t *)elements->data)[k]]++;
}

static void add_strips(void *context, size_t begin, size_t end) {
    const counting *w = context;

    for (size_t strip = 1; strip < w->count; strip++)
        for (size_t bin = begin; bin < end; bin++)
            w->strips[bin] += w->strips[strip * w->bins + bin];
}

/* A strip a thread, as long as strips are longer than their counters. */
static iron_status refer(iron__problem *p, iron__team *team, iron_error *err) {
    counting w = {.problem = p, .count = iron__team_threads(team)};

    w.bins = iron__histogram_bins(&p->c);
    if (w.count > p->c.rows / w.bins)
        w.count = (size_t)(p->c.rows / w.bins);
    if (w.count < 1)
        w.count = 1;
    w.strips = iron__allocate(iron__allocator_default(), w.count * w.bins, sizeof *w.strips,
                              "counters", err);
    p->own = w.strips;
    if (!w.strips)
        return IRON_E_NOMEM;
    iron__team_run(team, count_strip, &w, w.count);
    iron__data_pieces(team, w.bins, add_strips, &w);
    return IRON_OK;
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    size_t bytes = (size_t)p->c.rows * iron__element_bytes(p->c.element);

    p->input_count = 1;
    p->team = team;
    p->output_bytes = iron__histogram_bins(&p->c) * sizeof(uint64_t);
    IRON_TRY(iron__data_take(&p->inputs[0], "elements", bytes, err));
    IRON_TRY(iron__histogram_fill(p, team, err));
    return refer(p, team, err);
}

iron_status iron__histogram_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__histogram_unmake(out);
    return status;
}

void iron__histogram_unmake(iron__problem *problem) {
    iron__data_release(problem);
    iron__release(iron__allocator_default(), problem->own);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct comparison {
    const uint64_t *got, *want;
} comparison;

static bool differs(const void *context, size_t bin) {
    const comparison *c = context;

    return c->got[bin] != c->want[bin];
}

bool iron__histogram_check(const iron__problem *problem, const void *output, char *text,
                           size_t size) {
    comparison c = {output, problem->own};
    size_t bins = iron__histogram_bins(&problem->c);
    size_t bin = iron__data_first(problem->team, bins, differs, &c);

    if (bin == bins)
        return true;
    snprintf(text, size, "value %zu occurs %" PRIu64 " times, should be %" PRIu64, bin, c.got[bin],
             c.want[bin]);
    return false;
}
