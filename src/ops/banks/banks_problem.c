/* SPDX-License-Identifier: MIT */
/*
 * banks_problem.c: the line of the op banks, what becomes of it, and the judge of answers.
 *
 * The reference puts the words of a tile into the order of the walk first: there a round is one
 * loop along the tile, which compilers turn into vectors. The answer is put back at the end.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/banks/banks.h"
#include "ops/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STREAM_LINE = 1 };

typedef struct filling {
    uint32_t *line;
    uint64_t base;
} filling;

static void fill_piece(void *context, size_t begin, size_t end) {
    const filling *f = context;

    for (size_t k = begin; k < end; k++)
        f->line[k] = (uint32_t)(iron__data_bits(f->base, k) >> 32);
}

/* All rounds over a tile in the order of the walk. A word's next one is still the old one when it
 * is needed, except for the last, whose next are the first. */
static void mix_tile(uint32_t tile[BANKS_TILE + BANKS_NEXT]) {
    for (uint32_t round = 0; round < BANKS_ROUNDS; round++) {
        memcpy(tile + BANKS_TILE, tile, BANKS_NEXT * sizeof *tile);
        for (size_t i = 0; i < BANKS_TILE; i++)
            tile[i] = BANKS_MIXED(tile[i], tile[i + BANKS_NEXT]);
    }
}

static void refer_tile(void *context, size_t index) {
    const iron__problem *p = context;
    const uint32_t *line = (const uint32_t *)p->inputs[0].data + index * BANKS_TILE;
    uint32_t *answer = (uint32_t *)p->own + index * BANKS_TILE;
    uint32_t tile[BANKS_TILE + BANKS_NEXT], stride = iron__banks_stride(&p->c);
    uint32_t block = iron__banks_block(stride);
    size_t left = (size_t)p->c.rows - index * BANKS_TILE;

    for (uint32_t i = 0; i < BANKS_TILE; i++) {
        size_t at = BANKS_PLACE(i, stride, block);

        tile[i] = at < left ? line[at] : 0;
    }
    mix_tile(tile);
    for (uint32_t i = 0; i < BANKS_TILE; i++) {
        size_t at = BANKS_PLACE(i, stride, block);

        if (at < left)
            answer[at] = tile[i];
    }
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    filling f = {.base = iron__data_base(p->c.seed, STREAM_LINE)};

    p->input_count = 1;
    p->output_bytes = (size_t)p->c.rows * sizeof *f.line;
    IRON_TRY(iron__data_take(&p->inputs[0], "line", p->output_bytes, err));
    f.line = p->inputs[0].data;
    iron__data_pieces(team, (size_t)p->c.rows, fill_piece, &f);
    p->own = iron__allocate_large(p->output_bytes, err);
    if (!p->own)
        return IRON_E_NOMEM;
    iron__team_run(team, refer_tile, p, (size_t)iron__banks_tiles(&p->c));
    return IRON_OK;
}

iron_status iron__banks_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__banks_unmake(out);
    return status;
}

void iron__banks_unmake(iron__problem *problem) {
    iron__data_release(problem);
    if (problem->own)
        iron__release_large(problem->own, problem->output_bytes);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct answer_pair {
    const uint32_t *is, *should_be;
} answer_pair;

static bool differs(const void *context, size_t index) {
    const answer_pair *a = context;

    return a->is[index] != a->should_be[index];
}

bool iron__banks_check(const iron__problem *problem, const void *output, char *text, size_t size) {
    answer_pair a = {output, problem->own};
    size_t rows = (size_t)problem->c.rows;
    size_t first = iron__data_first(problem->team, rows, differs, &a);

    if (first == rows)
        return true;
    snprintf(text, size, "out[%zu] is %" PRIu32 ", should be %" PRIu32, first, a.is[first],
             a.should_be[first]);
    return false;
}
