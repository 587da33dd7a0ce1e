/* SPDX-License-Identifier: MIT */
/*
 * recovery.c: reading engines back from the database: loading them all at start, and the history of
 * one engine's batches.
 *
 * An engine is rebuilt from its newest snapshot and the feeds after it, in order. Nothing is
 * trusted: every row must follow from the one before it, and the final nodes must have the state
 * hash of the last row. A difference is an error that names the engine and the row; rows are never
 * skipped, and no older snapshot is tried.
 *
 * Engines are replayed on the CPU and then put on the device that their plan asks for. If that is
 * not available now, the engine can be read but not fed.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "engine/checkpoint.h"
#include "store/store_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RESTORE "; the database is damaged: restore a backup"

/* The chain of feeds. */

/* Tokens of batch `index` of a feed whose engine has batches of `batch` tokens. */
static uint64_t batch_tokens(const iron__feed_row *row, uint64_t batch, uint64_t index) {
    return index + 1 < row->batches ? batch : row->fed.count - index * batch;
}

/* How many of the feed's batches are in blocks. */
static uint64_t batches_in_blocks(const iron__feed_row *row) {
    return row->has_blocks ? row->batches - row->batches % IRON_BLOCK_BATCHES : 0;
}

/* Do the numbers of the row agree with each other and with the engine's batch size? */
static bool is_coherent(const iron__feed_row *r, uint64_t batch) {
    const iron__checkpoint *after = &r->after.checkpoint;
    uint64_t batches = r->fed.count ? (r->fed.count - 1) / batch + 1 : 0;

    if (r->number < 1 || r->fed.count > UINT64_MAX - r->position || r->batches != batches)
        return false;
    if (after->closed.count != r->position + r->fed.count ||
        after->batches != r->first_batch + r->batches)
        return false;
    if (after->seal.carried != after->closed.count % 4 ||
        after->seal.words.count != after->closed.count - after->seal.carried)
        return false;
    for (uint32_t k = after->seal.carried; k < 3; k++)
        if (after->seal.carry[k] != 0)
            return false;
    return r->after.feeds == r->number &&
           r->batch_bytes_count / IRON_BATCH_BYTES == r->batches - batches_in_blocks(r) &&
           r->batch_bytes_count % IRON_BATCH_BYTES == 0;
}

/* Is the row correct in itself, and does it follow `before`? */
static iron_status check_follows(const iron__feed_row *r, const iron__engine_summary *before,
                                 const iron__store_plan *plan, iron_error *err) {
    const iron__checkpoint *b = &before->checkpoint;
    iron__contribution sum = iron__contribution_merge(b->closed, r->fed);

    IRON_FAIL_IF(!is_coherent(r, plan->batch), err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " contradicts itself" RESTORE, plan->name, r->number);
    IRON_FAIL_IF(r->number != before->feeds + 1, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " is missing, %" PRIu64 " comes next" RESTORE,
                 plan->name, before->feeds + 1, r->number);
    IRON_FAIL_IF(r->position != b->closed.count || r->first_batch != b->batches, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " begins at %" PRIu64 ", batch %" PRIu64
                 ", and not at %" PRIu64 ", %" PRIu64 RESTORE,
                 plan->name, r->number, r->position, r->first_batch, b->closed.count, b->batches);
    IRON_FAIL_IF(!iron__contributions_equal(&r->after.checkpoint.closed, &sum), err, IRON_E_FORMAT,
                 "engine %s: the totals after feed %" PRIu64
                 " are not those before it plus its own" RESTORE,
                 plan->name, r->number);
    return IRON_OK;
}

/* The engine before a feed whose own predecessor is not read. */
static iron__engine_summary before_feed(const iron__feed_row *r) {
    const iron__contribution *total = &r->after.checkpoint.closed;

    return (iron__engine_summary){
        .checkpoint = {.closed = {r->position, total->sum - r->fed.sum, total->xors ^ r->fed.xors},
                       .batches = r->first_batch},
        .feeds = r->number - 1};
}

/* Rebuilding one engine, without a database: rows are passed in.
 *
 *     begin; snapshot, if there is one; for each feed after it: feed, batches ..., feed_end; end
 */
