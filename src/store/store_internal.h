/* SPDX-License-Identifier: MIT */
/*
 * store_internal.h: types and functions shared by the files of this folder.
 *
 *   store.c      the database and its rows, the list of engines, opening and closing
 *   engines.c    engines, feeds, and the writer thread: group commit, snapshots, cleanup
 *   runs.c       the records of training runs
 *   recovery.c   loading engines at start, and reading an engine's history
 *   reserve.c    disk space that is kept for what makes room
 *   marker.c     what has been acknowledged, to notice a lost log
 *   backup.c     copying and verifying a data directory
 *
 * Locking: the fields of the writer belong to its thread; the published fields of an engine are
 * guarded by the engine's lock, the list of engines by the store's. Locks are taken in the order
 * store, engine, and never held while something is written to the disk.
 */
#ifndef IRON_STORE_STORE_INTERNAL_H
#define IRON_STORE_STORE_INTERNAL_H

#include "engine/checkpoint.h"
#include "store/store.h"

#include <iron/iron_server.h>

#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <time.h>

#define IRON_IDLE_FORKS 4u /* at most per engine */

/* The received bytes of a large body collect in an aligned buffer and are reduced when it is full.
 * Long runs are worth the copy: beside curl on two cores, 4 GiB took 2.4 s in runs of 64 KiB and
 * 1.3 s in runs of 1 MiB. */
#define IRON_UPLOAD_BUFFER_BYTES ((size_t)1 << 20)

/* Rows. A row of `feeds` says where the feed began, what it added, and the whole engine after it
 * except the nodes; so the rows form a chain in which each follows from the one before. The
 * contributions of its batches, 12 bytes each, are in the row; those of a large feed are in blocks
 * of IRON_BLOCK_BATCHES, written while the body streamed in, and the row holds the rest. */

#define IRON_BATCH_BYTES   12u /* xor u32, sum u64, little-endian; the count follows from the row */
#define IRON_BLOCK_BATCHES 4096u
#define IRON_BLOCK_BYTES   ((size_t)IRON_BLOCK_BATCHES * IRON_BATCH_BYTES)

/* An engine after a feed, except for its nodes. All zeros with the right `state`: a new engine. */
typedef struct iron__engine_summary {
    iron__checkpoint checkpoint;
    uint64_t feeds; /* number of the last feed, 0 before the first */
    uint64_t state; /* hash of the nodes */
    uint64_t changed_ms;
} iron__engine_summary;

typedef struct iron__feed_row {
    uint64_t engine, number; /* numbers count from 1 */
    uint64_t position, first_batch, batches;
    iron__contribution fed; /* of this feed alone; .count is its tokens */
    iron__engine_summary after;
    char key[IRON_FEED_KEY_MAX + 1]; /* or "" */
    bool has_blocks;
    uint64_t upload;                  /* with blocks: their id */
    const unsigned char *batch_bytes; /* of the batches that are not in blocks; borrowed */
    size_t batch_bytes_count;
} iron__feed_row;

typedef struct iron__snapshot_row {
    uint64_t engine, number, state;
    const unsigned char *bytes; /* borrowed */
    size_t count;
} iron__snapshot_row;

typedef struct iron__engine_row {
    uint64_t id, created_ms;
    iron__store_plan plan;
} iron__engine_row;

/* The expected content of the table of engines: without it a missing row would go unnoticed. */
typedef struct iron__store_ledger {
    uint64_t engines;       /* how many */
    uint64_t engines_check; /* their check words, XORed */
    uint64_t next_engine;   /* ids are never reused */
} iron__store_ledger;

static inline void iron__batch_encode(unsigned char *to, iron__contribution batch) {
    for (unsigned k = 0; k < 4; k++)
        to[k] = (unsigned char)(batch.xors >> 8 * k);
    for (unsigned k = 0; k < 8; k++)
        to[4 + k] = (unsigned char)(batch.sum >> 8 * k);
}

