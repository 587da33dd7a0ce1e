/* SPDX-License-Identifier: MIT */
/*
 * store.c: the store as a whole: its data directory and database, the rows in it, the list of its
 * engines, change notifications, opening, inspecting and closing.
 *
 * The database is created under another name, with its tables and marks, and then renamed, so a
 * file called iron.db was complete once. Its first hundred bytes are checked without SQLite, which
 * would treat an empty file, or one whose first page it finds in a log, as a new database. SQLite's
 * automatic checkpoints are off: they hide their errors and retry a failed fsync.
 * iron__database_flush_log reports errors.
 */
#include "store/store.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/memory.h"
#include "store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 100u
#define BUSY_MS      10000

#define SHARED_MEMORY ((off_t)256 << 10) /* for a log of 128 MiB */

/* SQLite instructions between two calls of the progress handler: some milliseconds. */
#define INSPECTION_STEPS 100000

/* Plans. */

bool iron__engine_name_is_valid(const char *name) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strnlen(name, IRON_ENGINE_NAME_MAX + 1);

    return length >= 1 && length <= IRON_ENGINE_NAME_MAX && strspn(name, letters) == length &&
           !strchr("._-", name[0]);
}

iron_status iron__store_plan_engine(const iron__store_plan *plan, iron__plan_use use,
                                    iron_engine **out, iron_error *err) {
    iron_config config;

    iron_config_init(&config);
    config.nodes = plan->nodes;
    config.vocab = plan->vocab;
    config.batch = plan->batch;
    config.positions = plan->positions;
    config.lattice = plan->lattice_count ? plan->lattice : NULL;
    config.lattice_count = plan->lattice_count;
    config.with_seal = 1;
    config.threads = 1;
    config.backend = "cpu";
    if (use == IRON_PLAN_LARGE || (use == IRON_PLAN_SMALL && strcmp(plan->backend, "cpu") == 0)) {
        config.backend = plan->backend;
        config.mode = plan->mode;
        config.device = plan->device;
    }
    return iron_engine_create(&config, out, err);
}

/* Check words. Every row carries one over all its other fields. Each step of it is a bijection of
 * the running value for a given word, and of the word for a given value, so a single damaged word
 * in a row is always detected. */

/* Check words of different kinds of rows start differently: one cannot be taken for another. */
enum { CHECK_FEED = 1, CHECK_BLOCK, CHECK_SNAPSHOT, CHECK_ENGINE, CHECK_RUN };

static uint64_t check_word(uint64_t check, uint64_t word) {
    return iron__mix64((check ^ word) + IRON_GOLDEN_GAMMA);
}

static uint64_t check_words(uint64_t check, const uint64_t *words, int count) {
    for (int k = 0; k < count; k++)
        check = check_word(check, words[k]);
    return check;
}

/* The length first, so that bytes cannot move from one field to the next. */
static uint64_t check_bytes(uint64_t check, const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t word;

    check = check_word(check, bytes);
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        check = check_word(check, word);
    }
    word = 0;
    if (bytes > 0)
        memcpy(&word, at, bytes);
    return bytes > 0 ? check_word(check, word) : check;
}

uint64_t iron__feed_row_check(const iron__feed_row *r) {
    const iron__engine_summary *after = &r->after;
    const iron__checkpoint *end = &after->checkpoint;
    uint64_t check = check_words(
        CHECK_FEED, IRON_WORDS(r->engine, r->number, r->position, r->fed.count, r->fed.sum,
                               r->fed.xors, r->batches, r->first_batch, r->has_blocks,
                               r->has_blocks ? r->upload : 0, end->closed.count, end->closed.sum,
                               end->closed.xors, end->batches, end->seal.words.t, end->seal.words.a,
                               end->seal.words.b, end->seal.carry[0], end->seal.carry[1],
                               end->seal.carry[2], after->feeds, after->state, after->changed_ms));

    check = check_bytes(check, r->key, strlen(r->key));
    return check_bytes(check, r->batch_bytes, r->batch_bytes_count);
}

uint64_t iron__block_check(uint64_t upload, uint64_t number, const unsigned char *bytes) {
    return check_bytes(check_words(CHECK_BLOCK, IRON_WORDS(upload, number)), bytes,
                       IRON_BLOCK_BYTES);
}

uint64_t iron__snapshot_check(const iron__snapshot_row *row) {
    return check_bytes(
        check_words(CHECK_SNAPSHOT, IRON_WORDS(row->engine, row->number, row->state)), row->bytes,
        row->count);
}

uint64_t iron__engine_row_check(const iron__engine_row *row) {
    const iron__store_plan *p = &row->plan;
    uint64_t check =
        check_words(CHECK_ENGINE, IRON_WORDS(row->id, row->created_ms, p->nodes, p->vocab, p->batch,
                                             (uint64_t)p->positions, p->device));

    check = check_bytes(check, p->name, strlen(p->name));
    check = check_bytes(check, p->mode, strlen(p->mode));
    check = check_bytes(check, p->backend, strlen(p->backend));
    return check_bytes(check, p->lattice, p->lattice_count * sizeof p->lattice[0]);
}

uint64_t iron__ledger_check(const iron__store_ledger *ledger) {
    return check_words(IRON_DATABASE_ID,
                       IRON_WORDS(ledger->engines, ledger->engines_check, ledger->next_engine));
}

uint64_t iron__run_check_words(const char *name, const uint64_t *words, int count) {
    return check_bytes(check_words(CHECK_RUN, words, count), name, strlen(name));
}

/* The data directory. The lock is the kernel's and ends with the process, however it ends; the
 * process id in the file is for people. */

