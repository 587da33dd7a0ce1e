/* SPDX-License-Identifier: MIT */
/*
 * stat_crew.h: threads that look at a stretch of the stream together, and what each has for itself.
 *
 * The stream is looked at in rounds. In a round the threads take pieces, the next one each time,
 * and keep what they find of each; afterwards the pieces are appended in order. So memory is a
 * round's pieces, however long the stream. From files each thread reads its pieces into a small
 * buffer of its own; else the round's tokens are in memory.
 */
#ifndef IRON_DIGEST_STAT_CREW_H
#define IRON_DIGEST_STAT_CREW_H

#include "core/team.h"
#include "digest/stat.h"
#include "formats/source.h"

/* What a thread has for itself; allocated apart, so that neighbours share no cache line. */
typedef struct iron__stat_worker {
    iron__stat_lane lane;
    void *buffer;       /* of a piece, where tokens come from files */
    uint32_t *counters; /* of the lane's histograms */
    iron_status status; /* its first failure, and at which piece of the round */
    size_t failed_piece;
    iron_error error;
} iron__stat_worker;

typedef struct iron__stat_crew {
    iron_stat *stat; /* borrowed: what the rounds are appended to */
    const iron_source *source;
    iron_dtype dtype;
    uint64_t total; /* tokens there will be, or IRON_COUNT_UNKNOWN */
    uint64_t done;  /* tokens of all rounds so far */
    iron_progress progress;
    void *context;

    iron__team *team;
    iron__stat_worker **workers;
    size_t worker_count;
    iron__stat_piece *pieces; /* of a round */
    size_t piece_room;
    uint64_t unsettled; /* tokens counted in lanes: below 2^32, so no counter overflows */

    /* The round. Where tokens come from is the caller's to set: */
    iron__source_at *at; /* files, from the source's position on, or NULL: */
    const void *tokens;  /* in memory */
    size_t count, piece_count;
    atomic_size_t next;
    atomic_bool has_failed;
} iron__stat_crew;

/* Takes threads and memory for a crew whose first fields are set. Whatever it returns, the crew is
 * to be deinitialised. threads 0: every CPU. */
iron_status iron__stat_crew_init(iron__stat_crew *c, uint32_t threads, bool reads_files,
                                 iron_error *err);
void iron__stat_crew_deinit(iron__stat_crew *c);

/* Tokens a round may have; at least a slot of `IRON_STAT_SLOT_BYTES`, whatever the width. */
size_t iron__stat_crew_room(const iron__stat_crew *c);
#define IRON_STAT_SLOT_BYTES ((size_t)4 << 20)

/* Looks at the `count` tokens that follow, appends what was found and tells the progress. */
iron_status iron__stat_crew_round(iron__stat_crew *c, size_t count, iron_error *err);

/* Adds up what the threads have counted: after the last round. */
void iron__stat_crew_settle(iron__stat_crew *c);

#endif