static inline iron__contribution iron__batch_decode(const unsigned char *from, uint64_t tokens) {
    iron__contribution batch = {.count = tokens};

    assert(from);
    for (unsigned k = 0; k < 4; k++)
        batch.xors |= (uint32_t)from[k] << 8 * k;
    for (unsigned k = 0; k < 8; k++)
        batch.sum |= (uint64_t)from[4 + k] << 8 * k;
    return batch;
}

static inline bool iron__contributions_equal(const iron__contribution *x,
                                             const iron__contribution *y) {
    return x->count == y->count && x->sum == y->sum && x->xors == y->xors;
}

/* A seal with the right number of tokens and nothing else. */
static inline iron__seal iron__seal_of_count(uint64_t tokens) {
    return (iron__seal){.words = {.count = tokens - tokens % 4}, .carried = (uint32_t)(tokens % 4)};
}

/* Connections (store.c). */

#define IRON_DATABASE_ID 0x49524f4e /* "IRON" */
#define IRON_PAGE_BYTES  4096

/* The write-ahead log: a header, then frames of a header and a page. */
#define IRON_LOG_HEADER_BYTES 32u
#define IRON_LOG_FRAME_BYTES  (24u + IRON_PAGE_BYTES)

/* The owner after ?1 of rows of a table; and the deletion of its first ?2 rows. */
#define IRON_SQL_NEXT(table, owner)                                                                \
    "SELECT " owner " FROM " table " WHERE " owner " > ?1 ORDER BY " owner " LIMIT 1"
#define IRON_SQL_CLEAN(table, owner)                                                               \
    "DELETE FROM " table " WHERE " owner " = ?1 AND number < (SELECT number FROM " table           \
    " WHERE " owner " = ?1 ORDER BY number LIMIT 1) + ?2"

/* Every statement. Each is prepared when it is first used, and then kept. Columns are in the order
 * of the schema in store.c, and of the MAKE statements. FEEDS_TRIM looks at the
 * first ?2 feeds: it removes those that a snapshot and ?3 batches follow, none of them after ?4. */
