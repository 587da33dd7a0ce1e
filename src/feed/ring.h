/* SPDX-License-Identifier: MIT */
/*
 * ring.h: a ring of buffers ("slots") that threads of its own fill with a source's tokens, ahead of
 * the caller.
 *
 *     for (;;) {
 *         TRY(iron__ring_next(ring, &slot, &count, err));
 *         if (count == 0)
 *             break;
 *         ... iron__ring_slot(ring, slot) holds count tokens in the source's own width ...
 *         iron__ring_free(ring);
 *     }
 *
 * The memory may be the caller's, of any kind, or the ring's own. Full slots come in the stream's
 * order. The caller may hold several at once: free gives back the oldest. next, free and destroy
 * are for one thread.
 */
#ifndef IRON_FEED_RING_H
#define IRON_FEED_RING_H

#include "formats/dtype.h"
#include "formats/source.h"
#include "ops/tokens/tokens.h"

#define IRON_RING_SLOTS_MAX 64u

/* How a source is read. */
typedef struct iron__feed_shape {
    uint32_t readers;         /* threads wanted; a pipe is read by one */
    size_t slot_count;        /* 1 ... IRON_RING_SLOTS_MAX */
    size_t slot_bytes;        /* of each; at least a token */
    size_t piece_bytes;       /* files: what a reader reads of a slot at a time; 0: all of it */
    iron__direct_mode direct; /* files: whether they are read past the page cache */
} iron__feed_shape;

typedef struct iron__ring iron__ring;

/* Tokens that a reader has read: of a slot, or of a part of it. */
typedef struct iron__ring_piece {
    size_t slot, count;
    const void *tokens;
    uint64_t first; /* counted from where the ring began */
} iron__ring_piece;

typedef struct iron__ring_options {
    iron_source *source; /* borrowed; not to be used otherwise until the ring is destroyed */
    void *const *slots;  /* the caller's memory, the array is copied; NULL: the ring's own */
    size_t slack_bytes;  /* of the ring's own slots: what the caller may use after each */
    iron__feed_shape shape;
    uint64_t tokens; /* files: at most so many are read; 0: all */
    bool is_shared;  /* files: other rings read the source too; its position stays */
    uint64_t skip;   /* if it is shared: tokens between its position and the first */
    const iron_allocator *allocator;
    /* (optional) called by a reader after it has read a piece, before the caller can see it. Pipes:
     * also at the end, with a count of 0; here it may ask the source about its files. */
    void (*filled)(void *context, const iron__ring_piece *piece);
    void *context;
} iron__ring_options;

iron_status iron__ring_create(const iron__ring_options *options, iron__ring **out, iron_error *err);

/* Stops the readers within a tenth of a second and waits for them. A source of files that is not
 * shared is then positioned after the last slot taken; what was read ahead from a pipe is lost. */
void iron__ring_destroy(iron__ring *ring);

/* Waits for the next full slot: its index, and how many tokens it holds (only the last may be
 * shorter); *count is 0 at the end. An error is returned when the turn of its slot comes, and
 * again from then on. IRON_E_STATE: the caller holds all slots, so the next can never come. */
iron_status iron__ring_next(iron__ring *ring, size_t *slot, size_t *count, iron_error *err);

/* The memory of a slot. */
void *iron__ring_slot(const iron__ring *ring, size_t slot);

/* Gives back the oldest slot held; without one it does nothing. */
void iron__ring_free(iron__ring *ring);

#endif