/* A name in a directory is on the disk when the directory is. `name` is for the message. */
static iron_status sync_directory(const char *path, const char *name, iron_error *err) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (failed)
        return iron__fail(err, IRON_E_IO, failed, "cannot sync the directory %.120s: %s", name,
                          strerror(failed));
    return IRON_OK;
}

static iron_status make_directory(const char *directory, iron_error *err) {
    struct stat info;
    iron_status status;
    char *copy;

    if (mkdir(directory, 0700) == 0) {
        copy = strdup(directory);
        IRON_FAIL_IF(!copy, err, IRON_E_NOMEM, "out of memory for the name of a directory");
        status = sync_directory(dirname(copy), directory, err);
        free(copy);
        return status;
    }
    if (errno != EEXIST)
        return iron__fail(err, IRON_E_IO, errno, "cannot make the directory %.120s: %s", directory,
                          strerror(errno));
    IRON_FAIL_IF(stat(directory, &info) != 0 || !S_ISDIR(info.st_mode), err, IRON_E_IO,
                 "%.120s is not a directory; use another name", directory);
    return IRON_OK;
}

static iron_status refuse_locked(const char *directory, int fd, iron_error *err) {
    char pid[32] = "";
    ssize_t bytes = pread(fd, pid, sizeof pid - 1, 0);

    pid[bytes > 0 ? bytes : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return iron__fail(err, IRON_E_STATE, 0,
                      "%.120s is in use by another iron serve%s%s; stop that one, or use another "
                      "directory",
                      directory, pid[0] ? ", process " : "", pid);
}

/* Creates the directory (0700) if it is missing, and locks it until both locks are closed: the
 * file, which names the process, and the directory itself, since the file can be removed. */
static iron_status lock_directory(const char *directory, iron__database *db, iron_error *err) {
    char *path, pid[32];
    iron_status status = IRON_OK;
    int fd, length;

    IRON_TRY(make_directory(directory, err));
    path = iron__print("%s/lock", directory);
    if (!path)
        return iron__no_memory(err, "a file name");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        status = iron__fail_path(err, "open", path, errno);
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = errno == EWOULDBLOCK ? refuse_locked(directory, fd, err)
                                      : iron__fail_path(err, "lock", path, errno);
    free(path);
    db->directory_lock = fd;
    if (status == IRON_OK) {
        db->own_lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (db->own_lock >= 0 && flock(db->own_lock, LOCK_EX | LOCK_NB) != 0 &&
            errno == EWOULDBLOCK)
            status = refuse_locked(directory, fd, err);
    }
    if (status != IRON_OK)
        return status;
    length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)length, 0) != length)
        (void)ftruncate(fd, 0); /* the lock works without it */
    return IRON_OK;
}

static bool is_damage(int code) {
    return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

/* A write that failed for lack of space. A failed sync is not one, whatever the reason: the kernel
 * may have dropped the data. SQLite knows ENOSPC, and reports EDQUOT like any other error. */
static bool is_no_space(iron__database *db, int code) {
    int number = sqlite3_system_errno(db->handle);
    sqlite3_file *file = NULL;

    if (code == SQLITE_IOERR_WRITE) { /* to the log, or to the file while the log is copied; by now
                                         sqlite3_system_errno has the errno of a later call */
        number = 0;
        sqlite3_file_control(
            db->handle, "main",
            db->is_flushing ? SQLITE_FCNTL_FILE_POINTER : SQLITE_FCNTL_JOURNAL_POINTER, &file);
        if (file && file->pMethods)
            file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
    }
    return code == SQLITE_FULL || ((code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE ||
                                    (code & 0xff) == SQLITE_CANTOPEN) &&
                                   (number == ENOSPC || number == EDQUOT));
}

/* SQLite's last error: IRON_E_FORMAT for damage, else IRON_E_IO. */
static iron_status database_fail(iron__database *db, const char *doing, iron_error *err) {
    int code = sqlite3_extended_errcode(db->handle), number = sqlite3_system_errno(db->handle);
    const char *said = sqlite3_errmsg(db->handle);

    if (is_no_space(db, code))
        return iron__fail(err, IRON_E_IO, IRON_NO_SPACE,
                          "cannot %.40s in %.70s: the disk is full; free space or delete engines",
                          doing, db->path);
    if (is_damage(code))
        return iron__fail(err, IRON_E_FORMAT, code, "%.90s is damaged (%.60s); restore a backup",
                          db->path, said);
    return iron__fail(err, IRON_E_IO, code,
                      "cannot %.40s in %.70s: %.60s (SQLite %d); %s, then restart", doing, db->path,
                      said, code,
                      number == EMFILE || number == ENFILE ? "allow more open files (ulimit -n)"
                                                           : "repair the disk");
}

static iron_status open_handle(iron__database *db, const char *doing, iron_error *err) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    if (sqlite3_open_v2(db->path, &db->handle, flags, NULL) == SQLITE_OK)
        return IRON_OK;
    return db->handle ? database_fail(db, doing, err)
                      : iron__no_memory(err, "a connection to the database");
}

static iron_status execute(iron__database *db, const char *text, const char *doing,
                           iron_error *err) {
    return sqlite3_exec(db->handle, text, NULL, NULL, NULL) == SQLITE_OK
               ? IRON_OK
               : database_fail(db, doing, err);
}

/* The first column of the first row, as text. */
static iron_status read_text(iron__database *db, const char *sql, char *text, size_t room,
                             const char *doing, iron_error *err) {
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL);
    iron_status status = IRON_OK;

    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        const char *value = (const char *)sqlite3_column_text(s, 0);

        if (value)
            snprintf(text, room, "%s", value);
        else
            status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory for the answer of %s", sql);
    } else if ((code & 0xff) == SQLITE_INTERRUPT) {
        status = iron__fail(err, IRON_E_CANCELLED, 0, "the inspection was stopped");
    } else {
        status = database_fail(db, doing, err);
    }
    sqlite3_finalize(s);
    return status;
}

