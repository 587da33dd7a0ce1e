/* SPDX-License-Identifier: MIT */
/* tables.c: blocks, snapshots, engines and the ledger. Feeds are in table_feeds.c. */
#include "store/tables.h"

#include "core/fail.h"
#include "store/check_word.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t iron__ledger_check(const iron__ledger *ledger) {
    uint64_t check = iron__check_word(IRON_DATABASE_ID, ledger->engines);

    return iron__check_word(iron__check_word(check, ledger->engines_check), ledger->next_engine);
}

iron_status iron__ledger_read(iron__database *db, iron__ledger *ledger, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_LEDGER_READ, err);
    bool found, is_right;

    if (!s)
        return IRON_E_FORMAT; /* a table of ours is not there */
    IRON_TRY(iron__sql_step(db, s, &found, "read the ledger", err));
    IRON_FAIL_IF(!found, err, IRON_E_FORMAT, "%.120s has lost its ledger; restore a backup",
                 db->path);
    *ledger =
        (iron__ledger){iron__column_word(s, 0), iron__column_word(s, 1), iron__column_word(s, 2)};
    is_right = iron__column_word(s, 3) == iron__ledger_check(ledger);
    sqlite3_reset(s);
    IRON_FAIL_IF(!is_right, err, IRON_E_FORMAT, "the ledger of %.120s is damaged; restore a backup",
                 db->path);
    return IRON_OK;
}

iron_status iron__ledger_write(iron__database *db, const iron__ledger *ledger, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_LEDGER_WRITE, err);

    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, ledger->engines);
    iron__bind_word(s, 2, ledger->engines_check);
    iron__bind_word(s, 3, ledger->next_engine);
    iron__bind_word(s, 4, iron__ledger_check(ledger));
    return iron__sql_run(db, s, "write the ledger", err);
}

iron_status iron__engine_insert(iron__database *db, const iron__engine_row *row, iron_error *err) {
    const iron__plan *p = &row->plan;
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_ENGINE_INSERT, err);

    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, row->id);
    sqlite3_bind_text(s, 2, p->name, -1, SQLITE_STATIC);
    iron__bind_word(s, 3, p->nodes);
    iron__bind_word(s, 4, p->vocab);
    iron__bind_word(s, 5, p->batch);
    iron__bind_word(s, 6, (uint64_t)p->positions);
    sqlite3_bind_blob(s, 7, p->lattice, (int)(p->lattice_count * sizeof p->lattice[0]),
                      SQLITE_STATIC);
    sqlite3_bind_text(s, 8, p->mode, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 9, p->backend, -1, SQLITE_STATIC);
    iron__bind_word(s, 10, p->device);
    iron__bind_word(s, 11, row->created_ms);
    iron__bind_word(s, 12, iron__plan_check(p, row->id, row->created_ms));
    return iron__sql_run(db, s, "write an engine", err);
}

iron_status iron__engine_delete(iron__database *db, uint64_t id, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_ENGINE_DELETE, err);

    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, id);
    IRON_TRY(iron__sql_run(db, s, "delete an engine", err));
    IRON_FAIL_IF(sqlite3_changes(db->handle) != 1, err, IRON_E_FORMAT,
                 "engine %" PRIu64 " is not in %.120s any more; restore a backup", id, db->path);
    return IRON_OK;
}

/* Text of a column, if it fits and has no zero in it. */
static bool take_text(sqlite3_stmt *s, int at, char *room, size_t bytes) {
    const char *text = (const char *)sqlite3_column_text(s, at);
    size_t length = (size_t)sqlite3_column_bytes(s, at);

    if (!text || length >= bytes || strlen(text) != length)
        return false;
    memcpy(room, text, length + 1);
    return true;
}

/* False for what cannot be a plan; the rest is left to the check word. */
static bool take_engine(sqlite3_stmt *s, iron__engine_row *row) {
    iron__plan *p = &row->plan;
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
    return take_text(s, 1, p->name, sizeof p->name) && take_text(s, 7, p->mode, sizeof p->mode) &&
           take_text(s, 8, p->backend, sizeof p->backend) && p->vocab >= 2 && p->batch >= 1;
}

