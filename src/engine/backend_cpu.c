/* SPDX-License-Identifier: MIT */
/*
 * backend_cpu.c: the engine's backend on the CPU.
 *
 * A feed is cut into spans, and a span into runs that end where batches end and are small enough to
 * share among threads. Each run is reduced to a contribution of its own; merging those into batches
 * takes a few nanoseconds each. Contributions merge in any order, so threads work independently.
 *
 *     tokens   |------ batch ------|------ batch ------|--- open
 *     runs     |  r0 | r1 | r2 | r3|  r4 | ...
 *
 * Closed batches wait in a queue, so that many are applied to the nodes at once (core/nodes.h).
 *
 * The seal takes the same tokens while they are in the cache, in cuts of its own: at multiples of
 * four positions, wherever batches end. Up to three tokens on either side go through the seal's
 * carry.
 *
 * In the per-node modes every node reduces all tokens by itself, O(nodes x tokens), and the threads
 * share the nodes. Each node has the XOR and the sum of the open batch and applies its own when the
 * batch closes; node 0's are the batch's contribution in the report.
 *
 * Tokens that the loops cannot read are widened or narrowed a few thousand at a time into a small
 * buffer of each thread, so that they stay in the first-level cache.
 */
#include "core/cpu.h"
#include "core/number.h"
#include "engine/engine.h"
#include "feed/stored.h"
#include "ops/tokens/tokens.h"

#include <stdint.h>
#include <string.h>

/* Runs that are reduced between two merges, for which all threads wait: of a feed from memory, and
 * of one from files, 8 GiB of 32-bit tokens. And tokens in a run of a long batch. */
#define RUNS_MAX      4096u
#define FILE_RUNS_MAX 32768u
#define RUN_TOKENS    65536u

/* Tiny batches make tiny runs; a full span is still cut into this many tasks, for all threads. */
#define TASKS_MIN 64u

/* What a thread takes of files at a time, so that a mapped piece has page tables of its own; of a
 * short span less. */
#define PIECE_BYTES      ((size_t)4 << 20)
#define TASKS_PER_THREAD 8u

/* Nodes per task: enough to make handing out tasks cheap, few enough for small lattices to share.
 */
#define TASK_NODES 16u

/* Pairs of node and token that a thread reduces per second in the per-node modes. */
#define PAIRS_PER_SECOND 1e9

struct iron__cpu_state {
    iron__divisor divisor;
    iron_batch_effect *queue; /* IRON_QUEUE_BATCHES closed batches that the nodes still lack */
    size_t queued;
    iron__contribution *runs;    /* RUNS_MAX, scratch of a feed */
    iron__seal_words *seal_runs; /* of its tasks, likewise; only with a seal */
    /* of the open batch, one per node; only in per-node modes */
    uint32_t *node_xors;
    uint64_t *node_sums;
};

static iron_status cpu_create(iron_engine *e, iron_error *err) {
    const iron_allocator *a = e->allocator;
    iron__cpu_state *c;
    bool is_per_node = e->choice.variant->per_node;

    IRON_TRY(IRON_ALLOCATE(&c, a, 1, "the CPU backend", err));
    e->cpu = c;
    c->divisor = iron__divisor_make((uint32_t)e->config.vocab);
    IRON_TRY(IRON_ALLOCATE(&c->queue, a, IRON_QUEUE_BATCHES, "the batch queue", err));
    IRON_TRY(IRON_ALLOCATE(&c->runs, a, RUNS_MAX, "the runs of a feed", err));
    if (e->config.with_seal)
        IRON_TRY(IRON_ALLOCATE(&c->seal_runs, a, RUNS_MAX, "seal words", err));
    if (is_per_node) {
        IRON_TRY(IRON_ALLOCATE(&c->node_xors, a, e->nodes.count, "XORs of nodes", err));
        IRON_TRY(IRON_ALLOCATE(&c->node_sums, a, e->nodes.count, "sums of nodes", err));
    }
    e->config.backend = "cpu";
    e->config.mode = e->choice.variant->mode;
    e->config.memory = "pageable";
    iron__cpu_name(e->device, sizeof e->device);
    return IRON_OK;
}

static void cpu_destroy(iron_engine *e) {
    iron__cpu_state *c = e->cpu;

    if (!c)
        return;
    iron__release(e->allocator, c->node_sums);
    iron__release(e->allocator, c->node_xors);
    iron__release(e->allocator, c->seal_runs);
    iron__release(e->allocator, c->runs);
    iron__release(e->allocator, c->queue);
    iron__release(e->allocator, c);
}

