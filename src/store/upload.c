/* SPDX-License-Identifier: MIT */
/* upload.c: how an upload begins and ends. How it takes bytes is in upload_bytes.c. */
#include "store/upload.h"

#include "core/fail.h"
#include "store/large_feeds.h"
#include "store/upload_bytes.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What was said of the key, by somebody else than the writer: the reader's connection. */
static iron_status look_for_key(iron__upload *u, const char *key, iron_error *err) {
    iron__store *store = u->kept->store;
    iron__feed_row first;
    bool found = false;
    iron_status status;

    pthread_mutex_lock(&store->read_lock);
    status = iron__feed_by_key(store->reader, u->kept->id, key, &first, &found, err);
    if (status == IRON_OK && found) {
        u->is_repeat = true;
        status = iron__repeat_begin(&u->repeat, u->kept, store->reader, &first, err);
    }
    iron__database_rest(store->reader);
    pthread_mutex_unlock(&store->read_lock);
    return status;
}

/* IRON_FEED_DONE, or why there is no fork at the right place. */
static iron__feed_outcome fork_off(iron__upload *u, const iron__upload_request *request,
                                   uint64_t *position, iron_error *err) {
    iron_status status = iron__fork_take(u->kept, &u->fork, &u->base, err);

    if (status != IRON_OK)
        return status == IRON_E_STATE ? IRON_FEED_BUSY : IRON_FEED_FAILED;
    *position = u->base.standing.closed.count;
    if (request->has_at && request->at != *position)
        return IRON_FEED_POSITION;
    iron__engine_listen(u->fork, iron__upload_hear, u);
    return IRON_FEED_DONE;
}

static iron__feed_outcome begin(iron__upload *u, const iron__upload_request *request,
                                uint64_t *position, iron_error *err) {
    if (posix_memalign((void **)&u->stage, IRON_CACHE_LINE, IRON_STAGE_BYTES) != 0)
        u->stage = NULL;
    u->batches = malloc(IRON_BLOCK_BYTES);
    if (!u->stage || !u->batches) {
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory: room for an upload");
        return IRON_FEED_FAILED;
    }
    if (request->key[0] && look_for_key(u, request->key, err) != IRON_OK)
        return iron__kept_is_deleted(u->kept) ? IRON_FEED_GONE : IRON_FEED_FAILED;
    if (!u->is_repeat)
        return fork_off(u, request, position, err);
    if (request->tokens != UINT64_MAX && request->tokens != u->repeat.first.fed.count)
        return IRON_FEED_KEY_REUSED;
    return IRON_FEED_DONE;
}

static bool take_place(iron__store *store) {
    if (atomic_fetch_add(&store->uploads, 1) < store->options.uploads_max)
        return true;
    atomic_fetch_sub(&store->uploads, 1);
    return false;
}

iron__feed_outcome iron__upload_begin(iron__kept *kept, const iron__upload_request *request,
                                      iron__upload **out, uint64_t *position, iron_error *err) {
    iron__feed_outcome outcome = IRON_FEED_FAILED;
    iron__upload *u;

    *out = NULL;
    if (!take_place(kept->store)) {
        iron__fail(err, IRON_E_STATE, 0, "%u large bodies are on their way, the most there may be",
                   kept->store->options.uploads_max);
        return IRON_FEED_BUSY;
    }
    u = calloc(1, sizeof *u);
    if (!u) {
        atomic_fetch_sub(&kept->store->uploads, 1);
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory: an upload");
        return outcome;
    }
    u->kept = kept;
    u->dtype = request->dtype;
    u->width = iron_dtype_bytes(request->dtype);
    outcome = begin(u, request, position, err);
    if (outcome == IRON_FEED_DONE)
        *out = u;
    else
        iron__upload_free(u, false);
    return outcome;
}

static void forget_blocks(iron__upload *u, bool is_feed) {
    iron__store *store = u->kept->store;

    pthread_mutex_lock(&store->lock);
    for (uint32_t k = 0; k < store->options.uploads_max; k++)
        if (store->open_uploads[k] == u->id)
            store->open_uploads[k] = 0;
    pthread_mutex_unlock(&store->lock);
    if (!is_feed)
        iron__writer_sweep(store->writer);
}

void iron__upload_free(iron__upload *u, bool is_feed) {
    if (!u)
        return;
    if (u->id)
        forget_blocks(u, is_feed);
    iron__kept_forgo(u->kept, u->incoming);
    atomic_fetch_sub(&u->kept->store->uploads, 1);
    iron__fork_give(u->kept, u->fork, iron__fork_is_whole(u));
    iron__repeat_free(&u->repeat);
    free(u->stage);
    free(u->batches);
    free(u);
}

static iron__feed_outcome end_repeat(iron__upload *u, iron__feed_result *result, iron_error *err) {
    bool is_same;

    if (iron__repeat_end(&u->repeat, &is_same, err) != IRON_OK)
        return IRON_FEED_FAILED;
    if (!is_same)
        return IRON_FEED_KEY_REUSED;
    pthread_mutex_lock(&u->kept->lock);
    result->position = u->kept->published.standing.closed.count;
    pthread_mutex_unlock(&u->kept->lock);
    result->after = u->repeat.first.after;
    result->tokens = u->repeat.first.fed.count;
    result->batches = u->repeat.first.batches;
    return IRON_FEED_REPEATED;
}

static iron_status fill_row(iron__upload *u, const char *key, iron__feed_row *row,
                            iron_error *err) {
    iron__hash_lane lane;

    *row = (iron__feed_row){
        .engine = u->kept->id,
        .position = u->base.standing.closed.count,
        .first_batch = u->base.standing.batches,
        .fed = u->fed,
        .has_blocks = u->blocks > 0,
        .upload = u->id,
        .batch_bytes = u->batches,
        .batch_bytes_count = u->batch_count * IRON_BATCH_BYTES,
    };
    IRON_TRY(iron__engine_standing(u->fork, &row->after.standing, err));
    row->batches = row->after.standing.batches - row->first_batch;
    snprintf(row->key, sizeof row->key, "%s", key);
    lane = (iron__hash_lane){iron_engine_xor_accumulators(u->fork), iron_engine_potentials(u->fork),
                             0};
    iron__nodes_hash_lanes(&lane, 1, (uint32_t)u->kept->plan.nodes);
    row->after.state = lane.hash;
    return IRON_OK;
}

iron__feed_outcome iron__upload_end(iron__upload *u, const char *key, iron__feed_result *result,
                                    iron_error *err) {
    iron__large_feed feed = {.job = {.run = iron__large_feed_run, .kept = u->kept},
                             .fork = u->fork};
    iron__feed_outcome outcome = iron__upload_flush(u, err);

    if (outcome != IRON_FEED_DONE)
        return outcome;
    if (u->is_repeat)
        return end_repeat(u, result, err);
    outcome = iron__upload_close_batch(u, err);
    if (outcome != IRON_FEED_DONE)
        return outcome;
    if (fill_row(u, key, &feed.row, err) != IRON_OK)
        return IRON_FEED_FAILED;
    iron__writer_do(u->kept->store->writer, &feed.job);
    if (feed.job.is_refused && err)
        *err = feed.job.error;
    *result = feed.result;
    if (!feed.job.is_refused && feed.result.outcome == IRON_FEED_DONE)
        u->incoming = 0; /* they have landed */
    return feed.job.is_refused ? IRON_FEED_READ_ONLY : feed.result.outcome;
}
