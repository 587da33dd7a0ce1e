/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed_lanes.c: lanes and queues: how a slot, or a stretch of the caller's page-locked memory,
 * gets to the device and under its kernels.
 */
#include "feed/gpu_feed_inside.h"

#include "core/fail.h"

/* The queue that sends for a lane. */
static iron__gpu_queue *sender_of(const iron__gpu_feed *f, size_t lane_index) {
    return f->strategy == IRON_GPU_STREAMS ? f->queues[1 + lane_index % (IRON_GPU_QUEUES - 1)]
                                           : iron__gpu_feed_kernels(f);
}

static iron__gpu_memory slot_memory(const iron__gpu_feed *f) {
    return iron__gpu_feed_is_copied(f)         ? IRON_GPU_MEMORY_PINNED
           : f->strategy == IRON_GPU_ZERO_COPY ? IRON_GPU_MEMORY_MAPPED
                                               : IRON_GPU_MEMORY_MANAGED;
}

iron_status iron__gpu_feed_ensure(iron__gpu_feed *f, iron__gpu_memory memory, size_t bytes,
                                  iron__gpu_buffer **buffer, iron_error *err) {
    return *buffer ? IRON_OK : iron__gpu_buffer_create(f->device, memory, bytes, buffer, err);
}

iron_status iron__gpu_feed_ensure_slot(iron__gpu_feed *f, size_t slot, iron_error *err) {
    return iron__gpu_feed_ensure(f, slot_memory(f), f->shape.slot_bytes, &f->slots[slot], err);
}

static iron_status ensure_lane(iron__gpu_feed *f, iron__gpu_lane *l, iron_error *err) {
    return iron__gpu_feed_ensure(f, IRON_GPU_MEMORY_DEVICE, IRON_GPU_LANE_BYTES, &l->tokens, err);
}

/* Waits until what the lane was sent has left the host's memory. */
static iron_status wait_for(iron__gpu_feed *f, iron__gpu_lane *l, size_t *released,
                            iron_error *err) {
    if (!l->is_pending)
        return IRON_OK;
    IRON_TRY(iron__gpu_event_wait(f->device, l->sent, err));
    l->is_pending = false;
    if (released)
        (*released)++;
    return IRON_OK;
}

iron_status iron__gpu_feed_release(iron__gpu_feed *f, iron_error *err) {
    for (size_t k = 0; k < IRON_GPU_LANES; k++)
        IRON_TRY(wait_for(f, &f->lanes[(f->sends + k) % IRON_GPU_LANES], NULL, err));
    return IRON_OK;
}

/* Kernels over tokens of any width that are on the device, or are read by it. */
static iron_status reduce(iron__gpu_feed *f, iron__gpu_lane *l, const iron__gpu_buffer *tokens,
                          iron_dtype dtype, size_t count, iron_error *err) {
    size_t width = iron_dtype_bytes(dtype);
    iron__gpu_queue *queue = iron__gpu_feed_kernels(f);

    if (width != sizeof(uint32_t)) {
        IRON_TRY(
            iron__gpu_feed_ensure(f, IRON_GPU_MEMORY_DEVICE, IRON_GPU_LANE_BYTES, &l->wide, err));
        IRON_TRY(iron__tokens_gpu_widen(f->tokens, queue, width, tokens, 0, l->wide, count, err));
        tokens = l->wide;
    }
    return iron__tokens_gpu_feed(f->tokens, queue, tokens, 0, count, err);
}

iron_status iron__gpu_feed_send(iron__gpu_feed *f, const void *tokens, iron_dtype dtype,
                                size_t count, size_t *released, iron_error *err) {
    iron__gpu_lane *l = &f->lanes[f->sends % IRON_GPU_LANES];
    iron__gpu_queue *sender = sender_of(f, f->sends % IRON_GPU_LANES),
                    *kernels = iron__gpu_feed_kernels(f);
    iron__gpu_copy copy = {.from_host = tokens, .bytes = count * iron_dtype_bytes(dtype)};

    IRON_TRY(wait_for(f, l, released, err));
    IRON_TRY(ensure_lane(f, l, err));
    copy.to = l->tokens;
    IRON_TRY(iron__gpu_event_follow(sender, l->used, err));
    IRON_TRY(iron__gpu_copy_bytes(sender, &copy, err));
    IRON_TRY(iron__gpu_event_record(sender, l->sent, err));
    l->is_pending = true;
    f->sends++;
    if (sender != kernels)
        IRON_TRY(iron__gpu_event_follow(kernels, l->sent, err));
    IRON_TRY(reduce(f, l, l->tokens, dtype, count, err));
    return iron__gpu_event_record(kernels, l->used, err);
}

iron_status iron__gpu_feed_in_place(iron__gpu_feed *f, iron__gpu_buffer *slot, iron_dtype dtype,
                                    size_t count, iron_error *err) {
    iron__gpu_lane *l = &f->lanes[f->sends % IRON_GPU_LANES];
    iron__gpu_queue *queue = iron__gpu_feed_kernels(f);

    IRON_TRY(wait_for(f, l, NULL, err));
    IRON_TRY(iron__gpu_host_end(queue, slot, err));
    if (f->strategy == IRON_GPU_UVM_PREFETCH)
        IRON_TRY(iron__gpu_prefetch(queue, slot, count * iron_dtype_bytes(dtype), err));
    IRON_TRY(reduce(f, l, slot, dtype, count, err));
    IRON_TRY(iron__gpu_event_record(queue, l->sent, err));
    l->is_pending = true;
    f->sends++;
    return IRON_OK;
}

bool iron__gpu_feed_has_slots(const iron__gpu_feed *f) {
    return f->strategy == IRON_GPU_PINNED || f->strategy == IRON_GPU_STREAMS;
}

size_t iron__gpu_feed_slot_bytes(const iron__gpu_feed *f, iron_dtype dtype) {
    size_t width = iron_dtype_bytes(dtype);
    size_t most = IRON_GPU_LANE_BYTES / (width > sizeof(uint32_t) ? width : sizeof(uint32_t));

    return f->shape.slot_bytes / width < most ? f->shape.slot_bytes : most * width;
}

iron_status iron__gpu_feed_slots(iron__gpu_feed *f, void *slots[IRON_FEED_SLOTS_MAX],
                                 iron_error *err) {
    IRON_TRY(iron__gpu_feed_release(f, err));
    for (size_t k = 0; k < IRON_GPU_LANES; k++)
        IRON_TRY(ensure_lane(f, &f->lanes[k], err));
    for (size_t k = 0; k < f->shape.slot_count; k++) {
        IRON_TRY(iron__gpu_feed_ensure_slot(f, k, err));
        slots[k] = f->slots[k]->host;
    }
    return IRON_OK;
}

iron_status iron__gpu_feed_slot(iron__gpu_feed *f, size_t slot, iron_dtype dtype, size_t count,
                                size_t *released, iron_error *err) {
    *released = 0;
    return iron__gpu_feed_send(f, f->slots[slot]->host, dtype, count, released, err);
}
