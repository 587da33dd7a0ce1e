/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed.c: a GPU's feed as a whole: its strategy, its parts, what was fed and what came of it.
 */
#include "feed/gpu_feed_inside.h"

#include "core/fail.h"

#include <string.h>

/* `auto` is the strategy that overlaps most: on an H200 it feeds a file at 48 GB/s, `pinned` at
 * 41. */
static iron_status choose_strategy(iron__gpu_feed *f, const char *name, iron_error *err) {
    const iron__gpu_info *info = &f->device->info;

    if (!name || strcmp(name, "auto") == 0) {
        f->strategy = info->lacks[IRON_GPU_STREAMS][0] ? IRON_GPU_PAGEABLE : IRON_GPU_STREAMS;
        return IRON_OK;
    }
    f->strategy = iron__gpu_strategy_find(name);
    IRON_FAIL_IF(f->strategy == IRON_GPU_STRATEGIES, err, IRON_E_ARG,
                 "unknown memory strategy '%.40s'; use auto, pageable, pinned, streams, uvm, "
                 "uvm-prefetch or zero-copy",
                 name);
    IRON_FAIL_IF(info->lacks[f->strategy][0], err, IRON_E_UNSUPPORTED,
                 "memory strategy %s cannot be had on %s: %s; use --memory auto", name, info->name,
                 info->lacks[f->strategy]);
    return IRON_OK;
}

static iron_status build(iron__gpu_feed *f, const iron__gpu_feed_config *c, iron_error *err) {
    IRON_TRY(iron__gpu_device_open(c->backend, c->device, &f->device, err));
    IRON_TRY(choose_strategy(f, c->memory, err));
    IRON_TRY(iron__tokens_gpu_create(f->device, &c->tokens, &f->tokens, err));
    IRON_TRY(iron__gpu_event_create(f->device, &f->turn, err));
    for (size_t k = 0; k < (f->strategy == IRON_GPU_STREAMS ? IRON_GPU_QUEUES : 1); k++)
        IRON_TRY(iron__gpu_queue_create(f->device, &f->queues[k], err));
    for (size_t k = 0; k < IRON_GPU_LANES; k++) {
        IRON_TRY(iron__gpu_event_create(f->device, &f->lanes[k].sent, err));
        IRON_TRY(iron__gpu_event_create(f->device, &f->lanes[k].used, err));
    }
    return IRON_OK;
}

iron_status iron__gpu_feed_create(const iron__gpu_feed_config *config, iron__gpu_feed **out,
                                  iron_error *err) {
    const iron_allocator *a = config->tokens.allocator;
    iron__gpu_feed *f = iron__allocate(a, 1, sizeof *f, "a GPU's feed", err);
    iron_status status;

    *out = NULL;
    if (!f)
        return IRON_E_NOMEM;
    f->allocator = a;
    f->team = config->team;
    f->batch = config->tokens.batch;
    f->shape = iron__feed_shape_default();
    status = build(f, config, err);
    if (status != IRON_OK) {
        iron__gpu_feed_destroy(f);
        return status;
    }
    *out = f;
    return IRON_OK;
}

void iron__gpu_feed_destroy(iron__gpu_feed *f) {
    if (!f)
        return;
    for (size_t k = 0; k < IRON_GPU_QUEUES; k++)
        if (f->queues[k])
            (void)iron__gpu_queue_wait(f->queues[k], NULL); /* failed or not, we are leaving */
    for (size_t k = 0; k < IRON_GPU_LANES; k++) {
        iron__gpu_buffer_destroy(f->lanes[k].tokens);
        iron__gpu_buffer_destroy(f->lanes[k].wide);
        iron__gpu_event_destroy(f->device, f->lanes[k].sent);
        iron__gpu_event_destroy(f->device, f->lanes[k].used);
    }
    for (size_t k = 0; k < IRON_FEED_SLOTS_MAX; k++)
        iron__gpu_buffer_destroy(f->slots[k]);
    while (f->loans)
        iron__gpu_feed_take_back(f, f->loans->buffer->host);
    iron__release(f->allocator, f->pageable_slot);
    iron__gpu_event_destroy(f->device, f->turn);
    iron__tokens_gpu_destroy(f->tokens);
    for (size_t k = 0; k < IRON_GPU_QUEUES; k++)
        iron__gpu_queue_destroy(f->queues[k]);
    iron__gpu_device_close(f->device);
    iron__release(f->allocator, f);
}

