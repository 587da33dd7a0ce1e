/* SPDX-License-Identifier: MIT */
/*
 * shape.h: how files are read for a GPU: with how many threads, into which slots, how. All that
 * there is to tune, in one place; bench-feed measures others.
 */
#ifndef IRON_FEED_SHAPE_H
#define IRON_FEED_SHAPE_H

#include "formats/direct.h"

#define IRON_FEED_SLOTS_MIN 5u /* more than lanes: gpu_feed_inside.h says why */
#define IRON_FEED_SLOTS_MAX 32u

typedef struct iron__feed_shape {
    uint32_t readers;
    size_t slot_count;  /* IRON_FEED_SLOTS_MIN ... IRON_FEED_SLOTS_MAX */
    size_t slot_bytes;  /* what is sent at a time; a multiple of 8, at most a lane */
    size_t piece_bytes; /* what a reader takes of it at a time; 0: all */
    iron__direct direct;
} iron__feed_shape;

/* What suits this machine. */
iron__feed_shape iron__feed_shape_default(void);

#endif
