/* SPDX-License-Identifier: MIT */
/*
 * gpu_engine.c: the engine's calls for an engine on a GPU. The engine's own counters are kept up to
 * date by the host; nodes and totals are brought from the device when somebody looks.
 *
 * Whatever fails on the way to the device or on it leaves unknown how much of a feed was taken: the
 * engine remembers the error and gives it again from then on.
 */
#include "core/fail.h"
#include "engine/engine.h"

#include <stdio.h>

/* Pairs of node and token a second and thread, as the CPU's modes of Part I take them. */
#define PAIRS_A_THREAD 1e9

/* Remembers a failure, so that a broken engine stays broken. */
static iron_status keep(iron_engine *e, iron_status status, iron_error *error, iron_error *err) {
    if (status != IRON_OK && e->failure.status == IRON_OK)
        e->failure = *error;
    if (status != IRON_OK && err)
        *err = *error;
    return status;
}

static iron_status check_alive(const iron_engine *e, iron_error *err) {
    if (e->failure.status != IRON_OK && err)
        *err = e->failure;
    return e->failure.status;
}

static void take_progress(iron_engine *e) {
    iron__tokens_gpu_progress p = iron__gpu_feed_progress(e->gpu);

    e->open.count = p.open_tokens;
    e->closed.count = p.closed_tokens;
    e->batches = p.batches;
}

iron_status iron__gpu_engine_create(iron_engine *e, iron_error *err) {
    const iron_config *c = &e->config;
    iron__gpu_feed_config config = {
        .backend = e->choice.gpu_backend,
        .device = c->device,
        .memory = c->memory,
        .tokens = {.row = e->choice.gpu_row,
                   .lattice = e->lattice,
                   .allocator = e->allocator,
                   .batch = c->batch,
                   .nodes = (uint32_t)c->nodes,
                   .vocab = (uint32_t)c->vocab,
                   .lanes = c->with_seal ? IRON_LANE_SEAL : 0,
                   .by_batch = c->positions == IRON_POSITIONS_BATCH},
        .team = e->team,
    };

    IRON_TRY(iron__gpu_feed_create(&config, &e->gpu, err));
    snprintf(e->device, sizeof e->device, "%s", iron__gpu_feed_info(e->gpu)->name);
    return iron__gpu_engine_begin(e, err);
}

static iron_status begin(iron_engine *e, iron_error *err) {
    iron__quads_total sealed = {.seal = e->seal, .stats = iron__token_stats_neutral()};

    IRON_TRY(iron__gpu_feed_begin(e->gpu, &e->nodes, e->closed, e->batches, err));
    return e->config.with_seal ? iron__gpu_feed_seal_begin(e->gpu, &sealed, err) : IRON_OK;
}

iron_status iron__gpu_engine_begin(iron_engine *e, iron_error *err) {
    iron_error error = {0};
    iron_status status = begin(e, &error);

    return keep(e, status, &error, err);
}

iron_status iron__gpu_engine_feed(iron_engine *e, const iron__tokens_view *view, iron_error *err) {
    iron_error error = {0};
    iron_status status;

    IRON_TRY(check_alive(e, err));
    status = iron__gpu_feed_host(e->gpu, view, &error);
    take_progress(e);
    return keep(e, status, &error, err);
}

iron_status iron__gpu_engine_feed_slot(iron_engine *e, size_t slot, const iron__tokens_view *view,
                                       size_t *released, iron_error *err) {
    iron_error error = {0};
    iron_status status;

    *released = 0;
    IRON_TRY(check_alive(e, err));
    IRON_TRY(iron__feed_check(e, view, err));
    status = iron__gpu_feed_slot(e->gpu, slot, view->dtype, view->count, released, &error);
    take_progress(e);
    return keep(e, status, &error, err);
}

iron_status iron__gpu_engine_end_batch(iron_engine *e, iron_error *err) {
    iron_error error = {0};
    iron_status status;

    IRON_TRY(check_alive(e, err));
    status = iron__gpu_feed_end_batch(e->gpu, &error);
    take_progress(e);
    return keep(e, status, &error, err);
}

