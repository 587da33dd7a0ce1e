/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed.c: tokens on their way to a GPU's kernels: its strategy, buffers and queues.
 *
 * Tokens in the host's memory collect in slots until one is full or a result is asked for; many in
 * memory that the device can read by itself are sent as they lie. A slot is sent to one of the
 * device's buffers and reduced there, or is read in place (managed and mapped memory). Tokens that
 * are in the device's memory already are reduced in the caller's queue.
 *
 * Invariants: 1. Device buffers are used in turn, and one is used again only when what it was sent
 * before has left the host's memory; so slots become free in the order in which they were sent.
 * 2. There are more slots than device buffers: the slot that is being filled was never sent, or is
 * free again. 3. Kernels run in queue 0 only, in stream order.
 */
#include "feed/gpu_feed.h"

#include "core/cpu.h"
#include "core/number.h"

#include <string.h>

#define DEVICE_BUFFER_BYTES ((size_t)16 << 20)

#define COPY_PIECE ((size_t)256 << 10) /* of a copy that the threads share */

static bool is_copied(const iron__gpu_feed *f) {
    return f->strategy <= IRON_GPU_STREAMS; /* the other strategies read slots in place */
}

/* Creating and destroying. */

/* The default shape. On an H200 with 16 Xeon cores, reading a page-cached file (bench-feed,
 * 2026-11-16): eight readers deliver 57 GB/s and twelve 75, where PCIe 5 takes 54.6; more of them
 * only slow each other down. A quarter of the processors is left to other work.
 *
 * Slots of 8 MiB are fed at 53.2 GB/s, of 4 at 51.8, of 2 at 49.4: each send has a fixed cost.
 * Larger ones gain another per cent, and take three times as long to lock. Readers fill a slot
 * together, so that the first is ready soon.
 *
 * A file that is hardly in the page cache is read faster past it: the disk has more requests at a
 * time, and no pages have to be evicted. But it is not in the cache afterwards either. */
iron__feed_shape iron__feed_shape_default(uint32_t sharers) {
    const uint32_t readers_max = 12;
    uint32_t cpus = iron__cpu_threads() / (sharers > 1 ? sharers : 1);

    cpus = cpus > 0 ? cpus : 1;
    return (iron__feed_shape){
        .readers = cpus < readers_max * 4 / 3 ? (3 * cpus + 3) / 4 : readers_max,
        .slot_count = 8,
        .slot_bytes = (size_t)8 << 20,
        .piece_bytes = (size_t)512 << 10,
        .direct = IRON_DIRECT_COLD,
    };
}

static iron_status build(iron__gpu_feed *f, const iron__gpu_feed_config *c, iron_error *err) {
    const iron__gpu_info *info;

    IRON_TRY(iron__gpu_device_open(c->backend, c->device, &f->device, err));
    info = &f->device->info;
    /* `auto` is the strategy that overlaps most: on an H200 it feeds a file at 48 GB/s, `pinned` at
     * 41. */
    f->strategy = info->lacks[IRON_GPU_STREAMS][0] ? IRON_GPU_PAGEABLE : IRON_GPU_STREAMS;
    if (c->memory && strcmp(c->memory, "auto") != 0) {
        f->strategy = iron__gpu_strategy_find(c->memory);
        IRON_FAIL_IF(f->strategy == IRON_GPU_STRATEGIES, err, IRON_E_ARG,
                     "unknown memory strategy '%.40s'; use auto, pageable, pinned, streams, uvm, "
                     "uvm-prefetch or zero-copy",
                     c->memory);
        IRON_FAIL_IF(info->lacks[f->strategy][0], err, IRON_E_UNSUPPORTED,
                     "memory strategy %s is not available on %s: %s; use --memory auto", c->memory,
                     info->name, info->lacks[f->strategy]);
    }
    IRON_TRY(iron__tokens_gpu_create(f->device, &c->tokens, &f->tokens, err));
    IRON_TRY(iron__gpu_event_create(f->device, &f->order, err));
    for (size_t k = 0; k < (f->strategy == IRON_GPU_STREAMS ? IRON_FEED_QUEUES : 1); k++)
        IRON_TRY(iron__gpu_queue_create(f->device, &f->queues[k], err));
    for (size_t k = 0; k < IRON_FEED_BUFFERS; k++) {
        IRON_TRY(iron__gpu_event_create(f->device, &f->buffers[k].sent, err));
        IRON_TRY(iron__gpu_event_create(f->device, &f->buffers[k].used, err));
    }
    return IRON_OK;
}

