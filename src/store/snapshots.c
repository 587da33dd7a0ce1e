/* SPDX-License-Identifier: MIT */
/*
 * snapshots.c: states of engines, written now and then, so that a start replays little. They hold
 * nothing that is not in the feeds: one that cannot be made for lack of memory is made later.
 */
#include "store/writer.h"

#include <stdlib.h>

/* Not more bytes of nodes than of contributions: a snapshot of many nodes is worth more batches. */
static uint64_t batches_between(const iron__kept *kept) {
    uint64_t asked = kept->store->options.snapshot_batches;

    if (asked)
        return asked;
    return kept->plan.nodes > IRON_SNAPSHOT_BATCHES ? kept->plan.nodes : IRON_SNAPSHOT_BATCHES;
}

/* Feeds count too: those without tokens have no batches, but a row that a start reads. */
bool iron__kept_needs_snapshot(const iron__kept *kept, bool is_closing) {
    uint64_t feeds = kept->ahead.feeds - kept->snapshot_feeds;
    uint64_t batches = kept->ahead.standing.batches - kept->snapshot_batches;

    if (kept->is_leaving || feeds == 0)
        return false;
    return is_closing || (feeds > batches ? feeds : batches) >= batches_between(kept);
}

static iron_status write_one(iron__writer *w, iron__kept *kept, iron_error *err) {
    iron__snapshot_row row = {
        .engine = kept->id, .number = kept->ahead.feeds, .state = kept->ahead.state};
    unsigned char *bytes = NULL;
    iron_status status;

    if (iron__kept_state(kept, &bytes, &row.count, NULL) != IRON_OK)
        return IRON_OK;
    row.bytes = bytes;
    status = iron__snapshot_insert(w->db, &row, err);
    free(bytes);
    kept->snapshot_feeds = kept->ahead.feeds;
    kept->snapshot_batches = kept->ahead.standing.batches;
    pthread_mutex_lock(&w->lock);
    w->snapshots++;
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* The first in a group: what is ahead is what is published. */
iron_status iron__snapshots_write(iron__writer *w, bool is_closing, iron_error *err) {
    size_t count = iron__store_list(w->store, NULL, 0);
    iron__kept **all = calloc(count + 1, sizeof(iron__kept *));
    iron_status status = IRON_OK;

    w->wants_snapshots = false;
    if (!all)
        return IRON_OK;
    iron__store_list(w->store, all, count); /* only this thread changes the list */
    for (size_t k = 0; k < count; k++) {
        if (status == IRON_OK && iron__kept_needs_snapshot(all[k], is_closing))
            status = write_one(w, all[k], err);
        iron__kept_release(all[k]);
    }
    free(all);
    return status;
}
