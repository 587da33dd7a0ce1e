/* SPDX-License-Identifier: MIT */
/*
 * database.c: connections and statements. See database.h; how the file comes to be and what it must
 * be is in database_file.c.
 *
 * SQLite's own checkpoints are off: they hide their errors, and try a failed fsync again. Ours tell
 * (iron__database_checkpoint).
 */
#include "store/database.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MS 10000

static const char *const texts[] = {
#define SQL_TEXT(name, text) text,
    IRON_SQL_MAP(SQL_TEXT)
#undef SQL_TEXT
};

static bool is_damage(int code) {
    return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

iron_status iron__database_fail(iron__database *db, const char *doing, iron_error *err) {
    int code = sqlite3_extended_errcode(db->handle);
    const char *said = sqlite3_errmsg(db->handle);

    if (is_damage(code))
        return iron__fail(err, IRON_E_FORMAT, code, "%.90s is damaged (%.60s); restore a backup",
                          db->path, said);
    return iron__fail(err, IRON_E_IO, code,
                      "cannot %.40s in %.70s: %.60s (SQLite %d); mend the disk, then restart",
                      doing, db->path, said, code);
}

sqlite3_stmt *iron__sql_ready(iron__database *db, iron__sql which, iron_error *err) {
    sqlite3_stmt **statement = &db->statements[which];

    if (!*statement && sqlite3_prepare_v3(db->handle, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                          statement, NULL) != SQLITE_OK) {
        iron__database_fail(db, "prepare a statement", err);
        return NULL;
    }
    sqlite3_reset(*statement);
    sqlite3_clear_bindings(*statement);
    return *statement;
}

iron_status iron__sql_step(iron__database *db, sqlite3_stmt *statement, bool *has_row,
                           const char *doing, iron_error *err) {
    int code = sqlite3_step(statement);

    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return IRON_OK;
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement);
        return IRON_OK;
    }
    iron__database_fail(db, doing, err);
    sqlite3_reset(statement);
    return is_damage(code) ? IRON_E_FORMAT : IRON_E_IO;
}

iron_status iron__sql_run(iron__database *db, sqlite3_stmt *statement, const char *doing,
                          iron_error *err) {
    bool has_row;

    do
        IRON_TRY(iron__sql_step(db, statement, &has_row, doing, err));
    while (has_row);
    return IRON_OK;
}

iron_status iron__sql_do(iron__database *db, iron__sql which, const char *doing, iron_error *err) {
    sqlite3_stmt *statement = iron__sql_ready(db, which, err);

    return statement ? iron__sql_run(db, statement, doing, err) : IRON_E_IO;
}

void iron__database_rest(iron__database *db) {
    for (size_t k = 0; k < IRON_SQL_COUNT; k++)
        if (db->statements[k] && sqlite3_stmt_busy(db->statements[k]))
            sqlite3_reset(db->statements[k]);
}

iron_status iron__database_checkpoint(iron__database *db, int mode, bool *is_whole,
                                      iron_error *err) {
    int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, mode, NULL, NULL);

    if (is_whole)
        *is_whole = code == SQLITE_OK;
    if (code == SQLITE_OK || code == SQLITE_BUSY)
        return IRON_OK;
    return iron__database_fail(db, "bring the log into the file", err);
}

static int note_frames(void *context, sqlite3 *handle, const char *name, int frames) {
    iron__database *db = context;

    (void)handle;
    (void)name;
    db->wal_frames = frames;
    return SQLITE_OK;
}

static iron_status pragmas(iron__database *db, const char *text, iron_error *err) {
    if (sqlite3_exec(db->handle, text, NULL, NULL, NULL) != SQLITE_OK)
        return iron__database_fail(db, "set up the connection", err);
    return IRON_OK;
}

/* Is it in WAL mode now, as asked? SQLite says so only in the answer. */
static iron_status use_wal(iron__database *db, iron_error *err) {
    sqlite3_stmt *statement = NULL;
    bool is_wal = false;

    if (sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL) !=
        SQLITE_OK)
        return iron__database_fail(db, "use a log", err);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(statement, 0);

        is_wal = mode && strcmp(mode, "wal") == 0;
    }
    if (!is_wal && sqlite3_errcode(db->handle) == SQLITE_ROW)
        iron__fail(err, IRON_E_IO, 0,
                   "%.120s cannot have a write-ahead log there; use a local disk", db->path);
    else if (!is_wal)
        iron__database_fail(db, "use a log", err);
    sqlite3_finalize(statement);
    return is_wal ? IRON_OK : IRON_E_IO;
}

static iron_status set_up(iron__database *db, bool is_writer, iron_error *err) {
    bool is_whole;

    sqlite3_busy_timeout(db->handle, BUSY_MS);
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    IRON_TRY(use_wal(db, err));
    IRON_TRY(pragmas(db,
                     "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                     "PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY;"
                     "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF",
                     err));
    if (!is_writer)
        return pragmas(db, "PRAGMA query_only = ON", err);
    sqlite3_wal_hook(db->handle, note_frames, db);
    IRON_TRY(iron__database_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE, &is_whole, err));
    IRON_FAIL_IF(!is_whole, err, IRON_E_STATE,
                 "%.120s is being used by another program; end that one, then try again", db->path);
    return IRON_OK;
}

iron_status iron__database_open(const char *directory, bool is_writer, iron__database **out,
                                iron_error *err) {
    iron__database *db = calloc(1, sizeof *db);
    iron_status status = IRON_E_NOMEM;

    *out = NULL;
    if (!db || asprintf(&db->path, "%s/iron.db", directory) < 0) {
        free(db);
        IRON_FAIL(err, IRON_E_NOMEM, "out of memory: a connection to the database");
    }
    if (sqlite3_open_v2(db->path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
        SQLITE_OK)
        status = set_up(db, is_writer, err);
    else if (db->handle)
        status = iron__database_fail(db, "open the database", err);
    else
        iron__fail(err, status, 0, "out of memory: a connection to the database");
    if (status != IRON_OK)
        iron__database_close(db, false);
    else
        *out = db;
    return status;
}

void iron__database_close(iron__database *db, bool with_checkpoint) {
    if (!db)
        return;
    for (size_t k = 0; k < IRON_SQL_COUNT; k++)
        sqlite3_finalize(db->statements[k]);
    if (with_checkpoint)
        sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    sqlite3_close(db->handle);
    free(db->path);
    free(db);
}