/* Creating iron.db. */

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

/* Readable by the owner alone; SQLite gives the log the same mode. */
static iron_status make_file(char *path, iron_error *err) {
    const iron__store_ledger ledger = {.next_engine = 1};
    iron__database db = {.path = path};
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    iron_status status;
    char marks[300];

    if (fd < 0)
        return iron__fail_path(err, "make", path, errno);
    close(fd);
    snprintf(marks, sizeof marks,
             "PRAGMA application_id = %d; PRAGMA user_version = %u;"
             "INSERT INTO ledger VALUES (1, 0, 0, 1, %lld); COMMIT",
             IRON_DATABASE_ID, IRON_STORE_FORMAT, (long long)iron__ledger_check(&ledger));
    status = open_handle(&db, "make the database", err);
    if (status == IRON_OK)
        status = execute(&db, schema, "make the tables", err);
    if (status == IRON_OK)
        status = execute(&db, marks, "make the tables", err);
    sqlite3_close(db.handle);
    return status;
}

static iron_status create_file(const char *directory, const char *path, iron_error *err) {
    char *fresh = iron__print("%s.new", path), *journal = iron__print("%s.new-journal", path);
    iron_status status;

    if (!fresh || !journal) {
        status = iron__no_memory(err, "a file name");
    } else {
        unlink(fresh); /* left by a process that was interrupted here */
        unlink(journal);
        status = make_file(fresh, err);
        if (status == IRON_OK && rename(fresh, path) != 0)
            status = iron__fail_path(err, "rename", fresh, errno);
    }
    free(fresh);
    free(journal);
    return status == IRON_OK ? sync_directory(directory, directory, err) : status;
}

/* Checking the write-ahead log, before SQLite reads it. SQLite reads the log up to the first bad
 * frame and ignores the rest: a torn end is what a crash leaves, and it was never acknowledged. But
 * one flipped byte in the middle looks the same to SQLite, and all commits behind it would be lost
 * silently. The two can be told apart because a commit is synced before the next one begins: a
 * frame of a later transaction proves that the bad one was complete once.
 *
 * The format is SQLite's ("The WAL File Format" in its
 * documentation): a header of 32 bytes, then frames of 24 bytes and a page. Numbers are big-endian;
 * a checksum runs through header and frames, over words in the byte order that the last bit of the
 * magic number tells. Frames left over from an older log have other salts. */

#define LOG_HEADER   32u
#define FRAME_HEADER 24u
#define MAGIC        UINT32_C(0x377f0682) /* plus one: checksums of big-endian words */
#define PAGE_MAX     65536u

static uint32_t word_at(const unsigned char *at, bool is_big_endian) {
    uint32_t b0 = at[0], b1 = at[1], b2 = at[2], b3 = at[3];

    return is_big_endian ? b0 << 24 | b1 << 16 | b2 << 8 | b3 : b3 << 24 | b2 << 16 | b1 << 8 | b0;
}

typedef struct log_reader {
    FILE *file;
    unsigned char salts[8];
    bool is_big_endian;
    uint32_t page_bytes;
    uint32_t sums[2];
    unsigned char *frame;
} log_reader;

static void add_bytes(log_reader *log, const unsigned char *bytes, size_t count) {
    for (size_t k = 0; k < count; k += 8) {
        log->sums[0] += word_at(bytes + k, log->is_big_endian) + log->sums[1];
        log->sums[1] += word_at(bytes + k + 4, log->is_big_endian) + log->sums[0];
    }
}

static bool sums_are(const log_reader *log, const unsigned char *stored) {
    return word_at(stored, true) == log->sums[0] && word_at(stored + 4, true) == log->sums[1];
}

/* False: SQLite ignores such a log. */
static bool read_header(log_reader *log) {
    unsigned char header[LOG_HEADER];
    uint32_t magic;

    if (fread(header, 1, sizeof header, log->file) != sizeof header)
        return false;
    magic = word_at(header, true);
    log->is_big_endian = magic & 1;
    log->page_bytes = word_at(header + 8, true);
    memcpy(log->salts, header + 16, sizeof log->salts);
    add_bytes(log, header, LOG_HEADER - 8);
    return (magic & ~UINT32_C(1)) == MAGIC && sums_are(log, header + 24) &&
           log->page_bytes >= 512 && log->page_bytes <= PAGE_MAX &&
           (log->page_bytes & (log->page_bytes - 1)) == 0;
}

static bool next_frame(log_reader *log) {
    size_t bytes = FRAME_HEADER + log->page_bytes;

    return fread(log->frame, 1, bytes, log->file) == bytes;
}

/* The salts of an older log are unrelated; a single differing byte is damage. */
static bool is_of_this_log(const log_reader *log) {
    unsigned differing = 0;

    for (size_t k = 0; k < sizeof log->salts; k++)
        differing += log->frame[8 + k] != log->salts[k];
    return differing <= 1;
}

static bool is_commit(const log_reader *log) { return word_at(log->frame + 4, true) != 0; }

/* Adds the current frame; does it have the sums that it says? */
static bool has_its_sums(log_reader *log) {
    add_bytes(log, log->frame, 8);
    add_bytes(log, log->frame + FRAME_HEADER, log->page_bytes);
    return sums_are(log, log->frame + 16);
}

/* The current frame is bad. Is there one of a later transaction behind it? It follows a commit, and
 * its sums continue those of the frame before it. Frames that do not continue each other are left
 * by transactions that were rolled back on a full disk, and overwritten in part by later ones. */