static iron_status cpu_sync(iron_engine *e, iron_error *err) {
    (void)err;
    iron__engine_apply_effects(e, e->cpu->queue, e->cpu->queued);
    e->cpu->queued = 0;
    return IRON_OK;
}

static void clear_node_runs(iron_engine *e) {
    if (!e->cpu->node_xors)
        return;
    memset(e->cpu->node_xors, 0, e->nodes.count * sizeof e->cpu->node_xors[0]);
    memset(e->cpu->node_sums, 0, e->nodes.count * sizeof e->cpu->node_sums[0]);
}

static iron_status cpu_restart(iron_engine *e, iron_error *err) {
    (void)err;
    e->cpu->queued = 0;
    clear_node_runs(e);
    return IRON_OK;
}

/* Closes the open batch, which must not be empty. */
static void close_batch(iron_engine *e) {
    iron__contribution batch = e->open;
    iron_batch_effect effect = iron__batch_effect_of(e, batch);
    iron__cpu_state *c = e->cpu;

    e->closed = iron__contribution_merge(e->closed, batch);
    e->open = iron__contribution_neutral();
    e->batches++;
    if (e->range.record) {
        e->range.record[e->range.recorded++] = effect;
    } else if (e->choice.variant->per_node) {
        /* every node applies the batch that it reduced by itself */
        for (uint32_t j = 0; j < e->nodes.count; j++) {
            iron__contribution own = {batch.count, c->node_sums[j], c->node_xors[j]};

            iron__nodes_apply_to(&e->nodes, j, iron__batch_effect_of(e, own));
        }
        if (e->range.is_begun)
            iron__batches_compose(e->lattice, &effect, 1, e->range.map);
    } else {
        c->queue[c->queued++] = effect;
        if (c->queued == IRON_QUEUE_BATCHES)
            (void)cpu_sync(e, NULL);
    }
    clear_node_runs(e);
    if (e->on_batch)
        e->on_batch(e->on_batch_context, batch);
}

static iron_status cpu_end_batch(iron_engine *e, iron_error *err) {
    (void)err;
    if (e->open.count > 0)
        close_batch(e);
    return IRON_OK;
}

/* Position of the next token. */
static uint64_t next_position(const iron_engine *e) {
    return e->config.positions == IRON_POSITIONS_BATCH ? e->open.count
                                                       : e->closed.count + e->open.count;
}

/* A span being reduced: written before the threads start, then only read. Its tokens are in memory
 * or in files. */
typedef struct span {
    iron_engine *engine;
    iron_dtype dtype;
    size_t count;      /* tokens */
    size_t run;        /* tokens between cuts within a batch */
    size_t batch_runs; /* runs in a whole batch */
    size_t step_runs;  /* runs that are reduced and then sealed, from the cache */
    size_t task_runs;  /* runs per task */
    size_t runs;
    iron__contribution *sums;       /* of each run */
    const iron__seal_variant *seal; /* NULL: no seal */
    iron__seal_words *seals;        /* of each task */
    uint64_t position; /* of the first token, as configured: in the stream or in its batch */
    uint64_t stream;   /* position of the first token in the stream */
    uint64_t open;     /* tokens in the open batch before the span */
    const char *memory;
    const iron__file_tokens *files;
    char *buffers; /* one of each thread */
    size_t buffer_bytes;
} span;

/* Index of the first token of run k. Cuts lie at multiples of `run` within a batch and at its end.
 */
static size_t run_begin(const span *s, size_t k) {
    uint64_t cut = s->open / s->run + k;
    uint64_t at = cut / s->batch_runs * s->engine->config.batch + cut % s->batch_runs * s->run;

    if (k == 0)
        return 0;
    return at - s->open < s->count ? (size_t)(at - s->open) : s->count;
}

/* As many of the next tokens as fit into a span of so many runs; if they are sealed, a multiple of
 * 4. */
static span plan_span(iron_engine *e, uint64_t tokens, size_t runs_max, bool is_sealed,
                      iron_dtype dtype) {
    uint64_t batch = e->config.batch;
    span s = {.engine = e,
              .dtype = dtype,
              .count = tokens < SIZE_MAX ? (size_t)tokens : SIZE_MAX,
              .run = batch < RUN_TOKENS ? (size_t)batch : RUN_TOKENS,
              .seal = is_sealed ? iron__seal_variant_find("champion") : NULL,
              .position = next_position(e),
              .stream = e->closed.count + e->open.count,
              .open = e->open.count};

    s.batch_runs = (size_t)((batch + s.run - 1) / s.run);
    s.step_runs = RUN_TOKENS / s.run;
    for (s.runs = 1; s.runs < runs_max && run_begin(&s, s.runs) < s.count;)
        s.runs++;
    s.count = run_begin(&s, s.runs);
    s.count -= is_sealed ? s.count % 4 : 0;
    while (s.runs > 1 && run_begin(&s, s.runs - 1) == s.count)
        s.runs--;
    return s;
}

