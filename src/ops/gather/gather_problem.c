/* SPDX-License-Identifier: MIT */
/*
 * gather_problem.c: the data of the op gather, and its judge.
 *
 * All words of the table differ, so whoever reads a wrong one gives a wrong answer; and the right
 * answer is as easily had as looked up, so the judge computes it anew, element by element.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/gather/gather.h"
#include "ops/gather/kernel_params.h"

#include <stdio.h>

/* Streams of numbers of one seed. */
enum { STREAM_INDEX = 1, STREAM_TABLE = 2 };

iron__gather_order iron__gather_order_of(const iron__case *c) {
    return (iron__gather_order)(int)c->at[0];
}

uint64_t iron__gather_table_words(const iron__case *c) {
    return c->rows < IRON_GATHER_TABLE_MAX ? c->rows : IRON_GATHER_TABLE_MAX;
}

typedef struct making {
    uint32_t *index, *table;
    uint64_t rows, words, base;
    iron__gather_order order;
} making;

/* Different for different places: each step can be undone. */
static uint32_t word_at(uint64_t base, uint32_t place) {
    uint32_t x = place * UINT32_C(0x9E3779B1) + (uint32_t)base;

    x = (x ^ x >> 15) * UINT32_C(0x85EBCA77);
    return x ^ x >> 13 ^ (uint32_t)(base >> 32);
}

static void fill_table(void *context, size_t begin, size_t end) {
    const making *m = context;

    for (size_t k = begin; k < end; k++)
        m->table[k] = word_at(m->base, (uint32_t)k);
}

static void fill_random(void *context, size_t begin, size_t end) {
    const making *m = context;

    for (size_t i = begin; i < end; i++)
        m->index[i] = iron__data_below(iron__data_bits(m->base, i), (uint32_t)m->words);
}

static void fill_windowed(void *context, size_t begin, size_t end) {
    const making *m = context;
    uint64_t window = m->words < GATHER_WINDOW ? m->words : GATHER_WINDOW;

    for (size_t i = begin; i < end; i++)
        m->index[i] = (uint32_t)(i * (m->words - window) / m->rows) +
                      iron__data_below(iron__data_bits(m->base, i), (uint32_t)window);
}

static void sort(uint32_t *values, size_t count) {
    for (size_t k = 1; k < count; k++) {
        uint32_t value = values[k];
        size_t at = k;

        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

static uint64_t count_blocks(uint64_t rows) {
    return (rows + IRON_GATHER_SORT_BLOCK - 1) / IRON_GATHER_SORT_BLOCK;
}

/* Blocks begin ... end-1: each draws from its own part of the table, one behind the other. */
static void fill_sorted(void *context, size_t begin, size_t end) {
    const making *m = context;
    uint64_t blocks = count_blocks(m->rows);

    for (size_t b = begin; b < end; b++) {
        uint64_t low = b * m->words / blocks, high = (b + 1) * m->words / blocks;
        size_t first = b * IRON_GATHER_SORT_BLOCK, left = (size_t)m->rows - first;
        size_t count = left < IRON_GATHER_SORT_BLOCK ? left : IRON_GATHER_SORT_BLOCK;

        for (size_t i = first; i < first + count; i++)
            m->index[i] = (uint32_t)low +
                          iron__data_below(iron__data_bits(m->base, i), (uint32_t)(high - low));
        sort(m->index + first, count);
    }
}

static void fill_index(making *m, iron__team *team) {
    size_t rows = (size_t)m->rows;

    switch (m->order) {
    case IRON_GATHER_RANDOM:
        iron__data_pieces(team, rows, fill_random, m);
        break;
    case IRON_GATHER_WINDOWED:
        iron__data_pieces(team, rows, fill_windowed, m);
        break;
    case IRON_GATHER_SORTED:
        iron__data_pieces(team, (size_t)count_blocks(rows), fill_sorted, m);
        break;
    }
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    making m = {.rows = p->c.rows,
                .words = iron__gather_table_words(&p->c),
                .order = iron__gather_order_of(&p->c)};

    p->input_count = 2;
    p->output_bytes = (size_t)p->c.rows * sizeof(uint32_t);
    p->team = team;
    IRON_TRY(iron__data_take(&p->inputs[0], "index", p->output_bytes, err));
    IRON_TRY(iron__data_take(&p->inputs[1], "table", (size_t)m.words * sizeof(uint32_t), err));
    m.index = p->inputs[0].data;
    m.table = p->inputs[1].data;
    m.base = iron__data_base(p->c.seed, STREAM_INDEX);
    fill_index(&m, team);
    m.base = iron__data_base(p->c.seed, STREAM_TABLE);
    iron__data_pieces(team, (size_t)m.words, fill_table, &m);
    return IRON_OK;
}

iron_status iron__gather_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__gather_unmake(out);
    return status;
}

void iron__gather_unmake(iron__problem *problem) {
    iron__data_release(problem);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct judging {
    const uint32_t *index, *table, *output;
} judging;

static bool differs(const void *context, size_t i) {
    const judging *j = context;

    return j->output[i] != j->table[j->index[i]];
}

bool iron__gather_check(const iron__problem *problem, const void *output, char *text, size_t size) {
    judging j = {problem->inputs[0].data, problem->inputs[1].data, output};
    size_t rows = (size_t)problem->c.rows;
    size_t i = iron__data_first(problem->team, rows, differs, &j);

    if (i == rows)
        return true;
    snprintf(text, size, "out[%zu] is %u, should be table[%u] = %u", i, j.output[i], j.index[i],
             j.table[j.index[i]]);
    return false;
}
