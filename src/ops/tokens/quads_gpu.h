/* SPDX-License-Identifier: MIT */
/*
 * quads_gpu.h: the seal and the statistics of a stream on a GPU. Tokens come in the stream's order,
 * in pieces of any length; what has been found stays on the device until somebody fetches it.
 *
 * A piece is whole quads and up to three tokens on either side of them. Whole quads are a launch
 * that fills the device; the tokens at the sides wait in a carry on the device until their quad is
 * whole, which one thread sees to. Where the contribution is wanted too, whole quads go through a
 * kernel that has both in one read (tokens_gpu_feed.c decides).
 */
#ifndef IRON_OPS_TOKENS_QUADS_GPU_H
#define IRON_OPS_TOKENS_QUADS_GPU_H

#include "core/seal.h"
#include "core/token_stats.h"
#include "gpu/gpu.h"
#include "gpu/kernel_words.h"
#include "ops/tokens/kernel_params.h"

#include <stdbool.h>

typedef struct iron__quads_gpu iron__quads_gpu;

typedef struct iron__quads_gpu_config {
    iron__gpu_program *program; /* iron__tokens_image loaded; borrowed */
    const iron_allocator *allocator;
    uint32_t last; /* the largest token of the vocabulary */
    bool has_stats;
} iron__quads_gpu_config;

/* What a stream has come to. */
typedef struct iron__quads_total {
    iron__seal seal;
    iron__token_stats stats;
} iron__quads_total;

iron_status iron__quads_gpu_create(iron__gpu_device *device, const iron__quads_gpu_config *config,
                                   iron__quads_gpu **out, iron_error *err);
void iron__quads_gpu_destroy(iron__quads_gpu *q);

/* Goes on from there. Waits for the queue. */
iron_status iron__quads_gpu_begin(iron__quads_gpu *q, iron__gpu_queue *queue,
                                  const iron__quads_total *from, iron_error *err);

/* Tokens begin ... begin+count-1 of a buffer, the first of which has the given position. */
iron_status iron__quads_gpu_feed(iron__quads_gpu *q, iron__gpu_queue *queue,
                                 const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                                 uint64_t position, iron_error *err);

/* The same for whole quads of one window that begin at a multiple of 16 bytes, together with their
 * contribution: c tells where that goes. How many quads from a position on lie in one window. */
iron_status iron__quads_gpu_feed_all(iron__quads_gpu *q, iron__gpu_queue *queue,
                                     const iron__gpu_buffer *tokens, const iron__gpu_buffer *xors,
                                     const iron__gpu_buffer *sums, const tokens_span *c,
                                     uint64_t position, iron_error *err);
uint64_t iron__quads_in_window(uint64_t position);

/* Waits, and tells what the stream has come to up to `position`. */
iron_status iron__quads_gpu_fetch(iron__quads_gpu *q, iron__gpu_queue *queue, uint64_t position,
                                  iron__quads_total *total, iron_error *err);

#endif