iron_status iron__gpu_feed_create(const iron__gpu_feed_config *config, iron__gpu_feed **out,
                                  iron_error *err) {
    const iron_allocator *a = config->tokens.allocator;
    iron__gpu_feed *f;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_ALLOCATE(&f, a, 1, "a GPU feed", err));
    f->allocator = a;
    f->pool = config->pool;
    f->batch = config->tokens.batch;
    f->shape = iron__feed_shape_default(config->sharers);
    status = build(f, config, err);
    if (status == IRON_OK)
        *out = f;
    else
        iron__gpu_feed_destroy(f);
    return status;
}

void iron__gpu_feed_destroy(iron__gpu_feed *f) {
    if (!f)
        return;
    for (size_t k = 0; k < IRON_FEED_QUEUES; k++)
        if (f->queues[k])
            (void)iron__gpu_queue_wait(f->queues[k], NULL); /* the error does not matter any more */
    for (size_t k = 0; k < IRON_FEED_BUFFERS; k++) {
        iron__gpu_buffer_destroy(f->buffers[k].tokens);
        iron__gpu_buffer_destroy(f->buffers[k].wide);
        iron__gpu_event_destroy(f->device, f->buffers[k].sent);
        iron__gpu_event_destroy(f->device, f->buffers[k].used);
    }
    for (size_t k = 0; k < IRON_FEED_SLOTS_MAX; k++)
        iron__gpu_buffer_destroy(f->slots[k]);
    while (f->pinned)
        iron__gpu_feed_pinned_free(f, f->pinned->buffer->host);
    iron__release(f->allocator, f->pageable_slot);
    iron__gpu_event_destroy(f->device, f->order);
    iron__tokens_gpu_destroy(f->tokens);
    for (size_t k = 0; k < IRON_FEED_QUEUES; k++)
        iron__gpu_queue_destroy(f->queues[k]);
    iron__gpu_device_close(f->device);
    iron__release(f->allocator, f);
}

/* Sending slots, or ranges of the caller's page-locked memory, to the device and reducing them. */

/* Creates a buffer when it is first needed. */
static iron_status ensure(iron__gpu_feed *f, iron__gpu_memory memory, size_t bytes,
                          iron__gpu_buffer **buffer, iron_error *err) {
    return *buffer ? IRON_OK : iron__gpu_buffer_create(f->device, memory, bytes, buffer, err);
}

static iron_status ensure_slot(iron__gpu_feed *f, size_t slot, iron_error *err) {
    iron__gpu_memory memory = is_copied(f)                        ? IRON_GPU_MEMORY_PINNED
                              : f->strategy == IRON_GPU_ZERO_COPY ? IRON_GPU_MEMORY_MAPPED
                                                                  : IRON_GPU_MEMORY_MANAGED;

    return ensure(f, memory, f->shape.slot_bytes, &f->slots[slot], err);
}

/* Waits until what was sent to the buffer has left the host's memory. */
static iron_status wait_sent(iron__gpu_feed *f, iron__feed_buffer *b, size_t *released,
                             iron_error *err) {
    if (!b->is_pending)
        return IRON_OK;
    IRON_TRY(iron__gpu_event_wait(f->device, b->sent, err));
    b->is_pending = false;
    if (released)
        (*released)++;
    return IRON_OK;
}

iron_status iron__gpu_feed_wait_sent(iron__gpu_feed *f, iron_error *err) {
    for (size_t k = 0; k < IRON_FEED_BUFFERS; k++)
        IRON_TRY(wait_sent(f, &f->buffers[(f->sends + k) % IRON_FEED_BUFFERS], NULL, err));
    return IRON_OK;
}