#define IRON_SQL_MAP(X)                                                                            \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(PAGES, "PRAGMA page_count")                                                                  \
    X(FREE_PAGES, "PRAGMA freelist_count")                                                         \
    X(NEXT_ENGINE, "SELECT next_engine FROM ledger WHERE id = 1")                                  \
    X(FEED_LAST, "SELECT number FROM feeds WHERE engine = ?1 ORDER BY number DESC LIMIT 1")        \
    X(FEED_FIRST, "SELECT number FROM feeds WHERE engine = ?1 ORDER BY number LIMIT 1")            \
    X(FEED_FORGET_KEY, "UPDATE feeds SET key = NULL, check_word = ?3 WHERE engine = ?1 AND "       \
                       "number = ?2")                                                              \
    X(FEED_END, "SELECT position + tokens FROM feeds WHERE engine = ?1 AND number = ?2")           \
    X(CLAIMS, "SELECT id, coalesce(number, 0), coalesce(position + tokens, 0), name FROM engines " \
              "LEFT JOIN feeds ON engine = id AND number = (SELECT max(number) FROM feeds WHERE "  \
              "engine = id)")                                                                      \
    X(LEDGER_READ, "SELECT engines, engines_check, next_engine, check_word FROM ledger "           \
                   "WHERE id = 1")                                                                 \
    X(LEDGER_WRITE, "UPDATE ledger SET engines = ?1, engines_check = ?2, next_engine = ?3, "       \
                    "check_word = ?4 WHERE id = 1")                                                \
    X(ENGINES, "SELECT * FROM engines ORDER BY id")                                                \
    X(ENGINE_INSERT,                                                                               \
      "INSERT INTO engines (id, nodes, vocab, batch, positions, device, created_ms, "              \
      "check_word, name, mode, backend, lattice) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "             \
      "?8, ?9, ?10, ?11, ?12)")                                                                    \
    X(ENGINE_DELETE, "DELETE FROM engines WHERE id = ?1")                                          \
    X(ENGINE_EXISTS, "SELECT 1 FROM engines WHERE id = ?1")                                        \
    X(FEED_INSERT, "INSERT INTO feeds VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, " \
                   "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)")                            \
    X(FEED_BY_KEY, "SELECT * FROM feeds WHERE engine = ?1 AND key = ?2")                           \
    X(FEED_BY_NUMBER, "SELECT * FROM feeds WHERE engine = ?1 AND number = ?2")                     \
    X(FEEDS_AFTER, "SELECT * FROM feeds WHERE engine = ?1 AND number > ?2 ORDER BY number")        \
    X(BLOCK_INSERT, "INSERT INTO blocks (upload, number, check_word, contributions) "              \
                    "VALUES (?1, ?2, ?3, ?4)")                                                     \
    X(BLOCK_READ, "SELECT contributions, check_word FROM blocks WHERE upload = ?1 AND "            \
                  "number = ?2")                                                                   \
    X(UPLOAD_LAST, "SELECT max(coalesce((SELECT max(upload) FROM blocks), 0), "                    \
                   "coalesce((SELECT max(upload) FROM feeds WHERE upload IS NOT NULL), 0))")       \
    X(SNAPSHOT_INSERT, "INSERT OR REPLACE INTO snapshots (engine, number, state, check_word, "     \
                       "bytes) VALUES (?1, ?2, ?3, ?4, ?5)")                                       \
    X(SNAPSHOT_READ, "SELECT number, state, bytes, check_word FROM snapshots WHERE engine = ?1 "   \
                     "AND number BETWEEN ?2 AND ?3 ORDER BY number DESC LIMIT 1")                  \
    X(SNAPSHOT_PRUNE, "DELETE FROM snapshots WHERE engine = ?1 AND number < (SELECT number FROM "  \
                      "snapshots WHERE engine = ?1 ORDER BY number DESC LIMIT 1 OFFSET 1)")        \
    X(FEEDS_NEXT_ENGINE, IRON_SQL_NEXT("feeds", "engine"))                                         \
    X(FEEDS_CLEAN, IRON_SQL_CLEAN("feeds", "engine"))                                              \
    X(FEEDS_TRIM,                                                                                  \
      "DELETE FROM feeds WHERE engine = ?1 AND number < (SELECT number FROM feeds WHERE "          \
      "engine = ?1 ORDER BY number LIMIT 1) + ?2 AND number < (SELECT max(number) FROM snapshots " \
      "WHERE engine = ?1) AND number < coalesce((SELECT number FROM (SELECT number, time_ms, "     \
      "first_batch + batches AS end FROM feeds WHERE engine = ?1 ORDER BY number LIMIT ?2) WHERE " \
      "time_ms > ?4 OR end > (SELECT first_batch + batches FROM feeds WHERE engine = ?1 ORDER BY " \
      "number DESC LIMIT 1) - ?3 ORDER BY number LIMIT 1), 9223372036854775807)")                  \
    X(SNAPSHOTS_NEXT_ENGINE, IRON_SQL_NEXT("snapshots", "engine"))                                 \
    X(SNAPSHOTS_CLEAN, IRON_SQL_CLEAN("snapshots", "engine"))                                      \
    X(BLOCKS_NEXT_UPLOAD, IRON_SQL_NEXT("blocks", "upload"))                                       \
    X(BLOCKS_CLEAN, IRON_SQL_CLEAN("blocks", "upload"))                                            \
    X(UPLOAD_EXISTS, "SELECT 1 FROM feeds WHERE upload = ?1")                                      \
    X(HAS_RUNS, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'runs'")              \
    X(MAKE_RUNS, "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY AUTOINCREMENT, name "    \
                 "TEXT NOT NULL UNIQUE, created_ms INTEGER NOT NULL, changed_ms INTEGER NOT "      \
                 "NULL, ranks INTEGER NOT NULL, records INTEGER NOT NULL, bytes INTEGER NOT "      \
                 "NULL, check_word INTEGER NOT NULL) STRICT")                                      \
    X(MAKE_RANKS,                                                                                  \
      "CREATE TABLE IF NOT EXISTS run_ranks (run INTEGER NOT NULL, rank INTEGER NOT NULL, world "  \
      "INTEGER NOT NULL, records INTEGER NOT NULL, steps INTEGER NOT NULL, bytes INTEGER NOT "     \
      "NULL, last_time INTEGER NOT NULL, last_kind INTEGER NOT NULL, last_step INTEGER NOT NULL, " \
      "last_hi INTEGER NOT NULL, last_lo INTEGER NOT NULL, records_check INTEGER NOT NULL, "       \
      "check_word INTEGER NOT NULL, PRIMARY KEY (run, rank)) STRICT, WITHOUT ROWID")               \
    X(MAKE_RECORDS,                                                                                \
      "CREATE TABLE IF NOT EXISTS run_records (run INTEGER NOT NULL, rank INTEGER NOT NULL, time " \
      "INTEGER NOT NULL, hi INTEGER NOT NULL, lo INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY "  \
      "KEY (run, rank, time, hi, lo)) STRICT, WITHOUT ROWID")                                      \
    X(MAKE_RECORDS_INDEX, "CREATE UNIQUE INDEX IF NOT EXISTS run_records_content ON run_records "  \
                          "(run, rank, hi, lo)")                                                   \
    X(RUNS, "SELECT * FROM runs ORDER BY name")                                                    \
    X(RUN_BY_NAME, "SELECT * FROM runs WHERE name = ?1")                                           \
    X(RUN_COUNT, "SELECT count(*) FROM runs")                                                      \
    X(RUN_EXISTS, "SELECT 1 FROM runs WHERE id = ?1")                                              \
    X(RUN_INSERT, "INSERT INTO runs (created_ms, changed_ms, ranks, records, bytes, check_word, "  \
                  "name) VALUES (?1, ?1, 0, 0, 0, 0, ?2)")                                         \
    X(RUN_UPDATE, "UPDATE runs SET changed_ms = ?2, ranks = ?3, records = ?4, bytes = ?5, "        \
                  "check_word = ?6 WHERE id = ?1")                                                 \
    X(RUN_DELETE, "DELETE FROM runs WHERE id = ?1")                                                \
    X(RANKS, "SELECT * FROM run_ranks WHERE run = ?1 AND rank >= ?2 ORDER BY rank")                \
    X(RANK_WRITE, "INSERT OR REPLACE INTO run_ranks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "  \
                  "?10, ?11, ?12, ?13)")                                                           \
    X(RECORD_TIME, "SELECT time FROM run_records WHERE run = ?1 AND rank = ?2 AND hi = ?3 AND "    \
                   "lo = ?4")                                                                      \
    X(RECORD_INSERT, "INSERT INTO run_records VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                    \
    X(RECORDS_AFTER, "SELECT rank, time, hi, lo, bytes FROM run_records WHERE run = ?1 AND "       \
                     "(rank, time, hi, lo) > (?2, ?3, ?4, ?5) ORDER BY rank, time, hi, lo")        \
    X(RECORDS_NEXT_RUN, IRON_SQL_NEXT("run_records", "run"))                                       \
    X(RECORDS_CLEAN, "DELETE FROM run_records WHERE run = ?1 AND (rank, time, hi, lo) IN (SELECT " \
                     "rank, time, hi, lo FROM run_records WHERE run = ?1 LIMIT ?2)")               \
    X(RANKS_NEXT_RUN, IRON_SQL_NEXT("run_ranks", "run"))                                           \
    X(RANKS_CLEAN, "DELETE FROM run_ranks WHERE run = ?1 AND rank IN (SELECT rank FROM run_ranks " \
                   "WHERE run = ?1 LIMIT ?2)")

