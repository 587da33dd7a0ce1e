/* SPDX-License-Identifier: MIT */
/*
 * ring.h: a source's tokens in slots of memory, read ahead by threads of the ring's own.
 *
 *     for (;;) {
 *         TRY(iron__ring_next(ring, &slot, &count, err));
 *         if (count == 0)
 *             break;
 *         ... slots[slot] holds count tokens in the source's own width ...
 *         iron__ring_free(ring);
 *     }
 *
 * The memory is the caller's, so that it can be of any kind. Full slots come in the stream's order.
 * Several may be held at once: free gives back the oldest. next, free and destroy are for one
 * thread.
 */
#ifndef IRON_FEED_RING_H
#define IRON_FEED_RING_H

#include "feed/shape.h"

#define IRON_RING_SLOTS_MAX 64u

typedef struct iron__ring iron__ring;

typedef struct iron__ring_options {
    iron_source *source; /* borrowed, and nobody else's until the ring is destroyed */
    void *const *slots;  /* pointers to memory that stays the caller's; the array is copied */
    size_t slot_count;   /* 1 ... IRON_RING_SLOTS_MAX */
    size_t slot_bytes;   /* of each; at least a token */
    uint64_t tokens;     /* 0, or of files: so many at most */
    uint32_t readers;    /* threads wanted; what is no file on a disk is read by one */
    size_t piece_bytes;  /* of files: what a reader takes of a slot at a time; 0: all of it */
    iron__direct direct; /* of files: whether they are read past the page cache */
    const iron_allocator *allocator;
} iron__ring_options;

/* Readers, slots and pieces as a GPU's feed wants them. */
void iron__ring_take_shape(iron__ring_options *options, const iron__feed_shape *shape);

iron_status iron__ring_create(const iron__ring_options *options, iron__ring **out, iron_error *err);

/* Stops the readers within a tenth of a second and waits for them. A source of files then stands
 * behind the last slot that was taken; of a pipe, what was read ahead is gone. */
void iron__ring_destroy(iron__ring *ring);

/* Waits for the next full slot: its index, and how many tokens it holds (all but the last are
 * full); *count is 0 at the end. What went wrong with a slot is reported when its turn comes, and
 * again from then on. IRON_E_STATE: the caller holds all slots, and none could ever come. */
iron_status iron__ring_next(iron__ring *ring, size_t *slot, size_t *count, iron_error *err);

/* Gives back the slot that was taken first of those held; with none held it does nothing. */
void iron__ring_free(iron__ring *ring);

#endif
