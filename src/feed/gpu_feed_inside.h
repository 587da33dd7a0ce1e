/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed_inside.h: the object of gpu_feed.h, and what the files that are it ask of each other:
 *
 *     gpu_feed.c            making one, and what it has come to
 *     gpu_feed_lanes.c      lanes and queues: sending what is in a slot, and reducing it
 *     gpu_feed_host.c       tokens in the host's memory: they collect in slots, or go as they lie
 *     gpu_feed_resident.c   tokens in the device's memory, by the caller's queue
 *
 * Invariants: 1. Lanes are used in turn, and a lane is used again only when what it was sent before
 * has left the host's memory; so slots become free in the order in which they were sent. 2. There
 * are more slots than lanes: the slot that is being filled was never sent, or is free again.
 * 3. Kernels run in queue 0 alone, in stream order.
 */
#ifndef IRON_FEED_GPU_FEED_INSIDE_H
#define IRON_FEED_GPU_FEED_INSIDE_H

#include "feed/gpu_feed.h"

#define IRON_GPU_LANES      4u
#define IRON_GPU_QUEUES     4u
#define IRON_GPU_LANE_BYTES ((size_t)16 << 20)

/* A device's buffer on its turn, and the host's part in it. */
typedef struct iron__gpu_lane {
    iron__gpu_buffer *tokens; /* as they were sent */
    iron__gpu_buffer *wide;   /* 32-bit ones made of them, where they are others */
    iron__gpu_event *sent;    /* has left the host's memory */
    iron__gpu_event *used;    /* the kernels have read it */
    bool is_pending;          /* `sent` was recorded and not waited for */
} iron__gpu_lane;

/* Memory that was lent to the caller. */
typedef struct iron__gpu_loan {
    struct iron__gpu_loan *next;
    iron__gpu_buffer *buffer;
} iron__gpu_loan;

struct iron__gpu_feed {
    const iron_allocator *allocator;
    iron__team *team;
    iron__gpu_device *device;
    iron__tokens_gpu *tokens;
    iron__gpu_strategy strategy;
    iron__gpu_queue *queues[IRON_GPU_QUEUES];
    iron__gpu_event *turn; /* orders queue 0 and the caller's */
    iron__gpu_lane lanes[IRON_GPU_LANES];
    size_t sends; /* how many there were: lane and slot of the next */
    iron__feed_shape shape;
    iron__gpu_buffer *slots[IRON_FEED_SLOTS_MAX];
    void *pageable_slot; /* ordinary memory: one is enough, sending it waits */
    iron_dtype dtype;    /* of the tokens that collect */
    size_t collected;    /* tokens in the slot that is being filled */
    uint64_t batch;      /* tokens in a batch */
    iron__gpu_loan *loans;
};

static inline iron__gpu_queue *iron__gpu_feed_kernels(const iron__gpu_feed *f) {
    return f->queues[0];
}

static inline bool iron__gpu_feed_is_copied(const iron__gpu_feed *f) {
    return f->strategy <= IRON_GPU_STREAMS; /* the others are read where they lie */
}

/* A buffer that is made when it is first needed. */
iron_status iron__gpu_feed_ensure(iron__gpu_feed *f, iron__gpu_memory memory, size_t bytes,
                                  iron__gpu_buffer **buffer, iron_error *err);
iron_status iron__gpu_feed_ensure_slot(iron__gpu_feed *f, size_t slot, iron_error *err);

/* Sends tokens from the host's memory to the next lane and reduces them there. *released, unless
 * NULL, counts the slots that became free meanwhile. */
iron_status iron__gpu_feed_send(iron__gpu_feed *f, const void *tokens, iron_dtype dtype,
                                size_t count, size_t *released, iron_error *err);

/* Reduces a slot where it lies: managed or mapped memory. */
iron_status iron__gpu_feed_in_place(iron__gpu_feed *f, iron__gpu_buffer *slot, iron_dtype dtype,
                                    size_t count, iron_error *err);

#endif