typedef struct recovery {
    const iron__store_plan *plan;
    iron_engine *engine;         /* on the CPU; its nodes are right after recovery_end */
    iron__engine_summary at;     /* after the last row */
    iron__feed_row row;          /* the current one */
    uint64_t row_batches;        /* of the current row, so far */
    iron__contribution row_sum;  /* the same */
    iron__contribution *waiting; /* IRON_BLOCK_BATCHES: many are replayed at once */
    size_t waiting_count;
    uint64_t snapshot_feeds, replayed; /* feeds in the snapshot; batches after it */
    bool is_without_nodes;             /* they are known from the next snapshot on */
} recovery;

static iron_status recovery_begin(recovery *r, const iron__store_plan *plan, iron_error *err) {
    iron_report report = {.struct_size = sizeof report};

    *r = (recovery){.plan = plan};
    IRON_TRY(IRON_NEW(&r->waiting, IRON_BLOCK_BATCHES, "batches to replay", err));
    IRON_TRY(iron__store_plan_engine(plan, IRON_PLAN_CPU, &r->engine, err));
    IRON_TRY(iron_engine_report(r->engine, &report, err));
    r->at.state = report.state;
    return IRON_OK;
}

static void recovery_free(recovery *r) {
    iron_engine_destroy(r->engine);
    free(r->waiting);
}

/* Does the parsed state match the snapshot's row and the feed's? Then it is the engine's. */
static iron_status use_snapshot(recovery *r, const iron__snapshot_row *snapshot,
                                const iron__engine_summary *want, iron_engine *parsed,
                                iron_error *err) {
    const iron_config *a = iron_engine_config(parsed), *b = iron_engine_config(r->engine);
    iron_report report = {.struct_size = sizeof report};
    iron__checkpoint found;

    IRON_FAIL_IF(
        a->nodes != b->nodes || a->vocab != b->vocab || a->batch != b->batch ||
            a->positions != b->positions || !a->with_seal || a->lattice_count != b->lattice_count ||
            memcmp(a->lattice, b->lattice, a->lattice_count * sizeof a->lattice[0]) != 0,
        err, IRON_E_FORMAT,
        "engine %s: the snapshot after feed %" PRIu64 " is of another configuration" RESTORE,
        r->plan->name, snapshot->number);
    IRON_TRY(iron_engine_report(parsed, &report, err));
    IRON_TRY(iron__engine_checkpoint(parsed, &found, err));
    IRON_FAIL_IF(report.state != snapshot->state || report.state != want->state, err, IRON_E_FORMAT,
                 "engine %s: the snapshot after feed %" PRIu64 " has state %016" PRIx64
                 " and should have %016" PRIx64 RESTORE,
                 r->plan->name, snapshot->number, report.state, want->state);
    IRON_FAIL_IF(!iron__contributions_equal(&found.closed, &want->checkpoint.closed) ||
                     found.batches != want->checkpoint.batches ||
                     memcmp(&found.seal, &want->checkpoint.seal, sizeof found.seal) != 0,
                 err, IRON_E_FORMAT,
                 "engine %s: the snapshot after feed %" PRIu64
                 " has other totals than the feed" RESTORE,
                 r->plan->name, snapshot->number);
    return iron__engine_restore(r->engine, &found, iron_engine_xor_accumulators(parsed),
                                iron_engine_potentials(parsed), err);
}

/* `last` is the feed that the snapshot was taken after; NULL for number 0. */
static iron_status recovery_snapshot(recovery *r, const iron__snapshot_row *snapshot,
                                     const iron__feed_row *last, iron_error *err) {
    char name[100 + IRON_ENGINE_NAME_MAX];
    const iron__engine_summary want = last ? last->after : r->at;
    iron_engine *parsed = NULL;
    iron_status status;

    IRON_FAIL_IF(want.feeds != snapshot->number, err, IRON_E_FORMAT,
                 "engine %s: there is a snapshot after feed %" PRIu64 ", but no such feed" RESTORE,
                 r->plan->name, snapshot->number);
    snprintf(name, sizeof name, "the snapshot of engine %s after feed %" PRIu64, r->plan->name,
             snapshot->number);
    IRON_TRY(iron__state_parse(name, snapshot->bytes, snapshot->count,
                               iron_engine_config(r->engine), &parsed, err));
    status = use_snapshot(r, snapshot, &want, parsed, err);
    iron_engine_destroy(parsed);
    r->at = want;
    r->snapshot_feeds = snapshot->number;
    return status;
}

