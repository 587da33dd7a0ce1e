/* SPDX-License-Identifier: MIT */
/*
 * gpu_heard.c: an engine on a GPU whose batches somebody listens to. The device knows only the
 * totals of all closed batches; so a feed is cut where batches end, the totals are brought here
 * after each, and what they grew by is the batch.
 *
 * A device can fail in the middle of a feed, and then nothing of it counts: batches are told when
 * all of the feed is done, and wait in memory until then, 24 bytes each.
 */
#include "core/fail.h"
#include "engine/engine.h"

/* The totals with the device's closed batches in, and what they have grown by since *before. */
static iron_status take_batch(iron_engine *e, iron__contribution *before, iron__contribution *batch,
                              iron_error *err) {
    IRON_TRY(iron__gpu_engine_settle(e, err));
    *batch = (iron__contribution){e->closed.count - before->count, e->closed.sum - before->sum,
                                  e->closed.xors ^ before->xors};
    *before = e->closed;
    return IRON_OK;
}

static void tell(const iron_engine *e, const iron__contribution *batches, size_t count) {
    for (size_t k = 0; k < count; k++)
        e->heard(e->heard_context, batches[k]);
}

static size_t closed_by(const iron_engine *e, uint64_t tokens) {
    uint64_t batch = e->config.batch;

    return (size_t)(tokens / batch + (e->open.count + tokens % batch) / batch);
}

/* Feeds as far as the open batch goes; returns its tokens. */
static iron_status feed_to_end(iron_engine *e, iron__tokens_view *view, iron_error *err) {
    uint64_t left = e->config.batch - e->open.count;
    iron__tokens_view piece = *view;

    if (piece.count > left)
        piece.count = (size_t)left;
    IRON_TRY(iron__gpu_engine_feed(e, &piece, err));
    *view = iron__view_rest(view, piece.count);
    return IRON_OK;
}

/* Tokens that close `count` batches, of which there is at least one, and those after them. */
static iron_status feed_batches(iron_engine *e, iron__tokens_view view, iron__contribution *batches,
                                size_t count, iron_error *err) {
    iron__contribution before;

    IRON_TRY(iron__gpu_engine_settle(e, err));
    before = e->closed;
    for (size_t k = 0; k < count; k++) {
        IRON_TRY(feed_to_end(e, &view, err));
        IRON_TRY(take_batch(e, &before, &batches[k], err));
    }
    return view.count > 0 ? iron__gpu_engine_feed(e, &view, err) : IRON_OK;
}

iron_status iron__gpu_heard_feed(iron_engine *e, const iron__tokens_view *view, iron_error *err) {
    size_t count = closed_by(e, view->count);
    iron__contribution *batches;
    iron_status status;

    if (count == 0)
        return iron__gpu_engine_feed(e, view, err);
    batches = iron__allocate(e->allocator, count, sizeof *batches, "batches to tell of", err);
    if (!batches)
        return IRON_E_NOMEM;
    status = feed_batches(e, *view, batches, count, err);
    if (status == IRON_OK)
        tell(e, batches, count);
    iron__release(e->allocator, batches);
    return status;
}

iron_status iron__gpu_heard_end_batch(iron_engine *e, iron_error *err) {
    iron__contribution before, batch;

    if (e->open.count == 0)
        return iron__gpu_engine_end_batch(e, err);
    IRON_TRY(iron__gpu_engine_settle(e, err));
    before = e->closed;
    IRON_TRY(iron__gpu_engine_end_batch(e, err));
    IRON_TRY(take_batch(e, &before, &batch, err));
    tell(e, &batch, 1);
    return IRON_OK;
}
