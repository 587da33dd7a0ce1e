/* SPDX-License-Identifier: MIT */
/* large_feeds.c: see large_feeds.h. */
#include "store/large_feeds.h"

#include "store/repeats.h"
#include "store/writer.h"

#include <string.h>

iron_status iron__block_run(iron__writer *writer, iron__job *job, iron_error *err) {
    const iron__block_job *block = (const iron__block_job *)job;

    return iron__block_insert(writer->db, block->upload, block->number, block->bytes, err);
}

static iron_status settle(iron__large_feed *feed, iron__feed_outcome outcome) {
    feed->result.outcome = outcome;
    feed->result.position = feed->job.kept->ahead.standing.closed.count;
    return IRON_OK;
}

/* The key was written since the body began. If that feed began where this one did, they can be
 * compared as they are; else the client tries again, and then the key is known from the start. */
static iron_status meet_first(iron__large_feed *feed, const iron__feed_row *first) {
    if (first->position != feed->row.position)
        return settle(feed, IRON_FEED_POSITION);
    if (!iron__same_content(first, &feed->row.fed, &feed->row.after.standing.seal))
        return settle(feed, IRON_FEED_KEY_REUSED);
    feed->result.after = first->after;
    feed->result.tokens = first->fed.count;
    feed->result.batches = first->batches;
    return settle(feed, IRON_FEED_REPEATED);
}

/* The engine goes where the fork is. One that cannot is made anew when it is needed. */
static void follow(iron__kept *kept, const iron__large_feed *feed) {
    const uint32_t *xors = iron_engine_xor_accumulators(feed->fork);
    const float *potentials = iron_engine_potentials(feed->fork);
    size_t bytes = kept->plan.nodes * sizeof(uint32_t);
    iron_error why = {0};

    memcpy(kept->ahead_nodes.xors, xors, bytes);
    memcpy(kept->ahead_nodes.potentials, potentials, bytes);
    kept->ahead = feed->row.after;
    kept->is_ahead = true;
    if (kept->engine && iron__engine_stand(kept->engine, &feed->row.after.standing, xors,
                                           potentials, &why) != IRON_OK)
        iron__kept_break(kept, &why);
}

static iron_status commit(iron__writer *writer, iron__large_feed *feed, iron_error *err) {
    iron__kept *kept = feed->job.kept;
    iron__feed_row *row = &feed->row;
    iron_status status;

    row->number = row->after.feeds = kept->ahead.feeds + 1;
    row->after.changed_ms = writer->group_ms;
    status = iron__writer_touch(writer, kept, err);
    if (status == IRON_OK)
        status = iron__feed_insert(writer->db, row, err);
    if (status != IRON_OK)
        return status;
    follow(kept, feed);
    kept->landing += row->fed.count;
    feed->result.after = row->after;
    feed->result.tokens = row->fed.count;
    feed->result.batches = row->batches;
    return settle(feed, IRON_FEED_DONE);
}

iron_status iron__large_feed_run(iron__writer *writer, iron__job *job, iron_error *err) {
    iron__large_feed *feed = (iron__large_feed *)job;
    iron__kept *kept = job->kept;
    iron__feed_row first;
    bool is_known = false;
    iron_status status;

    if (kept->is_leaving)
        return settle(feed, IRON_FEED_GONE);
    status = iron__lanes_flush(writer, err);
    if (status == IRON_OK && feed->row.key[0])
        status = iron__feed_by_key(writer->db, kept->id, feed->row.key, &first, &is_known, err);
    if (status != IRON_OK)
        return status;
    if (is_known)
        return meet_first(feed, &first);
    /* positions only grow: at the same one nothing has changed */
    if (kept->ahead.standing.closed.count != feed->row.position)
        return settle(feed, IRON_FEED_POSITION);
    return commit(writer, feed, err);
}
