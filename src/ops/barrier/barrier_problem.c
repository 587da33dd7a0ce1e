/* SPDX-License-Identifier: MIT */
/*
 * barrier_problem.c: the line of the op barrier, its sums, and the judge of answers.
 *
 * Sums are exact: whole numbers in any order give the same bits, so an answer is right or wrong. No
 * element is 0, so one that is left out or taken twice changes its sum; segments have different
 * sums, so an answer in another order is wrong.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/barrier/barrier.h"
#include "ops/data.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { STREAM_LINE = 1 };

/* What a problem keeps for its judge. */
typedef struct own_part {
    uint32_t *sums; /* of segments; NULL where there is one of all */
    _Atomic uint64_t total;
} own_part;

typedef struct filling {
    uint32_t *line;
    uint64_t base;
} filling;

static void fill_piece(void *context, size_t begin, size_t end) {
    const filling *f = context;

    for (size_t k = begin; k < end; k++)
        f->line[k] = 1 + iron__data_below(iron__data_bits(f->base, k), IRON_BARRIER_LIMIT - 1);
}

static uint64_t sum_of(const uint32_t *line, size_t begin, size_t end) {
    uint64_t sum = 0;

    for (size_t k = begin; k < end; k++)
        sum += line[k];
    return sum;
}

static void add_segments(void *context, size_t begin, size_t end) {
    const iron__problem *p = context;
    own_part *own = p->own;
    size_t rows = (size_t)p->c.rows;

    for (size_t k = begin; k < end; k++) {
        size_t from = k * BARRIER_SEGMENT;
        size_t to = rows - from < BARRIER_SEGMENT ? rows : from + BARRIER_SEGMENT;

        own->sums[k] = (uint32_t)sum_of(p->inputs[0].data, from, to);
    }
}

static void add_piece(void *context, size_t begin, size_t end) {
    const iron__problem *p = context;
    own_part *own = p->own;

    atomic_fetch_add(&own->total, sum_of(p->inputs[0].data, begin, end));
}

static iron_status refer(iron__problem *p, iron__team *team, iron_error *err) {
    own_part *own = p->own;

    if (iron__barrier_is_grid(&p->c)) {
        iron__data_pieces(team, (size_t)p->c.rows, add_piece, p);
        return IRON_OK;
    }
    own->sums = iron__allocate(iron__allocator_default(), p->output_bytes, 1, "sums", err);
    if (!own->sums)
        return IRON_E_NOMEM;
    iron__data_pieces(team, p->output_bytes / sizeof *own->sums, add_segments, p);
    return IRON_OK;
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    filling f = {.base = iron__data_base(p->c.seed, STREAM_LINE)};

    p->input_count = 1;
    p->output_bytes = iron__barrier_output_bytes(&p->c);
    p->own = iron__allocate(iron__allocator_default(), 1, sizeof(own_part), "sums", err);
    if (!p->own)
        return IRON_E_NOMEM;
    IRON_TRY(iron__data_take(&p->inputs[0], "line", (size_t)p->c.rows * sizeof *f.line, err));
    f.line = p->inputs[0].data;
    iron__data_pieces(team, (size_t)p->c.rows, fill_piece, &f);
    return refer(p, team, err);
}

iron_status iron__barrier_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__barrier_unmake(out);
    return status;
}

void iron__barrier_unmake(iron__problem *problem) {
    own_part *own = problem->own;

    iron__data_release(problem);
    if (own)
        iron__release(iron__allocator_default(), own->sums);
    iron__release(iron__allocator_default(), own);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct answer {
    const uint32_t *is, *should_be;
} answer;

static bool differs(const void *context, size_t index) {
    const answer *a = context;

    return a->is[index] != a->should_be[index];
}

static bool check_segments(const iron__problem *problem, const uint32_t *is, char *text,
                           size_t size) {
    const own_part *own = problem->own;
    size_t count = problem->output_bytes / sizeof *is;
    answer a = {is, own->sums};
    size_t first = iron__data_first(problem->team, count, differs, &a);

    if (first == count)
        return true;
    snprintf(text, size,
             "sum[%zu] is %" PRIu32 ", should be %" PRIu32 ": elements %" PRIu64 " and on", first,
             is[first], own->sums[first], (uint64_t)first * BARRIER_SEGMENT);
    return false;
}

bool iron__barrier_check(const iron__problem *problem, const void *output, char *text,
                         size_t size) {
    const own_part *own = problem->own;
    uint64_t is, should_be = own->total;

    if (own->sums)
        return check_segments(problem, output, text, size);
    memcpy(&is, output, sizeof is);
    if (is == should_be)
        return true;
    snprintf(text, size, "the sum is %" PRIu64 ", should be %" PRIu64, is, should_be);
    return false;
}
