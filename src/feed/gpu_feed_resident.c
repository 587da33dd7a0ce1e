/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed_resident.c: tokens that are in the device's memory already, by the caller's queue.
 */
#include "feed/gpu_feed_inside.h"

#include "core/fail.h"

/* The caller's memory and queue while we use them. */
typedef struct callers {
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
    uint64_t begin;       /* the first token's number, counted from where kernels do: */
    size_t before_memory; /* so many bytes before the wrapped memory, which copies count from */
    iron_dtype dtype;
} callers;

/* Narrow tokens may begin inside a word, which memory that is wrapped may not: then it begins with
 * that word. (What is no address is a multiple of 4 anyhow.) */
static iron_status meet(iron__gpu_feed *f, uintptr_t tokens, uint64_t count, uintptr_t queue,
                        callers *c, iron_error *err) {
    size_t width = iron_dtype_bytes(c->dtype);
    size_t lead = (size_t)(tokens % (width < sizeof(uint32_t) ? sizeof(uint32_t) : width));

    IRON_FAIL_IF(count > (SIZE_MAX - sizeof(uint32_t)) / width, err, IRON_E_ARG,
                 "%llu tokens are more than an address space holds", (unsigned long long)count);
    IRON_FAIL_IF(lead % width != 0, err, IRON_E_ARG,
                 "tokens at %p are not aligned to their %zu bytes; copy them", (void *)tokens,
                 width);
    IRON_TRY(iron__gpu_buffer_wrap(f->device, tokens - lead, lead + (size_t)count * width,
                                   &c->buffer, err));
    c->before_memory = c->buffer->lead_bytes;
    c->begin = (c->before_memory + lead) / width;
    return iron__gpu_queue_wrap(f->device, queue, &c->queue, err);
}

static void part(callers *c) {
    iron__gpu_queue_destroy(c->queue);
    iron__gpu_buffer_destroy(c->buffer);
}

/* Tokens of other widths, a lane's worth at a time. */
static iron_status feed_widened(iron__gpu_feed *f, const callers *c, uint64_t count,
                                iron_error *err) {
    iron__gpu_buffer **wide = &f->lanes[0].wide;
    uint64_t most = IRON_GPU_LANE_BYTES / sizeof(uint32_t);

    IRON_TRY(iron__gpu_feed_ensure(f, IRON_GPU_MEMORY_DEVICE, IRON_GPU_LANE_BYTES, wide, err));
    for (uint64_t done = 0; done < count;) {
        uint64_t some = count - done < most ? count - done : most;

        IRON_TRY(iron__tokens_gpu_widen(f->tokens, c->queue, iron_dtype_bytes(c->dtype), c->buffer,
                                        c->begin + done, *wide, some, err));
        IRON_TRY(iron__tokens_gpu_feed(f->tokens, c->queue, *wide, 0, some, err));
        done += some;
    }
    return IRON_OK;
}

/* Runs the kernels in the caller's queue, which follows ours and which ours follows then. */
static iron_status feed_in(iron__gpu_feed *f, const callers *c, uint64_t count, iron_error *err) {
    IRON_TRY(iron__gpu_event_record(iron__gpu_feed_kernels(f), f->turn, err));
    IRON_TRY(iron__gpu_event_follow(c->queue, f->turn, err));
    if (iron_dtype_bytes(c->dtype) == sizeof(uint32_t))
        IRON_TRY(iron__tokens_gpu_feed(f->tokens, c->queue, c->buffer, c->begin, count, err));
    else
        IRON_TRY(feed_widened(f, c, count, err));
    IRON_TRY(iron__gpu_event_record(c->queue, f->turn, err));
    return iron__gpu_event_follow(iron__gpu_feed_kernels(f), f->turn, err);
}

iron_status iron__gpu_feed_resident(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                    uint64_t first, uint64_t count, uintptr_t queue,
                                    iron_error *err) {
    callers c = {.dtype = dtype};
    iron_status status;

    IRON_TRY(iron__gpu_feed_flush(f, err));
    status = meet(f, tokens, first + count, queue, &c, err);
    c.begin += first;
    if (status == IRON_OK) {
        status = feed_in(f, &c, count, err);
        if (status != IRON_OK) /* what was launched there must not meet what comes next */
            (void)iron__gpu_queue_wait(c.queue, NULL);
    }
    part(&c);
    return status;
}

iron_status iron__gpu_feed_peek(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                uint64_t first, size_t count, uintptr_t queue, void *to,
                                iron_error *err) {
    callers c = {.dtype = dtype};
    size_t width = iron_dtype_bytes(dtype);
    iron_status status = meet(f, tokens, first + count, queue, &c, err);

    if (status == IRON_OK) {
        iron__gpu_copy copy = {.from = c.buffer,
                               .from_offset = (size_t)(c.begin + first) * width - c.before_memory,
                               .to_host = to,
                               .bytes = count * width};

        status = iron__gpu_copy_bytes(c.queue, &copy, err);
    }
    if (status == IRON_OK)
        status = iron__gpu_queue_wait(c.queue, err);
    part(&c);
    return status;
}
