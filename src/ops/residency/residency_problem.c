/* SPDX-License-Identifier: MIT */
/*
 * residency_problem.c: the data of the op residency, a stream of records and a table, both random;
 * its right answer, and its judge. Sums are of whole numbers, so there is one right answer, to the
 * last bit, in whatever order it is added up.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/data.h"
#include "ops/residency/kernel_params.h"
#include "ops/residency/residency.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* Streams of numbers of one seed. */
enum { STREAM_RECORDS = 1, STREAM_TABLE = 2 };

typedef struct making {
    uint32_t *words;
    uint64_t base;
} making;

static void fill(void *context, size_t begin, size_t end) {
    const making *m = context;

    for (size_t k = begin; k < end; k++)
        m->words[k] = (uint32_t)(iron__data_bits(m->base, k) >> 32);
}

static void fill_words(const iron__array *array, const iron__case *c, uint64_t stream,
                       iron__team *team) {
    making m = {array->data, iron__data_base(c->seed, stream)};

    iron__data_pieces(team, array->bytes / sizeof(uint32_t), fill, &m);
}

typedef struct adding {
    const uint32_t *stream, *table;
    uint32_t words;
    _Atomic uint64_t sum, xors;
} adding;

static void add_piece(void *context, size_t begin, size_t end) {
    adding *a = context;
    uint64_t sum = 0, xors = 0;

    for (size_t i = begin; i < end; i++) {
        uint32_t word = a->stream[i];

        if (i % RESIDENCY_RECORD == 0)
            word ^= a->table[iron__residency_place(word, a->words)];
        sum += word;
        xors ^= word;
    }
    atomic_fetch_add(&a->sum, sum);
    atomic_fetch_xor(&a->xors, xors);
}

static iron__residency_answer refer(const iron__problem *p, iron__team *team) {
    adding a = {.stream = p->inputs[0].data,
                .table = p->inputs[1].data,
                .words = (uint32_t)(p->inputs[1].bytes / sizeof(uint32_t))};

    iron__data_pieces(team, (size_t)p->c.rows, add_piece, &a);
    return (iron__residency_answer){a.sum, a.xors};
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    iron__residency_answer *right =
        iron__allocate(iron__allocator_default(), 1, sizeof *right, "residency's problem", err);

    if (!right)
        return IRON_E_NOMEM;
    p->own = right;
    p->input_count = 2;
    p->output_bytes = sizeof *right;
    p->team = team;
    IRON_TRY(iron__data_take(&p->inputs[0], "stream", (size_t)p->c.rows * sizeof(uint32_t), err));
    IRON_TRY(
        iron__data_take(&p->inputs[1], "table", (size_t)iron__residency_table_bytes(&p->c), err));
    fill_words(&p->inputs[0], &p->c, STREAM_RECORDS, team);
    fill_words(&p->inputs[1], &p->c, STREAM_TABLE, team);
    *right = refer(p, team);
    return IRON_OK;
}

iron_status iron__residency_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__residency_unmake(out);
    return status;
}

void iron__residency_unmake(iron__problem *problem) {
    iron__data_release(problem);
    iron__release(iron__allocator_default(), problem->own);
    *problem = (iron__problem){.c = problem->c};
}

bool iron__residency_check(const iron__problem *problem, const void *output, char *text,
                           size_t size) {
    const iron__residency_answer *is = output, *right = problem->own;

    if (is->sum != right->sum)
        snprintf(text, size, "the sum is %" PRIu64 ", should be %" PRIu64, is->sum, right->sum);
    else if (is->xors != right->xors)
        snprintf(text, size, "the XOR is %" PRIx64 ", should be %" PRIx64, is->xors, right->xors);
    else
        return true;
    return false;
}
