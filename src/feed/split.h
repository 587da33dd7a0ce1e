/* SPDX-License-Identifier: MIT */
/*
 * split.h: parts of one job that run at the same time, each on a thread and usually on a device of
 * its own, and count as one job: its progress, its first error.
 */
#ifndef IRON_FEED_SPLIT_H
#define IRON_FEED_SPLIT_H

#include <iron/iron.h>

typedef struct iron__split {
    size_t count; /* of parts, 1 ... IRON_SPLIT_MAX; they are in the order of the stream */
    /* Does a part. `progress` is to be called now and then with what the part has done; if it
     * returns nonzero, the part gives up with any error. */
    iron_status (*part)(void *context, size_t index, iron_progress progress, void *of_part,
                        iron_error *err);
    void *context;
    /* Of the whole job: NULL, or called on the caller's thread with `before` plus what all parts
     * have done. Nonzero cancels. */
    iron_progress progress;
    void *progress_context;
    uint64_t before, total;
} iron__split;

#define IRON_SPLIT_MAX 64u

/* Part 0 runs on the caller's thread. When a part fails, those after it give up, and those before
 * it go on: the error returned is the first in the order of the stream. */
iron_status iron__split_run(const iron__split *split, iron_error *err);

#endif