/* Reduces tokens begin ... begin+count-1 of the view; the first one has the given position. Sets
 * *is_bad if a value is not a token. */
static iron__contribution reduce_run(const iron_engine *e, const iron__tokens_view *view,
                                     size_t begin, size_t count, uint64_t position, bool *is_bad) {
    iron__tokens_run run = {NULL, count, position, &e->cpu->divisor, NULL};
    iron__contribution c = iron__contribution_neutral();
    iron__widened wide;

    if (view->dtype == IRON_DTYPE_U16 && e->choice.variant->reads_u16) {
        run.tokens_u16 = (const uint16_t *)view->data + begin;
        return iron__contribution_merge(c, e->choice.variant->reduce(&run));
    }
    if (view->dtype != IRON_DTYPE_U32)
        iron__widened_touch(&wide);
    for (size_t done = 0; done < count; done += run.count) {
        run.count = count - done;
        run.first = position + done;
        run.tokens = iron__view_check_tokens(view, begin + done, &run.count, wide.tokens, is_bad);
        c = iron__contribution_merge(c, e->choice.variant->reduce(&run));
    }
    return c;
}

/* Reduces runs first ... last-1, whose tokens the view has; false if a value is not a token. */
static bool reduce_runs(const span *s, size_t first, size_t last, iron__tokens_view view) {
    iron_engine *e = s->engine;
    size_t base = run_begin(s, first);
    bool is_bad = false;

    for (size_t k = first; k < last; k++) {
        size_t begin = run_begin(s, k), end = run_begin(s, k + 1);
        uint64_t position = e->config.positions == IRON_POSITIONS_BATCH
                                ? (s->open + begin) % e->config.batch
                                : s->position + begin;

        s->sums[k] = reduce_run(e, &view, begin - base, end - begin, position, &is_bad);
    }
    view.count = run_begin(s, last) - base;
    if (e->outside.is_on) /* the tokens are still in this core's cache */
        iron__engine_count_vocab(e, &view, s->stream + base);
    return !is_bad;
}

/* A thread takes a task: its runs in one go where they are in memory, mapped or decoded, or else
 * step by step from a buffer. It also seals the quads that begin in a step, for which up to three
 * tokens after it are looked at. */
typedef struct task_rest {
    const span *s;
    size_t run, end; /* runs that are left */
    iron__seal_words words;
} task_rest;

static task_rest task_at(const span *s, uint64_t task) {
    size_t first = (size_t)task * s->task_runs;

    return (task_rest){.s = s, .run = first, .end = iron__min_size(first + s->task_runs, s->runs)};
}

/* Tokens after the run before `run` that its last quad reaches. */
static size_t ahead_of(const span *s, size_t run) {
    return s->seal ? (size_t)(0 - (s->stream + run_begin(s, run))) % 4 : 0;
}

static size_t next_step(const task_rest *r) {
    return iron__min_size(r->run + r->s->step_runs, r->end);
}

static iron_status take_step(void *context, const void *data, iron_error *err) {
    task_rest *r = context;
    const span *s = r->s;
    size_t next = next_step(r), begin = run_begin(s, r->run), end = run_begin(s, next);
    iron__tokens_view view = {s->dtype, data, end - begin};
    uint64_t position = s->stream + begin;

    /* tokens in memory were checked (engine_feed.c) */
    if (!reduce_runs(s, r->run, next, view) && s->files)
        IRON_TRY(iron__stored_check(s->files->source, s->files->begin + s->files->first + begin,
                                    &view, position, err));
    if (s->seal) {
        size_t skip = (size_t)(0 - position) % 4, end_of_quads = view.count + ahead_of(s, next);
        uint32_t wide[IRON_WIDEN_TOKENS];

        if (skip < end_of_quads)
            iron__quads_add(s->seal, &view, skip, (end_of_quads - skip) / 4, (position + skip) / 4,
                            0, wide, &r->words, NULL, NULL);
    }
    r->run = next;
    return IRON_OK;
}

