/* SPDX-License-Identifier: MIT */
/*
 * backend_gpu.c: the engine's backend on a GPU, on top of feed/gpu_feed.h.
 *
 * The host keeps the engine's counters up to date; nodes, totals and seal stay on the device until
 * sync, which copies them only if something was fed since. An error on the way to the device or on
 * it leaves unknown how much of a feed was taken, so the engine remembers the error and returns it
 * from every later call.
 *
 * The device has only the totals of all closed batches. While a batch callback is set, a feed is
 * therefore cut where batches end and the totals are read after each piece: the difference is the
 * batch. A device can fail in the middle of a feed, and then no batch of it counts; so the batches
 * wait in memory, 24 bytes each, and the callback sees them when the whole feed has succeeded.
 */
#include "core/fail.h"
#include "engine/engine.h"

#include <stdio.h>

/* Remembers the first failure, whose error is in e->error, and passes it on. */
static iron_status note_failure(iron_engine *e, iron_status status, iron_error *err) {
    if (status == IRON_OK)
        return IRON_OK;
    if (e->failure.status == IRON_OK) {
        e->failure = e->error;
        if (e->sharers > 1)
            iron__fail(&e->failure, e->error.status, e->error.native, "device %u: %.200s",
                       e->config.device, e->error.text);
    }
    if (err)
        *err = e->failure;
    return status;
}

/* After everything that changes the device's state. */
static void update_counters(iron_engine *e) {
    iron__tokens_gpu_progress p = iron__gpu_feed_progress(e->gpu);

    e->is_synced = false;
    e->open.count = p.open_tokens;
    e->closed.count = p.closed_tokens;
    e->batches = p.batches;
}

static iron_status gpu_restart(iron_engine *e, iron_error *err) {
    iron__quads_total sealed = {.seal = e->seal, .stats = iron__token_stats_neutral()};
    iron_status status = iron__gpu_feed_begin(e->gpu, &e->nodes, e->closed, e->batches, &e->error);

    if (status == IRON_OK && e->config.with_seal)
        status = iron__gpu_feed_seal_begin(e->gpu, &sealed, &e->error);
    e->is_synced = status == IRON_OK;
    return note_failure(e, status, err);
}

static iron_status gpu_create(iron_engine *e, iron_error *err) {
    iron_config *c = &e->config;
    iron__gpu_feed_config config = {
        .backend = e->choice.devices.backend,
        .device = c->device,
        .memory = c->memory,
        .tokens = {.row = e->choice.gpu_row,
                   .lattice = e->lattice,
                   .allocator = e->allocator,
                   .batch = c->batch,
                   .nodes = (uint32_t)c->nodes,
                   .vocab = (uint32_t)c->vocab,
                   .outputs = c->with_seal ? IRON_TOKENS_SEAL : 0,
                   .by_batch = c->positions == IRON_POSITIONS_BATCH},
        .pool = e->pool,
        .sharers = e->sharers,
    };

    IRON_TRY(iron__gpu_feed_create(&config, &e->gpu, err));
    c->backend = iron__gpu_backend_name(e->choice.devices.backend);
    c->mode = e->choice.gpu_row->mode;
    c->memory = iron__gpu_strategy_name(e->gpu->strategy);
    snprintf(e->device, sizeof e->device, "%s", e->gpu->device->info.name);
    return gpu_restart(e, err);
}

static void gpu_destroy(iron_engine *e) { iron__gpu_feed_destroy(e->gpu); }

static iron_status gpu_sync(iron_engine *e, iron_error *err) {
    iron__quads_total sealed;
    iron_status status;

    IRON_TRY(iron__engine_check_failure(e, err));
    if (e->is_synced)
        return IRON_OK;
    status = iron__gpu_feed_fetch(e->gpu, &e->nodes, &e->closed, &e->error);
    if (status == IRON_OK && e->config.with_seal) {
        status = iron__gpu_feed_seal_fetch(e->gpu, &sealed, &e->error);
        if (status == IRON_OK)
            e->seal = sealed.seal;
    }
    e->is_synced = status == IRON_OK;
    return note_failure(e, status, err);
}

static void record_batch(void *context, iron__contribution batch) {
    iron_engine *e = context;

    e->range.record[e->range.recorded++] = iron__batch_effect_of(e, batch);
}

static iron_status gpu_record(iron_engine *e, iron_error *err) {
    return iron__tokens_gpu_record(e->gpu->tokens, record_batch, e, err);
}

/* Reads the totals of closed batches; *batch is what was added since *before. */
static iron_status read_batch(iron_engine *e, iron__contribution *before, iron__contribution *batch,
                              iron_error *err) {
    IRON_TRY(gpu_sync(e, err));
    *batch = (iron__contribution){e->closed.count - before->count, e->closed.sum - before->sum,
                                  e->closed.xors ^ before->xors};
    *before = e->closed;
    return IRON_OK;
}