typedef enum iron__sql {
#define IRON_SQL_ENUM(name, text) IRON_SQL_##name,
    IRON_SQL_MAP(IRON_SQL_ENUM)
#undef IRON_SQL_ENUM
        IRON_SQL_COUNT
} iron__sql;

typedef struct iron__reserve iron__reserve;

typedef struct iron__database {
    sqlite3 *handle;
    sqlite3_stmt *statements[IRON_SQL_COUNT];
    char *path;
    int directory_lock; /* of the writer's connection; else -1 */
    int shared_memory;  /* a descriptor of the writer's, or -1 */
    int own_lock;       /* the same, of the directory itself */
    int wal_frames;     /* in the log after the last commit */
    bool is_flushing;   /* the log is being copied into the file */
    bool is_alone;      /* without shared memory, for lack of space: no other can be opened */
} iron__database;

/* An error of a connection whose cause is a full disk or quota. */
#define IRON_NO_SPACE (SQLITE_FULL | 1 << 8) /* its `native`; no code of SQLite's */
static inline bool iron__is_no_space(const iron_error *err) {
    return err->status == IRON_E_IO && err->native == IRON_NO_SPACE;
}

/* The statement with words as its parameters ?1, ?2, ... NULL, with err filled, if its tables are
 * missing; that may be bound to, and iron__sql_step fails. */
