/* SPDX-License-Identifier: MIT */
/*
 * rows.h: what is written of a feed, and what must hold of it.
 *
 * A row of feeds says where the feed began, what it came to, and everything but the nodes that the
 * engine was after it; so rows form a chain in which each follows from the one before. The
 * contributions of its batches, 12 bytes each, lie in the row; those of a large feed lie in blocks
 * of IRON_BLOCK_BATCHES that were written while it streamed in, and the row holds the rest.
 *
 * Nothing here knows SQLite: rows come from anywhere, and are believed when they were checked.
 */
#ifndef IRON_STORE_ROWS_H
#define IRON_STORE_ROWS_H

#include "engine/standing.h"
#include "store/store.h"

#define IRON_BATCH_BYTES   12u /* xor u32, sum u64, little-endian; the count follows from the row */
#define IRON_BLOCK_BATCHES 4096u
#define IRON_BLOCK_BYTES   ((size_t)IRON_BLOCK_BATCHES * IRON_BATCH_BYTES)

/* What an engine is at a moment; all but its nodes. */
typedef struct iron__moment {
    iron__standing standing;
    uint64_t feeds; /* number of the last feed, 0 before the first */
    uint64_t state;
    uint64_t changed_ms;
} iron__moment;

typedef struct iron__feed_row {
    uint64_t engine, number; /* numbers count from 1 */
    uint64_t position, first_batch, batches;
    iron__contribution fed; /* of this feed alone; .count is its tokens */
    iron__moment after;
    char key[IRON_FEED_KEY_MAX + 1]; /* "": none */
    bool has_blocks;
    uint64_t upload;                  /* with blocks */
    const unsigned char *batch_bytes; /* of the batches that are not in blocks; borrowed */
    size_t batch_bytes_count;
} iron__feed_row;

typedef struct iron__snapshot_row {
    uint64_t engine, number, state;
    const unsigned char *bytes; /* borrowed */
    size_t count;
} iron__snapshot_row;

uint64_t iron__feed_row_check(const iron__feed_row *row);
uint64_t iron__block_check(uint64_t upload, uint64_t number, const unsigned char *bytes,
                           size_t count);
uint64_t iron__snapshot_check(const iron__snapshot_row *row);
uint64_t iron__plan_check(const iron__plan *plan, uint64_t id, uint64_t created_ms);

void iron__batch_encode(unsigned char *to, iron__contribution batch);
iron__contribution iron__batch_decode(const unsigned char *from, uint64_t tokens);

/* Tokens of batch `index` of the feed, whose engine cuts batches of `batch` tokens. */
uint64_t iron__row_batch_tokens(const iron__feed_row *row, uint64_t batch, uint64_t index);
/* Batches that lie in blocks. */
uint64_t iron__row_in_blocks(const iron__feed_row *row);

/* Where an engine is before its first feed. `state` is not known here. */
iron__moment iron__moment_start(void);
/* The seal of so many tokens, when only the number matters. */
iron__seal iron__seal_of_count(uint64_t tokens);

/* Does the row follow `before` in the history of this engine, and is it right in itself? */
iron_status iron__feed_row_follows(const iron__feed_row *row, const iron__moment *before,
                                   const iron__plan *plan, iron_error *err);

/* What a feed's answer says of the moment after it. */
void iron__answer_of(const iron__moment *after, uint64_t tokens, uint64_t batches,
                     iron__feed_answer *answer);

#endif
