/* SPDX-License-Identifier: MIT */
/*
 * marker.c: notices that acknowledged commits are missing.
 *
 * If `iron.db-wal` is removed or cut after a crash, SQLite opens the database as of the last
 * checkpoint and says nothing: a cut log looks like one whose last transaction was never finished.
 * So the file `marker` beside it says what has been acknowledged. It makes two kinds of claims.
 *
 *   A slot for each engine: its number of feeds and its position, or that it was deleted. It is
 *   written after COMMIT and before the answer, and not synced: the page cache outlives the
 *   process, so after kill -9 the slots are exact. After a power failure a slot may be old. It
 *   never claims too much: the commit was on the disk before the slot was written at all.
 *
 *   The size of the log, which is synced. The log is extended ahead of its frames, in steps; the
 *   new size is synced, and then claimed, before a commit beyond the old one is acknowledged; it is
 *   claimed to be 0 before the log is emptied. So a log that is shorter than claimed was cut, also
 *   after a power failure, whatever the slots say. This costs two syncs for each step and none for
 *   a commit: the file keeps its size when SQLite begins it anew.
 *
 * What is not noticed: frames that are overwritten in place after a power failure and look like an
 * unfinished transaction, and the loss of both files. A database without a marker gets one: it is
 * of an older version, or a copy.
 *
 * The file: a header and slots of 128 bytes, in the machine's byte order, each with a check word;
 * an invalid slot claims nothing. At every start it is written anew, under another name, and
 * renamed.
 */
#include "core/fail.h"
#include "core/hash.h"
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOT_BYTES 128u
#define LOG_STEP   ((uint64_t)4 << 20)
#define MAGIC_WORD UINT64_C(0x4b52414d4e4f5249) /* "IRONMARK" */

static uint64_t slot_check(const iron__marker_slot *slot) {
    return iron__fnv(IRON_FNV_START, slot, offsetof(iron__marker_slot, check));
}

static bool write_slot(int fd, uint64_t at, iron__marker_slot *slot) {
    ssize_t bytes;

    static_assert(sizeof *slot == SLOT_BYTES, "a slot has no padding");
    slot->check = slot_check(slot);
    do
        bytes = pwrite(fd, slot, sizeof *slot, (off_t)(at * SLOT_BYTES));
    while (bytes < 0 && errno == EINTR);
    return bytes == (ssize_t)sizeof *slot;
}

static bool read_slot(int fd, uint64_t at, iron__marker_slot *slot) {
    return pread(fd, slot, sizeof *slot, (off_t)(at * SLOT_BYTES)) == (ssize_t)sizeof *slot;
}

static iron_status fail_write(const char *what, iron_error *err) {
    int number = errno;

    return iron__fail(err, IRON_E_IO, number == ENOSPC || number == EDQUOT ? IRON_NO_SPACE : number,
                      "cannot %s the marker: %s; %s, then restart", what, strerror(number),
                      number == EMFILE || number == ENFILE ? "allow more open files (ulimit -n)"
                                                           : "repair the disk");
}

/* Checking at start. */

typedef struct loss {
    iron__database *db;
    uint64_t next_engine, engines; /* how many have lost something */
    char text[200];                /* of the first */
} loss;

static iron_status look_at_engine(loss *l, const iron__marker_slot *slot, iron__store *store,
                                  iron_error *err) {
    uint64_t one, feeds = 0, tokens = 0;
    bool exists, found;
    char text[200];

    IRON_TRY(iron__sql_number(l->db, IRON_SQL_ENGINE_EXISTS, IRON_WORDS(slot->id), &exists, &one,
                              "read an engine", err));
    if (exists)
        IRON_TRY(iron__sql_number(l->db, IRON_SQL_FEED_LAST, IRON_WORDS(slot->id), &found, &feeds,
                                  "read the last feed", err));
    if (exists && found)
        IRON_TRY(iron__sql_number(l->db, IRON_SQL_FEED_END, IRON_WORDS(slot->id, feeds), &found,
                                  &tokens, "read the last feed", err));
    if (slot->is_deleted && exists)
        snprintf(text, sizeof text, "engine %.64s had been deleted and is there", slot->name);
    else if (!slot->is_deleted && !exists && slot->id >= l->next_engine)
        snprintf(text, sizeof text, "engine %.64s is missing, with %" PRIu64 " feeds", slot->name,
                 slot->feeds);
    else if (!slot->is_deleted && exists && feeds < slot->feeds)
        snprintf(text, sizeof text,
                 "engine %.64s has lost %" PRIu64 " feeds: it is at position %" PRIu64
                 " and was at %" PRIu64,
                 slot->name, slot->feeds - feeds, tokens, slot->tokens);
    else
        return IRON_OK;
    if (l->engines++ == 0)
        memcpy(l->text, text, sizeof text);
    if (store->options.accept_loss)
        iron__store_note(store, text);
    return IRON_OK;
}