static iron_status take_steps(void *context, const void *data, iron_error *err) {
    task_rest *r = context;
    size_t begin = run_begin(r->s, r->run), width = iron_dtype_bytes(r->s->dtype);

    while (r->run < r->end)
        IRON_TRY(take_step(r, (const char *)data + (run_begin(r->s, r->run) - begin) * width, err));
    return IRON_OK;
}

/* All `tasks` are done. */
static void merge_tasks(const span *s, size_t tasks) {
    iron_engine *e = s->engine;

    for (size_t k = 0; k < s->runs; k++) {
        e->open = iron__contribution_merge(e->open, s->sums[k]);
        if (e->open.count == e->config.batch)
            close_batch(e);
    }
    for (size_t k = 0; s->seal && k < tasks; k++)
        e->seal.words = iron__seal_merge(e->seal.words, s->seals[k]);
}

static void take_memory_task(void *context, size_t task) {
    const span *s = context;
    task_rest r = task_at(s, task);

    (void)take_steps(&r, s->memory + run_begin(s, r.run) * iron_dtype_bytes(s->dtype), NULL);
    if (s->seal)
        s->seals[task] = r.words;
}

/* Takes as much of the view as fits one span; returns how many tokens that was. */
static size_t feed_span(iron_engine *e, iron__tokens_view view) {
    bool is_sealed = e->config.with_seal;
    size_t tasks;
    span s;

    if (is_sealed && (e->seal.carried || view.count < 4)) { /* a few, through the carry */
        uint32_t wide[IRON_WIDEN_TOKENS];
        const uint32_t *few;

        view.count = iron__min_size(view.count, 4 - e->seal.carried);
        few = iron__view_tokens(&view, 0, &view.count, wide);
        iron__seal_feed(&e->seal, few, view.count);
        is_sealed = false;
    }
    s = plan_span(e, view.count, RUNS_MAX, is_sealed, view.dtype);
    s.memory = view.data;
    s.sums = e->cpu->runs;
    s.seals = e->cpu->seal_runs;
    /* batches shorter than RUN_TOKENS are one run each, several per task */
    s.task_runs = iron__min_size(s.step_runs, RUNS_MAX / TASKS_MIN);
    tasks = (s.runs + s.task_runs - 1) / s.task_runs;
    iron__thread_pool_run(e->pool, take_memory_task, &s, tasks);
    merge_tasks(&s, tasks);
    return s.count;
}

typedef struct node_work {
    iron_engine *engine;
    iron__tokens_run run;
} node_work;

static void reduce_nodes(void *context, size_t task) {
    const node_work *w = context;
    const iron_engine *e = w->engine;
    uint32_t first = (uint32_t)task * TASK_NODES;
    uint32_t last = first + TASK_NODES < e->nodes.count ? first + TASK_NODES : e->nodes.count;

    for (uint32_t j = first; j < last; j++) {
        iron__contribution c = e->choice.variant->reduce(&w->run);

        e->cpu->node_xors[j] ^= c.xors;
        e->cpu->node_sums[j] += c.sum;
    }
}

/* The per-node modes: every node reduces a run that ends with the open batch at the latest. */
static size_t feed_nodes(iron_engine *e, iron__tokens_view view) {
    uint32_t wide[IRON_WIDEN_TOKENS];
    uint64_t left = e->config.batch - e->open.count;
    node_work w = {e, {NULL, view.count, next_position(e), &e->cpu->divisor, NULL}};

    w.run.count = iron__min_size(w.run.count, left);
    w.run.tokens = iron__view_tokens(&view, 0, &w.run.count, wide);
    if (e->config.with_seal)
        iron__seal_feed(&e->seal, w.run.tokens, w.run.count);
    if (e->outside.is_on) {
        view.count = w.run.count;
        iron__engine_count_vocab(e, &view, e->closed.count + e->open.count);
    }
    iron__thread_pool_run(e->pool, reduce_nodes, &w,
                          (e->nodes.count + TASK_NODES - 1) / TASK_NODES);
    e->open = (iron__contribution){e->open.count + w.run.count, e->cpu->node_sums[0],
                                   e->cpu->node_xors[0]};
    if (e->open.count == e->config.batch)
        close_batch(e);
    return w.run.count;
}

static iron_status cpu_feed(iron_engine *e, const iron__tokens_view *tokens, iron_error *err) {
    iron__tokens_view view = *tokens;

    (void)err;
    while (view.count > 0)
        view = iron__view_rest(&view, e->choice.variant->per_node ? feed_nodes(e, view)
                                                                  : feed_span(e, view));
    return IRON_OK;
}

