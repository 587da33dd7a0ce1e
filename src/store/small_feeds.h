/* SPDX-License-Identifier: MIT */
/*
 * small_feeds.h: a body that waited for its turn, whole, and is reduced by the writer at whatever
 * position the engine then has.
 */
#ifndef IRON_STORE_SMALL_FEEDS_H
#define IRON_STORE_SMALL_FEEDS_H

#include "store/lanes.h"

typedef struct iron__small_feed {
    iron__job job; /* first: the writer knows no more of it */
    iron__tokens_view view;
    bool has_at;
    uint64_t at;
    const char *key; /* "": none */
    iron__feed_result result;
} iron__small_feed;

iron_status iron__small_feed_run(iron__writer *writer, iron__job *job, iron_error *err);

#endif
