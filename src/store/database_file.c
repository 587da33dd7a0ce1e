/* SPDX-License-Identifier: MIT */
/*
 * database_file.c: how iron.db comes to be, and what it must be to be opened.
 *
 * It is made under another name, with its tables and marks, and renamed: so a file of this name was
 * whole once. The first hundred bytes of such a file are looked at without SQLite, which would take
 * a file without bytes, or one whose first page it finds in a log, for a database and begin it
 * anew.
 */
#include "core/fail.h"
#include "store/check_word.h"
#include "store/database.h"
#include "store/log_check.h"
#include "store/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 100u

static const char schema[] =
    "PRAGMA page_size = 4096; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"
    "BEGIN;"
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY CHECK (id = 1), engines INTEGER NOT NULL,"
    " engines_check INTEGER NOT NULL, next_engine INTEGER NOT NULL,"
    " check_word INTEGER NOT NULL) STRICT;"
    "CREATE TABLE engines (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " nodes INTEGER NOT NULL, vocab INTEGER NOT NULL, batch INTEGER NOT NULL,"
    " positions INTEGER NOT NULL, lattice BLOB NOT NULL, mode TEXT NOT NULL,"
    " backend TEXT NOT NULL, device INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " check_word INTEGER NOT NULL) STRICT;"
    "CREATE TABLE feeds (engine INTEGER NOT NULL, number INTEGER NOT NULL,"
    " position INTEGER NOT NULL, tokens INTEGER NOT NULL, xors INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, first_batch INTEGER NOT NULL, batches INTEGER NOT NULL,"
    " total_xors INTEGER NOT NULL, total_sum INTEGER NOT NULL, state INTEGER NOT NULL,"
    " seal_t INTEGER NOT NULL, seal_a INTEGER NOT NULL, seal_b INTEGER NOT NULL,"
    " carry_0 INTEGER NOT NULL, carry_1 INTEGER NOT NULL, carry_2 INTEGER NOT NULL,"
    " key TEXT, time_ms INTEGER NOT NULL, upload INTEGER, contributions BLOB NOT NULL,"
    " check_word INTEGER NOT NULL, PRIMARY KEY (engine, number)) STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX feeds_key ON feeds (engine, key) WHERE key IS NOT NULL;"
    "CREATE UNIQUE INDEX feeds_upload ON feeds (upload) WHERE upload IS NOT NULL;"
    "CREATE TABLE blocks (upload INTEGER NOT NULL, number INTEGER NOT NULL,"
    " contributions BLOB NOT NULL, check_word INTEGER NOT NULL,"
    " PRIMARY KEY (upload, number)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE snapshots (engine INTEGER NOT NULL, number INTEGER NOT NULL,"
    " state INTEGER NOT NULL, bytes BLOB NOT NULL, check_word INTEGER NOT NULL,"
    " PRIMARY KEY (engine, number)) STRICT, WITHOUT ROWID;";

static iron_status write_schema(iron__database *db, iron_error *err) {
    const iron__ledger ledger = {.next_engine = 1};
    char marks[300];

    snprintf(marks, sizeof marks,
             "PRAGMA application_id = %d; PRAGMA user_version = %u;"
             "INSERT INTO ledger VALUES (1, 0, 0, 1, %lld); COMMIT",
             IRON_DATABASE_ID, IRON_DATABASE_FORMAT, (long long)iron__ledger_check(&ledger));
    if (sqlite3_exec(db->handle, schema, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db->handle, marks, NULL, NULL, NULL) != SQLITE_OK)
        return iron__database_fail(db, "make the tables", err);
    return IRON_OK;
}