iron_status iron__gpu_feed_reshape(iron__gpu_feed *f, const iron__feed_shape *shape,
                                   iron_error *err) {
    IRON_FAIL_IF(f->collected > 0, err, IRON_E_STATE,
                 "%zu tokens are in a slot; the shape can be changed only while slots are empty",
                 f->collected);
    IRON_FAIL_IF(shape->slot_count < IRON_FEED_SLOTS_MIN || shape->slot_count > IRON_FEED_SLOTS_MAX,
                 err, IRON_E_ARG, "%zu slots; there must be %u to %u", shape->slot_count,
                 IRON_FEED_SLOTS_MIN, IRON_FEED_SLOTS_MAX);
    IRON_FAIL_IF(shape->slot_bytes == 0 || shape->slot_bytes % sizeof(uint64_t) != 0 ||
                     shape->slot_bytes > DEVICE_BUFFER_BYTES,
                 err, IRON_E_ARG, "slots of %zu bytes; they must have a multiple of 8 up to %zu",
                 shape->slot_bytes, DEVICE_BUFFER_BYTES);
    IRON_TRY(iron__gpu_feed_wait_sent(f, err));
    for (size_t k = 0; k < IRON_FEED_SLOTS_MAX; k++) {
        iron__gpu_buffer_destroy(f->slots[k]);
        f->slots[k] = NULL;
    }
    iron__release(f->allocator, f->pageable_slot);
    f->pageable_slot = NULL;
    f->shape = *shape;
    return IRON_OK;
}

/* Runs the kernels over tokens of any width that are on the device, or are read by it. */
static iron_status reduce(iron__gpu_feed *f, iron__feed_buffer *b, const iron__gpu_buffer *tokens,
                          iron_dtype dtype, size_t count, iron_error *err) {
    size_t width = iron_dtype_bytes(dtype);
    iron__gpu_queue *queue = iron__gpu_feed_queue(f);

    if (width != sizeof(uint32_t)) {
        IRON_TRY(ensure(f, IRON_GPU_MEMORY_DEVICE, DEVICE_BUFFER_BYTES, &b->wide, err));
        IRON_TRY(iron__tokens_gpu_widen(f->tokens, queue, width, tokens, 0, b->wide, count, err));
        tokens = b->wide;
    }
    return iron__tokens_gpu_feed(f->tokens, queue, tokens, 0, count, err);
}

/* Sends tokens from the host's memory to the next device buffer and reduces them there. *released,
 * unless NULL, counts the slots that became free meanwhile. */
static iron_status send(iron__gpu_feed *f, const void *tokens, iron_dtype dtype, size_t count,
                        size_t *released, iron_error *err) {
    size_t index = f->sends % IRON_FEED_BUFFERS;
    iron__feed_buffer *b = &f->buffers[index];
    iron__gpu_queue *kernels = iron__gpu_feed_queue(f), *sender = kernels;
    iron__gpu_copy copy = {.from_host = tokens, .bytes = count * iron_dtype_bytes(dtype)};

    if (f->strategy == IRON_GPU_STREAMS)
        sender = f->queues[1 + index % (IRON_FEED_QUEUES - 1)];
    IRON_TRY(wait_sent(f, b, released, err));
    IRON_TRY(ensure(f, IRON_GPU_MEMORY_DEVICE, DEVICE_BUFFER_BYTES, &b->tokens, err));
    copy.to = b->tokens;
    IRON_TRY(iron__gpu_queue_wait_event(sender, b->used, err));
    IRON_TRY(iron__gpu_copy_bytes(sender, &copy, err));
    IRON_TRY(iron__gpu_event_record(sender, b->sent, err));
    b->is_pending = true;
    f->sends++;
    if (sender != kernels)
        IRON_TRY(iron__gpu_queue_wait_event(kernels, b->sent, err));
    IRON_TRY(reduce(f, b, b->tokens, dtype, count, err));
    return iron__gpu_event_record(kernels, b->used, err);
}

/* Tokens that a device buffer holds, once they are widened. */
static size_t buffer_tokens(iron_dtype dtype) {
    return DEVICE_BUFFER_BYTES / iron__max(iron_dtype_bytes(dtype), sizeof(uint32_t));
}