static bool has_later_commit(log_reader *log) {
    bool is_over = is_of_this_log(log) && is_commit(log), is_next = true;
    uint32_t right[2] = {log->sums[0], log->sums[1]}; /* if only the stored sums are bad */

    for (;;) {
        const uint32_t stored[2] = {word_at(log->frame + 16, true), word_at(log->frame + 20, true)};
        bool continues;

        if (!next_frame(log))
            return false;
        memcpy(log->sums, stored, sizeof log->sums);
        continues = has_its_sums(log);
        if (!continues && is_next) {
            memcpy(log->sums, right, sizeof log->sums);
            continues = has_its_sums(log);
        }
        is_next = false;
        if (!is_of_this_log(log))
            continue;
        if (is_over && continues)
            return true;
        is_over = is_commit(log);
    }
}

/* IRON_OK: the log is missing, empty, complete, or torn at its end. IRON_E_FORMAT: damaged. */
static iron_status check_log(const char *path, iron_error *err) {
    log_reader log = {.file = fopen(path, "rbe")};
    iron_status status = IRON_OK;
    uint64_t number = 1;
    int byte;

    if (!log.file && errno == ENOENT)
        return IRON_OK;
    if (!log.file)
        return iron__fail_path(err, "open", path, errno);
    if (!read_header(&log)) {
        /* the header is one small write, synced before any frame: it is complete, or absent */
        rewind(log.file);
        while ((byte = getc(log.file)) == 0)
            continue;
        if (byte != EOF)
            status = iron__fail(
                err, IRON_E_FORMAT, 0,
                "%.120s is damaged: its header is not as it was written; restore a backup", path);
    } else if ((log.frame = malloc(FRAME_HEADER + log.page_bytes))) {
        while (next_frame(&log)) {
            if (has_its_sums(&log) && memcmp(log.frame + 8, log.salts, sizeof log.salts) == 0) {
                number++;
                continue;
            }
            if (has_later_commit(&log))
                status = iron__fail(err, IRON_E_FORMAT, 0,
                                    "%.120s is damaged: frame %" PRIu64
                                    " is not as it was written, and later ones follow; restore a "
                                    "backup",
                                    path, number);
            break;
        }
    } else {
        status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory for a frame of %.120s", path);
    }
    if (status == IRON_OK && ferror(log.file))
        status = iron__fail_path(err, "read", path, errno);
    free(log.frame);
    fclose(log.file);
    return status;
}

/* Checking iron.db. */

static iron_status check_header(const char *path, iron_error *err) {
    static const char magic[] = "SQLite format 3";
    unsigned char header[HEADER_BYTES];
    uint32_t id, format;
    ssize_t bytes = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC), failed = errno;

    if (fd >= 0) {
        bytes = pread(fd, header, sizeof header, 0);
        failed = errno;
        close(fd);
    }
    if (bytes < 0)
        return iron__fail(err, IRON_E_IO, failed, "cannot read %.120s: %s", path, strerror(failed));
    IRON_FAIL_IF(bytes < (ssize_t)HEADER_BYTES || memcmp(header, magic, sizeof magic) != 0, err,
                 IRON_E_FORMAT,
                 "%.120s is not a database, or damaged; restore a backup, or use another directory",
                 path);
    id = word_at(header + 68, true);
    IRON_FAIL_IF(id != IRON_DATABASE_ID, err, IRON_E_FORMAT,
                 "%.120s is a database of another program (id %08x); use another directory", path,
                 id);
    format = word_at(header + 60, true);
    IRON_FAIL_IF(format > IRON_STORE_FORMAT, err, IRON_E_FORMAT,
                 "%.120s was written by a newer iron (format %u, this one knows %u); use that one",
                 path, format, IRON_STORE_FORMAT);
    IRON_FAIL_IF(format != IRON_STORE_FORMAT, err, IRON_E_FORMAT,
                 "%.120s says format %u, which never existed: it is damaged; restore a backup",
                 path, format);
    return IRON_OK;
}

/* Creates the file if it is missing; refuses one that is damaged, newer, or not ours. */
static iron_status check_or_create(const char *directory, const char *path, iron_error *err) {
    char *log = iron__print("%s-wal", path);
    struct stat info;
    iron_status status;

    if (!log)
        return iron__no_memory(err, "a file name");
    if (stat(path, &info) == 0 || errno != ENOENT) {
        status = check_header(path, err);
        if (status == IRON_OK)
            status = check_log(log, err);
    } else if (stat(log, &info) == 0 && info.st_size > 0) { /* do not overwrite the remains */
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.120s is missing, but its log is there; restore the file, or a "
                            "backup",
                            path);
    } else {
        status = create_file(directory, path, err);
    }
    free(log);
    return status;
}

/* Connections and statements. */

static const char *const texts[] = {
#define SQL_TEXT(name, text) text,
    IRON_SQL_MAP(SQL_TEXT)
#undef SQL_TEXT
};

sqlite3_stmt *iron__sql_ready(iron__database *db, iron__sql which, const uint64_t *words, int count,
                              iron_error *err) {
    sqlite3_stmt **statement = &db->statements[which];

    if (!*statement && sqlite3_prepare_v3(db->handle, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                          statement, NULL) != SQLITE_OK) {
        database_fail(db, "prepare a statement", err);
        return NULL;
    }
    sqlite3_reset(*statement);
    sqlite3_clear_bindings(*statement);
    for (int k = 0; k < count; k++)
        iron__bind_word(*statement, k + 1, words[k]);
    return *statement;
}

