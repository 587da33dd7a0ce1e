/* SPDX-License-Identifier: MIT */
/*
 * engine_feed.c: tokens go into the engine: from memory, from a source of files, or from device
 * memory. Tokens are checked here and handed to the backend (engine.h), or shared out among several
 * GPUs.
 *
 * A CPU engine takes the tokens of regular files where they are (backend_cpu.c). From any other
 * source, reading and reducing overlap. The ring's threads (feed/ring.h) fill slots; the caller's
 * thread feeds full slots to the engine while the next ones are filled. Memory use is the slots,
 * however long the stream.
 *
 *     source  ->  readers  ->  [slot 0][slot 1][slot 2][slot 3]  ->  thread pool, or GPU
 *
 * A GPU that reads from page-locked memory provides the slots and holds several of them until they
 * are sent. It does not while a batch callback is set, since each batch is waited for then.
 * Otherwise a slot is free again as soon as it was fed.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "core/number.h"
#include "engine/engine.h"
#include "feed/split.h"
#include "feed/stored.h"
#include "formats/source.h"

#include <inttypes.h>

/* Tokens that one task of a range check takes. */
#define CHECK_TOKENS 65536u

/* 4 x 4 MiB stays inside a server's last-level cache: what was read is reduced from there. */
#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)

/* With few threads, a second reader would take a core that reduces; with many, that core is not
 * missed, and the others reduce faster than one reader copies out of the page cache. */
#define MANY_THREADS 8u

/* Tokens that all threads look at, CHECK_TOKENS at a time. */
typedef struct token_check {
    iron_engine *engine;
    iron__tokens_view view; /* of a ring: only its dtype */
    uint64_t position;      /* of its first token */
} token_check;

static iron__tokens_view checked_piece(const iron__tokens_view *view, uint64_t piece) {
    iron__tokens_view part = iron__view_rest(view, (size_t)piece * CHECK_TOKENS);

    part.count = iron__min_size(part.count, CHECK_TOKENS);
    return part;
}

static iron_status check_piece(void *context, uint32_t worker, uint64_t piece,
                               const atomic_bool *stop, iron_error *err) {
    const token_check *c = context;
    iron__tokens_view part = checked_piece(&c->view, piece);

    (void)worker;
    (void)stop;
    return iron__view_check(&part, c->position + piece * CHECK_TOKENS, err);
}

/* Fails with the first token outside 0 ... 2^32-1; only i32 and i64 can hold one. The first token
 * has the given position. */
static iron_status check_values(iron_engine *e, const iron__tokens_view *view, uint64_t position,
                                iron_error *err) {
    token_check c = {e, *view, position};
    const iron__ordered_run run = {.count = (view->count + CHECK_TOKENS - 1) / CHECK_TOKENS,
                                   .piece = check_piece,
                                   .context = &c};

    if (run.count <= 1 || (view->dtype != IRON_DTYPE_I32 && view->dtype != IRON_DTYPE_I64))
        return iron__view_check(view, position, err);
    return iron__thread_pool_run_ordered(e->pool, &run, err);
}

void iron__engine_count_vocab(iron_engine *engine, const iron__tokens_view *view,
                              uint64_t position) {
    iron__vocab_count *outside = &engine->outside;
    uint64_t vocab = engine->config.vocab;
    iron__token_stats some = {.out_of_vocab = iron__view_count_outside(view, vocab)};
    size_t first = 0;

    if (some.out_of_vocab == 0)
        return;
    while ((uint64_t)iron__view_stored(view, first) < vocab)
        first++;
    some.first_position = position + first;
    some.first_value =
        (uint32_t)iron__view_stored(view, first); /* not under a lock: it is mapped */
    pthread_mutex_lock(&outside->mutex);
    outside->found = iron__token_stats_merge(outside->found, some);
    pthread_mutex_unlock(&outside->mutex);
}

static void count_task(void *context, size_t task) {
    const token_check *w = context;
    iron__tokens_view piece = checked_piece(&w->view, task);

    iron__engine_count_vocab(w->engine, &piece, w->position + task * CHECK_TOKENS);
}

