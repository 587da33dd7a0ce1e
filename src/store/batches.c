/* SPDX-License-Identifier: MIT */
/*
 * batches.c: an engine's history, read from the disk. Feeds have no index by their batches: their
 * numbers have no gaps and their first batches only grow, so the feed of a batch is found by
 * halving.
 */
#include "core/fail.h"
#include "store/inside.h"

#include <inttypes.h>

typedef struct reading {
    iron__kept *kept;
    iron__database *db;
    iron__batch_row *rows;
    size_t room, count;
    uint64_t next, end; /* batches */
} reading;

static iron_status read_feed(const reading *r, uint64_t number, iron__feed_row *row,
                             iron_error *err) {
    bool found;

    IRON_TRY(iron__feed_by_number(r->db, r->kept->id, number, row, &found, err));
    IRON_FAIL_IF(!found, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64
                 " is missing; the database is damaged: restore a backup",
                 r->kept->plan.name, number);
    return IRON_OK;
}

/* The last feed that begins at or before the batch: the one that has it. */
static iron_status find_feed(const reading *r, uint64_t feeds, uint64_t *number, iron_error *err) {
    uint64_t low = 1, high = feeds;
    iron__feed_row row;

    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;

        IRON_TRY(read_feed(r, middle, &row, err));
        if (row.first_batch <= r->next)
            low = middle;
        else
            high = middle - 1;
    }
    *number = low;
    return IRON_OK;
}

static void give(reading *r, const iron__feed_row *row, uint64_t index,
                 const unsigned char *bytes) {
    uint64_t tokens = iron__row_batch_tokens(row, r->kept->plan.batch, index);
    iron__contribution c = iron__batch_decode(bytes, tokens);

    r->rows[r->count++] = (iron__batch_row){.batch = r->next++,
                                            .position = row->position + index * r->kept->plan.batch,
                                            .tokens = tokens,
                                            .sum = c.sum,
                                            .xors = c.xors};
}

static bool is_wanted(const reading *r) { return r->count < r->room && r->next < r->end; }

static iron_status give_feed(reading *r, const iron__feed_row *row, iron_error *err) {
    uint64_t in_blocks = iron__row_in_blocks(row);
    uint64_t index = r->next - row->first_batch;

    while (index < in_blocks && is_wanted(r)) {
        const unsigned char *bytes;

        IRON_TRY(iron__block_read(r->db, row->upload, index / IRON_BLOCK_BATCHES, &bytes, err));
        do {
            give(r, row, index, bytes + index % IRON_BLOCK_BATCHES * IRON_BATCH_BYTES);
            index++;
        } while (index % IRON_BLOCK_BATCHES != 0 && is_wanted(r));
    }
    for (; index < row->batches && is_wanted(r); index++)
        give(r, row, index, row->batch_bytes + (index - in_blocks) * IRON_BATCH_BYTES);
    return IRON_OK;
}

/* Does the row have the batch that comes next, and its own in order? */
static iron_status check_feed(const reading *r, const iron__feed_row *row,
                              const iron__moment *before, iron_error *err) {
    iron__moment own = {
        .standing = {.closed = {row->position, row->after.standing.closed.sum - row->fed.sum,
                                row->after.standing.closed.xors ^ row->fed.xors},
                     .batches = row->first_batch},
        .feeds = row->number - 1};

    IRON_TRY(iron__feed_row_follows(row, before ? before : &own, &r->kept->plan, err));
    IRON_FAIL_IF(row->first_batch > r->next ||
                     (row->batches > 0 && r->next >= row->first_batch + row->batches),
                 err, IRON_E_FORMAT,
                 "engine %s: batch %" PRIu64 " is not in feed %" PRIu64
                 "; the database is damaged: restore a backup",
                 r->kept->plan.name, r->next, row->number);
    return IRON_OK;
}

static iron_status read_batches(reading *r, uint64_t feeds, iron_error *err) {
    iron__moment before;
    iron__feed_row row;
    uint64_t number;
    bool is_first = true;

    IRON_TRY(find_feed(r, feeds, &number, err));
    for (; is_wanted(r); number++) {
        IRON_TRY(read_feed(r, number, &row, err));
        IRON_TRY(check_feed(r, &row, is_first ? NULL : &before, err));
        IRON_TRY(give_feed(r, &row, err));
        before = row.after;
        is_first = false;
    }
    return IRON_OK;
}

iron_status iron__kept_batches(iron__kept *kept, uint64_t since, iron__batch_row *rows, size_t room,
                               size_t *count, iron_error *err) {
    iron__store *store = kept->store;
    reading r = {.kept = kept, .db = store->reader, .rows = rows, .room = room, .next = since};
    iron_status status = IRON_OK;
    uint64_t feeds;
    bool is_deleted;

    pthread_mutex_lock(&kept->lock);
    r.end = kept->published.standing.batches;
    feeds = kept->published.feeds;
    pthread_mutex_unlock(&kept->lock);
    pthread_mutex_lock(&store->read_lock);
    if (is_wanted(&r))
        status = read_batches(&r, feeds, err);
    iron__database_rest(store->reader);
    pthread_mutex_unlock(&store->read_lock);
    if (status == IRON_E_FORMAT && iron__kept_is_deleted(kept))
        status = iron__fail(err, IRON_E_STATE, 0, "engine %s was deleted", kept->plan.name);
    *count = status == IRON_OK ? r.count : 0;
    pthread_mutex_lock(&kept->lock);
    is_deleted = kept->is_deleted;
    pthread_mutex_unlock(&kept->lock);
    if (status != IRON_OK && is_deleted) /* its rows are being swept up: that is no damage */
        return iron__fail(err, IRON_E_STATE, 0, "engine %s was deleted", kept->plan.name);
    return status;
}