/* Files. */

static iron_status take_file_task(void *context, uint32_t worker, uint64_t task,
                                  const atomic_bool *stop, iron_error *err) {
    const span *s = context;
    iron__parallel_source *files = s->files->files;
    task_rest r = task_at(s, task);

    while (r.run < r.end) {
        size_t begin = run_begin(s, r.run), next = next_step(&r);
        size_t all = run_begin(s, r.end) - begin + ahead_of(s, r.end);
        size_t some = run_begin(s, next) - begin + ahead_of(s, next);
        uint64_t at = s->files->first + begin;
        void *buffer = s->buffers + worker * s->buffer_bytes;
        bool is_used;

        IRON_TRY(iron__parallel_source_use(files, at, all, take_steps, &r, &is_used, err));
        if (!is_used)
            IRON_TRY(iron__parallel_source_use(files, at, some, take_step, &r, &is_used, err));
        if (is_used)
            continue;
        IRON_TRY(iron__parallel_source_read(files, at, buffer, some, stop, err));
        IRON_TRY(take_step(&r, buffer, err));
    }
    if (s->seal)
        s->seals[task] = r.words;
    return IRON_OK;
}

static iron_status report_task(void *context, uint64_t task, iron_error *err) {
    const span *s = context;

    return s->files->progress(s->files->context, run_begin(s, task_at(s, task).end), err);
}

static iron_status cpu_feed_files(iron_engine *e, const iron__file_tokens *t, size_t *taken,
                                  iron_error *err) {
    uint32_t threads = iron__thread_pool_threads(e->pool);
    size_t width = iron_dtype_bytes(iron_source_dtype(t->source));
    iron__ordered_run run = {.piece = take_file_task, .progress = report_task};
    iron_status status;
    span s;

    /* tokens before the first quad of the stream that is not sealed yet, or after the last */
    if (e->config.with_seal && (e->seal.carried || t->count < 4)) {
        uint64_t few[4];
        iron__tokens_view view = {iron_source_dtype(t->source), few,
                                  iron__min_size(4 - e->seal.carried, t->count)};

        IRON_TRY(iron__parallel_source_read(t->files, t->first, few, view.count, NULL, err));
        IRON_TRY(iron__stored_check(t->source, t->begin + t->first, &view,
                                    e->closed.count + e->open.count, err));
        *taken = view.count;
        return cpu_feed(e, &view, err);
    }
    s = plan_span(e, t->count, FILE_RUNS_MAX, e->config.with_seal, iron_source_dtype(t->source));
    s.files = t;
    s.task_runs = iron__min_size(PIECE_BYTES / width / s.run,
                                 s.runs / ((uint64_t)TASKS_PER_THREAD * threads) + 1);
    run.context = &s;
    run.count = (s.runs + s.task_runs - 1) / s.task_runs;
    s.buffer_bytes = (RUN_TOKENS + 16) * width + IRON_PREFETCH_BYTES;
    s.buffers = iron__allocate(e->allocator, threads, s.buffer_bytes, "tokens of files", err);
    if (s.buffers)
        s.sums = iron__allocate(e->allocator, s.runs, sizeof *s.sums, "runs", err);
    if (s.sums)
        s.seals =
            iron__allocate(e->allocator, (size_t)run.count, sizeof *s.seals, "seal words", err);
    status = s.seals ? iron__thread_pool_run_ordered(e->pool, &run, err) : IRON_E_NOMEM;
    if (status == IRON_OK) {
        merge_tasks(&s, (size_t)run.count);
        *taken = s.count;
    }
    iron__release(e->allocator, s.seals);
    iron__release(e->allocator, s.sums);
    iron__release(e->allocator, s.buffers);
    return status;
}

static double cpu_seconds_estimate(const iron_engine *e, uint64_t tokens) {
    double pairs = (double)tokens * (double)e->config.nodes;

    return e->choice.variant->per_node ? pairs / PAIRS_PER_SECOND / e->config.threads : 0;
}

const iron__engine_backend iron__engine_cpu = {
    .sees_batches = true,
    .counts_vocab = true,
    .create = cpu_create,
    .destroy = cpu_destroy,
    .feed = cpu_feed,
    .feed_files = cpu_feed_files,
    .end_batch = cpu_end_batch,
    .sync = cpu_sync,
    .restart = cpu_restart,
    .seconds_estimate = cpu_seconds_estimate,
};