static iron_status recovery_feed(recovery *r, const iron__feed_row *row, iron_error *err) {
    IRON_TRY(check_follows(row, &r->at, r->plan, err));
    r->row = *row;
    r->row_batches = 0;
    r->row_sum = iron__contribution_neutral();
    return IRON_OK;
}

/* The seal does not depend on batches: replaying checks its number of tokens only. */
static iron_status replay_waiting(recovery *r, iron_error *err) {
    uint64_t tokens = r->engine->closed.count;
    iron__seal seal;

    if (r->is_without_nodes)
        r->waiting_count = 0;
    for (size_t k = 0; k < r->waiting_count; k++)
        tokens += r->waiting[k].count;
    seal = iron__seal_of_count(tokens);
    IRON_TRY(iron__engine_replay(r->engine, r->waiting, r->waiting_count, &seal, err));
    r->replayed += r->waiting_count;
    r->waiting_count = 0;
    return IRON_OK;
}

/* The next `count` batches of the feed. */
static iron_status recovery_batches(recovery *r, const unsigned char *bytes, size_t count,
                                    iron_error *err) {
    IRON_FAIL_IF(count > r->row.batches - r->row_batches, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " has more than its %" PRIu64 " batches" RESTORE,
                 r->plan->name, r->row.number, r->row.batches);
    for (size_t k = 0; k < count; k++) {
        uint64_t tokens = batch_tokens(&r->row, r->plan->batch, r->row_batches++);
        iron__contribution batch = iron__batch_decode(bytes + k * IRON_BATCH_BYTES, tokens);

        if (r->waiting_count == IRON_BLOCK_BATCHES)
            IRON_TRY(replay_waiting(r, err));
        r->waiting[r->waiting_count++] = batch;
        r->row_sum = iron__contribution_merge(r->row_sum, batch);
    }
    return IRON_OK;
}

static iron_status recovery_feed_end(recovery *r, iron_error *err) {
    const iron__feed_row *row = &r->row;

    IRON_FAIL_IF(r->row_batches != row->batches ||
                     !iron__contributions_equal(&r->row_sum, &row->fed),
                 err, IRON_E_FORMAT,
                 "engine %s: the batches of feed %" PRIu64 " do not add up to its totals" RESTORE,
                 r->plan->name, row->number);
    r->at = row->after;
    r->row.batch_bytes = NULL;
    return IRON_OK;
}

static iron_status recovery_end(recovery *r, iron_error *err) {
    iron__hashed_nodes nodes;

    IRON_TRY(replay_waiting(r, err));
    nodes = (iron__hashed_nodes){iron_engine_xor_accumulators(r->engine),
                                 iron_engine_potentials(r->engine), 0};
    iron__nodes_hash_many(&nodes, 1, (uint32_t)r->plan->nodes);
    IRON_FAIL_IF(nodes.hash != r->at.state, err, IRON_E_FORMAT,
                 "engine %s: its state after feed %" PRIu64 " is %016" PRIx64
                 " and should be %016" PRIx64 RESTORE,
                 r->plan->name, r->at.feeds, nodes.hash, r->at.state);
    return IRON_OK;
}

/* Reading the tables. */

static iron_status read_ledger(iron__database *db, iron__store_ledger *ledger, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_LEDGER_READ, IRON_NO_WORDS, err);
    bool found, is_right;

    IRON_TRY(iron__sql_step(db, s, &found, "read the ledger", err));
    IRON_FAIL_IF(!found, err, IRON_E_FORMAT, "%.120s has lost its ledger; restore a backup",
                 db->path);
    *ledger = (iron__store_ledger){iron__column_word(s, 0), iron__column_word(s, 1),
                                   iron__column_word(s, 2)};
    is_right = iron__column_word(s, 3) == iron__ledger_check(ledger);
    sqlite3_reset(s);
    IRON_FAIL_IF(!is_right, err, IRON_E_FORMAT, "the ledger of %.120s is damaged; restore a backup",
                 db->path);
    return IRON_OK;
}