size_t iron__gpu_feed_slot_bytes(const iron__gpu_feed *f, iron_dtype dtype) {
    return iron__min_size(f->shape.slot_bytes, buffer_tokens(dtype) * iron_dtype_bytes(dtype));
}

iron_status iron__gpu_feed_slots(iron__gpu_feed *f, void *slots[IRON_FEED_SLOTS_MAX],
                                 iron_error *err) {
    IRON_TRY(iron__gpu_feed_wait_sent(f, err));
    for (size_t k = 0; k < IRON_FEED_BUFFERS; k++)
        IRON_TRY(
            ensure(f, IRON_GPU_MEMORY_DEVICE, DEVICE_BUFFER_BYTES, &f->buffers[k].tokens, err));
    for (size_t k = 0; k < f->shape.slot_count; k++) {
        IRON_TRY(ensure_slot(f, k, err));
        slots[k] = f->slots[k]->host;
    }
    return IRON_OK;
}

iron_status iron__gpu_feed_send_slot(iron__gpu_feed *f, size_t slot, iron_dtype dtype, size_t count,
                                     size_t *released, iron_error *err) {
    *released = 0;
    return send(f, f->slots[slot]->host, dtype, count, released, err);
}

/* Tokens in the host's memory. */

/* Waits for everything that was sent, also after a failure: then nothing reads the host's memory
 * any more. The first error is returned. */
static iron_status finish_sends(iron__gpu_feed *f, iron_status status, iron_error *err) {
    iron_status waited = iron__gpu_feed_wait_sent(f, status == IRON_OK ? err : NULL);

    return status == IRON_OK ? waited : status;
}

iron_status iron__gpu_feed_flush(iron__gpu_feed *f, iron_error *err) {
    iron__gpu_buffer *slot = f->slots[f->sends % f->shape.slot_count];
    iron__feed_buffer *b = &f->buffers[f->sends % IRON_FEED_BUFFERS];
    iron__gpu_queue *queue = iron__gpu_feed_queue(f);
    size_t count = f->collected;

    if (count == 0)
        return IRON_OK;
    f->collected = 0;
    if (f->strategy == IRON_GPU_PAGEABLE)
        return finish_sends(f, send(f, f->pageable_slot, f->dtype, count, NULL, err), err);
    if (is_copied(f))
        return send(f, slot->host, f->dtype, count, NULL, err);
    /* managed or mapped memory is reduced where it lies */
    IRON_TRY(wait_sent(f, b, NULL, err));
    IRON_TRY(iron__gpu_host_end(queue, slot, err));
    if (f->strategy == IRON_GPU_UVM_PREFETCH)
        IRON_TRY(iron__gpu_prefetch(queue, slot, count * iron_dtype_bytes(f->dtype), err));
    IRON_TRY(reduce(f, b, slot, f->dtype, count, err));
    IRON_TRY(iron__gpu_event_record(queue, b->sent, err));
    b->is_pending = true;
    f->sends++;
    return IRON_OK;
}

/* The slot in which the host collects tokens; valid until the next flush. */
static iron_status slot_to_fill(iron__gpu_feed *f, char **memory, iron_error *err) {
    iron__gpu_buffer **slot = &f->slots[f->sends % f->shape.slot_count];

    if (f->strategy == IRON_GPU_PAGEABLE) {
        if (!f->pageable_slot)
            f->pageable_slot =
                iron__allocate(f->allocator, 1, f->shape.slot_bytes, "a slot of tokens", err);
        *memory = f->pageable_slot;
        return *memory ? IRON_OK : IRON_E_NOMEM;
    }
    IRON_TRY(ensure_slot(f, f->sends % f->shape.slot_count, err));
    if (!is_copied(f) && f->collected == 0) {
        /* not every device lets the host touch managed memory while a kernel runs */
        if (f->strategy == IRON_GPU_UVM)
            IRON_TRY(iron__gpu_queue_wait(iron__gpu_feed_queue(f), err));
        IRON_TRY(iron__gpu_host_begin(iron__gpu_feed_queue(f), *slot, err));
    }
    *memory = (*slot)->host;
    return IRON_OK;
}

typedef struct copy_job {
    char *to;
    const char *from;
    size_t bytes;
} copy_job;