/* Called by the ring's readers: what they have read is in their caches. */
static void count_piece(void *context, const iron__ring_piece *piece) {
    const token_check *w = context;
    const iron__tokens_view view = {w->view.dtype, piece->tokens, piece->count};

    iron__engine_count_vocab(w->engine, &view, w->position + piece->first);
}

void iron_engine_count_out_of_vocab(iron_engine *engine) { engine->outside.is_on = true; }

uint64_t iron_engine_out_of_vocab(const iron_engine *engine, uint64_t *position, uint32_t *value) {
    *position = engine->outside.found.first_position;
    *value = engine->outside.found.first_value;
    return engine->outside.found.out_of_vocab;
}

/* Fails if the batches that so many more tokens close do not fit the record (effect.c). */
static iron_status check_record(const iron_engine *e, uint64_t tokens, iron_error *err) {
    const iron__range *r = &e->range;
    uint64_t closing = iron__engine_closing(e, tokens);

    /* a GPU has closed more batches than it has recorded */
    IRON_FAIL_IF(r->record && closing > r->capacity - e->batches, err, IRON_E_STATE,
                 "the record holds %zu batches, and %" PRIu64
                 " are needed; call iron_engine_begin_at again with a larger one",
                 r->capacity, e->batches + closing);
    return IRON_OK;
}

static iron_status check_count(const iron_engine *e, uint64_t tokens, iron_error *err) {
    IRON_FAIL_IF(tokens > UINT64_MAX - (e->closed.count + e->open.count), err, IRON_E_ARG,
                 "the stream would pass 2^64 tokens; begin another engine");
    return check_record(e, tokens, err);
}

static iron_status check_feed(iron_engine *e, const iron__tokens_view *view, iron_error *err) {
    IRON_TRY(iron__stored_check_memory(view, "tokens", err));
    IRON_TRY(check_count(e, view->count, err));
    return check_values(e, view, e->closed.count + e->open.count, err);
}

/* Several GPUs.
 *
 * The engine itself is on the first device, as if there were no other. Each further device has an
 * engine of its own, a member, which records what its batches do instead of applying it (effect.c).
 * A long feed is cut into one range of whole batches per device; they are fed at the same time, and
 * then the engine applies the members' batches in the order of the stream:
 *
 *     tokens    | engine: open batch, its range | member 1 | member 2 | ... | engine: the rest |
 *
 * So the order of every rounding is that of one device, and results agree bit for bit. What is too
 * short to be worth it, comes from a pipe or is in the memory of the first device, the engine takes
 * alone. Members allocate with malloc: they work on threads on which the caller's allocator must
 * not be called. */

/* Shorter ranges are fed sooner than threads are started and results are fetched. */
#define RANGE_TOKENS_MIN (UINT64_C(1) << 18)
/* Records are 8 bytes per batch: 4 MiB per member. A longer feed is shared out several times. */
#define RANGE_BATCHES_MAX (UINT64_C(1) << 19)

/* Feeds tokens first ... first+count-1 of some input to an engine. It may be called by several
 * threads at a time, with different engines. */
typedef iron_status (*range_feed)(void *input, iron_engine *engine, uint64_t first, uint64_t count,
                                  iron_progress progress, void *context, iron_error *err);

/* A range of the input for every device. */
typedef struct feed_round {
    iron_engine *engine;
    range_feed feed;
    void *input;
    uint64_t first;    /* token of the input at which it begins */
    uint64_t own;      /* how many the engine takes */
    uint64_t batches;  /* how many each member takes */
    uint64_t position; /* in the stream, of the first member's range */
} feed_round;

static iron_status create_member(void *context, size_t index, iron_progress progress, void *of_part,
                                 iron_error *err) {
    iron_engine *e = context;
    iron_config config = e->config;
    iron_error why = {0};
    iron_status status;

    (void)progress;
    (void)of_part;
    if (index == 0)
        return IRON_OK;
    config.devices = NULL;
    config.device = e->choice.devices.index[index];
    config.threads = e->config.threads / e->sharers > 0 ? e->config.threads / e->sharers : 1;
    config.allocator = NULL;
    status =
        iron__engine_create_sharing(&config, e->sharers, &e->members->each[index].engine, &why);
    if (status != IRON_OK)
        iron__fail(err, status, why.native, "device %u: %.200s", config.device, why.text);
    return status;
}

