/* SPDX-License-Identifier: MIT */
/*
 * database.h: a connection to the data directory's iron.db: how the file comes to be, what it must
 * be to be opened, its statements, and the words for what SQLite could not do.
 *
 * The file is made beside its name and renamed when it is whole: a file of that name that has not
 * our marks in its header is not ours or damaged, and is refused before SQLite touches it.
 */
#ifndef IRON_STORE_DATABASE_H
#define IRON_STORE_DATABASE_H

#include "store/store.h"

#include <sqlite3.h>
#include <stdbool.h>

#define IRON_DATABASE_ID     0x49524f4e /* "IRON" */
#define IRON_DATABASE_FORMAT IRON_STORE_FORMAT

#define IRON_FEED_COLUMNS                                                                          \
    "engine, number, position, tokens, xors, sum, first_batch, batches, total_xors, total_sum, "   \
    "state, seal_t, seal_a, seal_b, carry_0, carry_1, carry_2, key, time_ms, upload, "             \
    "contributions, check_word"

/* Every statement, prepared when it is first used and kept. */
#define IRON_SQL_MAP(X)                                                                            \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(LEDGER_READ, "SELECT engines, engines_check, next_engine, check_word FROM ledger "           \
                   "WHERE id = 1")                                                                 \
    X(LEDGER_WRITE, "UPDATE ledger SET engines = ?1, engines_check = ?2, next_engine = ?3, "       \
                    "check_word = ?4 WHERE id = 1")                                                \
    X(ENGINES, "SELECT id, name, nodes, vocab, batch, positions, lattice, mode, backend, device, " \
               "created_ms, check_word FROM engines ORDER BY id")                                  \
    X(ENGINE_INSERT, "INSERT INTO engines VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "  \
                     "?12)")                                                                       \
    X(ENGINE_DELETE, "DELETE FROM engines WHERE id = ?1")                                          \
    X(ENGINE_EXISTS, "SELECT 1 FROM engines WHERE id = ?1")                                        \
    X(FEED_INSERT, "INSERT INTO feeds (" IRON_FEED_COLUMNS                                         \
                   ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "  \
                   "?16, ?17, ?18, ?19, ?20, ?21, ?22)")                                           \
    X(FEED_BY_KEY, "SELECT " IRON_FEED_COLUMNS " FROM feeds WHERE engine = ?1 AND key = ?2")       \
    X(FEED_BY_NUMBER, "SELECT " IRON_FEED_COLUMNS " FROM feeds WHERE engine = ?1 AND number = ?2") \
    X(FEEDS_AFTER,                                                                                 \
      "SELECT " IRON_FEED_COLUMNS " FROM feeds WHERE engine = ?1 AND number > ?2 ORDER BY number") \
    X(BLOCK_INSERT, "INSERT INTO blocks VALUES (?1, ?2, ?3, ?4)")                                  \
    X(BLOCK_READ, "SELECT contributions, check_word FROM blocks WHERE upload = ?1 AND "            \
                  "number = ?2")                                                                   \
    X(UPLOAD_LAST, "SELECT max(coalesce((SELECT max(upload) FROM blocks), 0), "                    \
                   "coalesce((SELECT max(upload) FROM feeds WHERE upload IS NOT NULL), 0))")       \
    X(SNAPSHOT_INSERT, "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3, ?4, ?5)")             \
    X(SNAPSHOT_NEWEST, "SELECT number, state, bytes, check_word FROM snapshots "                   \
                       "WHERE engine = ?1 ORDER BY number DESC LIMIT 1")                           \
    X(SNAPSHOT_PRUNE, "DELETE FROM snapshots WHERE engine = ?1 AND number < (SELECT number FROM "  \
                      "snapshots WHERE engine = ?1 ORDER BY number DESC LIMIT 1 OFFSET 1)")        \
    X(FEEDS_NEXT_ENGINE, "SELECT engine FROM feeds WHERE engine > ?1 ORDER BY engine LIMIT 1")     \
    X(FEEDS_SWEEP, "DELETE FROM feeds WHERE engine = ?1 AND number < (SELECT number FROM feeds "   \
                   "WHERE engine = ?1 ORDER BY number LIMIT 1) + ?2")                              \
    X(SNAPSHOTS_NEXT_ENGINE, "SELECT engine FROM snapshots WHERE engine > ?1 ORDER BY engine "     \
                             "LIMIT 1")                                                            \
    X(SNAPSHOTS_SWEEP, "DELETE FROM snapshots WHERE engine = ?1 AND number < (SELECT number FROM " \
                       "snapshots WHERE engine = ?1 ORDER BY number LIMIT 1) + ?2")                \
    X(BLOCKS_NEXT_UPLOAD, "SELECT upload FROM blocks WHERE upload > ?1 ORDER BY upload LIMIT 1")   \
    X(BLOCKS_SWEEP, "DELETE FROM blocks WHERE upload = ?1 AND number < (SELECT number FROM "       \
                    "blocks WHERE upload = ?1 ORDER BY number LIMIT 1) + ?2")                      \
    X(UPLOAD_EXISTS, "SELECT 1 FROM feeds WHERE upload = ?1")