sqlite3_stmt *iron__sql_ready(iron__database *db, iron__sql which, const uint64_t *words, int count,
                              iron_error *err);
#define IRON_WORDS(...)                                                                            \
    (const uint64_t[]){__VA_ARGS__},                                                               \
        (int)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
#define IRON_NO_WORDS NULL, 0
/* Steps once; at the end *has_row is false and the statement is reset. */
iron_status iron__sql_step(iron__database *db, sqlite3_stmt *statement, bool *has_row,
                           const char *doing, iron_error *err);
/* Reads one number; *found is false, and *number unchanged, if there is no row. */
iron_status iron__sql_number(iron__database *db, iron__sql which, const uint64_t *words, int count,
                             bool *found, uint64_t *number, const char *doing, iron_error *err);
/* Steps a statement to the end. */
iron_status iron__sql_finish(iron__database *db, sqlite3_stmt *statement, const char *doing,
                             iron_error *err);
iron_status iron__sql_run(iron__database *db, iron__sql which, const uint64_t *words, int count,
                          const char *doing, iron_error *err);
/* Resets all statements: ends the read transaction and invalidates rows that were read. */
void iron__database_reset(iron__database *db);
/* Copies the log into the file (a WAL checkpoint). Pages that another connection still reads stay
 * in the log; *is_complete (or NULL) tells. */
iron_status iron__database_flush_log(iron__database *db, int mode, bool *is_complete,
                                     iron_error *err);

/* Empties it, if no other connection reads it, with room from the reserve. err is needed. */
iron_status iron__database_empty_log(iron__database *db, iron__reserve *reserve, bool *is_complete,
                                     iron_error *err);

/* A connection that only reads the store's directory; is_unused: no server runs, the log is checked
 * as at start. */
iron_status iron__database_open_to_read(iron__store *store, bool is_unused, iron__database **out,
                                        iron_error *err);
void iron__database_close(iron__database *db, bool flush_log); /* NULL is fine */
/* SQLite's check of the whole file. */
iron_status iron__database_inspect(iron__database *db, iron_error *err);

/* SQLite's integers are signed; 64-bit words keep their bits. */
static inline void iron__bind_word(sqlite3_stmt *s, int at, uint64_t word) {
    sqlite3_bind_int64(s, at, (sqlite3_int64)word);
}

static inline uint64_t iron__column_word(sqlite3_stmt *s, int at) {
    return (uint64_t)sqlite3_column_int64(s, at);
}

/* Copies the text of a column; false unless it fits and contains no zero byte. */
static inline bool iron__column_text(sqlite3_stmt *s, int at, char *to, size_t room) {
    const char *text = (const char *)sqlite3_column_text(s, at);
    size_t length = (size_t)sqlite3_column_bytes(s, at);

    if (!text || length >= room || strlen(text) != length)
        return false;
    memcpy(to, text, length + 1);
    return true;
}

/* Check words and feed rows (store.c). Pointers in a row that was read are valid until the next
 * call on the connection. Damage is IRON_E_FORMAT and names the row. */