iron_status iron__members_create(iron_engine *e, iron_error *err) {
    size_t count = e->choice.devices.count;
    iron__split split = {.count = count, .part = create_member, .context = e};

    e->members =
        iron__allocate(e->allocator, 1, sizeof *e->members + count * sizeof e->members->each[0],
                       "engines on several devices", err);
    if (!e->members)
        return IRON_E_NOMEM;
    e->members->count = count;
    return iron__split_run(&split, err);
}

void iron__members_destroy(iron_engine *e) {
    for (size_t k = 1; e->members && k < e->members->count; k++) {
        iron_engine_destroy(e->members->each[k].engine);
        iron__release(e->allocator, e->members->each[k].record);
    }
    iron__release(e->allocator, e->members);
}

/* Whether the engine shares out work: it has other devices, and every batch may be recorded. */
static bool shares_out(const iron_engine *e) {
    return e->members && !e->on_batch && !e->range.record;
}

/* Cuts the next `left` tokens of the input into ranges; false: the engine takes them alone. Members
 * begin where a batch begins, and for the seal at a multiple of 4. */
static bool plan_round(feed_round *r, uint64_t left) {
    const iron_engine *e = r->engine;
    uint64_t batch = e->config.batch, grid = 1, ranges;

    r->own = e->open.count > 0 ? batch - e->open.count : 0;
    r->position = e->closed.count + e->open.count + r->own;
    if (e->config.with_seal) {
        grid = batch % 4 == 0 ? 1 : batch % 2 == 0 ? 2 : 4;
        for (uint64_t k = 0; k < grid && r->position % 4 != 0; k++) {
            r->own += batch;
            r->position += batch;
        }
    }
    if (r->position % (e->config.with_seal ? 4 : 1) != 0 || r->own >= left)
        return false;
    ranges = (left - r->own) / (grid * batch) / e->members->count;
    ranges = ranges < RANGE_BATCHES_MAX / grid ? ranges : RANGE_BATCHES_MAX / grid;
    r->batches = ranges * grid;
    r->own += r->batches * batch;
    r->position += r->batches * batch;
    return r->batches > 0 &&
           r->batches >= RANGE_TOKENS_MIN / batch + (RANGE_TOKENS_MIN % batch > 0);
}

/* The engine's own range, or that of a member, up to its effect. */
static iron_status feed_range(void *context, size_t index, iron_progress progress, void *of_part,
                              iron_error *err) {
    feed_round *r = context;
    iron__member *m = &r->engine->members->each[index];
    uint64_t tokens = r->batches * r->engine->config.batch, before = (index - 1) * tokens;

    if (index == 0)
        return r->feed(r->input, r->engine, r->first, r->own, progress, of_part, err);
    IRON_TRY(
        iron__engine_begin_recording(m->engine, r->position + before, m->record, m->capacity, err));
    m->engine->outside.is_on = r->engine->outside.is_on;
    m->engine->outside.found = iron__token_stats_neutral();
    IRON_TRY(
        r->feed(r->input, m->engine, r->first + r->own + before, tokens, progress, of_part, err));
    m->effect.struct_size = sizeof m->effect;
    return iron_engine_effect(m->engine, &m->effect, NULL, err);
}

/* Feeds `count` tokens of an input to the engine, with the help of its other devices. */
static iron_status feed_members(iron_engine *e, range_feed feed, void *input, uint64_t count,
                                iron_progress progress, void *context, iron_error *err) {
    feed_round r = {.engine = e, .feed = feed, .input = input};
    iron__split split = {.count = e->members->count,
                         .part = feed_range,
                         .context = &r,
                         .progress = progress,
                         .progress_context = context,
                         .total = count};

    while (plan_round(&r, count - r.first)) {
        iron_error error = {0};
        iron_status status;

        for (size_t k = 1; k < e->members->count; k++) {
            iron__member *m = &e->members->each[k];

            if (m->capacity >= r.batches)
                continue;
            iron__release(e->allocator, m->record);
            m->capacity = 0;
            IRON_TRY(IRON_ALLOCATE(&m->record, e->allocator, (size_t)r.batches,
                                   "batches of a device", err));
            m->capacity = (size_t)r.batches;
        }
        split.before = r.first;
        status = iron__split_run(&split, &error);
        for (size_t k = 1; status == IRON_OK && k < e->members->count; k++) {
            iron__member *m = &e->members->each[k];

            e->outside.found = iron__token_stats_merge(e->outside.found, m->engine->outside.found);
            status = iron_engine_apply_batches(e, &m->effect, m->record, &error);
        }
        if (status != IRON_OK) {
            /* the engine has taken its own range only: if a member's is lost, it cannot go on */
            bool is_lost = status == IRON_E_NOMEM;

            for (size_t k = 1; k < e->members->count; k++)
                is_lost = is_lost || e->members->each[k].engine->failure.status != IRON_OK;
            if (is_lost && e->failure.status == IRON_OK)
                e->failure = error;
            return iron__fail_again(err, &error);
        }
        r.first += r.own + (e->members->count - 1) * r.batches * e->config.batch;
    }
    split.count = 1;
    split.before = r.first;
    r.own = count - r.first;
    return r.own > 0 ? iron__split_run(&split, err) : IRON_OK;
}

