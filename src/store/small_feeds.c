/* SPDX-License-Identifier: MIT */
/* small_feeds.c: see small_feeds.h. The order of checks: the key, then the position. */
#include "store/small_feeds.h"

#include "core/fail.h"
#include "store/repeats.h"
#include "store/writer.h"

#include <stdio.h>
#include <string.h>

/* The outcome is the feed's own; the store is well. */
static iron_status settle(iron__small_feed *feed, iron__feed_outcome outcome) {
    feed->result.outcome = outcome;
    feed->result.position = feed->job.kept->ahead.standing.closed.count;
    return IRON_OK;
}

static void take_first_answer(iron__feed_result *result, const iron__feed_row *first) {
    result->after = first->after;
    result->tokens = first->fed.count;
    result->batches = first->batches;
}

static iron_status compare(iron__writer *writer, iron__small_feed *feed,
                           const iron__feed_row *first, iron_error *err) {
    iron__repeat repeat;
    bool is_same = false;
    iron_status status =
        iron__repeat_begin(&repeat, feed->job.kept, writer->db, first, &feed->job.error);

    if (status == IRON_E_FORMAT || status == IRON_E_IO) {
        if (err)
            *err = feed->job.error;
        return status;
    }
    if (status == IRON_OK)
        status = iron__repeat_take(&repeat, &feed->view, &feed->job.error);
    if (status == IRON_OK)
        status = iron__repeat_end(&repeat, &is_same, &feed->job.error);
    if (is_same)
        take_first_answer(&feed->result, &repeat.first);
    iron__repeat_free(&repeat);
    if (status != IRON_OK)
        return settle(feed, IRON_FEED_FAILED);
    return settle(feed, is_same ? IRON_FEED_REPEATED : IRON_FEED_KEY_REUSED);
}

/* A key that waits in a lane is written before it is looked for. */
static iron_status write_key(iron__writer *writer, const iron__small_feed *feed, iron_error *err) {
    const iron__lanes *l = &writer->lanes;

    for (size_t k = 0; k < l->used; k++)
        if (l->lanes[k].kept == feed->job.kept && strcmp(l->lanes[k].row.key, feed->key) == 0)
            return iron__lanes_flush(writer, err);
    return IRON_OK;
}

static iron_status look_for_key(iron__writer *writer, iron__small_feed *feed, bool *is_known,
                                iron_error *err) {
    iron__feed_row first;

    *is_known = false;
    if (!feed->key[0])
        return IRON_OK;
    IRON_TRY(write_key(writer, feed, err));
    IRON_TRY(iron__feed_by_key(writer->db, feed->job.kept->id, feed->key, &first, is_known, err));
    return *is_known ? compare(writer, feed, &first, err) : IRON_OK;
}

static void fill_row(iron__writer *writer, iron__small_feed *feed, iron__lane *lane,
                     const iron__standing *after) {
    const iron__moment *before = &feed->job.kept->ahead;
    const iron__contribution *old = &before->standing.closed;

    lane->row = (iron__feed_row){
        .engine = feed->job.kept->id,
        .number = before->feeds + 1,
        .position = old->count,
        .first_batch = before->standing.batches,
        .batches = after->batches - before->standing.batches,
        .fed = {feed->view.count, after->closed.sum - old->sum, after->closed.xors ^ old->xors},
        .after = {.standing = *after, .feeds = before->feeds + 1, .changed_ms = writer->group_ms},
    };
    snprintf(lane->row.key, sizeof lane->row.key, "%s", feed->key);
    lane->result = &feed->result;
    feed->result.tokens = lane->row.fed.count;
    feed->result.batches = lane->row.batches;
}

static iron_status reduce(iron_engine *engine, iron__small_feed *feed, iron__lane *lane,
                          iron__standing *after, iron_error *err) {
    iron_status status;

    iron__engine_listen(engine, iron__lane_hear, lane);
    status = iron_engine_feed_as(engine, feed->view.dtype, feed->view.data, feed->view.count, err);
    if (status == IRON_OK)
        status = iron_engine_end_batch(engine, err);
    if (status == IRON_OK)
        status = iron__engine_standing(engine, after, err);
    iron__engine_listen(engine, NULL, NULL);
    if (status == IRON_OK && lane->is_short)
        status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory: the batches of a feed");
    return status;
}

/* Its engine, once more from what is known; feeds that wait in lanes are part of that. */
static iron_status engine_of(iron__writer *writer, iron__small_feed *feed, iron_engine **engine,
                             bool *is_failure, iron_error *err) {
    *is_failure = false;
    if (!feed->job.kept->engine && iron__lanes_flush(writer, err) != IRON_OK) {
        *is_failure = true;
        return IRON_E_IO;
    }
    return iron__kept_engine(feed->job.kept, engine, &feed->job.error);
}

static iron_status apply(iron__writer *writer, iron__small_feed *feed, iron_error *err) {
    iron__kept *kept = feed->job.kept;
    iron_error *own = &feed->job.error;
    iron__standing after;
    iron_engine *engine = NULL;
    iron__lane *lane;
    bool is_failure;

    if (engine_of(writer, feed, &engine, &is_failure, err) != IRON_OK)
        return is_failure ? IRON_E_IO : settle(feed, IRON_FEED_FAILED);
    if (iron__lane_open(writer, kept, &lane, &is_failure, own) != IRON_OK) {
        if (is_failure && err)
            *err = *own;
        return is_failure ? IRON_E_IO : settle(feed, IRON_FEED_FAILED);
    }
    if (reduce(engine, feed, lane, &after, own) != IRON_OK) {
        iron__kept_break(kept, own); /* how much it took is not known */
        return settle(feed, IRON_FEED_FAILED);
    }
    IRON_TRY(iron__writer_touch(writer, kept, err));
    fill_row(writer, feed, lane, &after);
    iron__lane_close(writer, lane);
    return settle(feed, IRON_FEED_DONE);
}

iron_status iron__small_feed_run(iron__writer *writer, iron__job *job, iron_error *err) {
    iron__small_feed *feed = (iron__small_feed *)job;
    iron__kept *kept = job->kept;
    bool is_known;

    if (kept->is_leaving)
        return settle(feed, IRON_FEED_GONE);
    IRON_TRY(look_for_key(writer, feed, &is_known, err));
    if (is_known)
        return IRON_OK;
    if (feed->has_at && feed->at != kept->ahead.standing.closed.count)
        return settle(feed, IRON_FEED_POSITION);
    if (feed->view.count > 0 || feed->key[0])
        return apply(writer, feed, err);
    IRON_TRY(iron__lanes_flush(writer, err)); /* the state after what waits there */
    feed->result.after = kept->ahead;
    return settle(feed, IRON_FEED_DONE);
}