static void copy_piece(void *context, size_t index) {
    const copy_job *c = context;
    size_t at = index * COPY_PIECE;

    memcpy(c->to + at, c->from + at, iron__min_size(COPY_PIECE, c->bytes - at));
}

/* Copies as many tokens as fit into the slot; *taken says how many. */
static iron_status collect(iron__gpu_feed *f, const iron__tokens_view *view, size_t *taken,
                           iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);
    size_t capacity = iron__gpu_feed_slot_bytes(f, view->dtype) / width;
    copy_job c;
    char *memory;

    if (f->collected > 0 && f->dtype != view->dtype)
        IRON_TRY(iron__gpu_feed_flush(f, err));
    *taken = iron__min_size(view->count, capacity - f->collected);
    IRON_TRY(slot_to_fill(f, &memory, err));
    c = (copy_job){memory + f->collected * width, view->data, *taken * width};
    iron__thread_pool_run(f->pool, copy_piece, &c, (c.bytes + COPY_PIECE - 1) / COPY_PIECE);
    f->dtype = view->dtype;
    f->collected += *taken;
    return f->collected == capacity ? iron__gpu_feed_flush(f, err) : IRON_OK;
}

iron_status iron__gpu_feed_pinned_alloc(iron__gpu_feed *f, size_t bytes, void **out,
                                        iron_error *err) {
    iron__pinned_block *b;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_ALLOCATE(&b, f->allocator, 1, "page-locked memory", err));
    status = iron__gpu_buffer_create(f->device, IRON_GPU_MEMORY_PINNED, bytes, &b->buffer, err);
    if (status == IRON_OK) {
        b->next = f->pinned;
        f->pinned = b;
        *out = b->buffer->host;
    } else {
        iron__release(f->allocator, b);
    }
    return status;
}

void iron__gpu_feed_pinned_free(iron__gpu_feed *f, void *memory) {
    for (iron__pinned_block **at = &f->pinned; *at; at = &(*at)->next) {
        iron__pinned_block *b = *at;

        if (b->buffer->host != memory)
            continue;
        *at = b->next;
        iron__gpu_buffer_destroy(b->buffer);
        iron__release(f->allocator, b);
        return;
    }
}

static bool is_pinned_block(const iron__gpu_feed *f, const void *memory) {
    for (const iron__pinned_block *b = f->pinned; b; b = b->next)
        if ((uintptr_t)memory - (uintptr_t)b->buffer->host < b->buffer->bytes)
            return true;
    return false;
}

iron_status iron__gpu_feed_host(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err) {
    size_t bytes = view->count * iron_dtype_bytes(view->dtype);
    iron__tokens_view rest = *view;

    /* straight from the caller's memory, which is free again when this returns */
    if (bytes >= f->shape.slot_bytes &&
        (f->strategy == IRON_GPU_PAGEABLE ||
         (is_copied(f) &&
          (is_pinned_block(f, view->data) || iron__gpu_is_pinned(f->device, view->data, bytes))))) {
        iron_status status = iron__gpu_feed_flush(f, err);

        while (status == IRON_OK && rest.count > 0) {
            size_t count = iron__min_size(rest.count, buffer_tokens(view->dtype));

            status = send(f, rest.data, view->dtype, count, NULL, err);
            rest = iron__view_rest(&rest, count);
        }
        return finish_sends(f, status, err);
    }
    while (rest.count > 0) {
        size_t taken = 0;

        IRON_TRY(collect(f, &rest, &taken, err));
        rest = iron__view_rest(&rest, taken);
    }
    return IRON_OK;
}

/* Tokens in the device's memory, in the caller's queue. */

/* The caller's memory and queue while they are used. */
typedef struct resident {
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
    uint64_t begin;       /* index of the first token, as kernels count: */
    size_t native_offset; /* from so many bytes before the wrapped memory; copies count from it */
    iron_dtype dtype;
} resident;

/* Narrow tokens may begin inside a 32-bit word, which wrapped memory may not: then it begins with
 * that word. (Handles that are not addresses are multiples of 4 anyhow.) */
