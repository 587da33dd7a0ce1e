/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed.h: feeds tokens to a GPU: from the host's memory by one of the memory strategies, or
 * from the device's own, to the kernels of ops/tokens/tokens_gpu.h.
 *
 *     caller's memory --copied--> slot (host) --sent--> buffer (device) --> kernels
 *     file or pipe    --read--->  slot
 *
 * With the strategy `streams`, queue 0 runs the kernels and the other queues send: while one device
 * buffer is reduced, others are filled, and the host fills further slots. Small feeds collect in a
 * slot until it is full or a result is asked for.
 */
#ifndef IRON_FEED_GPU_FEED_H
#define IRON_FEED_GPU_FEED_H

#include "core/fail.h"
#include "core/thread_pool.h"
#include "feed/ring.h"
#include "formats/dtype.h"
#include "ops/tokens/tokens_gpu.h"

typedef struct iron__gpu_feed_config {
    size_t backend, device; /* as gpu/gpu.h counts them */
    const char *memory;     /* a strategy's name; NULL or "auto": the fastest there is */
    iron__tokens_gpu_config tokens;
    iron__thread_pool *pool; /* borrowed: copies into slots */
    uint32_t sharers;        /* how many feeds share the processors; 0 and 1: none */
} iron__gpu_feed_config;

#define IRON_FEED_BUFFERS 4u
#define IRON_FEED_QUEUES  4u

/* Slots of a feed's shape: more than buffers (gpu_feed.c says why). What a slot holds is sent at a
 * time: a multiple of 8 bytes, at most a device buffer. */
#define IRON_FEED_SLOTS_MIN 5u
#define IRON_FEED_SLOTS_MAX 32u

/* A buffer on the device, and the state of what was sent to it. */
typedef struct iron__feed_buffer {
    iron__gpu_buffer *tokens; /* as they were sent */
    iron__gpu_buffer *wide;   /* the same as 32 bits, where the stored type is another */
    iron__gpu_event *sent;    /* has left the host's memory */
    iron__gpu_event *used;    /* the kernels have read it */
    bool is_pending;          /* `sent` was recorded and not waited for */
} iron__feed_buffer;

/* Page-locked memory that the caller feeds from. */
typedef struct iron__pinned_block {
    struct iron__pinned_block *next;
    iron__gpu_buffer *buffer;
} iron__pinned_block;

/* Callers use the functions below, and read device, tokens, strategy and shape. */
typedef struct iron__gpu_feed {
    const iron_allocator *allocator;
    iron__thread_pool *pool;
    iron__gpu_device *device;
    iron__tokens_gpu *tokens;
    iron__gpu_strategy strategy;
    iron__gpu_queue *queues[IRON_FEED_QUEUES];
    iron__gpu_event *order; /* orders queue 0 and the caller's */
    iron__feed_buffer buffers[IRON_FEED_BUFFERS];
    size_t sends; /* so far: they number the next device buffer and slot */
    iron__feed_shape shape;
    iron__gpu_buffer *slots[IRON_FEED_SLOTS_MAX];
    void *pageable_slot; /* ordinary memory: one is enough, since sending it waits */
    iron_dtype dtype;    /* of the tokens that collect */
    size_t collected;    /* tokens in the slot that is being filled */
    uint64_t batch;      /* tokens in a batch */
    iron__pinned_block *pinned;
} iron__gpu_feed;

iron_status iron__gpu_feed_create(const iron__gpu_feed_config *config, iron__gpu_feed **out,
                                  iron_error *err);
/* Waits for everything that was sent. */
void iron__gpu_feed_destroy(iron__gpu_feed *f);

static inline uintptr_t iron__gpu_feed_context(const iron__gpu_feed *f) {
    return f->device->ops->context ? f->device->ops->context(f->device) : 0;
}

/* The queue that runs the kernels. */
static inline iron__gpu_queue *iron__gpu_feed_queue(const iron__gpu_feed *f) {
    return f->queues[0];
}

static inline iron_status iron__gpu_feed_begin(iron__gpu_feed *f, const iron__nodes *nodes,
                                               iron__contribution closed, uint64_t batches,
                                               iron_error *err) {
    f->collected = 0;
    return iron__tokens_gpu_begin(f->tokens, iron__gpu_feed_queue(f), nodes, closed, batches, err);
}

/* Sends what has collected. To be called before the slots are asked for. */
iron_status iron__gpu_feed_flush(iron__gpu_feed *f, iron_error *err);

/* Tokens in the host's memory, borrowed for the call; the caller has checked them. */
iron_status iron__gpu_feed_host(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err);

