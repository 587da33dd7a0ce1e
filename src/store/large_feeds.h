/* SPDX-License-Identifier: MIT */
/*
 * large_feeds.h: what the writer does for a body that was reduced while it streamed in: blocks of
 * its batches as they come, belonging to nothing yet, and at its end one row that makes them a feed
 * if the engine still is where the body began.
 */
#ifndef IRON_STORE_LARGE_FEEDS_H
#define IRON_STORE_LARGE_FEEDS_H

#include "store/lanes.h"

typedef struct iron__block_job {
    iron__job job;
    uint64_t upload, number;
    const unsigned char *bytes; /* IRON_BLOCK_BYTES */
} iron__block_job;

typedef struct iron__large_feed {
    iron__job job;
    iron__feed_row row; /* all but its number and time */
    iron_engine *fork;  /* stands where the engine will */
    iron__feed_result result;
} iron__large_feed;

iron_status iron__block_run(iron__writer *writer, iron__job *job, iron_error *err);
iron_status iron__large_feed_run(iron__writer *writer, iron__job *job, iron_error *err);

#endif
