/* SPDX-License-Identifier: MIT */
/*
 * recovery.h: an engine made anew from what was written of it: a snapshot, verified, and the feeds
 * after it, in order. Nothing is believed: every row must follow from the one before it, and the
 * nodes at the end must have the state hash that the last row says. What differs is refused with
 * the engine, the row and what to do; nothing is left out, and no older snapshot is tried.
 *
 * Knows nothing of SQLite: rows are given to it, from wherever they come.
 *
 *     begin; snapshot, if there is one; for each feed after it: feed, batches ..., feed_end; end
 */
#ifndef IRON_STORE_RECOVERY_H
#define IRON_STORE_RECOVERY_H

#include "store/rows.h"

typedef struct iron__recovery {
    const iron__plan *plan;
    iron_engine *engine; /* on the CPU, wherever the kept one will be; nodes are right after end */
    iron__moment at;     /* after the last row */
    iron__feed_row row;  /* the present one */
    uint64_t row_batches;
    iron__contribution row_sum;
    iron__contribution *waiting; /* IRON_BLOCK_BATCHES, for many are replayed at once */
    size_t waiting_count;
    uint64_t snapshot_feeds, replayed; /* feeds in the snapshot; batches after it */
} iron__recovery;

iron_status iron__recovery_begin(iron__recovery *recovery, const iron__plan *plan, iron_error *err);
void iron__recovery_free(iron__recovery *recovery);

/* `last` is the feed that the snapshot was taken after; NULL for one of number 0. */
iron_status iron__recovery_snapshot(iron__recovery *recovery, const iron__snapshot_row *snapshot,
                                    const iron__feed_row *last, iron_error *err);
iron_status iron__recovery_feed(iron__recovery *recovery, const iron__feed_row *row,
                                iron_error *err);
/* The next `count` batches of the feed. */
iron_status iron__recovery_batches(iron__recovery *recovery, const unsigned char *bytes,
                                   size_t count, iron_error *err);
iron_status iron__recovery_feed_end(iron__recovery *recovery, iron_error *err);
iron_status iron__recovery_end(iron__recovery *recovery, iron_error *err);

#endif
