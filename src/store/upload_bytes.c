/* SPDX-License-Identifier: MIT */
/*
 * upload_bytes.c: bytes, however they were cut, into the fork of an upload.
 *
 * Bytes collect on a stage, where they are aligned, and are reduced when it is full: long runs are
 * worth a copy (beside curl on two cores 4 GiB took 2.4 s by runs of 64 KiB and 1.3 s by runs of 1
 * MiB). The engine gets no more tokens at once than close the batches there is room for; when the
 * room is full, and only then, it goes to the disk as a block.
 */
#include "store/upload_bytes.h"

#include "core/fail.h"
#include "store/large_feeds.h"
#include "store/writer.h"

#include <string.h>

void iron__upload_hear(void *context, iron__contribution batch) {
    iron__upload *u = context;

    iron__batch_encode(u->batches + u->batch_count++ * IRON_BATCH_BYTES, batch);
    u->fed = iron__contribution_merge(u->fed, batch);
}

bool iron__fork_is_whole(const iron__upload *u) {
    return u->fork && u->fork->failure.status == IRON_OK;
}

/* An id of its own, noted as one that is not to be swept up. */
static void begin_blocks(iron__upload *u) {
    iron__store *store = u->kept->store;
    uint32_t place = 0;

    u->id = atomic_fetch_add(&store->next_upload, 1);
    pthread_mutex_lock(&store->lock);
    while (store->open_uploads[place]) /* uploads_max of them, and this one is counted */
        place++;
    store->open_uploads[place] = u->id;
    pthread_mutex_unlock(&store->lock);
}

static iron__feed_outcome spill(iron__upload *u, iron_error *err) {
    iron__block_job block = {
        .job = {.run = iron__block_run, .kept = u->kept}, .number = u->blocks, .bytes = u->batches};

    if (!u->id)
        begin_blocks(u);
    block.upload = u->id;
    iron__writer_do(u->kept->store->writer, &block.job);
    if (block.job.is_refused) {
        if (err)
            *err = block.job.error;
        return IRON_FEED_READ_ONLY;
    }
    u->blocks++;
    u->batch_count = 0;
    return IRON_FEED_DONE;
}

static iron__feed_outcome spill_if_full(iron__upload *u, iron_error *err) {
    return u->batch_count == IRON_BLOCK_BATCHES ? spill(u, err) : IRON_FEED_DONE;
}

/* Tokens that close no more batches than there is room for. */
static size_t tokens_that_fit(const iron__upload *u, size_t count) {
    uint64_t batch = u->kept->plan.batch, fit;

    if (__builtin_mul_overflow(batch, IRON_BLOCK_BATCHES - u->batch_count, &fit))
        return count;
    fit -= u->tokens % batch;
    return fit < count ? (size_t)fit : count;
}

static iron__feed_outcome reduce_forked(iron__upload *u, iron__tokens_view view, iron_error *err) {
    iron__feed_outcome outcome = IRON_FEED_DONE;

    while (view.count > 0 && outcome == IRON_FEED_DONE) {
        size_t count = tokens_that_fit(u, view.count);

        if (iron_engine_feed_as(u->fork, view.dtype, view.data, count, err) != IRON_OK)
            return IRON_FEED_FAILED;
        u->tokens += count;
        view = iron__view_rest(&view, count);
        outcome = spill_if_full(u, err);
    }
    return outcome;
}

static iron__feed_outcome reduce_repeated(iron__upload *u, const iron__tokens_view *view,
                                          iron_error *err) {
    if (view->count > u->repeat.first.fed.count - u->tokens)
        return IRON_FEED_KEY_REUSED;
    if (iron__repeat_take(&u->repeat, view, err) != IRON_OK)
        return IRON_FEED_FAILED;
    u->tokens += view->count;
    return IRON_FEED_DONE;
}

/* Whole tokens, aligned. */
static iron__feed_outcome reduce(iron__upload *u, const void *data, size_t bytes, iron_error *err) {
    iron__tokens_view view = {u->dtype, data, bytes / u->width};

    if (view.count == 0)
        return IRON_FEED_DONE;
    if (iron__view_check(&view, u->tokens, err) != IRON_OK)
        return IRON_FEED_BAD_TOKEN;
    return u->is_repeat ? reduce_repeated(u, &view, err) : reduce_forked(u, view, err);
}

static iron__feed_outcome reduce_stage(iron__upload *u, iron_error *err) {
    size_t whole = u->staged - u->staged % u->width;
    iron__feed_outcome outcome = reduce(u, u->stage, whole, err);

    memmove(u->stage, u->stage + whole, u->staged - whole);
    u->staged -= whole;
    return outcome;
}

/* Whole tokens that have come since. Those of a repeat are part of the engine already. */
static void count_incoming(iron__upload *u) {
    uint64_t all = u->tokens + u->staged / u->width;

    if (u->is_repeat)
        return;
    iron__kept_receive(u->kept, all - u->incoming);
    u->incoming = all;
}

iron__feed_outcome iron__upload_take(iron__upload *u, const unsigned char *bytes, size_t count,
                                     iron_error *err) {
    iron__feed_outcome outcome = IRON_FEED_DONE;

    while (count > 0 && outcome == IRON_FEED_DONE) {
        size_t fit = IRON_STAGE_BYTES - u->staged;

        if (fit > count)
            fit = count;
        memcpy(u->stage + u->staged, bytes, fit);
        u->staged += fit;
        bytes += fit;
        count -= fit;
        if (u->staged == IRON_STAGE_BYTES)
            outcome = reduce_stage(u, err);
    }
    if (outcome == IRON_FEED_DONE)
        count_incoming(u);
    return outcome;
}

iron__feed_outcome iron__upload_flush(iron__upload *u, iron_error *err) {
    iron__feed_outcome outcome = IRON_FEED_DONE;

    if (u->staged % u->width != 0)
        return IRON_FEED_RAGGED;
    if (u->staged > 0)
        outcome = reduce_stage(u, err);
    return outcome;
}

iron__feed_outcome iron__upload_close_batch(iron__upload *u, iron_error *err) {
    if (iron_engine_end_batch(u->fork, err) != IRON_OK)
        return IRON_FEED_FAILED;
    return spill_if_full(u, err);
}