/* For its owner alone, wherever it lies; SQLite gives its log the same mode. */
static iron_status make_file(char *path, iron_error *err) {
    iron__database db = {.path = path};
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    iron_status status = IRON_E_NOMEM;

    if (fd < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot make %.120s: %s", path, strerror(errno));
    close(fd);
    if (sqlite3_open_v2(path, &db.handle, flags, NULL) == SQLITE_OK)
        status = write_schema(&db, err);
    else if (db.handle)
        status = iron__database_fail(&db, "make the database", err);
    else
        iron__fail(err, status, 0, "out of memory: a new database");
    sqlite3_close(db.handle);
    return status;
}

/* A name that was written is on the disk when its directory is. */
static iron_status sync_directory(const char *path, iron_error *err) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (failed)
        return iron__fail(err, IRON_E_IO, failed, "cannot sync the directory %.120s: %s", path,
                          strerror(failed));
    return IRON_OK;
}

static iron_status create(const char *directory, const char *path, iron_error *err) {
    char *fresh = NULL, *journal = NULL;
    iron_status status = IRON_E_NOMEM;

    if (asprintf(&fresh, "%s.new", path) < 0 || asprintf(&journal, "%s.new-journal", path) < 0) {
        iron__fail(err, status, 0, "out of memory: a file's name");
    } else {
        unlink(fresh); /* of one who was interrupted here */
        unlink(journal);
        status = make_file(fresh, err);
        if (status == IRON_OK && rename(fresh, path) != 0)
            status = iron__fail(err, IRON_E_IO, errno, "cannot rename %.120s: %s", fresh,
                                strerror(errno));
    }
    free(fresh);
    free(journal);
    return status == IRON_OK ? sync_directory(directory, err) : status;
}

static uint32_t big_endian(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static iron_status check_header(const char *path, const unsigned char *header, ssize_t bytes,
                                iron_error *err) {
    static const char magic[] = "SQLite format 3";
    uint32_t format;

    IRON_FAIL_IF(bytes < (ssize_t)HEADER_BYTES || memcmp(header, magic, sizeof magic) != 0, err,
                 IRON_E_FORMAT,
                 "%.120s is not a database, or damaged; restore a backup, or use another directory",
                 path);
    IRON_FAIL_IF(big_endian(header + 68) != IRON_DATABASE_ID, err, IRON_E_FORMAT,
                 "%.120s is a database of another program (id %08x); use another directory", path,
                 big_endian(header + 68));
    format = big_endian(header + 60);
    IRON_FAIL_IF(format > IRON_DATABASE_FORMAT, err, IRON_E_FORMAT,
                 "%.120s was written by a newer iron (format %u, this one knows %u); use that one",
                 path, format, IRON_DATABASE_FORMAT);
    IRON_FAIL_IF(format != IRON_DATABASE_FORMAT, err, IRON_E_FORMAT,
                 "%.120s says format %u, which there never was: it is damaged; restore a backup",
                 path, format);
    return IRON_OK;
}

static iron_status check_file(const char *path, int fd, iron_error *err) {
    unsigned char header[HEADER_BYTES];
    ssize_t bytes = pread(fd, header, sizeof header, 0);

    if (bytes < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s: %s", path, strerror(errno));
    return check_header(path, header, bytes, err);
}

/* A log without its file: the file was lost, and must not be begun anew over its remains. */
static iron_status check_no_log(const char *path, const char *log, iron_error *err) {
    struct stat info;

    IRON_FAIL_IF(stat(log, &info) == 0 && info.st_size > 0, err, IRON_E_FORMAT,
                 "%.120s is missing, but its log is there; restore the file, or a backup", path);
    return IRON_OK;
}

static iron_status check_or_create(const char *directory, const char *path, const char *log,
                                   iron_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    iron_status status;

    if (fd < 0 && errno == ENOENT) {
        IRON_TRY(check_no_log(path, log, err));
        return create(directory, path, err);
    }
    if (fd < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    status = check_file(path, fd, err);
    close(fd);
    return status == IRON_OK ? iron__log_check(log, err) : status;
}

iron_status iron__database_file(const char *directory, iron_error *err) {
    char *path = NULL, *log = NULL;
    iron_status status = IRON_E_NOMEM;

    if (asprintf(&path, "%s/iron.db", directory) < 0 || asprintf(&log, "%s-wal", path) < 0)
        iron__fail(err, status, 0, "out of memory: a file's name");
    else
        status = check_or_create(directory, path, log, err);
    free(log);
    free(path);
    return status;
}