/* Tokens in memory. */

/* Tokens that are checked. */
static iron_status feed_view(iron_engine *e, const iron__tokens_view *view, iron_error *err) {
    token_check work = {e, *view, e->closed.count + e->open.count};

    if (e->outside.is_on && !e->backend->counts_vocab)
        iron__thread_pool_run(e->pool, count_task, &work,
                              (view->count + CHECK_TOKENS - 1) / CHECK_TOKENS);
    return e->backend->feed(e, view, err);
}

/* The same for one of several devices. */
static iron_status feed_view_range(void *input, iron_engine *e, uint64_t first, uint64_t count,
                                   iron_progress progress, void *context, iron_error *err) {
    iron__tokens_view view = iron__view_rest(input, (size_t)first);

    (void)progress;
    (void)context;
    view.count = (size_t)count;
    return feed_view(e, &view, err);
}

iron_status iron_engine_feed_as(iron_engine *engine, iron_dtype dtype, const void *tokens,
                                size_t count, iron_error *err) {
    iron__tokens_view view = {dtype, tokens, count};

    if (count == 0)
        return IRON_OK;
    IRON_TRY(check_feed(engine, &view, err));
    if (shares_out(engine))
        return feed_members(engine, feed_view_range, &view, count, NULL, NULL, err);
    return feed_view(engine, &view, err);
}

iron_status iron_engine_feed(iron_engine *engine, const uint32_t *tokens, size_t count,
                             iron_error *err) {
    return iron_engine_feed_as(engine, IRON_DTYPE_U32, tokens, count, err);
}

iron_status iron_engine_end_batch(iron_engine *engine, iron_error *err) {
    if (engine->open.count > 0)
        IRON_TRY(check_record(engine, engine->config.batch - engine->open.count, err));
    return engine->backend->end_batch(engine, err);
}

iron_status iron_feed_device(iron_engine *engine, const void *tokens, uint64_t count, void *stream,
                             iron_error *err) {
    uint64_t fed = engine->closed.count + engine->open.count;

    IRON_FAIL_IF(!engine->backend->feed_device, err, IRON_E_UNSUPPORTED,
                 "this engine is on the CPU; make it with backend cuda or opencl");
    IRON_FAIL_IF(engine->on_batch, err, IRON_E_STATE,
                 "this engine has a batch callback; feed it from host memory");
    IRON_FAIL_IF(count > UINT64_MAX - fed, err, IRON_E_ARG,
                 "the stream would pass 2^64 tokens; begin another engine");
    IRON_TRY(iron__engine_check_failure(engine, err));
    return count > 0 ? engine->backend->feed_device(engine, tokens, count, stream, err) : IRON_OK;
}

iron_status iron_engine_tokens_alloc(iron_engine *engine, size_t bytes, void **out,
                                     iron_error *err) {
    *out = NULL;
    if (engine->gpu)
        return iron__gpu_feed_pinned_alloc(engine->gpu, bytes, out, err);
    *out = iron__allocate(engine->allocator, 1, bytes, "tokens", err);
    return *out ? IRON_OK : IRON_E_NOMEM;
}

void iron_engine_tokens_free(iron_engine *engine, void *memory) {
    if (!memory)
        return;
    if (engine->gpu)
        iron__gpu_feed_pinned_free(engine->gpu, memory);
    else
        iron__release(engine->allocator, memory);
}

