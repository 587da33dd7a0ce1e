/* SPDX-License-Identifier: MIT */
/*
 * loading.c: every engine of the database, alive again. How is recovery.h's business; here the rows
 * are brought to it, and the engine is put where the plan wants it. If that place is not there now,
 * a GPU that was taken out, the engine can be looked at and not be fed.
 */
#include "core/fail.h"
#include "store/inside.h"
#include "store/recovery.h"

#include <stdlib.h>

void iron__store_tell_loading(iron__store *store) {
    if (store->options.loading)
        store->options.loading(store->options.loading_context, &store->loading);
}

static iron_status bring_snapshot(iron__recovery *r, iron__database *db, uint64_t engine,
                                  iron_error *err) {
    iron__snapshot_row snapshot;
    iron__feed_row last;
    bool found, has_last = false;

    IRON_TRY(iron__snapshot_newest(db, engine, &snapshot, &found, err));
    if (!found)
        return IRON_OK;
    if (snapshot.number > 0)
        IRON_TRY(iron__feed_by_number(db, engine, snapshot.number, &last, &has_last, err));
    return iron__recovery_snapshot(r, &snapshot, has_last ? &last : NULL, err);
}

static iron_status bring_feed(iron__store *store, iron__recovery *r, iron__database *db,
                              const iron__feed_row *row, iron_error *err) {
    uint64_t blocks = iron__row_in_blocks(row) / IRON_BLOCK_BATCHES;

    IRON_TRY(iron__recovery_feed(r, row, err));
    for (uint64_t k = 0; k < blocks; k++) {
        const unsigned char *bytes;

        IRON_TRY(iron__block_read(db, row->upload, k, &bytes, err));
        IRON_TRY(iron__recovery_batches(r, bytes, IRON_BLOCK_BATCHES, err));
        iron__store_tell_loading(store);
    }
    IRON_TRY(iron__recovery_batches(r, row->batch_bytes, row->batch_bytes_count / IRON_BATCH_BYTES,
                                    err));
    return iron__recovery_feed_end(r, err);
}

static iron_status recover(iron__store *store, iron__recovery *r, iron__database *db,
                           const iron__engine_row *row, iron_error *err) {
    const uint64_t before = store->loading.batches;
    iron__feed_row feed;
    bool found = true;

    IRON_TRY(iron__recovery_begin(r, &row->plan, err));
    r->at.changed_ms = row->created_ms;
    IRON_TRY(bring_snapshot(r, db, row->id, err));
    IRON_TRY(iron__feeds_begin(db, row->id, r->at.feeds, err));
    while (found) {
        IRON_TRY(iron__feeds_next(db, &feed, &found, err));
        if (found)
            IRON_TRY(bring_feed(store, r, db, &feed, err));
        store->loading.batches = before + r->replayed;
        iron__store_tell_loading(store);
    }
    return iron__recovery_end(r, err);
}

/* The engine in its place, or NULL with the reason. */
static iron_engine *place(const iron__recovery *r, iron_error *why) {
    iron_engine *engine = NULL;
    iron_config config;

    iron__plan_config(r->plan, &config);
    if (iron_engine_create(&config, &engine, why) == IRON_OK &&
        iron__engine_stand(engine, &r->at.standing, iron_engine_xor_accumulators(r->engine),
                           iron_engine_potentials(r->engine), why) == IRON_OK)
        return engine;
    iron_engine_destroy(engine);
    return NULL;
}

static iron_status revive(iron__store *store, const iron__recovery *r, const iron__engine_row *row,
                          iron_error *err) {
    iron_error why = {0};
    iron_engine *engine = place(r, &why);
    iron__kept *kept;

    IRON_TRY(iron__kept_create(store, row, engine, &why, &r->at,
                               iron_engine_xor_accumulators(r->engine),
                               iron_engine_potentials(r->engine), &kept, err));
    iron__plan_take_lattice(&kept->in_force, iron_engine_config(r->engine));
    kept->snapshot_feeds = r->snapshot_feeds;
    kept->snapshot_batches = r->at.standing.batches - r->replayed;
    iron__list_add(store, kept);
    return IRON_OK;
}

static iron_status load_one(iron__store *store, iron__database *db, const iron__engine_row *row,
                            iron_error *err) {
    iron__recovery r;
    iron_status status = recover(store, &r, db, row, err);

    iron__database_rest(db);
    if (status == IRON_OK)
        status = revive(store, &r, row, err);
    store->replayed += r.replayed;
    iron__recovery_free(&r);
    return status;
}

iron_status iron__store_load(iron__store *store, iron__database *db, iron__ledger *ledger,
                             iron_error *err) {
    iron__engine_row *rows = NULL;
    size_t count = 0;
    uint64_t upload = 0;
    iron_status status;

    IRON_TRY(iron__ledger_read(db, ledger, err));
    IRON_TRY(iron__upload_last(db, &upload, err));
    atomic_store(&store->next_upload, upload + 1);
    IRON_TRY(iron__engines_read(db, ledger, &rows, &count, err));
    status = iron__list_room(store, count, err);
    store->planned_engines = count;
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        store->planned_nodes += rows[k].plan.nodes;
        store->loading.engine = rows[k].plan.name;
        store->loading.number = k + 1;
        store->loading.engines = count;
        status = load_one(store, db, &rows[k], err);
    }
    store->loading.engine = NULL;
    free(rows);
    return status;
}
