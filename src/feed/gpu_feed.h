/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed.h: the engine's way to a GPU: the host's tokens, by one of the memory strategies, before
 * the kernels of ops/tokens/tokens_gpu.h.
 *
 *     caller's memory --copied--> slot (host) --sent--> lane (device) --> kernels
 *     file or pipe    --read--->  slot
 *
 * A slot is filled by the host; a lane is the device's buffer that a slot is sent to. With the
 * strategy `streams`, queue 0 runs the kernels and the other queues send: while one lane is
 * reduced, others are filled, and the host fills further slots. Small feeds collect in a slot until
 * it is full or somebody looks.
 */
#ifndef IRON_FEED_GPU_FEED_H
#define IRON_FEED_GPU_FEED_H

#include "core/team.h"
#include "feed/shape.h"
#include "formats/dtype.h"
#include "ops/tokens/tokens_gpu.h"

typedef struct iron__gpu_feed iron__gpu_feed;

typedef struct iron__gpu_feed_config {
    size_t backend, device; /* as gpu/gpu.h counts them */
    const char *memory;     /* a strategy's name; NULL or "auto": the fastest there is */
    iron__tokens_gpu_config tokens;
    iron__team *team; /* borrowed: copies into slots */
} iron__gpu_feed_config;

iron_status iron__gpu_feed_create(const iron__gpu_feed_config *config, iron__gpu_feed **out,
                                  iron_error *err);
/* Waits for what is under way. */
void iron__gpu_feed_destroy(iron__gpu_feed *f);

const iron__gpu_info *iron__gpu_feed_info(const iron__gpu_feed *f);
const char *iron__gpu_feed_memory(const iron__gpu_feed *f); /* the strategy's name */
uintptr_t iron__gpu_feed_context(const iron__gpu_feed *f);

iron_status iron__gpu_feed_begin(iron__gpu_feed *f, const iron__nodes *nodes,
                                 iron__contribution closed, uint64_t batches, iron_error *err);

/* Tokens in the host's memory, borrowed for the call; checked by the caller. */
iron_status iron__gpu_feed_host(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err);

/* Tokens first ... first+count-1 of the device's memory, by the caller's queue; borrowed until that
 * queue has passed.
 * Nobody looks whether signed ones are in range: is_beyond tells, of 64-bit ones, whether one had
 * more than 32 bits. It waits. */
iron_status iron__gpu_feed_resident(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                    uint64_t first, uint64_t count, uintptr_t queue,
                                    iron_error *err);
iron_status iron__gpu_feed_is_beyond(iron__gpu_feed *f, bool *beyond, iron_error *err);
/* Brings tokens first ... first+count-1 of such memory to the host, as they are stored. Waits. */
iron_status iron__gpu_feed_peek(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                uint64_t first, size_t count, uintptr_t queue, void *to,
                                iron_error *err);

/* Closes the open batch. */
iron_status iron__gpu_feed_end_batch(iron__gpu_feed *f, iron_error *err);

/* Brings nodes and totals to the host, with everything that was fed. */
iron_status iron__gpu_feed_fetch(iron__gpu_feed *f, iron__nodes *nodes, iron__contribution *closed,
                                 iron_error *err);

/* With lanes in the tokens' configuration: what the seal goes on from, directly after begin; and
 * what it has come to, of everything that was fed. */
iron_status iron__gpu_feed_seal_begin(iron__gpu_feed *f, const iron__quads_total *from,
                                      iron_error *err);
iron_status iron__gpu_feed_seal_fetch(iron__gpu_feed *f, iron__quads_total *total, iron_error *err);

/* What was fed, with the tokens that still collect in a slot. */
iron__tokens_gpu_progress iron__gpu_feed_progress(const iron__gpu_feed *f);

/* Page-locked memory for a caller to feed from. */
iron_status iron__gpu_feed_lend(iron__gpu_feed *f, size_t bytes, void **out, iron_error *err);
void iron__gpu_feed_take_back(iron__gpu_feed *f, void *memory);

/* How files are to be read for it. Another shape is for measuring; no tokens may be collecting. */
const iron__feed_shape *iron__gpu_feed_shape(const iron__gpu_feed *f);
iron_status iron__gpu_feed_reshape(iron__gpu_feed *f, const iron__feed_shape *shape,
                                   iron_error *err);

/* Page-locked slots for a reader to fill in order, as many as the shape says; false where the
 * strategy sends from ordinary memory. */
bool iron__gpu_feed_has_slots(const iron__gpu_feed *f);
/* Bytes of such tokens that a slot takes: no more than a lane does once they are 32 bits wide. */
size_t iron__gpu_feed_slot_bytes(const iron__gpu_feed *f, iron_dtype dtype);
/* Sends what has collected. Always before slots are asked for; with them, lanes are there too. */
iron_status iron__gpu_feed_flush(iron__gpu_feed *f, iron_error *err);
iron_status iron__gpu_feed_slots(iron__gpu_feed *f, void *slots[IRON_FEED_SLOTS_MAX],
                                 iron_error *err);
/* Sends a slot that a reader has filled. *released: how many slots, the oldest first, the reader
 * may fill again. */
iron_status iron__gpu_feed_slot(iron__gpu_feed *f, size_t slot, iron_dtype dtype, size_t count,
                                size_t *released, iron_error *err);
/* Waits until all slots that were sent may be filled again. */
iron_status iron__gpu_feed_release(iron__gpu_feed *f, iron_error *err);

#endif