static bool read_engine(sqlite3_stmt *s, iron__engine_row *row) {
    iron__store_plan *p = &row->plan;
    size_t lattice_bytes = (size_t)sqlite3_column_bytes(s, 6);
    const void *lattice = sqlite3_column_blob(s, 6);

    *row = (iron__engine_row){iron__column_word(s, 0), iron__column_word(s, 10), {.nodes = 0}};
    p->nodes = iron__column_word(s, 2);
    p->vocab = iron__column_word(s, 3);
    p->batch = iron__column_word(s, 4);
    p->positions = (iron_positions)sqlite3_column_int(s, 5);
    p->device = (uint32_t)iron__column_word(s, 9);
    if (lattice_bytes > sizeof p->lattice || lattice_bytes % sizeof p->lattice[0] != 0)
        return false;
    if (lattice_bytes > 0)
        memcpy(p->lattice, lattice, lattice_bytes);
    p->lattice_count = (uint32_t)(lattice_bytes / sizeof p->lattice[0]);
    return iron__column_text(s, 1, p->name, sizeof p->name) &&
           iron__column_text(s, 7, p->mode, sizeof p->mode) &&
           iron__column_text(s, 8, p->backend, sizeof p->backend) && p->vocab >= 2 &&
           p->batch >= 1 && iron__column_word(s, 11) == iron__engine_row_check(row);
}

/* All engines in a malloc'ed array, verified one by one, and together by the ledger. */
static iron_status read_engines(iron__database *db, const iron__store_ledger *ledger,
                                iron__engine_row **rows, size_t *count, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_ENGINES, IRON_NO_WORDS, err);
    uint64_t check = 0;
    iron_status status = IRON_NEW(rows, ledger->engines, "the engines", err);
    bool found = true;

    for (*count = 0; status == IRON_OK; ++*count) {
        status = iron__sql_step(db, s, &found, "read the engines", err);
        if (status != IRON_OK || !found)
            break;
        if (*count == ledger->engines || !read_engine(s, &(*rows)[*count]))
            status =
                iron__fail(err, IRON_E_FORMAT, 0,
                           "the row of engine %" PRIu64 " in %.120s is damaged; restore a backup",
                           iron__column_word(s, 0), db->path);
        check ^= iron__column_word(s, 11);
    }
    sqlite3_reset(s);
    if (status == IRON_OK && (*count != ledger->engines || check != ledger->engines_check))
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.120s holds %zu engines and should hold %" PRIu64
                            ", or others; it is damaged: restore a backup",
                            db->path, *count, ledger->engines);
    if (status != IRON_OK) {
        free(*rows);
        *rows = NULL;
    }
    return status;
}

/* A snapshot of an engine, if there is one: the newest, or the one after a feed. */
static iron_status read_snapshot(iron__database *db, uint64_t engine, uint64_t feed,
                                 iron__snapshot_row *row, bool *found, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_SNAPSHOT_READ,
                                      IRON_WORDS(engine, feed, feed ? feed : INT64_MAX), err);

    IRON_TRY(iron__sql_step(db, s, found, "read a snapshot", err));
    if (!*found)
        return IRON_OK;
    *row = (iron__snapshot_row){engine, iron__column_word(s, 0), iron__column_word(s, 1),
                                sqlite3_column_blob(s, 2), (size_t)sqlite3_column_bytes(s, 2)};
    IRON_FAIL_IF(!row->bytes || iron__column_word(s, 3) != iron__snapshot_check(row), err,
                 IRON_E_FORMAT,
                 "the snapshot of engine %" PRIu64 " after feed %" PRIu64
                 " in %.100s is damaged; restore a backup",
                 engine, row->number, db->path);
    return IRON_OK;
}