static bool has_slots(const iron_engine *e) { return e->gpu && iron__gpu_feed_has_slots(e->gpu); }

static iron_status prepare_one(void *context, size_t index, iron_progress progress, void *of_part,
                               iron_error *err) {
    iron_engine *e = context;
    void *slots[IRON_FEED_SLOTS_MAX];

    (void)progress;
    (void)of_part;
    e = index == 0 ? e : e->members->each[index].engine;
    return has_slots(e) ? e->backend->get_slots(e, slots, err) : IRON_OK;
}

iron_status iron_engine_prepare(iron_engine *engine, iron_error *err) {
    iron__split split = {.count = engine->members ? engine->members->count : 1,
                         .part = prepare_one,
                         .context = engine};

    return iron__split_run(&split, err);
}

/* A feed from a source. */
typedef struct pipeline {
    iron_engine *engine;
    bool has_device_slots; /* the backend's; else the slots are the ring's */
    void *slots[IRON_FEED_SLOTS_MAX];
    iron__ring *ring;
} pipeline;

/* Feeds slots until the source ends, or so many tokens after its position. */
static iron_status feed_slots(const pipeline *p, const iron_source *source, uint64_t skip,
                              uint64_t total, iron_progress progress, void *context,
                              iron_error *err) {
    bool is_seekable = iron__source_is_seekable(source); /* its position stays put while read */
    iron_engine *e = p->engine;
    uint64_t begin = is_seekable ? iron__source_position(source) + skip : 0, done = 0;

    for (;;) {
        iron__tokens_view view = {.dtype = iron_source_dtype(source)};
        size_t slot, released = 1;
        iron_status status;

        IRON_TRY(iron__ring_next(p->ring, &slot, &view.count, err));
        if (view.count == 0)
            return IRON_OK;
        view.data = iron__ring_slot(p->ring, slot);
        status = check_feed(e, &view, err);
        if (status == IRON_E_FORMAT && is_seekable) /* with file and byte, too */
            (void)iron__stored_check(source, begin + done, &view, e->closed.count + e->open.count,
                                     err);
        IRON_TRY(status);
        if (p->has_device_slots)
            IRON_TRY(e->backend->feed_slot(e, slot, &view, &released, err));
        else
            IRON_TRY(e->backend->feed(e, &view, err));
        for (size_t k = 0; k < released; k++)
            iron__ring_free(p->ring);
        done += view.count;
        IRON_TRY(iron__progress(progress, context, done, total, err));
    }
}

/* Progress of a feed of files. */
typedef struct files_progress {
    iron_progress report;
    void *context;
    uint64_t fed, total;
} files_progress;

static iron_status report_files(void *context, uint64_t taken, iron_error *err) {
    const files_progress *p = context;

    IRON_FAIL_IF(p->report && p->report(p->context, p->fed + taken, p->total), err,
                 IRON_E_CANCELLED, "cancelled after %" PRIu64 " tokens", p->fed);
    return IRON_OK;
}

/* Feeds regular files without the ring. */
static iron_status feed_files(iron_engine *e, iron_source *source, uint64_t limit,
                              iron_progress progress, void *context, iron_error *err) {
    files_progress p = {.report = progress, .context = context};
    iron__file_tokens tokens = {.source = source,
                                .begin = iron__source_position(source),
                                .progress = report_files,
                                .context = &p};
    iron_status status = iron__parallel_source_open(source, e->allocator, &tokens.files, err);

    if (status != IRON_OK)
        return status;
    iron__parallel_source_set_mapped(tokens.files);
    tokens.count = iron__parallel_source_tokens(tokens.files);
    tokens.count = iron__min(tokens.count, limit ? limit : tokens.count);
    p.total = limit ? limit : iron_source_tokens(source);
    status = check_count(e, tokens.count, err);
    while (status == IRON_OK && tokens.count > 0) {
        size_t taken = 0;

        status = e->backend->feed_files(e, &tokens, &taken, err);
        tokens.first += taken;
        tokens.count -= taken;
        p.fed += taken;
        if (status == IRON_OK)
            status = report_files(&p, 0, err);
    }
    iron__source_seek(source, tokens.begin + tokens.first);
    iron__parallel_source_close(tokens.files);
    return status;
}