iron_status iron__gpu_engine_settle(iron_engine *e, iron_error *err) {
    iron_error error = {0};
    iron__quads_total sealed;

    IRON_TRY(check_alive(e, err));
    IRON_TRY(keep(e, iron__gpu_feed_fetch(e->gpu, &e->nodes, &e->closed, &error), &error, err));
    if (!e->config.with_seal)
        return IRON_OK;
    IRON_TRY(keep(e, iron__gpu_feed_seal_fetch(e->gpu, &sealed, &error), &error, err));
    e->seal = sealed.seal;
    return IRON_OK;
}

static bool is_as_before(const iron_engine *e, const iron__tokens_gpu_progress *before) {
    return e->batches == before->batches && e->closed.count == before->closed_tokens &&
           e->open.count == before->open_tokens;
}

iron_status iron_feed_device(iron_engine *engine, const void *tokens, uint64_t count, void *stream,
                             iron_error *err) {
    uint64_t fed = engine->closed.count + engine->open.count;
    iron__tokens_gpu_progress before;
    iron_error error = {0};
    iron_status status;

    IRON_FAIL_IF(!engine->gpu, err, IRON_E_UNSUPPORTED,
                 "this engine is on the CPU; make it with backend cuda or opencl");
    IRON_FAIL_IF(engine->heard, err, IRON_E_STATE,
                 "this engine's batches are listened to; feed it the host's memory");
    IRON_FAIL_IF(count > UINT64_MAX - fed, err, IRON_E_ARG,
                 "the stream would pass 2^64 tokens; begin another engine");
    IRON_TRY(check_alive(engine, err));
    if (count == 0)
        return IRON_OK;
    before = iron__gpu_feed_progress(engine->gpu);
    status = iron__gpu_feed_resident(engine->gpu, (uintptr_t)tokens, IRON_DTYPE_U32, 0, count,
                                     (uintptr_t)stream, &error);
    take_progress(engine);
    if ((status == IRON_E_ARG || status == IRON_E_STATE) && is_as_before(engine, &before)) {
        if (err)
            *err = error; /* the caller's mistake, found before anything was taken */
        return status;
    }
    return keep(engine, status, &error, err);
}

void *iron_engine_native_context(const iron_engine *engine) {
    return engine->gpu ? (void *)iron__gpu_feed_context(engine->gpu) : NULL;
}

/* Tokens that have collected are sent first, and if that fails they are lost; not getting memory
 * for slots costs nothing. */
iron_status iron__gpu_engine_slots(iron_engine *e, void *slots[IRON_FEED_SLOTS_MAX],
                                   iron_error *err) {
    iron_error error = {0};

    IRON_TRY(check_alive(e, err));
    IRON_TRY(keep(e, iron__gpu_feed_flush(e->gpu, &error), &error, err));
    return iron__gpu_feed_slots(e->gpu, slots, err);
}

iron_status iron_engine_prepare(iron_engine *engine, iron_error *err) {
    void *slots[IRON_FEED_SLOTS_MAX];

    if (!engine->gpu || !iron__gpu_feed_has_slots(engine->gpu))
        return IRON_OK;
    return iron__gpu_engine_slots(engine, slots, err);
}

iron_status iron_engine_tokens_alloc(iron_engine *engine, size_t bytes, void **out,
                                     iron_error *err) {
    *out = NULL;
    if (engine->gpu)
        return iron__gpu_feed_lend(engine->gpu, bytes, out, err);
    *out = iron__allocate(engine->allocator, 1, bytes, "tokens", err);
    return *out ? IRON_OK : IRON_E_NOMEM;
}

void iron_engine_tokens_free(iron_engine *engine, void *memory) {
    if (!memory)
        return;
    if (engine->gpu)
        iron__gpu_feed_take_back(engine->gpu, memory);
    else
        iron__release(engine->allocator, memory);
}

double iron_engine_seconds_estimate(const iron_engine *engine, uint64_t tokens) {
    double pairs = (double)tokens * (double)engine->config.nodes;

    if (engine->gpu)
        return iron__tokens_gpu_seconds(engine->choice.gpu_row, iron__gpu_feed_info(engine->gpu),
                                        engine->config.nodes, tokens);
    return engine->choice.variant->per_node ? pairs / PAIRS_A_THREAD / engine->config.threads : 0;
}