/* The bytes of the feed's batches from `index` on, up to the end of a block or of the row. */
static iron_status read_batches(iron__database *db, const iron__feed_row *row, uint64_t index,
                                const unsigned char **bytes, uint64_t *count, iron_error *err) {
    const uint64_t in_blocks = batches_in_blocks(row), number = index / IRON_BLOCK_BATCHES;
    sqlite3_stmt *s;
    bool found;

    if (index >= in_blocks) {
        *bytes = row->batch_bytes + (index - in_blocks) * IRON_BATCH_BYTES;
        *count = row->batches - index;
        return IRON_OK;
    }
    s = iron__sql_ready(db, IRON_SQL_BLOCK_READ, IRON_WORDS(row->upload, number), err);
    IRON_TRY(iron__sql_step(db, s, &found, "read a block", err));
    *bytes = found ? sqlite3_column_blob(s, 0) : NULL;
    IRON_FAIL_IF(!*bytes || sqlite3_column_bytes(s, 0) != (int)IRON_BLOCK_BYTES ||
                     iron__column_word(s, 1) != iron__block_check(row->upload, number, *bytes),
                 err, IRON_E_FORMAT,
                 "block %" PRIu64 " of upload %" PRIu64 " is %s in %.100s; restore a backup",
                 number, row->upload, found ? "damaged" : "missing", db->path);
    *bytes += index % IRON_BLOCK_BATCHES * IRON_BATCH_BYTES;
    *count = IRON_BLOCK_BATCHES - index % IRON_BLOCK_BATCHES;
    return IRON_OK;
}

/* Loading. */

static iron_status recover_snapshot(recovery *r, iron__database *db, uint64_t engine,
                                    iron_error *err) {
    iron__snapshot_row snapshot;
    iron__feed_row last;
    bool found, has_last = false;

    IRON_TRY(read_snapshot(db, engine, 0, &snapshot, &found, err));
    if (!found)
        return IRON_OK;
    if (snapshot.number > 0)
        IRON_TRY(iron__feed_by_number(db, engine, snapshot.number, &last, &has_last, err));
    return recovery_snapshot(r, &snapshot, has_last ? &last : NULL, err);
}

static iron_status recover_feed(iron__store *store, recovery *r, const iron__feed_row *row,
                                iron_error *err) {
    const unsigned char *bytes;

    IRON_TRY(recovery_feed(r, row, err));
    for (uint64_t k = 0, count = 0; k < row->batches; k += count) {
        IRON_TRY(read_batches(store->db, row, k, &bytes, &count, err));
        IRON_TRY(recovery_batches(r, bytes, count, err));
        iron__store_report_loading(store);
    }
    return recovery_feed_end(r, err);
}

/* The snapshot and the feeds after it. */
static iron_status recover(iron__store *store, recovery *r, const iron__engine_row *row,
                           iron_error *err) {
    const uint64_t before = store->loading.batches;
    iron__feed_row feed;
    sqlite3_stmt *s;
    bool found = true;

    IRON_TRY(recovery_begin(r, &row->plan, err));
    r->at.changed_ms = row->created_ms;
    IRON_TRY(recover_snapshot(r, store->db, row->id, err));
    s = iron__sql_ready(store->db, IRON_SQL_FEEDS_AFTER, IRON_WORDS(row->id, r->at.feeds), err);
    while (found) {
        IRON_TRY(iron__feed_row_step(store->db, s, &feed, &found, err));
        if (found)
            IRON_TRY(recover_feed(store, r, &feed, err));
        store->loading.batches = before + r->replayed;
        iron__store_report_loading(store);
    }
    IRON_TRY(recovery_end(r, err));
    store->loading.batches = before + r->replayed;
    return IRON_OK;
}

static iron_status load_engine(iron__store *store, const iron__engine_row *row, iron_error *err) {
    iron__store_engine *entry;
    iron_engine *engine = NULL;
    recovery r;
    iron_status status = recover(store, &r, row, err);

    iron__database_reset(store->db);
    if (status == IRON_OK) {
        /* an engine for small bodies, in the recovered state; if that fails, feeds try again */
        if (iron__store_plan_engine(&row->plan, IRON_PLAN_SMALL, &engine, NULL) == IRON_OK &&
            iron__engine_restore(engine, &r.at.checkpoint, iron_engine_xor_accumulators(r.engine),
                                 iron_engine_potentials(r.engine), NULL) != IRON_OK) {
            iron_engine_destroy(engine);
            engine = NULL;
        }
        status = iron__store_engine_create(store, row, &r.at, r.engine, engine, &entry, err);
    }
    if (status == IRON_OK) {
        (void)iron__store_engine_open_device(entry, false, NULL);
        entry->snapshot_feeds = r.snapshot_feeds;
        entry->snapshot_batches = r.at.checkpoint.batches - r.replayed;
        iron__store_add_engine(store, entry);
    }
    recovery_free(&r);
    return status;
}

