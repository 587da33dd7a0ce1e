/* SPDX-License-Identifier: MIT */
/*
 * mpi_feed.h: a stream that is fed by ranks, and the two ways to make one lattice of what they did.
 */
#ifndef APPS_IRON_MPI_MPI_FEED_H
#define APPS_IRON_MPI_MPI_FEED_H

#include "progress.h"
#include "ranks.h"

typedef struct rank_feed {
    const ranks *ranks;
    iron_source *source;
    iron_engine *whole; /* of all; only rank 0's takes what the ranks did */
    iron_engine *mine;  /* of this rank's batches */
    uint64_t base;      /* the stream's position where the files begin: not 0 for --resume */
    uint64_t tokens;    /* in the files */
    uint64_t batches;
    uint64_t batch;       /* tokens of each but the last */
    progress progress;    /* rank 0's own */
    uint64_t told, total; /* what it has been told of before, and of how many tokens */
} rank_feed;

/* Feeds batches first ... first+count-1 of the files, as many as there are, from a new beginning.
 * `room`: NULL, or `count` places where they are recorded. */
iron_status rank_feed_batches(rank_feed *f, uint64_t first, uint64_t count, iron_batch_effect *room,
                              iron_error *err);

/* Every rank one range, and sums: while no potential can pass 2^24. */
iron_status rank_feed_sums(rank_feed *f, iron_error *err);
/* In rounds, with the batches in their order. */
iron_status rank_feed_ordered(rank_feed *f, iron_error *err);

#endif