iron_status iron__marker_check(iron__store *store, iron__database *db, iron_error *err) {
    loss l = {.db = db};
    iron__marker_slot slot = {0};
    struct stat info;
    uint64_t had, has = 0;
    char log[80] = "", more[40] = "";
    iron_status status = IRON_OK;
    bool found;
    int fd = openat(store->directory_fd, "marker", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT)
        return IRON_OK;
    if (fd < 0 || !read_slot(fd, 0, &slot) || slot.id != MAGIC_WORD ||
        slot.check != slot_check(&slot)) {
        if (fd >= 0)
            close(fd);
        if (store->options.accept_loss)
            return IRON_OK;
        IRON_FAIL(err, IRON_E_FORMAT,
                  "%.120s/marker cannot be read, or is damaged; restore it, or use --accept-loss",
                  store->directory);
    }
    had = slot.tokens;
    if (fstatat(store->directory_fd, "iron.db-wal", &info, 0) == 0)
        has = (uint64_t)info.st_size;
    status = iron__sql_number(db, IRON_SQL_NEXT_ENGINE, IRON_NO_WORDS, &found, &l.next_engine,
                              "read the ledger", err);
    for (uint64_t k = 1; status == IRON_OK && read_slot(fd, k, &slot); k++)
        if (slot.id != 0 && slot.check == slot_check(&slot))
            status = look_at_engine(&l, &slot, store, err);
    close(fd);
    iron__database_reset(db);
    if (status != IRON_OK || (l.engines == 0 && has >= had))
        return status;
    if (store->options.accept_loss) {
        iron__store_note(store, "the loss of acknowledged data is accepted (--accept-loss)");
        return IRON_OK;
    }
    if (has < had)
        snprintf(log, sizeof log, "iron.db-wal has %" PRIu64 " bytes and had %" PRIu64 ": ", has,
                 had);
    if (l.engines > 1)
        snprintf(more, sizeof more, ", and %" PRIu64 " more", l.engines - 1);
    return iron__fail(err, IRON_E_FORMAT, 0,
                      "%s%.110s%s; put the log back, restore a backup, or use --accept-loss", log,
                      l.engines ? l.text : "the last feeds may be lost", more);
}

/* Writing. */

static void fill_slot(iron__marker_slot *slot, const iron__store_engine *entry) {
    *slot = (iron__marker_slot){.id = entry->id,
                                .feeds = entry->latest.feeds,
                                .tokens = entry->latest.checkpoint.closed.count,
                                .is_deleted = entry->is_deleting};
    memcpy(slot->name, entry->plan.name, sizeof entry->plan.name);
}

static bool write_claim(int fd, uint64_t log_bytes) {
    iron__marker_slot header;

    memset(&header, 0, sizeof header);
    header.id = MAGIC_WORD;
    header.feeds = 1; /* the version */
    header.tokens = log_bytes;
    return write_slot(fd, 0, &header) && fdatasync(fd) == 0;
}

