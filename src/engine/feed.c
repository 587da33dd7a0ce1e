/* SPDX-License-Identifier: MIT */
/*
 * feed.c: tokens in memory go into the engine.
 *
 * A feed is cut into spans, a span into runs that end where batches end and are small enough to
 * deal out to threads; each run is reduced to a contribution of its own, and those are merged into
 * batches afterwards, in a few nanoseconds each. Since contributions merge in any order, threads
 * need not know of each other.
 *
 *     tokens   |------ batch ------|------ batch ------|--- open
 *     runs     |  r0 | r1 | r2 | r3|  r4 | ...
 *
 * Tokens of other widths are widened a few thousand at a time in each thread's own small buffer, so
 * that they stay in the first-level cache.
 */
#include "core/fail.h"
#include "engine/engine.h"
#include "feed/widened.h"

#include <string.h>

/* Tiny batches make tiny runs: a full span is still cut into so many tasks, for all threads. */
#define TASKS_MIN 64u

/* A span being reduced: written before the threads start, then only read. */
typedef struct span {
    iron_engine *engine;
    iron__tokens_view view;
    size_t run;        /* tokens between cuts within a batch */
    size_t batch_runs; /* runs that a whole batch is cut into */
    size_t task_runs;  /* runs that a task takes */
    size_t runs;
    uint64_t position; /* of the first token, as configured: in the stream or in its batch */
    uint64_t open;     /* tokens in the open batch before the span */
} span;

/* Where run k of the span begins. Cuts lie at multiples of `run` within a batch and at its end. */
static size_t run_begin(const span *s, size_t k) {
    uint64_t cut = s->open / s->run + k;
    uint64_t at = cut / s->batch_runs * s->engine->config.batch + cut % s->batch_runs * s->run;

    if (k == 0)
        return 0;
    return at - s->open < s->view.count ? (size_t)(at - s->open) : s->view.count;
}

/* Reduces tokens begin ... begin+count-1 of the span, whose first has the given position. */
static iron__contribution reduce_run(const span *s, size_t begin, size_t count, uint64_t position) {
    const iron_engine *e = s->engine;
    iron__contribution c = iron__contribution_neutral();
    iron__widened wide;

    if (s->view.dtype != IRON_DTYPE_U32)
        iron__widened_touch(&wide);
    for (size_t done = 0; done < count;) {
        iron__tokens_run run = {NULL, count - done, position + done, &e->divisor};

        run.tokens = iron__view_tokens(&s->view, begin + done, &run.count, wide.tokens);
        c = iron__contribution_merge(c, e->choice.variant->reduce(&run));
        done += run.count;
    }
    return c;
}

static void reduce_runs(void *context, size_t task) {
    const span *s = context;
    bool by_batch = s->engine->config.positions == IRON_POSITIONS_BATCH;
    size_t first = task * s->task_runs;
    size_t last = first + s->task_runs < s->runs ? first + s->task_runs : s->runs;

    for (size_t k = first; k < last; k++) {
        size_t begin = run_begin(s, k), end = run_begin(s, k + 1);
        uint64_t position =
            by_batch ? (s->open + begin) % s->engine->config.batch : s->position + begin;

        s->engine->runs[k] = reduce_run(s, begin, end - begin, position);
    }
}

/* Batches shorter than a run are runs of their own, several a task. */
static void plan_span(span *s) {
    uint64_t batch = s->engine->config.batch;

    s->run = batch < IRON_RUN_TOKENS ? (size_t)batch : IRON_RUN_TOKENS;
    s->batch_runs = (size_t)((batch + s->run - 1) / s->run);
    s->task_runs = IRON_RUN_TOKENS / s->run;
    if (s->task_runs > IRON_RUNS_MAX / TASKS_MIN)
        s->task_runs = IRON_RUNS_MAX / TASKS_MIN;
    s->position = iron__engine_position(s->engine);
    s->open = s->engine->open.count;
    for (s->runs = 1; s->runs < IRON_RUNS_MAX && run_begin(s, s->runs) < s->view.count;)
        s->runs++;
    s->view.count = run_begin(s, s->runs);
}

void iron__queue_settle(iron_engine *e) {
    iron__nodes_apply(&e->nodes, e->queue, e->queued, e->team);
    e->queued = 0;
}

void iron__queue_take(iron_engine *e, iron__batch_effect effect) {
    e->queue[e->queued++] = effect;
    if (e->queued == IRON_QUEUE_BATCHES)
        iron__queue_settle(e);
}

/* Closes the open batch, which must not be empty: queues its effect and merges it. */
static void close_batch(iron_engine *e) {
    iron__contribution c = e->open;
    iron__batch_effect effect = {c.xors,
                                 iron__contribution_potential(c, (uint32_t)e->config.vocab)};
    bool is_taken = iron__range_take(e, effect);

    e->closed = iron__contribution_merge(e->closed, c);
    e->open = iron__contribution_neutral();
    e->batches++;
    if (e->choice.variant->per_node) {
        if (!is_taken)
            iron__per_node_close(e, c.count);
        iron__per_node_clear(e);
    } else if (!is_taken) {
        iron__queue_take(e, effect);
    }
    if (e->heard)
        e->heard(e->heard_context, c);
}