/* Feeds the first `count` tokens of the view and moves it on. */
static iron_status feed_piece(iron_engine *e, iron__tokens_view *view, size_t count,
                              iron_error *err) {
    iron__tokens_view piece = {view->dtype, view->data, count};
    iron_status status;

    IRON_TRY(iron__engine_check_failure(e, err));
    status = iron__gpu_feed_host(e->gpu, &piece, &e->error);
    update_counters(e);
    *view = iron__view_rest(view, count);
    return note_failure(e, status, err);
}

static iron_status gpu_feed(iron_engine *e, const iron__tokens_view *tokens, iron_error *err) {
    size_t closing = e->on_batch ? (size_t)iron__engine_closing(e, tokens->count) : 0;
    iron__contribution *batches = NULL, before;
    iron__tokens_view view = *tokens;
    iron_status status = IRON_OK;

    if (closing > 0) {
        IRON_TRY(IRON_ALLOCATE(&batches, e->allocator, closing, "closed batches", err));
        status = gpu_sync(e, err);
        before = e->closed;
    }
    for (size_t k = 0; status == IRON_OK && k < closing; k++) {
        status = feed_piece(e, &view, (size_t)(e->config.batch - e->open.count), err);
        if (status == IRON_OK)
            status = read_batch(e, &before, &batches[k], err);
    }
    if (status == IRON_OK && view.count > 0)
        status = feed_piece(e, &view, view.count, err);
    for (size_t k = 0; status == IRON_OK && k < closing; k++)
        e->on_batch(e->on_batch_context, batches[k]);
    iron__release(e->allocator, batches);
    return status;
}

static iron_status gpu_end_batch(iron_engine *e, iron_error *err) {
    bool is_reported = e->on_batch && e->open.count > 0;
    iron__contribution before, batch;
    iron_status status;

    IRON_TRY(is_reported ? gpu_sync(e, err) : iron__engine_check_failure(e, err));
    before = e->closed;
    status = iron__gpu_feed_end_batch(e->gpu, &e->error);
    update_counters(e);
    IRON_TRY(note_failure(e, status, err));
    if (!is_reported)
        return IRON_OK;
    IRON_TRY(read_batch(e, &before, &batch, err));
    e->on_batch(e->on_batch_context, batch);
    return IRON_OK;
}

static iron_status gpu_feed_device(iron_engine *e, const void *tokens, uint64_t count, void *stream,
                                   iron_error *err) {
    iron__tokens_gpu_progress before = iron__gpu_feed_progress(e->gpu);
    iron_status status = iron__gpu_feed_resident(e->gpu, (uintptr_t)tokens, IRON_DTYPE_U32, 0,
                                                 count, (uintptr_t)stream, &e->error);
    bool is_unchanged;

    update_counters(e);
    is_unchanged = e->batches == before.batches && e->closed.count == before.closed_tokens &&
                   e->open.count == before.open_tokens;
    /* the caller's mistake, found before anything was taken */
    if ((status == IRON_E_ARG || status == IRON_E_STATE) && is_unchanged)
        return iron__fail_again(err, &e->error);
    return note_failure(e, status, err);
}

/* Sends collected tokens first: if that fails they are lost, and so is the engine. Failing to
 * allocate slots costs nothing. */
static iron_status gpu_get_slots(iron_engine *e, void *slots[IRON_FEED_SLOTS_MAX],
                                 iron_error *err) {
    IRON_TRY(iron__engine_check_failure(e, err));
    IRON_TRY(note_failure(e, iron__gpu_feed_flush(e->gpu, &e->error), err));
    return iron__gpu_feed_slots(e->gpu, slots, err);
}

static iron_status gpu_feed_slot(iron_engine *e, size_t slot, const iron__tokens_view *view,
                                 size_t *released, iron_error *err) {
    iron_status status;

    *released = 0;
    IRON_TRY(iron__engine_check_failure(e, err));
    status = iron__gpu_feed_send_slot(e->gpu, slot, view->dtype, view->count, released, &e->error);
    update_counters(e);
    return note_failure(e, status, err);
}

static double gpu_seconds_estimate(const iron_engine *e, uint64_t tokens) {
    return iron__tokens_gpu_seconds(e->choice.gpu_row, &e->gpu->device->info, e->config.nodes,
                                    tokens);
}

const iron__engine_backend iron__engine_gpu = {
    .sees_batches = false,
    .create = gpu_create,
    .destroy = gpu_destroy,
    .feed = gpu_feed,
    .end_batch = gpu_end_batch,
    .sync = gpu_sync,
    .restart = gpu_restart,
    .seconds_estimate = gpu_seconds_estimate,
    .record = gpu_record,
    .feed_device = gpu_feed_device,
    .get_slots = gpu_get_slots,
    .feed_slot = gpu_feed_slot,
};