uint64_t iron__feed_row_check(const iron__feed_row *row);
uint64_t iron__block_check(uint64_t upload, uint64_t number, const unsigned char *bytes);
uint64_t iron__snapshot_check(const iron__snapshot_row *row);
uint64_t iron__engine_row_check(const iron__engine_row *row);
uint64_t iron__ledger_check(const iron__store_ledger *ledger);
uint64_t iron__run_check_words(const char *name, const uint64_t *words, int count);

/* The next row of a statement that selects feeds. */
iron_status iron__feed_row_step(iron__database *db, sqlite3_stmt *s, iron__feed_row *row,
                                bool *found, iron_error *err);
iron_status iron__feed_by_number(iron__database *db, uint64_t engine, uint64_t number,
                                 iron__feed_row *row, bool *found, iron_error *err);

/* Plans (store.c). */

/* What an engine of a plan is for. Results do not depend on the backend. */
typedef enum iron__plan_use {
    IRON_PLAN_LARGE, /* large bodies: as planned */
    IRON_PLAN_SMALL, /* small ones: on the CPU, in the plan's mode if that is one of the CPU */
    IRON_PLAN_CPU    /* what is not a feed: on the CPU */
} iron__plan_use;

/* Creates one, with one thread: many requests run at once. */
iron_status iron__store_plan_engine(const iron__store_plan *plan, iron__plan_use use,
                                    iron_engine **out, iron_error *err);

/* Engines (engines.c). */

typedef struct iron__node_arrays {
    uint32_t *xors;
    float *potentials;
} iron__node_arrays;

/* Tokens per second over about the last two seconds, counted without locks. Initially all zeros. */
#define IRON_RATE_SLOTS 16u

typedef struct iron__rate_counter {
    atomic_uint_fast64_t slots[IRON_RATE_SLOTS];
} iron__rate_counter;

/* An engine of the store. Called `entry` in the code, to tell it from the iron_engine it holds. */
struct iron__store_engine {
    iron__store *store;
    iron__store_plan plan;   /* as requested */
    iron__store_plan on_cpu; /* in_use if its device fails, with the name of the CPU */
    char cpu[96];
    uint64_t id, created_ms;
    uint64_t marker_slot; /* 0: none yet */
    atomic_uint references;

    /* used by the writer only */
    iron_engine *engine;         /* small bodies are applied to it; NULL: it failed */
    iron__engine_summary latest; /* with the feeds of the current transaction */
    iron__node_arrays latest_nodes;
    bool has_unpublished; /* latest and latest_nodes are newer than what is published */
    bool is_deleting;     /* deleted by the current transaction or before */
    uint64_t snapshot_batches, snapshot_feeds; /* contained in the newest snapshot */
    uint64_t snapshot_next;      /* feeds in the one of the current transaction; 0: none */
    uint64_t incoming_committed; /* tokens of large bodies committed but not published yet */

    iron__rate_counter rate_counter;
    atomic_uint_fast64_t incoming; /* tokens received of large bodies that are not published yet */
    atomic_uint_fast64_t changes;  /* incremented when a view may have changed */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    iron__engine_summary published;
    iron__node_arrays nodes;
    uint64_t version;
    bool is_deleted;
    iron__store_plan in_use; /* the plan with lattice, backend and mode resolved */
    char device[96];
    char device_failure[240]; /* why it was moved to the CPU, or "" */
    iron_engine *idle[IRON_IDLE_FORKS];
    uint32_t idle_count;
};

/* With one reference, in no list yet. `state` is an engine of this plan in the summary's state.
 * `engine`, which may be the same, is for small bodies; NULL: it could not be created. Takes it,
 * also when this fails. */
iron_status iron__store_engine_create(iron__store *store, const iron__engine_row *row,
                                      const iron__engine_summary *summary, iron_engine *state,
                                      iron_engine *engine, iron__store_engine **out,
                                      iron_error *err);