typedef enum iron__sql {
#define IRON_SQL_ENUM(name, text) IRON_SQL_##name,
    IRON_SQL_MAP(IRON_SQL_ENUM)
#undef IRON_SQL_ENUM
        IRON_SQL_COUNT
} iron__sql;

typedef struct iron__database {
    sqlite3 *handle;
    sqlite3_stmt *statements[IRON_SQL_COUNT];
    char *path;
    int wal_frames; /* in the log after the last commit */
} iron__database;

/* Makes the file where there is none; refuses what is not ours, damaged or newer. */
iron_status iron__database_file(const char *directory, iron_error *err);

/* The writer's connection also brings the log into the file, so that nothing is read which is not
 * on the disk. The reader's writes nothing. */
iron_status iron__database_open(const char *directory, bool is_writer, iron__database **out,
                                iron_error *err);
/* with_checkpoint: else what is in the log stays there, untouched. NULL is fine. */
void iron__database_close(iron__database *db, bool with_checkpoint);

/* What SQLite said last, as an error: IRON_E_FORMAT for damage, else IRON_E_IO. */
iron_status iron__database_fail(iron__database *db, const char *doing, iron_error *err);

/* The statement, ready to be bound; NULL with err filled. */
sqlite3_stmt *iron__sql_ready(iron__database *db, iron__sql which, iron_error *err);
/* Steps to its end; it may give no row. */
iron_status iron__sql_run(iron__database *db, sqlite3_stmt *statement, const char *doing,
                          iron_error *err);
/* Steps once; *has_row is false at its end, and the statement reset. */
iron_status iron__sql_step(iron__database *db, sqlite3_stmt *statement, bool *has_row,
                           const char *doing, iron_error *err);
/* A statement without parameters. */
iron_status iron__sql_do(iron__database *db, iron__sql which, const char *doing, iron_error *err);

/* Ends what is being read: from then on rows that were read are gone, and newer ones are seen. */
void iron__database_rest(iron__database *db);

/* Brings the log into the file; what others still read is left for the next time, and is_whole,
 * which may be NULL, says whether there was any. */
iron_status iron__database_checkpoint(iron__database *db, int mode, bool *is_whole,
                                      iron_error *err);

/* Every 64-bit number has its bits in SQLite's signed one. */
static inline void iron__bind_word(sqlite3_stmt *s, int at, uint64_t word) {
    sqlite3_bind_int64(s, at, (sqlite3_int64)word);
}

static inline uint64_t iron__column_word(sqlite3_stmt *s, int at) {
    return (uint64_t)sqlite3_column_int64(s, at);
}

#endif