/* Tokens first ... first+count-1 of the device's memory, in the caller's queue; borrowed until the
 * work in that queue is done. Signed values are not checked; has_overflow says whether a 64-bit
 * token had more than 32 bits. It waits. */
iron_status iron__gpu_feed_resident(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                    uint64_t first, uint64_t count, uintptr_t queue,
                                    iron_error *err);
static inline iron_status iron__gpu_feed_has_overflow(iron__gpu_feed *f, bool *beyond,
                                                      iron_error *err) {
    return iron__tokens_gpu_overflowed(f->tokens, iron__gpu_feed_queue(f), beyond, err);
}

/* Copies tokens first ... first+count-1 of such memory to the host, as they are stored. Waits. */
iron_status iron__gpu_feed_read_device(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                       uint64_t first, size_t count, uintptr_t queue, void *to,
                                       iron_error *err);

/* Closes the open batch. */
static inline iron_status iron__gpu_feed_end_batch(iron__gpu_feed *f, iron_error *err) {
    IRON_TRY(iron__gpu_feed_flush(f, err));
    return iron__tokens_gpu_end_batch(f->tokens, iron__gpu_feed_queue(f), err);
}

/* Brings nodes and totals of everything that was fed to the host. */
static inline iron_status iron__gpu_feed_fetch(iron__gpu_feed *f, iron__nodes *nodes,
                                               iron__contribution *closed, iron_error *err) {
    IRON_TRY(iron__gpu_feed_flush(f, err));
    return iron__tokens_gpu_fetch(f->tokens, iron__gpu_feed_queue(f), nodes, closed, err);
}

/* If the tokens' configuration asks for a seal: the total it continues, directly after begin; and
 * the total of everything that was fed. */
static inline iron_status
iron__gpu_feed_seal_begin(iron__gpu_feed *f, const iron__quads_total *from, iron_error *err) {
    return iron__tokens_gpu_seal_begin(f->tokens, iron__gpu_feed_queue(f), from, err);
}

static inline iron_status iron__gpu_feed_seal_fetch(iron__gpu_feed *f, iron__quads_total *total,
                                                    iron_error *err) {
    IRON_TRY(iron__gpu_feed_flush(f, err));
    return iron__tokens_gpu_seal_fetch(f->tokens, iron__gpu_feed_queue(f), total, err);
}

/* What was fed, including the tokens that still collect in a slot. */
static inline iron__tokens_gpu_progress iron__gpu_feed_progress(const iron__gpu_feed *f) {
    iron__tokens_gpu_progress p = iron__tokens_gpu_progress_of(f->tokens);
    uint64_t closing = (p.open_tokens + f->collected) / f->batch;

    p.open_tokens = (p.open_tokens + f->collected) % f->batch;
    p.closed_tokens += closing * f->batch;
    p.batches += closing;
    return p;
}

/* Page-locked memory for a caller to feed from. */
iron_status iron__gpu_feed_pinned_alloc(iron__gpu_feed *f, size_t bytes, void **out,
                                        iron_error *err);
void iron__gpu_feed_pinned_free(iron__gpu_feed *f, void *memory);

/* The shape that was measured to be best for machines like this one, if so many feeds share it. */
iron__feed_shape iron__feed_shape_default(uint32_t sharers);
/* Sets another shape, for benchmarks; no tokens may be collecting. */
iron_status iron__gpu_feed_reshape(iron__gpu_feed *f, const iron__feed_shape *shape,
                                   iron_error *err);

/* Page-locked slots for a reader to fill in order, as many as the shape says; false where the
 * strategy sends from ordinary memory. */
static inline bool iron__gpu_feed_has_slots(const iron__gpu_feed *f) {
    return f->strategy == IRON_GPU_PINNED || f->strategy == IRON_GPU_STREAMS;
}
/* Bytes of such tokens that a slot takes: no more than a device buffer once they are widened. */
size_t iron__gpu_feed_slot_bytes(const iron__gpu_feed *f, iron_dtype dtype);
/* The slots; creates them and the device buffers. */
iron_status iron__gpu_feed_slots(iron__gpu_feed *f, void *slots[IRON_FEED_SLOTS_MAX],
                                 iron_error *err);
/* Sends a slot that a reader has filled. *released: how many slots, the oldest first, the reader
 * may fill again. */
iron_status iron__gpu_feed_send_slot(iron__gpu_feed *f, size_t slot, iron_dtype dtype, size_t count,
                                     size_t *released, iron_error *err);
/* Waits until all slots that were sent may be filled again. */
iron_status iron__gpu_feed_wait_sent(iron__gpu_feed *f, iron_error *err);

#endif