/* Opens the device of the plan, if it has one. If that fails, it is an error if is_needed; else the
 * engine moves to the CPU. The entry is in no list yet. */
iron_status iron__store_engine_open_device(iron__store_engine *entry, bool is_needed,
                                           iron_error *err);

static inline iron__store_engine *iron__store_engine_retain(iron__store_engine *entry) {
    atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
    return entry;
}

/* After its deletion, missing rows are not damage. */
static inline bool iron__store_engine_is_deleted(iron__store_engine *entry) {
    bool is_deleted;

    pthread_mutex_lock(&entry->lock);
    is_deleted = entry->is_deleted;
    pthread_mutex_unlock(&entry->lock);
    return is_deleted;
}

/* Disk space that is kept for what makes room (reserve.c). Used by one thread at a time. */

struct iron__reserve {
    int fd, directory;     /* fd -1: there is no file yet */
    uint64_t wanted, held; /* bytes; `held` are allocated */
};

/* Allocates nothing yet. The directory is borrowed. */
void iron__reserve_open(iron__reserve *r, int directory, uint64_t wanted);
void iron__reserve_close(iron__reserve *r);
/* How much must be free beyond the reserve before the disk no longer counts as full. */
uint64_t iron__reserve_headroom(const iron__reserve *r);
/* Allocates up to so many bytes in all; false: there is less. */
bool iron__reserve_grow(iron__reserve *r, uint64_t bytes);
/* Gives back what is above so many bytes. */
void iron__reserve_trim(iron__reserve *r, uint64_t bytes);
/* Gives a part back to the disk; false: nothing is left. */
bool iron__reserve_give(iron__reserve *r);

/* What has been acknowledged (marker.c). Used by one thread at a time. */

typedef struct iron__marker_slot {
    uint64_t id, feeds, tokens; /* of an engine; the header has the log's size in `tokens` */
    uint64_t is_deleted;
    char name[88];
    uint64_t check;
} iron__marker_slot;

typedef struct iron__marker {
    int fd, log_fd; /* -1: none */
    uint64_t log_bytes;
    uint64_t next_slot, *free_slots;
    size_t free_count;
} iron__marker;

/* Compares the database, as it was found, with the marker: IRON_E_FORMAT for a loss that is not
 * accepted. */
iron_status iron__marker_check(iron__store *store, iron__database *db, iron_error *err);
/* Writes a new one, for the engines that were loaded. */
iron_status iron__marker_begin(iron__store *store, iron_error *err);
/* Writes one for the engines in a database. */
iron_status iron__marker_of_rows(int directory, iron__database *db, iron_error *err);
/* After COMMIT: the state of an engine that was changed. */
iron_status iron__marker_write(iron__marker *m, iron__store_engine *entry, iron_error *err);
/* After COMMIT: the log has so many frames. */
iron_status iron__marker_cover(iron__store *store, uint64_t frames, iron_error *err);
/* Before the log is emptied. */
iron_status iron__marker_release_log(iron__marker *m, iron_error *err);
void iron__marker_close(iron__marker *m);

/* The writer (engines.c). */

typedef struct iron__writer iron__writer;

/* Starts the thread. Borrows the store's connection until it is stopped. */
iron_status iron__writer_start(iron__store *store, const iron__store_ledger *ledger,
                               iron_error *err);
/* Finishes the queue, takes snapshots of changed engines, flushes the log, ends. NULL is fine. */
void iron__writer_stop(iron__writer *writer);

/* Calls `write` within a transaction of the writer's; again if that is rolled back on a full disk.
 * Returns when it is durable. Unless it is growing, it removes, and cleanup follows. */
iron_status iron__store_write(iron__store *store, bool is_growing,
                              iron_status (*write)(iron__database *db, void *context,
                                                   iron_error *err),
                              void *context, iron_error *err);

/* Runs (runs.c): looks for their tables; and verifies all of them. */
iron_status iron__runs_load(iron__store *store, iron_error *err);
iron_status iron__runs_verify(iron__store *store, iron_server_verified *found, iron_error *err);

/* The store (store.c). */

