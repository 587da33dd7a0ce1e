/* SPDX-License-Identifier: MIT */
/* table_feeds.c: rows of feeds in and out of the database. */
#include "core/fail.h"
#include "store/tables.h"

#include <inttypes.h>
#include <string.h>

iron_status iron__feed_insert(iron__database *db, const iron__feed_row *row, iron_error *err) {
    const iron__standing *after = &row->after.standing;
    const uint64_t words[] = {row->engine,          row->number,         row->position,
                              row->fed.count,       row->fed.xors,       row->fed.sum,
                              row->first_batch,     row->batches,        after->closed.xors,
                              after->closed.sum,    row->after.state,    after->seal.words.t,
                              after->seal.words.a,  after->seal.words.b, after->seal.carry[0],
                              after->seal.carry[1], after->seal.carry[2]};
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_FEED_INSERT, err);

    if (!s)
        return IRON_E_IO;
    for (int k = 0; k < 17; k++)
        iron__bind_word(s, k + 1, words[k]);
    if (row->key[0])
        sqlite3_bind_text(s, 18, row->key, -1, SQLITE_STATIC);
    iron__bind_word(s, 19, row->after.changed_ms);
    if (row->has_blocks)
        iron__bind_word(s, 20, row->upload);
    sqlite3_bind_blob64(s, 21, row->batch_bytes ? row->batch_bytes : (const void *)"",
                        row->batch_bytes_count, SQLITE_STATIC);
    iron__bind_word(s, 22, iron__feed_row_check(row));
    return iron__sql_run(db, s, "write a feed", err);
}

static void take_after(sqlite3_stmt *s, iron__feed_row *row) {
    iron__standing *after = &row->after.standing;

    after->closed = (iron__contribution){row->position + row->fed.count, iron__column_word(s, 9),
                                         (uint32_t)iron__column_word(s, 8)};
    after->batches = row->first_batch + row->batches;
    after->seal = iron__seal_of_count(after->closed.count);
    after->seal.words.t = iron__column_word(s, 11);
    after->seal.words.a = iron__column_word(s, 12);
    after->seal.words.b = iron__column_word(s, 13);
    for (int k = 0; k < 3; k++)
        after->seal.carry[k] = (uint32_t)iron__column_word(s, 14 + k);
    row->after.feeds = row->number;
    row->after.state = iron__column_word(s, 10);
    row->after.changed_ms = iron__column_word(s, 18);
}

/* False for a key that none of ours can be. */
static bool take_key(sqlite3_stmt *s, iron__feed_row *row) {
    const char *key = (const char *)sqlite3_column_text(s, 17);
    size_t length = key ? (size_t)sqlite3_column_bytes(s, 17) : 0;

    if (key && (length == 0 || length > IRON_FEED_KEY_MAX || strlen(key) != length))
        return false;
    if (key)
        memcpy(row->key, key, length + 1);
    return true;
}

static iron_status take_row(iron__database *db, sqlite3_stmt *s, iron__feed_row *row,
                            iron_error *err) {
    bool has_key;

    *row = (iron__feed_row){
        .engine = iron__column_word(s, 0),
        .number = iron__column_word(s, 1),
        .position = iron__column_word(s, 2),
        .first_batch = iron__column_word(s, 6),
        .batches = iron__column_word(s, 7),
        .fed = {iron__column_word(s, 3), iron__column_word(s, 5),
                (uint32_t)iron__column_word(s, 4)},
        .has_blocks = sqlite3_column_type(s, 19) != SQLITE_NULL,
        .upload = iron__column_word(s, 19),
        .batch_bytes_count = (size_t)sqlite3_column_bytes(s, 20),
        .batch_bytes = sqlite3_column_blob(s, 20),
    };
    take_after(s, row);
    has_key = take_key(s, row);
    if (has_key && iron__column_word(s, 21) == iron__feed_row_check(row))
        return IRON_OK;
    iron__fail(err, IRON_E_FORMAT, 0,
               "feed %" PRIu64 " of engine %" PRIu64 " in %.100s is damaged; restore a backup",
               row->number, row->engine, db->path);
    sqlite3_reset(s);
    return IRON_E_FORMAT;
}

static iron_status next(iron__database *db, sqlite3_stmt *s, iron__feed_row *row, bool *found,
                        iron_error *err) {
    IRON_TRY(iron__sql_step(db, s, found, "read a feed", err));
    return *found ? take_row(db, s, row, err) : IRON_OK;
}

/* Is it the row that was asked for? An index that leads elsewhere is damaged. */
static iron_status check_found(iron__database *db, bool is_right, uint64_t engine,
                               iron_error *err) {
    IRON_FAIL_IF(!is_right, err, IRON_E_FORMAT,
                 "the index of the feeds of engine %" PRIu64
                 " in %.100s is damaged; restore a backup",
                 engine, db->path);
    return IRON_OK;
}

iron_status iron__feed_by_key(iron__database *db, uint64_t engine, const char *key,
                              iron__feed_row *row, bool *found, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_FEED_BY_KEY, err);

    *found = false;
    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, engine);
    sqlite3_bind_text(s, 2, key, -1, SQLITE_TRANSIENT);
    IRON_TRY(next(db, s, row, found, err));
    return *found
               ? check_found(db, row->engine == engine && strcmp(row->key, key) == 0, engine, err)
               : IRON_OK;
}

iron_status iron__feed_by_number(iron__database *db, uint64_t engine, uint64_t number,
                                 iron__feed_row *row, bool *found, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_FEED_BY_NUMBER, err);

    *found = false;
    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, engine);
    iron__bind_word(s, 2, number);
    IRON_TRY(next(db, s, row, found, err));
    return *found ? check_found(db, row->engine == engine && row->number == number, engine, err)
                  : IRON_OK;
}

iron_status iron__feeds_begin(iron__database *db, uint64_t engine, uint64_t number,
                              iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_FEEDS_AFTER, err);

    if (!s)
        return IRON_E_FORMAT;
    iron__bind_word(s, 1, engine);
    iron__bind_word(s, 2, number);
    return IRON_OK;
}

iron_status iron__feeds_next(iron__database *db, iron__feed_row *row, bool *found,
                             iron_error *err) {
    return next(db, db->statements[IRON_SQL_FEEDS_AFTER], row, found, err);
}
