/* SPDX-License-Identifier: MIT */
/*
 * tables.h: rows in and out of the database. Whatever is read is verified by its check word; damage
 * is IRON_E_FORMAT and says which row. Pointers in rows that were read are good until the next call
 * on this connection.
 */
#ifndef IRON_STORE_TABLES_H
#define IRON_STORE_TABLES_H

#include "store/database.h"
#include "store/rows.h"

/* What the table of engines must come to: a row that vanished would not be missed otherwise. */
typedef struct iron__ledger {
    uint64_t engines;       /* how many */
    uint64_t engines_check; /* their check words, XORed */
    uint64_t next_engine;   /* ids are never used again */
} iron__ledger;

uint64_t iron__ledger_check(const iron__ledger *ledger);
iron_status iron__ledger_read(iron__database *db, iron__ledger *ledger, iron_error *err);
iron_status iron__ledger_write(iron__database *db, const iron__ledger *ledger, iron_error *err);

typedef struct iron__engine_row {
    uint64_t id, created_ms;
    iron__plan plan;
} iron__engine_row;

iron_status iron__engine_insert(iron__database *db, const iron__engine_row *row, iron_error *err);
iron_status iron__engine_delete(iron__database *db, uint64_t id, iron_error *err);
/* All of them, in a malloc'ed array; verified one by one, and together by the ledger. */
iron_status iron__engines_read(iron__database *db, const iron__ledger *ledger,
                               iron__engine_row **rows, size_t *count, iron_error *err);

iron_status iron__feed_insert(iron__database *db, const iron__feed_row *row, iron_error *err);
iron_status iron__feed_by_key(iron__database *db, uint64_t engine, const char *key,
                              iron__feed_row *row, bool *found, iron_error *err);
iron_status iron__feed_by_number(iron__database *db, uint64_t engine, uint64_t number,
                                 iron__feed_row *row, bool *found, iron_error *err);
/* The feeds after a number, in order: begin, then next until there is none. */
iron_status iron__feeds_begin(iron__database *db, uint64_t engine, uint64_t number,
                              iron_error *err);
iron_status iron__feeds_next(iron__database *db, iron__feed_row *row, bool *found, iron_error *err);

iron_status iron__block_insert(iron__database *db, uint64_t upload, uint64_t number,
                               const unsigned char *bytes, iron_error *err);
/* IRON_BLOCK_BYTES of them. */
iron_status iron__block_read(iron__database *db, uint64_t upload, uint64_t number,
                             const unsigned char **bytes, iron_error *err);
iron_status iron__upload_last(iron__database *db, uint64_t *upload, iron_error *err);

/* Keeps the newest two. */
iron_status iron__snapshot_insert(iron__database *db, const iron__snapshot_row *row,
                                  iron_error *err);
iron_status iron__snapshot_newest(iron__database *db, uint64_t engine, iron__snapshot_row *row,
                                  bool *found, iron_error *err);

#endif