iron_status iron__store_load(iron__store *store, iron__store_ledger *ledger, iron_error *err) {
    iron__engine_row *rows = NULL;
    size_t count = 0;
    uint64_t upload = 0; /* the largest id */
    iron_status status;
    bool found;

    IRON_TRY(read_ledger(store->db, ledger, err));
    IRON_TRY(iron__runs_load(store, err));
    IRON_TRY(iron__sql_number(store->db, IRON_SQL_UPLOAD_LAST, IRON_NO_WORDS, &found, &upload,
                              "read the uploads", err));
    atomic_store(&store->next_upload, upload + 1);
    IRON_TRY(read_engines(store->db, ledger, &rows, &count, err));
    status = iron__store_reserve_list(store, count, err);
    store->planned_engines = count;
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        store->planned_nodes += rows[k].plan.nodes;
        store->loading.engine = rows[k].plan.name;
        store->loading.number = k + 1;
        store->loading.engines = count;
        status = load_engine(store, &rows[k], err);
    }
    store->loading.engine = NULL;
    free(rows);
    return status;
}

/* Verifying: all feeds from the first one on, with the state after each; and the newest snapshot.
 * If the first feeds were removed, states are compared from a snapshot on; before it, the rows
 * with each other. */

static iron_status verify_engine(iron__store *store, const iron__engine_row *row, recovery *r,
                                 iron_server_verified *seen, iron_error *err) {
    iron__snapshot_row snapshot;
    bool found = true, has_snapshot;
    iron__feed_row feed;
    recovery newest;
    iron_status status;
    sqlite3_stmt *s;

    IRON_TRY(recovery_begin(r, &row->plan, err));
    assert(r->engine);
    s = iron__sql_ready(store->db, IRON_SQL_FEEDS_AFTER, IRON_WORDS(row->id, 0), err);
    for (;;) {
        const uint64_t before = r->at.feeds;

        IRON_TRY(iron__feed_row_step(store->db, s, &feed, &found, err));
        if (!found)
            break;
        if (r->at.feeds == 0 && feed.number > 1) {
            r->at = before_feed(&feed);
            r->is_without_nodes = true;
        }
        IRON_TRY(recover_feed(store, r, &feed, err));
        if (r->is_without_nodes) {
            IRON_TRY(replay_waiting(r, err));
            IRON_TRY(read_snapshot(store->db, row->id, feed.number, &snapshot, &has_snapshot, err));
            if (has_snapshot)
                IRON_TRY(recovery_snapshot(r, &snapshot, &feed, err));
            r->is_without_nodes = !has_snapshot;
        } else {
            IRON_TRY(recovery_end(r, err));
        }
        seen->removed += feed.number - before - 1;
        seen->feeds++;
        seen->batches += feed.batches;
    }
    IRON_FAIL_IF(r->is_without_nodes, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64
                 " is missing, and there is no snapshot after it" RESTORE,
                 r->plan->name, seen->removed);
    status = recovery_begin(&newest, &row->plan, err);
    if (status == IRON_OK)
        status = recover_snapshot(&newest, store->db, row->id, err);
    recovery_free(&newest);
    return status;
}

iron_status iron__store_verify(iron__store *store, iron_server_verified *found, iron_error *err) {
    iron__store_ledger ledger = {0};
    iron__engine_row *rows = NULL;
    size_t count = 0;
    iron_status status;

    IRON_TRY(read_ledger(store->db, &ledger, err));
    status = read_engines(store->db, &ledger, &rows, &count, err);
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        recovery r = {0};

        status = verify_engine(store, &rows[k], &r, found, err);
        found->engines++;
        recovery_free(&r);
    }
    free(rows);
    return status == IRON_OK ? iron__runs_verify(store, found, err) : status;
}

/* History. Feeds have no index by batch: their numbers have no gaps and their first batches only
 * grow, so the feed of a batch is found by binary search. */

typedef struct history {
    iron__store_engine *entry;
    iron__database *db;
    iron__batch_row *rows;
    size_t room, count;
    uint64_t first, next, end; /* batches */
} history;