/* Feeds what a ring reads: its source, or some of a source of files (tokens, skip, is_shared). */
static iron_status feed_ring(iron_engine *engine, iron__ring_options options,
                             iron_progress progress, void *context, iron_error *err) {
    iron_source *source = options.source;
    uint64_t total = options.tokens ? options.tokens : iron_source_tokens(source);
    pipeline p = {.engine = engine};
    token_check work = {
        engine, {.dtype = iron_source_dtype(source)}, engine->closed.count + engine->open.count};
    iron_status status = IRON_OK;

    options.allocator = engine->allocator;
    p.has_device_slots = !engine->on_batch && has_slots(engine);
    if (p.has_device_slots) {
        options.slots = p.slots;
        options.shape = engine->gpu->shape;
        options.shape.slot_bytes =
            iron__gpu_feed_slot_bytes(engine->gpu, iron_source_dtype(source));
        status = engine->backend->get_slots(engine, p.slots, err);
    } else {
        options.shape = (iron__feed_shape){
            .readers = iron__thread_pool_threads(engine->pool) < MANY_THREADS ? 1 : 2,
            .slot_count = SLOTS,
            .slot_bytes = SLOT_BYTES};
    }
    if (engine->outside.is_on && !engine->backend->counts_vocab) {
        options.filled = count_piece;
        options.context = &work;
    }
    if (status == IRON_OK)
        status = iron__ring_create(&options, &p.ring, err);
    if (status == IRON_OK)
        status = feed_slots(&p, source, options.skip, total, progress, context, err);
    iron__ring_destroy(p.ring);
    if (p.has_device_slots) {
        /* the readers have stopped; what was sent must leave the slots before they are reused */
        iron_status sent = iron__gpu_feed_wait_sent(engine->gpu, status == IRON_OK ? err : NULL);

        status = status == IRON_OK ? sent : status;
    }
    return status;
}

/* A range of files for one of several devices. */
static iron_status feed_source_range(void *input, iron_engine *e, uint64_t first, uint64_t count,
                                     iron_progress progress, void *context, iron_error *err) {
    iron__ring_options options = {
        .source = input, .tokens = count, .is_shared = true, .skip = first};

    return feed_ring(e, options, progress, context, err);
}

/* limit: 0, or how many tokens to take from a source of files. */
static iron_status feed_source(iron_engine *e, iron_source *source, uint64_t limit,
                               iron_progress progress, void *context, iron_error *err) {
    iron__ring_options options = {.source = source, .tokens = limit};
    uint64_t begin, count, before = e->closed.count + e->open.count;
    iron_status status;

    /* in the per-node modes reading is not what costs */
    if (e->backend->feed_files && !e->choice.variant->per_node && iron__source_is_seekable(source))
        return feed_files(e, source, limit, progress, context, err);
    if (!shares_out(e) || !iron__source_is_seekable(source))
        return feed_ring(e, options, progress, context, err);
    begin = iron__source_position(source);
    count = iron_source_tokens(source) - begin;
    count = iron__min(count, limit ? limit : count);
    status = feed_members(e, feed_source_range, source, count, progress, context, err);
    iron__source_seek(source, begin + (e->closed.count + e->open.count - before));
    return status;
}

iron_status iron_engine_feed_source(iron_engine *engine, iron_source *source,
                                    iron_progress progress, void *context, iron_error *err) {
    return feed_source(engine, source, 0, progress, context, err);
}

iron_status iron_engine_feed_range(iron_engine *engine, iron_source *source, uint64_t first,
                                   uint64_t count, iron_progress progress, void *context,
                                   iron_error *err) {
    uint64_t tokens = iron_source_tokens(source);

    IRON_FAIL_IF(!iron__source_is_seekable(source), err, IRON_E_ARG,
                 "a range can be read from regular files only, not from pipes or standard input");
    IRON_FAIL_IF(first > tokens || count > tokens - first, err, IRON_E_ARG,
                 "tokens %" PRIu64 " to %" PRIu64 " were requested, but the source has %" PRIu64,
                 first, first + count, tokens);
    if (count == 0)
        return IRON_OK;
    iron__source_seek(source, first);
    return feed_source(engine, source, count, progress, context, err);
}
