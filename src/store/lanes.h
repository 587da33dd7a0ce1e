/* SPDX-License-Identifier: MIT */
/*
 * lanes.h: feeds that were applied and wait for their state hash. One hash is a chain of dependent
 * multiplications and takes longer than everything else of a small feed; four side by side hardly
 * take longer than one. So the nodes after each feed are copied into a lane, and rows are written
 * when four lanes are full, or when somebody needs them.
 */
#ifndef IRON_STORE_LANES_H
#define IRON_STORE_LANES_H

#include "store/inside.h"

/* What the writer has made of a feed. */
typedef struct iron__feed_result {
    iron__feed_outcome outcome;
    iron__moment after;
    uint64_t tokens, batches; /* of the feed alone */
    uint64_t position;        /* where the engine is now */
} iron__feed_result;

typedef struct iron__lane {
    iron__kept *kept;
    iron__feed_row row;
    iron__feed_result *result;
    iron__node_arrays nodes;
    unsigned char *batches; /* encoded as they close */
    size_t batch_count, batch_room;
    bool is_short; /* of memory: a batch could not be kept */
} iron__lane;

typedef struct iron__lanes {
    iron__lane lanes[IRON_HASH_LANES];
    size_t used;
    uint64_t nodes; /* of the engines in the lanes */
    uint64_t room;  /* nodes that every lane has room for */
} iron__lanes;

/* A lane for a feed of this engine, with room for its nodes; `used` is not raised yet. Writes those
 * before it if they are of another size or all lanes are full. `is_failure` tells a store's failure
 * from a lack of memory. */
iron_status iron__lane_open(iron__writer *writer, iron__kept *kept, iron__lane **out,
                            bool *is_failure, iron_error *err);
/* The feed in it was applied. */
void iron__lane_close(iron__writer *writer, iron__lane *lane);
/* Hashes and writes what the lanes hold. A failure is the store's. */
iron_status iron__lanes_flush(iron__writer *writer, iron_error *err);
void iron__lanes_free(iron__lanes *lanes);

/* A listener that keeps batches in a lane, its context. */
void iron__lane_hear(void *context, iron__contribution batch);

#endif