static iron_status wrap(iron__gpu_feed *f, uintptr_t tokens, uint64_t count, uintptr_t queue,
                        resident *c, iron_error *err) {
    size_t width = iron_dtype_bytes(c->dtype);
    size_t lead = (size_t)(tokens % (width < sizeof(uint32_t) ? sizeof(uint32_t) : width));

    IRON_FAIL_IF(count > (SIZE_MAX - sizeof(uint32_t)) / width, err, IRON_E_ARG,
                 "%llu tokens are more than an address space holds", (unsigned long long)count);
    IRON_FAIL_IF(lead % width != 0, err, IRON_E_ARG,
                 "tokens at %p are not aligned to their %zu bytes; copy them", (void *)tokens,
                 width);
    IRON_TRY(iron__gpu_buffer_wrap(f->device, tokens - lead, lead + (size_t)count * width,
                                   &c->buffer, err));
    c->native_offset = c->buffer->native_offset;
    c->begin = (c->native_offset + lead) / width;
    return iron__gpu_queue_wrap(f->device, queue, &c->queue, err);
}

static void unwrap(resident *c) {
    iron__gpu_queue_destroy(c->queue);
    iron__gpu_buffer_destroy(c->buffer);
}

/* Runs the kernels in the caller's queue, which first waits for ours; then ours waits for it. */
static iron_status feed_resident(iron__gpu_feed *f, const resident *c, uint64_t count,
                                 iron_error *err) {
    size_t width = iron_dtype_bytes(c->dtype);
    uint64_t most = DEVICE_BUFFER_BYTES / sizeof(uint32_t);
    iron__gpu_buffer **wide = &f->buffers[0].wide;

    IRON_TRY(iron__gpu_event_record(iron__gpu_feed_queue(f), f->order, err));
    IRON_TRY(iron__gpu_queue_wait_event(c->queue, f->order, err));
    if (width == sizeof(uint32_t)) {
        IRON_TRY(iron__tokens_gpu_feed(f->tokens, c->queue, c->buffer, c->begin, count, err));
    } else { /* a device buffer's worth at a time */
        IRON_TRY(ensure(f, IRON_GPU_MEMORY_DEVICE, DEVICE_BUFFER_BYTES, wide, err));
        for (uint64_t done = 0; done < count; done += most) {
            uint64_t some = iron__min(count - done, most);

            IRON_TRY(iron__tokens_gpu_widen(f->tokens, c->queue, width, c->buffer, c->begin + done,
                                            *wide, some, err));
            IRON_TRY(iron__tokens_gpu_feed(f->tokens, c->queue, *wide, 0, some, err));
        }
    }
    IRON_TRY(iron__gpu_event_record(c->queue, f->order, err));
    return iron__gpu_queue_wait_event(iron__gpu_feed_queue(f), f->order, err);
}

iron_status iron__gpu_feed_resident(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                    uint64_t first, uint64_t count, uintptr_t queue,
                                    iron_error *err) {
    resident c = {.dtype = dtype};
    iron_status status;

    IRON_TRY(iron__gpu_feed_flush(f, err));
    status = wrap(f, tokens, first + count, queue, &c, err);
    c.begin += first;
    if (status == IRON_OK) {
        status = feed_resident(f, &c, count, err);
        if (status != IRON_OK) /* what was launched there must not overlap with what comes next */
            (void)iron__gpu_queue_wait(c.queue, NULL);
    }
    unwrap(&c);
    return status;
}

iron_status iron__gpu_feed_read_device(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                       uint64_t first, size_t count, uintptr_t queue, void *to,
                                       iron_error *err) {
    resident c = {.dtype = dtype};
    size_t width = iron_dtype_bytes(dtype);
    iron_status status = wrap(f, tokens, first + count, queue, &c, err);

    if (status == IRON_OK) {
        iron__gpu_copy copy = {.from = c.buffer,
                               .from_offset = (size_t)(c.begin + first) * width - c.native_offset,
                               .to_host = to,
                               .bytes = count * width};

        status = iron__gpu_copy_bytes(c.queue, &copy, err);
    }
    if (status == IRON_OK)
        status = iron__gpu_queue_wait(c.queue, err);
    unwrap(&c);
    return status;
}
