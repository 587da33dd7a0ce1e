/* SPDX-License-Identifier: MIT */
/*
 * seal_feed.c: the stream's seal, on all threads, by the best row that runs here. Its cuts are its
 * own: at multiples of four positions, whatever the batches; up to three tokens on either side go
 * through the carry.
 */
#include "engine/engine.h"
#include "ops/tokens/quads.h"

typedef struct seal_work {
    iron_engine *engine;
    const iron__seal_variant *row;
    iron__tokens_view view; /* whole quads */
    uint64_t first_quad;
} seal_work;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void seal_narrow(const seal_work *w, size_t begin, size_t end, iron__seal_words *words) {
    iron__quads_run_u16 run = {(const uint16_t *)w->view.data + begin, (end - begin) / 4,
                               w->first_quad + begin / 4, 0};

    w->row->take_u16(&run, words, NULL);
}

static void seal_widened(const seal_work *w, size_t begin, size_t end, iron__seal_words *words) {
    uint32_t wide[IRON_WIDEN_TOKENS];

    while (begin < end) {
        size_t count = end - begin;
        const uint32_t *tokens = iron__view_tokens(&w->view, begin, &count, wide);
        iron__quads_run run = {tokens, count / 4, w->first_quad + begin / 4, 0};

        w->row->take(&run, words, NULL);
        begin += count;
    }
}

static void seal_task(void *context, size_t task) {
    const seal_work *w = context;
    size_t begin = task * IRON_RUN_TOKENS;
    size_t end = smaller(begin + IRON_RUN_TOKENS, w->view.count);
    iron__seal_words words = {0, 0, 0, 0};

    if (w->view.dtype == IRON_DTYPE_U16 && w->row->take_u16)
        seal_narrow(w, begin, end, &words);
    else
        seal_widened(w, begin, end, &words);
    w->engine->seal_runs[task] = words;
}

/* Quads for at most IRON_RUNS_MAX tasks; returns how many tokens that was. */
static size_t seal_quads(iron_engine *e, iron__tokens_view view) {
    seal_work work = {e, iron__seal_variant_find("champion"), view, e->seal.words.count / 4};
    size_t tasks;

    work.view.count = smaller(view.count / 4 * 4, (size_t)IRON_RUNS_MAX * IRON_RUN_TOKENS);
    tasks = (work.view.count + IRON_RUN_TOKENS - 1) / IRON_RUN_TOKENS;
    iron__team_run(e->team, seal_task, &work, tasks);
    for (size_t k = 0; k < tasks; k++)
        e->seal.words = iron__seal_merge(e->seal.words, e->seal_runs[k]);
    return work.view.count;
}

/* Up to three tokens, one way or the other. */
static size_t seal_few(iron_engine *e, iron__tokens_view view, size_t count) {
    uint32_t wide[IRON_WIDEN_TOKENS];
    const uint32_t *tokens = iron__view_tokens(&view, 0, &count, wide);

    iron__seal_feed(&e->seal, tokens, count);
    return count;
}

void iron__engine_seal(iron_engine *e, const iron__tokens_view *tokens) {
    iron__tokens_view view = *tokens;

    if (e->seal.carried)
        view = iron__view_rest(&view, seal_few(e, view, smaller(4 - e->seal.carried, view.count)));
    while (view.count >= 4)
        view = iron__view_rest(&view, seal_quads(e, view));
    if (view.count > 0)
        seal_few(e, view, view.count);
}