const iron__gpu_info *iron__gpu_feed_info(const iron__gpu_feed *f) { return &f->device->info; }

const iron__feed_shape *iron__gpu_feed_shape(const iron__gpu_feed *f) { return &f->shape; }

iron_status iron__gpu_feed_reshape(iron__gpu_feed *f, const iron__feed_shape *shape,
                                   iron_error *err) {
    IRON_FAIL_IF(f->collected > 0, err, IRON_E_STATE,
                 "%zu tokens are in a slot; slots are shaped while they are empty", f->collected);
    IRON_FAIL_IF(shape->slot_count < IRON_FEED_SLOTS_MIN || shape->slot_count > IRON_FEED_SLOTS_MAX,
                 err, IRON_E_ARG, "%zu slots; there must be %u to %u", shape->slot_count,
                 IRON_FEED_SLOTS_MIN, IRON_FEED_SLOTS_MAX);
    IRON_FAIL_IF(shape->slot_bytes == 0 || shape->slot_bytes % sizeof(uint64_t) != 0 ||
                     shape->slot_bytes > IRON_GPU_LANE_BYTES,
                 err, IRON_E_ARG, "slots of %zu bytes; they must have a multiple of 8 up to %zu",
                 shape->slot_bytes, IRON_GPU_LANE_BYTES);
    IRON_TRY(iron__gpu_feed_release(f, err));
    for (size_t k = 0; k < IRON_FEED_SLOTS_MAX; k++) {
        iron__gpu_buffer_destroy(f->slots[k]);
        f->slots[k] = NULL;
    }
    iron__release(f->allocator, f->pageable_slot);
    f->pageable_slot = NULL;
    f->shape = *shape;
    return IRON_OK;
}

const char *iron__gpu_feed_memory(const iron__gpu_feed *f) {
    return iron__gpu_strategy_name(f->strategy);
}

uintptr_t iron__gpu_feed_context(const iron__gpu_feed *f) {
    return f->device->ops->context ? f->device->ops->context(f->device) : 0;
}

iron_status iron__gpu_feed_begin(iron__gpu_feed *f, const iron__nodes *nodes,
                                 iron__contribution closed, uint64_t batches, iron_error *err) {
    f->collected = 0;
    return iron__tokens_gpu_begin(f->tokens, iron__gpu_feed_kernels(f), nodes, closed, batches,
                                  err);
}

iron__tokens_gpu_progress iron__gpu_feed_progress(const iron__gpu_feed *f) {
    iron__tokens_gpu_progress p = iron__tokens_gpu_progress_of(f->tokens);
    uint64_t closing = (p.open_tokens + f->collected) / f->batch;

    p.open_tokens = (p.open_tokens + f->collected) % f->batch;
    p.closed_tokens += closing * f->batch;
    p.batches += closing;
    return p;
}

iron_status iron__gpu_feed_is_beyond(iron__gpu_feed *f, bool *beyond, iron_error *err) {
    return iron__tokens_gpu_is_beyond(f->tokens, iron__gpu_feed_kernels(f), beyond, err);
}

iron_status iron__gpu_feed_end_batch(iron__gpu_feed *f, iron_error *err) {
    IRON_TRY(iron__gpu_feed_flush(f, err));
    return iron__tokens_gpu_end_batch(f->tokens, iron__gpu_feed_kernels(f), err);
}

iron_status iron__gpu_feed_fetch(iron__gpu_feed *f, iron__nodes *nodes, iron__contribution *closed,
                                 iron_error *err) {
    IRON_TRY(iron__gpu_feed_flush(f, err));
    return iron__tokens_gpu_fetch(f->tokens, iron__gpu_feed_kernels(f), nodes, closed, err);
}

iron_status iron__gpu_feed_seal_begin(iron__gpu_feed *f, const iron__quads_total *from,
                                      iron_error *err) {
    return iron__tokens_gpu_seal_begin(f->tokens, iron__gpu_feed_kernels(f), from, err);
}

iron_status iron__gpu_feed_seal_fetch(iron__gpu_feed *f, iron__quads_total *total,
                                      iron_error *err) {
    IRON_TRY(iron__gpu_feed_flush(f, err));
    return iron__tokens_gpu_seal_fetch(f->tokens, iron__gpu_feed_kernels(f), total, err);
}