static bool wants_more(const history *h) { return h->count < h->room && h->next < h->end; }

static iron_status history_feed(const history *h, uint64_t number, iron__feed_row *row,
                                iron_error *err) {
    bool found;

    IRON_TRY(iron__feed_by_number(h->db, h->entry->id, number, row, &found, err));
    IRON_FAIL_IF(!found, err, IRON_E_FORMAT, "engine %s: feed %" PRIu64 " is missing" RESTORE,
                 h->entry->plan.name, number);
    return IRON_OK;
}

static iron_status read_history(history *h, uint64_t feeds, iron_error *err) {
    const uint64_t batch = h->entry->plan.batch;
    sqlite3_stmt *s = iron__sql_ready(h->db, IRON_SQL_FEED_FIRST, IRON_WORDS(h->entry->id), err);
    uint64_t number, high = feeds;
    iron__engine_summary before;
    iron__feed_row row;
    bool found;

    /* The first feed that is kept. Its statement is not reset: the writer may remove feeds
     * meanwhile, but they are there for this connection as long as it is reading. */
    IRON_TRY(iron__sql_step(h->db, s, &found, "read the first feed", err));
    number = found ? iron__column_word(s, 0) : 1;
    IRON_TRY(history_feed(h, number, &row, err));
    h->first = row.first_batch;
    if (h->next < h->first)
        h->next = h->first;
    while (wants_more(h) && number < high) { /* the last feed that begins at or before the batch */
        uint64_t middle = number + (high - number + 1) / 2;

        IRON_TRY(history_feed(h, middle, &row, err));
        if (row.first_batch <= h->next)
            number = middle;
        else
            high = middle - 1;
    }
    for (bool is_first = true; wants_more(h); number++, is_first = false) {
        uint64_t index, count = 0;
        const unsigned char *bytes;

        IRON_TRY(history_feed(h, number, &row, err));
        if (is_first) /* what was before it is not read: only its own numbers are compared */
            before = before_feed(&row);
        IRON_TRY(check_follows(&row, &before, &h->entry->plan, err));
        IRON_FAIL_IF(row.first_batch > h->next ||
                         (row.batches > 0 && h->next >= row.first_batch + row.batches),
                     err, IRON_E_FORMAT,
                     "engine %s: batch %" PRIu64 " is not in feed %" PRIu64 RESTORE,
                     h->entry->plan.name, h->next, row.number);
        for (index = h->next - row.first_batch; index < row.batches && wants_more(h);) {
            IRON_TRY(read_batches(h->db, &row, index, &bytes, &count, err));
            for (; count > 0 && wants_more(h); count--, index++, bytes += IRON_BATCH_BYTES) {
                uint64_t tokens = batch_tokens(&row, batch, index);
                iron__contribution c = iron__batch_decode(bytes, tokens);

                h->rows[h->count++] = (iron__batch_row){.batch = h->next++,
                                                        .position = row.position + index * batch,
                                                        .tokens = tokens,
                                                        .sum = c.sum,
                                                        .xors = c.xors};
            }
        }
        before = row.after;
    }
    return IRON_OK;
}

iron_status iron__store_engine_batches(iron__store_engine *entry, uint64_t since,
                                       iron__batch_row *rows, size_t room, size_t *count,
                                       uint64_t *first, iron_error *err) {
    iron__store *store = entry->store;
    history h = {.entry = entry, .db = store->reader, .rows = rows, .room = room, .next = since};
    iron_status status = IRON_OK;
    uint64_t feeds;

    pthread_mutex_lock(&entry->lock);
    h.end = entry->published.checkpoint.batches;
    feeds = entry->published.feeds;
    pthread_mutex_unlock(&entry->lock);
    pthread_mutex_lock(&store->read_lock);
    if (feeds > 0)
        status = read_history(&h, feeds, err);
    iron__database_reset(store->reader);
    pthread_mutex_unlock(&store->read_lock);
    *count = status == IRON_OK ? h.count : 0;
    if (first)
        *first = h.first;
    if (status != IRON_OK && iron__store_engine_is_deleted(entry)) /* its rows are being removed */
        status = iron__fail(err, IRON_E_STATE, 0, "engine %s was deleted", entry->plan.name);
    return status;
}
