/* SPDX-License-Identifier: MIT */
/*
 * backup.c: copying and verifying the data directory of a server, whether it is running or not.
 *
 * Both read one snapshot of the database, which a writer does not disturb. A backup is made under
 * another name and renamed when it is on the disk, so it is complete or absent. It has a marker of
 * its own: where the copy is restored, nothing counts as lost.
 *
 * While no server runs, its lock is shared, so that none starts meanwhile.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "store/store_internal.h"

#include <iron/iron_server.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A data directory that is only read. */
typedef struct source {
    iron__store store; /* with what reading needs */
    int lock;
    bool is_running, had_log;
} source;

static void source_close(source *s) {
    /* a log that only this connection has made is removed again */
    iron__database_close(s->store.db, !s->is_running && !s->had_log);
    if (s->lock >= 0)
        close(s->lock);
    if (s->store.directory_fd >= 0)
        close(s->store.directory_fd);
    free(s->store.directory);
}

static iron_status source_open(source *s, const char *directory, iron_error *err) {
    iron__store *store = &s->store;
    struct stat info;

    *s = (source){.lock = -1};
    store->directory = strdup(directory);
    store->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    IRON_FAIL_IF(!store->directory, err, IRON_E_NOMEM, "out of memory for a file name");
    if (store->directory_fd < 0)
        return iron__fail_path(err, "open", directory, errno);
    s->lock = openat(store->directory_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    s->is_running = s->lock >= 0 && flock(s->lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    s->had_log = fstatat(store->directory_fd, "iron.db-wal", &info, 0) == 0;
    IRON_TRY(iron__database_open_to_read(store, !s->is_running, &store->db, err));
    if (!s->is_running)
        IRON_TRY(iron__marker_check(store, store->db, err));
    if (sqlite3_exec(store->db->handle, "BEGIN; SELECT count(*) FROM engines", NULL, NULL, NULL) !=
        SQLITE_OK)
        return iron__fail(err, IRON_E_IO, sqlite3_extended_errcode(store->db->handle),
                          "cannot read %.120s: %s", store->db->path,
                          sqlite3_errmsg(store->db->handle));
    return IRON_OK;
}

/* Backup. */

static iron_status copy_pages(iron__database *from, int directory, const char *path,
                              iron_error *err) {
    int fd = openat(directory, "iron.db", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), code;
    iron_status status = IRON_OK;
    sqlite3_backup *copy = NULL;
    sqlite3 *to = NULL;

    assert(from);
    if (fd < 0)
        return iron__fail_path(err, "make", path, errno);
    code = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK && (copy = sqlite3_backup_init(to, "main", from->handle, "main")))
        code = sqlite3_backup_step(copy, -1); /* all at once: of one snapshot */
    if (copy)
        sqlite3_backup_finish(copy);
    if (code != SQLITE_DONE)
        status = iron__fail(err, IRON_E_IO, code, "cannot copy to %.120s: %s", path,
                            to ? sqlite3_errmsg(to) : "out of memory");
    sqlite3_close(to);
    if (status == IRON_OK && fsync(fd) != 0)
        status = iron__fail_path(err, "sync", path, errno);
    close(fd);
    return status;
}

static void remove_partial(const char *partial) {
    static const char *const names[] = {"iron.db",     "iron.db-journal", "iron.db-wal",
                                        "iron.db-shm", "marker",          "marker.new"};
    int directory = open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    for (size_t k = 0; directory >= 0 && k < sizeof names / sizeof names[0]; k++)
        unlinkat(directory, names[k], 0);
    if (directory >= 0)
        close(directory);
    rmdir(partial);
}

/* Everything but the rename. */
static iron_status fill_partial(source *from, const char *partial, iron_error *err) {
    char *path = iron__print("%s/iron.db", partial);
    iron_status status;
    int directory = -1;

    remove_partial(partial); /* left by a process that was interrupted here */
    if (mkdir(partial, 0700) != 0 || (directory = open(partial, O_RDONLY | O_DIRECTORY)) < 0)
        status = iron__fail_path(err, "make", partial, errno);
    else
        status = path ? copy_pages(from->store.db, directory, path, err)
                      : iron__no_memory(err, "a file name");
    if (status == IRON_OK)
        status = iron__marker_of_rows(directory, from->store.db, err);
    if (directory >= 0)
        close(directory);
    free(path);
    return status;
}

static iron_status sync_parent(const char *target, iron_error *err) {
    char *copy = strdup(target);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool is_good = fd >= 0 && fsync(fd) == 0;
    int number = errno;

    if (fd >= 0)
        close(fd);
    free(copy);
    return is_good ? IRON_OK
                   : iron__fail(err, IRON_E_IO, number, "cannot sync the directory of %.120s: %s",
                                target, strerror(number));
}

iron_status iron_server_backup(const char *data, const char *target, iron_error *err) {
    struct stat info;
    char *partial;
    iron_status status;
    source from;

    IRON_FAIL_IF(lstat(target, &info) == 0, err, IRON_E_ARG,
                 "%.120s exists; choose another name, or move it away", target);
    partial = iron__print("%s.partial", target);
    if (!partial)
        return iron__no_memory(err, "a file name");
    status = source_open(&from, data, err);
    if (status == IRON_OK) {
        status = fill_partial(&from, partial, err);
        if (status == IRON_OK && rename(partial, target) != 0)
            status = iron__fail_path(err, "rename", partial, errno);
        if (status == IRON_OK)
            status = sync_parent(target, err);
        else
            remove_partial(partial);
    }
    source_close(&from);
    free(partial);
    return status;
}

/* Verifying. */

iron_status iron_server_verify(const char *data, iron_server_verified *found, iron_error *err) {
    source from;
    iron_error why = {0};
    iron_status status = source_open(&from, data, &why);

    *found = (iron_server_verified){.struct_size = sizeof *found, .is_running = from.is_running};
    if (status == IRON_OK)
        status = iron__database_inspect(from.store.db, &why);
    if (status == IRON_OK)
        status = iron__store_verify(&from.store, found, &why);
    source_close(&from);
    if (status == IRON_E_FORMAT)
        status = why.status = IRON_E_MISMATCH;
    if (status != IRON_OK && err)
        *err = why;
    return status;
}