iron_status iron__sql_step(iron__database *db, sqlite3_stmt *statement, bool *has_row,
                           const char *doing, iron_error *err) {
    int code;

    *has_row = false;
    if (!statement)
        return IRON_E_FORMAT; /* err is filled */
    code = sqlite3_step(statement);
    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return IRON_OK;
    if (code != SQLITE_DONE)
        database_fail(db, doing, err);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? IRON_OK : is_damage(code) ? IRON_E_FORMAT : IRON_E_IO;
}

iron_status iron__sql_number(iron__database *db, iron__sql which, const uint64_t *words, int count,
                             bool *found, uint64_t *number, const char *doing, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, which, words, count, err);

    IRON_TRY(iron__sql_step(db, s, found, doing, err));
    if (*found)
        *number = iron__column_word(s, 0);
    sqlite3_reset(s);
    return IRON_OK;
}

void iron__database_reset(iron__database *db) {
    for (size_t k = 0; k < IRON_SQL_COUNT; k++)
        if (db->statements[k] && sqlite3_stmt_busy(db->statements[k]))
            sqlite3_reset(db->statements[k]);
}

iron_status iron__database_flush_log(iron__database *db, int mode, bool *is_complete,
                                     iron_error *err) {
    int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, mode, NULL, NULL);
    iron_status status = IRON_OK;

    if (is_complete)
        *is_complete = code == SQLITE_OK;
    db->is_flushing = true;
    if (code != SQLITE_OK && code != SQLITE_BUSY)
        status = database_fail(db, "copy the log into the file", err);
    db->is_flushing = false;
    return status;
}

static int note_frames(void *context, sqlite3 *handle, const char *name, int frames) {
    iron__database *db = context;

    (void)handle;
    (void)name;
    db->wal_frames = frames;
    return SQLITE_OK;
}

/* SQLite reports the mode that it really uses in the answer. */
static iron_status use_wal(iron__database *db, iron_error *err) {
    char mode[16];

    IRON_TRY(read_text(db, "PRAGMA journal_mode = WAL", mode, sizeof mode, "use a log", err));
    IRON_FAIL_IF(strcmp(mode, "wal") != 0, err, IRON_E_IO,
                 "%.120s cannot have a write-ahead log there; use a local disk", db->path);
    return IRON_OK;
}

iron_status iron__database_empty_log(iron__database *db, iron__reserve *reserve, bool *is_complete,
                                     iron_error *err) {
    iron_status status;

    do
        status = iron__database_flush_log(db, SQLITE_CHECKPOINT_TRUNCATE, is_complete, err);
    while (status != IRON_OK && iron__is_no_space(err) && iron__reserve_give(reserve));
    return status;
}

/* Copies the log into the file at start. On a disk so full that not even the reserve is enough, the
 * log stays: it was synced before the first page was copied, so what is read is on the disk. */
static iron_status flush_at_start(iron__store *store, iron__database *db, iron_error *err) {
    iron_error why = {0};
    bool is_complete;

    if (iron__database_empty_log(db, &store->reserve, &is_complete, &why) != IRON_OK)
        return iron__is_no_space(&why) ? IRON_OK : iron__fail_again(err, &why);
    IRON_FAIL_IF(!is_complete, err, IRON_E_STATE,
                 "%.120s is being used by another program; stop that one, then try again",
                 db->path);
    return IRON_OK;
}

/* reserve: the writer's; NULL for others, which only read. */
static iron_status configure(iron__database *db, iron__reserve *reserve, iron_error *err) {
    static const char doing[] = "set up the connection";

    sqlite3_busy_timeout(db->handle, BUSY_MS);
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (db->is_alone)
        IRON_TRY(execute(db, "PRAGMA locking_mode = EXCLUSIVE", doing, err));
    IRON_TRY(use_wal(db, err));
    IRON_TRY(execute(db,
                     "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                     "PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY;"
                     "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF",
                     doing, err));
    if (!reserve)
        return execute(db, "PRAGMA query_only = ON", doing, err);
    if (!db->is_alone) {
        /* SQLite maps the file of its shared memory, and writes one byte for each 4 KiB of it so
         * that the disk has a place for it. Where blocks are smaller that is not enough, and on a
         * full disk an access would end the process (SIGBUS). The descriptor stays open as long as
         * the connection: closing it would drop SQLite's locks on the file. */
        char *path = iron__print("%s-shm", db->path);

        if (!path)
            return iron__no_memory(err, "a file name");
        db->shared_memory = open(path, O_RDWR | O_CLOEXEC);
        free(path);
        if (db->shared_memory >= 0 && fallocate(db->shared_memory, 0, 0, SHARED_MEMORY) != 0 &&
            (errno == ENOSPC || errno == EDQUOT))
            return iron__fail(err, IRON_E_IO, IRON_NO_SPACE, "the disk of %.120s is full",
                              db->path);
    }
    sqlite3_wal_hook(db->handle, note_frames, db);
    return IRON_OK;
}

static void disconnect(iron__database *db) {
    sqlite3_close(db->handle);
    db->handle = NULL;
    if (db->shared_memory >= 0)
        close(db->shared_memory);
    db->shared_memory = -1;
}

/* Opens the connection. Its shared memory is a file: on a full disk the writer's connection gets
 * room from the reserve. If the reserve is used up, too, it keeps that memory on the heap, which
 * only a single connection can do. */
static iron_status connect_to(iron__database *db, iron__reserve *reserve, iron_error *err) {
    iron_error why = {0};
    iron_status status;

    if (reserve && reserve->wanted > 0) {
        const uint64_t held = reserve->held;

        if (iron__reserve_grow(reserve, held + SHARED_MEMORY))
            iron__reserve_trim(reserve, held);
        else
            db->is_alone = !iron__reserve_give(reserve);
    }
    for (;;) {
        status = open_handle(db, "open the database", &why);
        if (status == IRON_OK)
            status = configure(db, reserve, &why);
        if (status == IRON_OK || !reserve || !iron__is_no_space(&why) ||
            (!iron__reserve_give(reserve) && db->is_alone))
            break;
        db->is_alone = reserve->held == 0;
        disconnect(db);
    }
    if (status != IRON_OK && err)
        *err = why;
    return status;
}

