/* SPDX-License-Identifier: MIT */
/* inspection.c: see inspection.h. */
#include "store/inspection.h"

#include "core/fail.h"

#include <stdio.h>
#include <string.h>

/* Steps of SQLite's machine between two looks at the clock on the wall: some milliseconds. */
#define STEPS 100000

/* The first column of a statement's first row, as a number and as text. */
static iron_status ask(iron__database *db, const char *sql, sqlite3_int64 *number, char *text,
                       size_t room, iron_error *err) {
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL);
    iron_status status = IRON_OK;

    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        *number = sqlite3_column_int64(s, 0);
        snprintf(text, room, "%s", (const char *)sqlite3_column_text(s, 0));
    } else if ((code & 0xff) == SQLITE_INTERRUPT) {
        status = iron__fail(err, IRON_E_CANCELLED, 0, "the inspection was ended");
    } else {
        status = iron__database_fail(db, "inspect the file", err);
    }
    sqlite3_finalize(s);
    return status;
}

iron_status iron__database_inspect(iron__database *db, iron_error *err) {
    sqlite3_int64 number;
    char said[100];

    IRON_TRY(ask(db, "PRAGMA integrity_check(1)", &number, said, sizeof said, err));
    IRON_FAIL_IF(strcmp(said, "ok") != 0, err, IRON_E_FORMAT,
                 "%.90s is damaged (%s); restore a backup", db->path, said);
    return IRON_OK;
}

static iron_status is_small(iron__store *store, bool *answer, iron_error *err) {
    sqlite3_int64 pages = 0, page_bytes = 0;
    char text[32];

    IRON_TRY(ask(store->written, "PRAGMA page_count", &pages, text, sizeof text, err));
    IRON_TRY(ask(store->written, "PRAGMA page_size", &page_bytes, text, sizeof text, err));
    *answer = (uint64_t)pages * (uint64_t)page_bytes <= store->options.inspected_bytes;
    return IRON_OK;
}

static int goes_on(void *context) {
    iron__store_tell_loading(context);
    return 0;
}

iron_status iron__inspect_now(iron__store *store, iron_error *err) {
    iron_status status;

    IRON_TRY(is_small(store, &store->is_inspected, err));
    if (!store->is_inspected)
        return IRON_OK;
    sqlite3_progress_handler(store->written->handle, STEPS, goes_on, store);
    status = iron__database_inspect(store->written, err);
    sqlite3_progress_handler(store->written->handle, 0, NULL, NULL);
    return status;
}

static int is_ended(void *context) {
    iron__store *store = context;

    return atomic_load(&store->inspection_ends);
}

static void *inspect_on(void *context) {
    iron__store *store = context;
    iron__database *db = NULL;
    iron_error why = {0};
    iron_status status = iron__database_open(store->directory, false, &db, &why);

    if (status == IRON_OK) {
        sqlite3_progress_handler(db->handle, STEPS, is_ended, store);
        status = iron__database_inspect(db, &why);
    }
    if (status != IRON_OK && status != IRON_E_CANCELLED)
        iron__store_fail(store, &why);
    iron__database_close(db, false);
    atomic_store(&store->inspection_is_over, true);
    return NULL;
}

iron_status iron__inspection_start(iron__store *store, iron_error *err) {
    if (store->is_inspected)
        return IRON_OK;
    IRON_FAIL_IF(pthread_create(&store->inspector, NULL, inspect_on, store) != 0, err, IRON_E_NOMEM,
                 "no thread can be made for the inspection of the database");
    store->has_inspector = true;
    return IRON_OK;
}

void iron__inspection_stop(iron__store *store) {
    atomic_store(&store->inspection_ends, true);
    if (store->has_inspector)
        pthread_join(store->inspector, NULL);
    store->has_inspector = false;
}