iron_status iron__marker_begin(iron__store *store, iron_error *err) {
    const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    iron__marker *m = &store->marker;
    iron__marker_slot slot;
    bool is_good;

    m->fd = openat(store->directory_fd, "marker.new", flags, 0600);
    is_good = m->fd >= 0;
    for (size_t k = 0; k < store->engine_count && is_good; k++) {
        fill_slot(&slot, store->engines[k]);
        store->engines[k]->marker_slot = k + 1;
        is_good = write_slot(m->fd, k + 1, &slot);
    }
    m->next_slot = store->engine_count + 1;
    is_good = is_good && write_claim(m->fd, 0) && fsync(m->fd) == 0 &&
              renameat(store->directory_fd, "marker.new", store->directory_fd, "marker") == 0 &&
              fsync(store->directory_fd) == 0;
    return is_good ? IRON_OK : fail_write("write", err);
}

iron_status iron__marker_of_rows(int directory, iron__database *db, iron_error *err) {
    int fd = openat(directory, "marker", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_CLAIMS, IRON_NO_WORDS, err);
    iron_status status = IRON_OK;
    bool is_good = fd >= 0, found = true;

    for (uint64_t k = 1; is_good && found && status == IRON_OK; k++) {
        iron__marker_slot slot = {0};

        status = iron__sql_step(db, s, &found, "read the engines", err);
        if (status != IRON_OK || !found)
            break;
        slot.id = iron__column_word(s, 0);
        slot.feeds = iron__column_word(s, 1);
        slot.tokens = iron__column_word(s, 2);
        is_good = iron__column_text(s, 3, slot.name, sizeof slot.name) && write_slot(fd, k, &slot);
    }
    if (status == IRON_OK && !(is_good && write_claim(fd, 0) && fsync(directory) == 0))
        status = fail_write("write", err);
    if (fd >= 0)
        close(fd);
    return status;
}

iron_status iron__marker_write(iron__marker *m, iron__store_engine *entry, iron_error *err) {
    iron__marker_slot slot;

    if (m->fd < 0)
        return IRON_OK;
    if (entry->marker_slot == 0) /* a new engine; the slot of a deleted one may be used again: what
                                    undoes the deletion loses the new engine, too */
        entry->marker_slot = m->free_count > 0 ? m->free_slots[--m->free_count] : m->next_slot++;
    fill_slot(&slot, entry);
    if (!write_slot(m->fd, entry->marker_slot, &slot))
        return fail_write("write", err);
    if (entry->is_deleting) {
        uint64_t *more = realloc(m->free_slots, (m->free_count + 1) * sizeof *more);

        if (more) {
            more[m->free_count++] = entry->marker_slot;
            m->free_slots = more;
        }
    }
    return IRON_OK;
}

iron_status iron__marker_cover(iron__store *store, uint64_t frames, iron_error *err) {
    iron__marker *m = &store->marker;
    uint64_t used = IRON_LOG_HEADER_BYTES + frames * IRON_LOG_FRAME_BYTES, claim;
    struct stat info;
    bool is_good;

    if (m->fd < 0 || used <= m->log_bytes)
        return IRON_OK;
    if (m->log_fd < 0)
        m->log_fd = openat(store->directory_fd, "iron.db-wal", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    claim = (used + LOG_STEP - 1) / LOG_STEP * LOG_STEP;
    is_good = m->log_fd >= 0 && fstat(m->log_fd, &info) == 0 &&
              ((uint64_t)info.st_size >= claim || ftruncate(m->log_fd, (off_t)claim) == 0) &&
              fsync(m->log_fd) == 0 && write_claim(m->fd, claim);
    if (!is_good)
        return fail_write("sync", err);
    m->log_bytes = claim;
    return IRON_OK;
}

iron_status iron__marker_release_log(iron__marker *m, iron_error *err) {
    if (m->fd < 0 || m->log_bytes == 0)
        return IRON_OK;
    if (!write_claim(m->fd, 0))
        return fail_write("sync", err);
    m->log_bytes = 0;
    return IRON_OK;
}

void iron__marker_close(iron__marker *m) {
    if (m->fd >= 0)
        close(m->fd);
    if (m->log_fd >= 0)
        close(m->log_fd);
    free(m->free_slots);
    *m = (iron__marker){.fd = -1, .log_fd = -1};
}