struct iron__store {
    iron__store_options options;
    char *directory;
    iron__writer *writer;
    iron__database *db; /* the writer's */
    int directory_fd;
    iron__reserve reserve; /* the writer's, once it runs, as is the marker */
    iron__marker marker;

    pthread_mutex_t read_lock;
    iron__database *reader;

    pthread_mutex_t lock;         /* guards what follows, up to the failure */
    iron__store_engine **engines; /* by name; allocated: engines_room */
    size_t engine_count, engines_room;
    uint64_t planned_engines, planned_nodes; /* with those that are being created */
    iron__store_loading loading;             /* during iron__store_open */
    uint64_t *open_uploads;                  /* ids that have blocks but no feed yet; 0: free */
    iron_error failure;

    /* Change notifications: a counter, and the threads that wait for it to grow. */
    atomic_uint_fast64_t changes;
    atomic_uint waiting;
    pthread_mutex_t change_lock;
    pthread_cond_t change_came;

    bool is_inspected, has_inspector;
    pthread_t inspector;
    atomic_bool inspection_stops, inspection_is_over;

    atomic_bool has_failed, is_stopping;
    atomic_bool has_runs;             /* the tables of runs are there */
    atomic_bool is_full, is_cleaning; /* the disk is; rows of deleted engines are being removed */
    atomic_uint_fast64_t reserve_held;
    atomic_uint feeds_open, uploads, idle_forks;
    atomic_uint_fast64_t fork_nodes; /* of all forks, idle ones too */
    atomic_uint_fast64_t moved;      /* engines whose device failed */
    atomic_uint_fast64_t next_upload;
    atomic_uint_fast64_t outcomes[IRON_FEED_FAILED + 1];
    atomic_uint_fast64_t fed_feeds, fed_tokens, fed_bytes, fed_batches;
};

static inline void iron__store_note(iron__store *store, const char *sentence) {
    if (store->options.note)
        store->options.note(store->options.context, sentence);
}

/* Makes the store read-only, for the first of several reasons. */
static inline void iron__store_fail(iron__store *store, const iron_error *why) {
    pthread_mutex_lock(&store->lock);
    if (store->failure.status == IRON_OK)
        store->failure = *why;
    pthread_mutex_unlock(&store->lock);
    atomic_store(&store->has_failed, true);
}

/* Change notifications are numbered and carry no content: a waiter looks for itself, and is woken
 * once for many changes. Notifying takes one addition while no thread waits. No change is missed: a
 * waiter is counted before it reads the number, and iron__store_notify reads the count of waiters
 * after it has changed the number, so one of the two sees the other. */
static inline void iron__store_wake(iron__store *store) {
    pthread_mutex_lock(&store->change_lock);
    pthread_cond_broadcast(&store->change_came);
    pthread_mutex_unlock(&store->change_lock);
}

static inline void iron__store_notify(iron__store *store) {
    atomic_fetch_add(&store->changes, 1);
    if (atomic_load(&store->waiting) > 0)
        iron__store_wake(store);
}

/* Adds an engine to the list, which takes the reference; room must have been reserved. */
void iron__store_add_engine(iron__store *store, iron__store_engine *entry);
/* Takes it out of the list, and releases the list's reference. */
void iron__store_remove_engine(iron__store *store, iron__store_engine *entry);
/* Reserves room in the list for `count` engines in all. */
iron_status iron__store_reserve_list(iron__store *store, size_t count, iron_error *err);

/* Reports the progress of opening. */
static inline void iron__store_report_loading(iron__store *store) {
    if (store->options.loading)
        store->options.loading(store->options.context, &store->loading);
}

/* Loads every engine from the database, and the ledger (recovery.c). */
iron_status iron__store_load(iron__store *store, iron__store_ledger *ledger, iron_error *err);

/* Replays every engine from its first feed, and compares the state after each; counts what it has
 * seen in found. Damage is IRON_E_FORMAT (recovery.c). */
iron_status iron__store_verify(iron__store *store, iron_server_verified *found, iron_error *err);

#endif