static iron_status read_engines(iron__database *db, sqlite3_stmt *s, uint64_t room,
                                iron__engine_row *rows, size_t *count, uint64_t *check,
                                iron_error *err) {
    bool found;

    for (;;) {
        iron__engine_row row;

        IRON_TRY(iron__sql_step(db, s, &found, "read the engines", err));
        if (!found)
            return IRON_OK;
        IRON_FAIL_IF(!take_engine(s, &row) || *count == room ||
                         iron__column_word(s, 11) !=
                             iron__plan_check(&row.plan, row.id, row.created_ms),
                     err, IRON_E_FORMAT,
                     "the row of engine %" PRIu64 " in %.120s is damaged; restore a backup",
                     iron__column_word(s, 0), db->path);
        *check ^= iron__column_word(s, 11);
        rows[(*count)++] = row;
    }
}

iron_status iron__engines_read(iron__database *db, const iron__ledger *ledger,
                               iron__engine_row **rows, size_t *count, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_ENGINES, err);
    uint64_t check = 0;
    iron_status status;

    *count = 0;
    *rows = NULL;
    if (!s)
        return IRON_E_FORMAT;
    *rows = calloc(ledger->engines + 1, sizeof **rows);
    IRON_FAIL_IF(!*rows, err, IRON_E_NOMEM, "out of memory: %" PRIu64 " engines", ledger->engines);
    status = read_engines(db, s, ledger->engines, *rows, count, &check, err);
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

iron_status iron__block_insert(iron__database *db, uint64_t upload, uint64_t number,
                               const unsigned char *bytes, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_BLOCK_INSERT, err);

    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, upload);
    iron__bind_word(s, 2, number);
    sqlite3_bind_blob(s, 3, bytes, (int)IRON_BLOCK_BYTES, SQLITE_STATIC);
    iron__bind_word(s, 4, iron__block_check(upload, number, bytes, IRON_BLOCK_BYTES));
    return iron__sql_run(db, s, "write a block", err);
}

iron_status iron__block_read(iron__database *db, uint64_t upload, uint64_t number,
                             const unsigned char **bytes, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_BLOCK_READ, err);
    bool found;

    *bytes = NULL;
    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, upload);
    iron__bind_word(s, 2, number);
    IRON_TRY(iron__sql_step(db, s, &found, "read a block", err));
    if (found)
        *bytes = sqlite3_column_blob(s, 0);
    IRON_FAIL_IF(!*bytes || sqlite3_column_bytes(s, 0) != (int)IRON_BLOCK_BYTES ||
                     iron__column_word(s, 1) !=
                         iron__block_check(upload, number, *bytes, IRON_BLOCK_BYTES),
                 err, IRON_E_FORMAT,
                 "block %" PRIu64 " of upload %" PRIu64 " is %s in %.100s; restore a backup",
                 number, upload, found ? "damaged" : "missing", db->path);
    return IRON_OK;
}

iron_status iron__upload_last(iron__database *db, uint64_t *upload, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_UPLOAD_LAST, err);
    bool found;

    *upload = 0;
    if (!s)
        return IRON_E_FORMAT;
    IRON_TRY(iron__sql_step(db, s, &found, "read the uploads", err));
    if (found)
        *upload = iron__column_word(s, 0);
    sqlite3_reset(s);
    return IRON_OK;
}

iron_status iron__snapshot_insert(iron__database *db, const iron__snapshot_row *row,
                                  iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_SNAPSHOT_INSERT, err);

    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, row->engine);
    iron__bind_word(s, 2, row->number);
    iron__bind_word(s, 3, row->state);
    sqlite3_bind_blob(s, 4, row->bytes, (int)row->count, SQLITE_STATIC);
    iron__bind_word(s, 5, iron__snapshot_check(row));
    IRON_TRY(iron__sql_run(db, s, "write a snapshot", err));
    s = iron__sql_ready(db, IRON_SQL_SNAPSHOT_PRUNE, err);
    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, row->engine);
    return iron__sql_run(db, s, "remove old snapshots", err);
}

iron_status iron__snapshot_newest(iron__database *db, uint64_t engine, iron__snapshot_row *row,
                                  bool *found, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_SNAPSHOT_NEWEST, err);

    *found = false;
    if (!s)
        return IRON_E_FORMAT;
    iron__bind_word(s, 1, engine);
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
