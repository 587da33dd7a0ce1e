/* SPDX-License-Identifier: MIT */
/*
 * test_store_log_check.c: SQLite's logs, damaged one byte at a time. If check_log accepts a log,
 * SQLite reads all its commits except perhaps the last one, which a torn write could have lost as
 * well. Logs that are truncated anywhere, as after a crash, are accepted.
 */
#include "store/store.c"
#include "support.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 12

typedef struct files {
    folder folder;
    file_name db, wal;
    unsigned char *db_bytes, *wal_bytes;
    size_t db_count, wal_count;
} files;

static unsigned char *read_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    struct stat info;
    unsigned char *bytes;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    *count = (size_t)info.st_size;
    bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_true(fread(bytes, 1, *count, file) == *count);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const unsigned char *bytes, size_t count) {
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_true(fwrite(bytes, 1, count, file) == count);
    assert_int_equal(fclose(file), 0);
}

static void do_sql(sqlite3 *db, const char *sql) {
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* A log of ROWS commits, followed by frames of an older log. */
static int set_up(void **state) {
    files *f = calloc(1, sizeof *f);
    sqlite3 *db = NULL;

    assert_non_null(f);
    folder_make(&f->folder);
    f->db = name_in(&f->folder, "a.db");
    f->wal = name_in(&f->folder, "a.db-wal");
    assert_int_equal(sqlite3_open(f->db.path, &db), SQLITE_OK);
    do_sql(db, "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
               "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER, x BLOB)");
    for (int k = 0; k < 3 * ROWS; k++)
        do_sql(db, "INSERT INTO t VALUES (-1, zeroblob(700))");
    do_sql(db, "DELETE FROM t; PRAGMA wal_checkpoint(RESTART)");
    for (int k = 0; k < ROWS; k++)
        do_sql(db, "INSERT INTO t VALUES (1, randomblob(300))");
    f->db_bytes = read_file(f->db.path, &f->db_count);
    f->wal_bytes = read_file(f->wal.path, &f->wal_count);
    sqlite3_close(db);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    files *f = *state;

    folder_remove(&f->folder);
    free(f->db_bytes);
    free(f->wal_bytes);
    free(f);
    return 0;
}

/* Rows that SQLite finds; -1: it reports an error. */
static int rows_found(const files *f) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    int rows = -1;

    assert_int_equal(sqlite3_open(f->db.path, &db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* which would sync */
    if (sqlite3_prepare_v2(db, "SELECT count(*) FROM t WHERE n = 1", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        rows = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return rows;
}

static void put_back(const files *f, const unsigned char *wal, size_t count) {
    write_file(f->db.path, f->db_bytes, f->db_count);
    write_file(f->wal.path, wal, count);
}

static void test_whole(void **state) {
    const files *f = *state;
    iron_error err = {0};

    put_back(f, f->wal_bytes, f->wal_count);
    assert_ok(check_log(f->wal.path, &err), &err);
    assert_int_equal(rows_found(f), ROWS);
    unlink(f->wal.path);
    assert_ok(check_log(f->wal.path, &err), &err);
    write_file(f->wal.path, f->wal_bytes, 0);
    assert_ok(check_log(f->wal.path, &err), &err);
}

static void test_every_damaged_byte(void **state) {
    const files *f = *state;
    unsigned refused = 0, lost_last = 0;

    /* every byte of a header, every 37th of a page */
    for (size_t k = 0; k < f->wal_count; k += k < 32 || (k - 32) % 536 < 24 ? 1 : 37) {
        iron_error err = {0};
        iron_status status;

        f->wal_bytes[k] ^= (unsigned char)(1u << k % 8);
        put_back(f, f->wal_bytes, f->wal_count);
        f->wal_bytes[k] ^= (unsigned char)(1u << k % 8);
        status = check_log(f->wal.path, &err);
        if (status == IRON_OK) {
            int rows = rows_found(f);

            assert_true(rows == ROWS || rows == ROWS - 1 || rows == -1);
            lost_last += rows == ROWS - 1;
        } else {
            assert_int_equal(err.status, IRON_E_FORMAT);
            assert_says(&err, "damaged");
            refused++;
        }
    }
    assert_true(refused > 100 && lost_last > 0);
}

static void test_every_torn_end(void **state) {
    const files *f = *state;

    for (size_t k = 0; k <= f->wal_count; k += 61) {
        iron_error err = {0};

        if (k > 0 && k < 32)
            continue; /* a header is one write */
        put_back(f, f->wal_bytes, k);
        assert_ok(check_log(f->wal.path, &err), &err);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_damaged_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_torn_end, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