void iron__database_close(iron__database *db, bool flush_log) {
    if (!db)
        return;
    for (size_t k = 0; k < IRON_SQL_COUNT; k++)
        sqlite3_finalize(db->statements[k]);
    if (flush_log)
        sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    disconnect(db);
    if (db->directory_lock >= 0)
        close(db->directory_lock);
    if (db->own_lock >= 0)
        close(db->own_lock);
    free(db->path);
    free(db);
}

/* Locks the directory, creates or checks the file, and opens the reserve. */
static iron_status prepare_directory(iron__store *store, iron__database *db, iron_error *err) {
    IRON_TRY(lock_directory(store->directory, db, err));
    IRON_TRY(check_or_create(store->directory, db->path, err));
    store->directory_fd = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->directory_fd < 0)
        return iron__fail_path(err, "open", store->directory, errno);
    iron__reserve_open(&store->reserve, store->directory_fd, store->options.reserve_bytes);
    return IRON_OK;
}

/* The writer's connection prepares the directory, and copies the log into the file so that
 * everything that is read is on the disk. Other connections only read. */
static iron_status database_open(iron__store *store, bool is_writer, iron__database **out,
                                 iron_error *err) {
    iron__database *db = calloc(1, sizeof *db);
    iron_status status = IRON_OK;

    *out = NULL;
    if (!db || !(db->path = iron__print("%s/iron.db", store->directory))) {
        free(db);
        return iron__no_memory(err, "a connection to the database");
    }
    db->directory_lock = db->own_lock = db->shared_memory = -1;
    if (is_writer)
        status = prepare_directory(store, db, err);
    if (status == IRON_OK)
        status = connect_to(db, is_writer ? &store->reserve : NULL, err);
    if (status == IRON_OK && is_writer)
        status = iron__marker_check(store, db, err);
    if (status == IRON_OK && is_writer)
        status = flush_at_start(store, db, err);
    if (status != IRON_OK)
        iron__database_close(db, false);
    else
        *out = db;
    return status;
}

iron_status iron__database_open_to_read(iron__store *store, bool is_unused, iron__database **out,
                                        iron_error *err) {
    char *path = iron__print("%s/iron.db", store->directory);
    char *log = iron__print("%s/iron.db-wal", store->directory);
    iron_status status;

    *out = NULL;
    status = path && log ? check_header(path, err) : iron__no_memory(err, "a file name");
    if (status == IRON_OK && is_unused)
        status = check_log(log, err);
    if (status == IRON_OK)
        status = database_open(store, false, out, err);
    free(path);
    free(log);
    return status;
}

/* Rows of feeds. */

iron_status iron__feed_row_step(iron__database *db, sqlite3_stmt *s, iron__feed_row *row,
                                bool *found, iron_error *err) {
    iron__checkpoint *after;
    bool has_key, is_key_right;

    IRON_TRY(iron__sql_step(db, s, found, "read a feed", err));
    if (!*found)
        return IRON_OK;
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
    row->after.feeds = row->number;
    row->after.state = iron__column_word(s, 10);
    row->after.changed_ms = iron__column_word(s, 18);
    after = &row->after.checkpoint;
    after->closed = (iron__contribution){row->position + row->fed.count, iron__column_word(s, 9),
                                         (uint32_t)iron__column_word(s, 8)};
    after->batches = row->first_batch + row->batches;
    after->seal = iron__seal_of_count(after->closed.count);
    after->seal.words.t = iron__column_word(s, 11);
    after->seal.words.a = iron__column_word(s, 12);
    after->seal.words.b = iron__column_word(s, 13);
    for (int k = 0; k < 3; k++)
        after->seal.carry[k] = (uint32_t)iron__column_word(s, 14 + k);
    has_key = sqlite3_column_type(s, 17) != SQLITE_NULL;
    is_key_right = !has_key || (iron__column_text(s, 17, row->key, sizeof row->key) && row->key[0]);
    if (is_key_right && iron__column_word(s, 21) == iron__feed_row_check(row))
        return IRON_OK;
    iron__fail(err, IRON_E_FORMAT, 0,
               "feed %" PRIu64 " of engine %" PRIu64 " in %.100s is damaged; restore a backup",
               row->number, row->engine, db->path);
    sqlite3_reset(s);
    return IRON_E_FORMAT;
}

iron_status iron__feed_by_number(iron__database *db, uint64_t engine, uint64_t number,
                                 iron__feed_row *row, bool *found, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_FEED_BY_NUMBER, IRON_WORDS(engine, number), err);

    IRON_TRY(iron__feed_row_step(db, s, row, found, err));
    IRON_FAIL_IF(*found && (row->engine != engine || row->number != number), err, IRON_E_FORMAT,
                 "the index of the feeds of engine %" PRIu64
                 " in %.100s is damaged; restore a backup",
                 engine, db->path);
    return IRON_OK;
}

/* Failure. */

iron_status iron__store_failure(iron__store *store, iron_error *why) {
    iron_status status;

    if (!atomic_load(&store->has_failed))
        return IRON_OK;
    pthread_mutex_lock(&store->lock);
    status = store->failure.status;
    if (why)
        *why = store->failure;
    pthread_mutex_unlock(&store->lock);
    return status;
}

