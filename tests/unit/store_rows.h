/* SPDX-License-Identifier: MIT */
/* store_rows.h: the number of rows of a table of the store in `place`, read with another
 * connection. */
#ifndef TESTS_UNIT_STORE_ROWS_H
#define TESTS_UNIT_STORE_ROWS_H

#include "place.h"

#include <sqlite3.h>

static inline uint64_t count_rows(const char *table) {
    file_name path = name_in(&place, "iron.db");
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    char sql[64];
    uint64_t rows;

    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    assert_int_equal(sqlite3_open_v2(path.path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* the log must stay */
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    rows = (uint64_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return rows;
}

#endif