static void merge_runs(const span *s) {
    iron_engine *e = s->engine;

    for (size_t k = 0; k < s->runs; k++) {
        e->open = iron__contribution_merge(e->open, e->runs[k]);
        if (e->open.count == e->config.batch)
            close_batch(e);
    }
}

/* Takes as much of the view as fits one span; returns how many tokens that was. */
static size_t feed_span(iron_engine *e, iron__tokens_view view) {
    span s = {.engine = e, .view = view};

    plan_span(&s);
    iron__team_run(e->team, reduce_runs, &s, (s.runs + s.task_runs - 1) / s.task_runs);
    merge_runs(&s);
    return s.view.count;
}

/* The modes of Part I: a run goes to every node, so it is the nodes that are dealt out. */
static size_t feed_nodes(iron_engine *e, iron__tokens_view view) {
    uint32_t wide[IRON_WIDEN_TOKENS];
    uint64_t left = e->config.batch - e->open.count;
    iron__tokens_run run = {NULL, view.count, iron__engine_position(e), &e->divisor};

    if (run.count > left)
        run.count = (size_t)left;
    run.tokens = iron__view_tokens(&view, 0, &run.count, wide);
    iron__per_node_feed(e, &run);
    if (e->open.count == e->config.batch)
        close_batch(e);
    return run.count;
}

iron_status iron__feed_check(const iron_engine *e, const iron__tokens_view *view, iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);
    uint64_t fed = e->closed.count + e->open.count;

    IRON_FAIL_IF(width == 0, err, IRON_E_ARG, "dtype %d is unknown; use an iron_dtype",
                 (int)view->dtype);
    IRON_FAIL_IF((uintptr_t)view->data % width != 0, err, IRON_E_ARG,
                 "tokens at %p are not aligned to their %zu bytes; copy them", view->data, width);
    IRON_FAIL_IF(view->count > UINT64_MAX - fed, err, IRON_E_ARG,
                 "the stream would pass 2^64 tokens; begin another engine");
    IRON_TRY(iron__range_check(e, view->count, err));
    return iron__view_check(view, fed, err);
}

iron_status iron_engine_feed_as(iron_engine *engine, iron_dtype dtype, const void *tokens,
                                size_t count, iron_error *err) {
    iron__tokens_view view = {dtype, tokens, count};

    if (count == 0)
        return IRON_OK;
    IRON_TRY(iron__feed_check(engine, &view, err));
    if (engine->gpu)
        return (engine->heard ? iron__gpu_heard_feed : iron__gpu_engine_feed)(engine, &view, err);
    if (engine->config.with_seal)
        iron__engine_seal(engine, &view);
    while (view.count > 0) {
        size_t taken =
            engine->choice.variant->per_node ? feed_nodes(engine, view) : feed_span(engine, view);

        view = iron__view_rest(&view, taken);
    }
    return IRON_OK;
}

iron_status iron_engine_feed(iron_engine *engine, const uint32_t *tokens, size_t count,
                             iron_error *err) {
    return iron_engine_feed_as(engine, IRON_DTYPE_U32, tokens, count, err);
}

iron_status iron_engine_end_batch(iron_engine *engine, iron_error *err) {
    if (engine->gpu)
        return (engine->heard ? iron__gpu_heard_end_batch : iron__gpu_engine_end_batch)(engine,
                                                                                        err);
    if (engine->open.count == 0)
        return IRON_OK;
    IRON_TRY(iron__range_check(engine, engine->config.batch - engine->open.count, err));
    close_batch(engine);
    return IRON_OK;
}

iron_status iron__engine_settle(iron_engine *e, iron_error *err) {
    if (e->gpu)
        return iron__gpu_engine_settle(e, err);
    iron__queue_settle(e);
    return IRON_OK;
}

const uint32_t *iron_engine_xor_accumulators(iron_engine *engine) {
    return iron__engine_settle(engine, NULL) == IRON_OK ? engine->nodes.xor_accumulators : NULL;
}

const float *iron_engine_potentials(iron_engine *engine) {
    return iron__engine_settle(engine, NULL) == IRON_OK ? engine->nodes.potentials : NULL;
}

const float *iron_engine_activations(iron_engine *engine) { return engine->nodes.activations; }

iron_status iron_engine_report(iron_engine *engine, iron_report *report, iron_error *err) {
    IRON_FAIL_IF(!report || report->struct_size != sizeof *report, err, IRON_E_ARG,
                 "iron_report.struct_size is not %zu; set it to sizeof", sizeof *report);
    IRON_TRY(iron__engine_settle(engine, err));
    *report = (iron_report){
        .struct_size = sizeof *report,
        .xor_total = engine->closed.xors,
        .tokens = engine->closed.count - engine->range.origin,
        .batches = engine->batches,
        .sum = engine->closed.sum,
        .state = iron__nodes_hash(&engine->nodes),
        .open_tokens = engine->open.count,
        .has_seal = engine->config.with_seal,
    };
    if (engine->config.with_seal) {
        iron__seal_words w = iron__seal_total(&engine->seal);

        w.count -= engine->range.origin;
        memcpy(report->seal_words, (uint64_t[4]){w.count, w.t, w.a, w.b},
               sizeof report->seal_words);
        iron__seal_text(w, report->seal);
    }
    return IRON_OK;
}