iron_status iron__store_full(iron__store *store, iron_error *why) {
    if (!atomic_load(&store->is_full))
        return IRON_OK;
    return iron__fail(why, IRON_E_IO, IRON_NO_SPACE,
                      "the disk of %.100s is full; %" PRIu64
                      " MiB are kept for deleting engines: delete some, or free space",
                      store->directory, atomic_load(&store->reserve_held) >> 20);
}

/* Change notifications. */

uint64_t iron__store_wait(iron__store *store, uint64_t seen, uint32_t milliseconds) {
    struct timespec deadline = iron__deadline_after(milliseconds * UINT64_C(1000000));
    bool is_over = false;

    pthread_mutex_lock(&store->change_lock);
    atomic_fetch_add(&store->waiting, 1);
    while (atomic_load(&store->changes) == seen && !atomic_load(&store->is_stopping) && !is_over)
        is_over = pthread_cond_timedwait(&store->change_came, &store->change_lock, &deadline) != 0;
    atomic_fetch_sub(&store->waiting, 1);
    pthread_mutex_unlock(&store->change_lock);
    return atomic_load(&store->changes);
}

/* The list of engines, sorted by name. */

/* The index of the name, or where it would be inserted. Called with the lock held. */
static size_t find_name(const iron__store *store, const char *name) {
    size_t low = 0, high = store->engine_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(store->engines[middle]->plan.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

iron_status iron__store_reserve_list(iron__store *store, size_t count, iron_error *err) {
    iron__store_engine **engines;

    if (count <= store->engines_room)
        return IRON_OK;
    engines = realloc(store->engines, count * sizeof(iron__store_engine *));
    IRON_FAIL_IF(!engines, err, IRON_E_NOMEM, "out of memory for a list of %zu engines", count);
    store->engines = engines;
    store->engines_room = count;
    return IRON_OK;
}

void iron__store_add_engine(iron__store *store, iron__store_engine *entry) {
    size_t at;

    pthread_mutex_lock(&store->lock);
    at = find_name(store, entry->plan.name);
    memmove(store->engines + at + 1, store->engines + at,
            (store->engine_count - at) * sizeof(iron__store_engine *));
    store->engines[at] = entry;
    store->engine_count++;
    pthread_mutex_unlock(&store->lock);
    iron__store_notify(store);
}

void iron__store_remove_engine(iron__store *store, iron__store_engine *entry) {
    size_t at;

    pthread_mutex_lock(&store->lock);
    at = find_name(store, entry->plan.name);
    assert(at < store->engine_count && store->engines[at] == entry);
    store->engine_count--;
    memmove(store->engines + at, store->engines + at + 1,
            (store->engine_count - at) * sizeof(iron__store_engine *));
    pthread_mutex_unlock(&store->lock);
    iron__store_notify(store);
    iron__store_engine_release(entry);
}

iron__store_engine *iron__store_find(iron__store *store, const char *name) {
    iron__store_engine *entry = NULL;
    size_t at;

    pthread_mutex_lock(&store->lock);
    at = find_name(store, name);
    if (at < store->engine_count && strcmp(store->engines[at]->plan.name, name) == 0)
        entry = iron__store_engine_retain(store->engines[at]);
    pthread_mutex_unlock(&store->lock);
    return entry;
}

size_t iron__store_list(iron__store *store, iron__store_engine **out, size_t room) {
    size_t count;

    pthread_mutex_lock(&store->lock);
    count = store->engine_count;
    for (size_t k = 0; k < count && k < room; k++)
        out[k] = iron__store_engine_retain(store->engines[k]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

size_t iron__store_stamps(iron__store *store, iron__engine_stamp *out, size_t room) {
    size_t count;

    pthread_mutex_lock(&store->lock);
    count = store->engine_count;
    for (size_t k = 0; k < count && k < room; k++) {
        iron__store_engine *entry = store->engines[k];

        out[k] = (iron__engine_stamp){.id = entry->id, .changes = atomic_load(&entry->changes)};
        memcpy(out[k].name, entry->plan.name, sizeof out[k].name);
    }
    pthread_mutex_unlock(&store->lock);
    return count;
}

/* Inspection. Rows are verified when they are read, but an index that no longer leads to a row
 * would let a key be used twice, and only a check of the whole file finds that. It takes about a
 * second for a million feeds. A small file is inspected before it is used; a large one while it is
 * used, by a thread that only reads, and damage makes the store read-only like a failed write. */

iron_status iron__database_inspect(iron__database *db, iron_error *err) {
    char answer[100];

    IRON_TRY(
        read_text(db, "PRAGMA integrity_check(1)", answer, sizeof answer, "inspect the file", err));
    IRON_FAIL_IF(strcmp(answer, "ok") != 0, err, IRON_E_FORMAT,
                 "%.90s is damaged (%s); restore a backup", db->path, answer);
    return IRON_OK;
}

static int report_inspecting(void *context) {
    iron__store_report_loading(context);
    return 0;
}

static int is_inspection_stopped(void *context) {
    return atomic_load(&((iron__store *)context)->inspection_stops);
}

static void *inspect_in_background(void *context) {
    iron__store *store = context;
    iron__database *db = NULL;
    iron_error why = {0};
    iron_status status = database_open(store, false, &db, &why);

    if (status == IRON_OK) {
        sqlite3_progress_handler(db->handle, INSPECTION_STEPS, is_inspection_stopped, store);
        status = iron__database_inspect(db, &why);
    }
    if (status != IRON_OK && status != IRON_E_CANCELLED)
        iron__store_fail(store, &why);
    iron__database_close(db, false);
    atomic_store(&store->inspection_is_over, true);
    return NULL;
}

/* Opening and closing. */

/* Without any room there is no new marker; the next start makes one. */
static iron_status begin_marker(iron__store *store, iron_error *err) {
    iron_error why = {0};

    while (iron__marker_begin(store, &why) != IRON_OK) {
        iron__marker_close(&store->marker);
        if (!iron__is_no_space(&why))
            return iron__fail_again(err, &why);
        if (!iron__reserve_give(&store->reserve))
            return unlinkat(store->directory_fd, "marker", 0) == 0 || errno == ENOENT
                       ? IRON_OK
                       : iron__fail(err, IRON_E_IO, errno, "cannot remove the marker");
    }
    return IRON_OK;
}

static iron_status open_all(iron__store *store, iron_error *err) {
    iron__store_ledger ledger;
    uint64_t pages = 0;
    bool found;
    int code;

    IRON_TRY(database_open(store, true, &store->db, err));
    if (store->db->is_alone)
        store->reader = store->db;
    else
        IRON_TRY(database_open(store, false, &store->reader, err));
    IRON_TRY(iron__sql_number(store->db, IRON_SQL_PAGES, IRON_NO_WORDS, &found, &pages,
                              "inspect the file", err));
    store->is_inspected = pages * IRON_PAGE_BYTES <= store->options.inspected_bytes;
    if (store->is_inspected) {
        sqlite3_progress_handler(store->db->handle, INSPECTION_STEPS, report_inspecting, store);
        IRON_TRY(iron__database_inspect(store->db, err));
        sqlite3_progress_handler(store->db->handle, 0, NULL, NULL);
    }
    IRON_TRY(iron__store_load(store, &ledger, err));
    IRON_TRY(begin_marker(store, err));
    IRON_TRY(iron__writer_start(store, &ledger, err));
    if (store->is_inspected || store->db->is_alone)
        return IRON_OK;
    code = pthread_create(&store->inspector, NULL, inspect_in_background, store);
    if (code != 0)
        return iron__fail(err, IRON_E_NOMEM, code, "cannot create the inspection thread: %s",
                          strerror(code));
    store->has_inspector = true;
    return IRON_OK;
}

/* In the order of dependence: the writer uses engines, engines use the store. */
static void store_destroy(iron__store *store) {
    bool flush_log;

    atomic_store(&store->inspection_stops, true);
    if (store->has_inspector)
        pthread_join(store->inspector, NULL);
    flush_log = store->writer != NULL;
    iron__writer_stop(store->writer);
    for (size_t k = 0; k < store->engine_count; k++)
        iron__store_engine_release(store->engines[k]);
    if (store->reader != store->db)
        iron__database_close(store->reader, false);
    iron__database_close(store->db, flush_log && !atomic_load(&store->has_failed));
    iron__reserve_close(&store->reserve);
    iron__marker_close(&store->marker);
    if (store->directory_fd >= 0)
        close(store->directory_fd);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->read_lock);
    pthread_cond_destroy(&store->change_came);
    pthread_mutex_destroy(&store->change_lock);
    free(store->engines);
    free(store->open_uploads);
    free(store->directory);
    free(store);
}

iron_status iron__store_open(const iron__store_options *options, iron__store **out,
                             iron_error *err) {
    iron__store_options *o;
    iron__store *store;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_NEW(&store, 1, "a store", err));
    store->directory_fd = store->reserve.fd = store->marker.fd = store->marker.log_fd = -1;
    o = &store->options;
    *o = *options;
    o->engines_max = o->engines_max ? o->engines_max : 256;
    o->nodes_max = o->nodes_max ? o->nodes_max : UINT64_C(1) << 24;
    o->uploads_max = o->uploads_max ? o->uploads_max : 64;
    o->inspected_bytes = o->inspected_bytes ? o->inspected_bytes : UINT64_C(1) << 28;
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->read_lock, NULL);
    pthread_mutex_init(&store->change_lock, NULL);
    iron__condition_init(&store->change_came);
    o->directory = store->directory = strdup(options->directory);
    store->open_uploads = calloc(o->uploads_max, sizeof *store->open_uploads);
    status = store->directory && store->open_uploads ? open_all(store, err)
                                                     : iron__no_memory(err, "a store");
    if (status == IRON_OK)
        *out = store;
    else
        store_destroy(store);
    return status;
}

void iron__store_stop(iron__store *store) {
    atomic_store(&store->is_stopping, true);
    iron__store_wake(store);
    pthread_mutex_lock(&store->lock);
    for (size_t k = 0; k < store->engine_count; k++) {
        iron__store_engine *entry = store->engines[k];

        pthread_mutex_lock(&entry->lock);
        pthread_cond_broadcast(&entry->changed);
        pthread_mutex_unlock(&entry->lock);
    }
    pthread_mutex_unlock(&store->lock);
}

void iron__store_close(iron__store *store) {
    if (!store)
        return;
    assert(atomic_load(&store->feeds_open) == 0);
    iron__store_stop(store);
    store_destroy(store);
}

/* The latency histogram. */

const uint32_t iron__latency_edges_us[IRON_LATENCY_BUCKETS - 1] = {
    500,    1000,   2500,    5000,    10000,   25000,    50000,    100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000};

void iron__latency_count(iron__latency *latency, uint64_t ns) {
    uint32_t k = 0;

    while (k + 1 < IRON_LATENCY_BUCKETS && ns > iron__latency_edges_us[k] * UINT64_C(1000))
        k++;
    atomic_fetch_add_explicit(&latency->buckets[k], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&latency->ns, ns, memory_order_relaxed);
}

void iron__latency_add(const iron__latency *latency, iron__latency_view *view) {
    for (uint32_t k = 0; k < IRON_LATENCY_BUCKETS; k++)
        view->buckets[k] += atomic_load_explicit(&latency->buckets[k], memory_order_relaxed);
    view->ns += atomic_load_explicit(&latency->ns, memory_order_relaxed);
}
