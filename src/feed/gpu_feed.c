/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed.c: slots, lanes and queues, as gpu_feed.h draws them.
 *
 * Invariants: 1. Lanes are used in turn, and a lane is used again only when what it was sent before
 * has left the host's memory; so slots become free in the order in which they were sent. 2. There
 * are more slots than lanes: the slot that is being filled was never sent, or is free again.
 * 3. Kernels run in queue 0 alone, in stream order.
 */
#include "feed/gpu_feed.h"

#include "core/fail.h"

#include <string.h>

#define LANES      4u
#define QUEUES     4u
#define LANE_BYTES ((size_t)16 << 20)  /* a slot of u8 tokens becomes so many */
#define COPY_PIECE ((size_t)256 << 10) /* of a copy that the team shares */

/* A device's buffer on its turn, and the host's part in it. */
typedef struct lane {
    iron__gpu_buffer *tokens; /* as they were sent */
    iron__gpu_buffer *wide;   /* 32-bit ones made of them, where they are others */
    iron__gpu_event *sent;    /* has left the host's memory */
    iron__gpu_event *used;    /* the kernels have read it */
    bool is_pending;          /* `sent` was recorded and not waited for */
} lane;

/* Memory that was lent to the caller. */
typedef struct loan {
    struct loan *next;
    iron__gpu_buffer *buffer;
} loan;

struct iron__gpu_feed {
    const iron_allocator *allocator;
    iron__team *team;
    iron__gpu_device *device;
    iron__tokens_gpu *tokens;
    iron__gpu_strategy strategy;
    iron__gpu_queue *queues[QUEUES];
    iron__gpu_event *turn; /* orders queue 0 and the caller's */
    lane lanes[LANES];
    size_t sends; /* how many there were: lane and slot of the next */
    iron__gpu_buffer *slots[IRON_GPU_SLOTS];
    void *pageable_slot; /* ordinary memory: one is enough, sending it waits */
    iron_dtype dtype;    /* of the tokens that collect */
    size_t collected;    /* tokens in the slot that is being filled */
    uint64_t batch;      /* tokens in a batch */
    loan *loans;
};

static iron__gpu_queue *kernels_of(const iron__gpu_feed *f) { return f->queues[0]; }

/* The queue that sends for a lane. */
static iron__gpu_queue *sender_of(const iron__gpu_feed *f, size_t lane_index) {
    return f->strategy == IRON_GPU_STREAMS ? f->queues[1 + lane_index % (QUEUES - 1)]
                                           : kernels_of(f);
}

static bool is_copied(const iron__gpu_feed *f) {
    return f->strategy <= IRON_GPU_STREAMS; /* the others are read where they lie */
}

static iron__gpu_memory slot_memory(const iron__gpu_feed *f) {
    return is_copied(f)                        ? IRON_GPU_MEMORY_PINNED
           : f->strategy == IRON_GPU_ZERO_COPY ? IRON_GPU_MEMORY_MAPPED
                                               : IRON_GPU_MEMORY_MANAGED;
}

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
    for (size_t k = 0; k < (f->strategy == IRON_GPU_STREAMS ? QUEUES : 1); k++)
        IRON_TRY(iron__gpu_queue_create(f->device, &f->queues[k], err));
    for (size_t k = 0; k < LANES; k++) {
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
    for (size_t k = 0; k < QUEUES; k++)
        if (f->queues[k])
            (void)iron__gpu_queue_wait(f->queues[k], NULL); /* failed or not, we are leaving */
    for (size_t k = 0; k < LANES; k++) {
        iron__gpu_buffer_destroy(f->lanes[k].tokens);
        iron__gpu_buffer_destroy(f->lanes[k].wide);
        iron__gpu_event_destroy(f->device, f->lanes[k].sent);
        iron__gpu_event_destroy(f->device, f->lanes[k].used);
    }
    for (size_t k = 0; k < IRON_GPU_SLOTS; k++)
        iron__gpu_buffer_destroy(f->slots[k]);
    while (f->loans)
        iron__gpu_feed_take_back(f, f->loans->buffer->host);
    iron__release(f->allocator, f->pageable_slot);
    iron__gpu_event_destroy(f->device, f->turn);
    iron__tokens_gpu_destroy(f->tokens);
    for (size_t k = 0; k < QUEUES; k++)
        iron__gpu_queue_destroy(f->queues[k]);
    iron__gpu_device_close(f->device);
    iron__release(f->allocator, f);
}

const iron__gpu_info *iron__gpu_feed_info(const iron__gpu_feed *f) { return &f->device->info; }

const char *iron__gpu_feed_memory(const iron__gpu_feed *f) {
    return iron__gpu_strategy_name(f->strategy);
}

uintptr_t iron__gpu_feed_context(const iron__gpu_feed *f) {
    return f->device->ops->context ? f->device->ops->context(f->device) : 0;
}

iron_status iron__gpu_feed_begin(iron__gpu_feed *f, const iron__nodes *nodes,
                                 iron__contribution closed, uint64_t batches, iron_error *err) {
    f->collected = 0;
    return iron__tokens_gpu_begin(f->tokens, kernels_of(f), nodes, closed, batches, err);
}

static iron_status ensure(iron__gpu_feed *f, iron__gpu_memory memory, size_t bytes,
                          iron__gpu_buffer **buffer, iron_error *err) {
    return *buffer ? IRON_OK : iron__gpu_buffer_create(f->device, memory, bytes, buffer, err);
}

/* Waits until what the lane was sent has left the host's memory. */
static iron_status wait_for(iron__gpu_feed *f, lane *l, size_t *released, iron_error *err) {
    if (!l->is_pending)
        return IRON_OK;
    IRON_TRY(iron__gpu_event_wait(f->device, l->sent, err));
    l->is_pending = false;
    if (released)
        (*released)++;
    return IRON_OK;
}

iron_status iron__gpu_feed_release(iron__gpu_feed *f, iron_error *err) {
    for (size_t k = 0; k < LANES; k++)
        IRON_TRY(wait_for(f, &f->lanes[(f->sends + k) % LANES], NULL, err));
    return IRON_OK;
}

/* Kernels over tokens of any width that are on the device, or are read by it. */
static iron_status reduce(iron__gpu_feed *f, lane *l, const iron__gpu_buffer *tokens,
                          iron_dtype dtype, size_t count, iron_error *err) {
    size_t width = iron_dtype_bytes(dtype);
    iron__gpu_queue *queue = kernels_of(f);

    if (width != sizeof(uint32_t)) {
        IRON_TRY(ensure(f, IRON_GPU_MEMORY_DEVICE, LANE_BYTES, &l->wide, err));
        IRON_TRY(iron__tokens_gpu_widen(f->tokens, queue, width, tokens, 0, l->wide, count, err));
        tokens = l->wide;
    }
    return iron__tokens_gpu_feed(f->tokens, queue, tokens, 0, count, err);
}

/* Sends tokens from the host's memory to the next lane and reduces them there. */
static iron_status send(iron__gpu_feed *f, const void *tokens, iron_dtype dtype, size_t count,
                        size_t *released, iron_error *err) {
    lane *l = &f->lanes[f->sends % LANES];
    iron__gpu_queue *sender = sender_of(f, f->sends % LANES), *kernels = kernels_of(f);
    iron__gpu_copy copy = {.from_host = tokens, .bytes = count * iron_dtype_bytes(dtype)};

    IRON_TRY(wait_for(f, l, released, err));
    IRON_TRY(ensure(f, IRON_GPU_MEMORY_DEVICE, LANE_BYTES, &l->tokens, err));
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

/* Reduces a slot where it lies: managed or mapped memory. */
static iron_status reduce_in_place(iron__gpu_feed *f, iron__gpu_buffer *slot, iron_dtype dtype,
                                   size_t count, iron_error *err) {
    lane *l = &f->lanes[f->sends % LANES];
    iron__gpu_queue *queue = kernels_of(f);

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

/* Waits for all that was sent, also after a failure: then nothing reads the host's memory any more.
 * The first thing that went wrong is what counts. */
static iron_status settle_sends(iron__gpu_feed *f, iron_status status, iron_error *err) {
    iron_status waited = iron__gpu_feed_release(f, status == IRON_OK ? err : NULL);

    return status == IRON_OK ? waited : status;
}

/* Sends what has collected in the slot that is being filled. */
static iron_status flush(iron__gpu_feed *f, iron_error *err) {
    iron__gpu_buffer *slot = f->slots[f->sends % IRON_GPU_SLOTS];
    size_t count = f->collected;

    if (count == 0)
        return IRON_OK;
    f->collected = 0;
    if (f->strategy == IRON_GPU_PAGEABLE)
        return settle_sends(f, send(f, f->pageable_slot, f->dtype, count, NULL, err), err);
    return is_copied(f) ? send(f, slot->host, f->dtype, count, NULL, err)
                        : reduce_in_place(f, slot, f->dtype, count, err);
}

iron_status iron__gpu_feed_flush(iron__gpu_feed *f, iron_error *err) { return flush(f, err); }

/* Where the host collects tokens; valid until the next flush. */
static iron_status slot_to_fill(iron__gpu_feed *f, char **memory, iron_error *err) {
    iron__gpu_buffer **slot = &f->slots[f->sends % IRON_GPU_SLOTS];

    if (f->strategy == IRON_GPU_PAGEABLE) {
        if (!f->pageable_slot)
            f->pageable_slot =
                iron__allocate(f->allocator, 1, IRON_GPU_SLOT_BYTES, "a slot of tokens", err);
        *memory = f->pageable_slot;
        return *memory ? IRON_OK : IRON_E_NOMEM;
    }
    IRON_TRY(ensure(f, slot_memory(f), IRON_GPU_SLOT_BYTES, slot, err));
    if (!is_copied(f) && f->collected == 0) {
        /* not every device lets the host touch managed memory while a kernel runs */
        if (f->strategy == IRON_GPU_UVM)
            IRON_TRY(iron__gpu_queue_wait(kernels_of(f), err));
        IRON_TRY(iron__gpu_host_begin(kernels_of(f), *slot, err));
    }
    *memory = (*slot)->host;
    return IRON_OK;
}

typedef struct copying {
    char *to;
    const char *from;
    size_t bytes;
} copying;

static void copy_piece(void *context, size_t index) {
    const copying *c = context;
    size_t at = index * COPY_PIECE, left = c->bytes - at;

    memcpy(c->to + at, c->from + at, left < COPY_PIECE ? left : COPY_PIECE);
}

/* Copies as many tokens as the slot has room for; *taken says how many. */
static iron_status collect(iron__gpu_feed *f, const iron__tokens_view *view, size_t *taken,
                           iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);
    size_t capacity = IRON_GPU_SLOT_BYTES / width, room;
    copying c;
    char *memory;

    if (f->collected > 0 && f->dtype != view->dtype)
        IRON_TRY(flush(f, err));
    room = capacity - f->collected;
    *taken = view->count < room ? view->count : room;
    IRON_TRY(slot_to_fill(f, &memory, err));
    c = (copying){memory + f->collected * width, view->data, *taken * width};
    iron__team_run(f->team, copy_piece, &c, (c.bytes + COPY_PIECE - 1) / COPY_PIECE);
    f->dtype = view->dtype;
    f->collected += *taken;
    return f->collected == capacity ? flush(f, err) : IRON_OK;
}

/* Sends straight from the caller's memory, which is free again when this returns. */
static iron_status send_all(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);
    size_t capacity = LANE_BYTES / (width > sizeof(uint32_t) ? width : sizeof(uint32_t));
    iron_status status = flush(f, err);

    for (size_t done = 0; status == IRON_OK && done < view->count;) {
        size_t count = view->count - done < capacity ? view->count - done : capacity;

        status = send(f, (const char *)view->data + done * width, view->dtype, count, NULL, err);
        done += count;
    }
    return settle_sends(f, status, err);
}

iron__tokens_gpu_progress iron__gpu_feed_progress(const iron__gpu_feed *f) {
    iron__tokens_gpu_progress p = iron__tokens_gpu_progress_of(f->tokens);
    uint64_t closing = (p.open_tokens + f->collected) / f->batch;

    p.open_tokens = (p.open_tokens + f->collected) % f->batch;
    p.closed_tokens += closing * f->batch;
    p.batches += closing;
    return p;
}

iron_status iron__gpu_feed_lend(iron__gpu_feed *f, size_t bytes, void **out, iron_error *err) {
    loan *l = iron__allocate(f->allocator, 1, sizeof *l, "a loan", err);
    iron_status status;

    *out = NULL;
    if (!l)
        return IRON_E_NOMEM;
    status = iron__gpu_buffer_create(f->device, IRON_GPU_MEMORY_PINNED, bytes, &l->buffer, err);
    if (status != IRON_OK) {
        iron__release(f->allocator, l);
        return status;
    }
    l->next = f->loans;
    f->loans = l;
    *out = l->buffer->host;
    return IRON_OK;
}

void iron__gpu_feed_take_back(iron__gpu_feed *f, void *memory) {
    for (loan **at = &f->loans; *at; at = &(*at)->next) {
        loan *l = *at;

        if (l->buffer->host != memory)
            continue;
        *at = l->next;
        iron__gpu_buffer_destroy(l->buffer);
        iron__release(f->allocator, l);
        return;
    }
}

static bool is_lent(const iron__gpu_feed *f, const void *memory) {
    for (const loan *l = f->loans; l; l = l->next)
        if ((uintptr_t)memory - (uintptr_t)l->buffer->host < l->buffer->bytes)
            return true;
    return false;
}

iron_status iron__gpu_feed_host(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err) {
    size_t bytes = view->count * iron_dtype_bytes(view->dtype);
    iron__tokens_view rest = *view;

    if (bytes >= IRON_GPU_SLOT_BYTES &&
        (f->strategy == IRON_GPU_PAGEABLE ||
         (is_copied(f) &&
          (is_lent(f, view->data) || iron__gpu_is_pinned(f->device, view->data, bytes)))))
        return send_all(f, view, err);
    while (rest.count > 0) {
        size_t taken = 0;

        IRON_TRY(collect(f, &rest, &taken, err));
        rest = iron__view_rest(&rest, taken);
    }
    return IRON_OK;
}

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
    uint64_t most = LANE_BYTES / sizeof(uint32_t);

    IRON_TRY(ensure(f, IRON_GPU_MEMORY_DEVICE, LANE_BYTES, wide, err));
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
    IRON_TRY(iron__gpu_event_record(kernels_of(f), f->turn, err));
    IRON_TRY(iron__gpu_event_follow(c->queue, f->turn, err));
    if (iron_dtype_bytes(c->dtype) == sizeof(uint32_t))
        IRON_TRY(iron__tokens_gpu_feed(f->tokens, c->queue, c->buffer, c->begin, count, err));
    else
        IRON_TRY(feed_widened(f, c, count, err));
    IRON_TRY(iron__gpu_event_record(c->queue, f->turn, err));
    return iron__gpu_event_follow(kernels_of(f), f->turn, err);
}

iron_status iron__gpu_feed_resident(iron__gpu_feed *f, uintptr_t tokens, iron_dtype dtype,
                                    uint64_t first, uint64_t count, uintptr_t queue,
                                    iron_error *err) {
    callers c = {.dtype = dtype};
    iron_status status;

    IRON_TRY(flush(f, err));
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

iron_status iron__gpu_feed_is_beyond(iron__gpu_feed *f, bool *beyond, iron_error *err) {
    return iron__tokens_gpu_is_beyond(f->tokens, kernels_of(f), beyond, err);
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

iron_status iron__gpu_feed_end_batch(iron__gpu_feed *f, iron_error *err) {
    IRON_TRY(flush(f, err));
    return iron__tokens_gpu_end_batch(f->tokens, kernels_of(f), err);
}

iron_status iron__gpu_feed_fetch(iron__gpu_feed *f, iron__nodes *nodes, iron__contribution *closed,
                                 iron_error *err) {
    IRON_TRY(flush(f, err));
    return iron__tokens_gpu_fetch(f->tokens, kernels_of(f), nodes, closed, err);
}

iron_status iron__gpu_feed_seal_begin(iron__gpu_feed *f, const iron__quads_total *from,
                                      iron_error *err) {
    return iron__tokens_gpu_seal_begin(f->tokens, kernels_of(f), from, err);
}

iron_status iron__gpu_feed_seal_fetch(iron__gpu_feed *f, iron__quads_total *total,
                                      iron_error *err) {
    IRON_TRY(flush(f, err));
    return iron__tokens_gpu_seal_fetch(f->tokens, kernels_of(f), total, err);
}

bool iron__gpu_feed_has_slots(const iron__gpu_feed *f) {
    return f->strategy == IRON_GPU_PINNED || f->strategy == IRON_GPU_STREAMS;
}

iron_status iron__gpu_feed_slots(iron__gpu_feed *f, void *slots[IRON_GPU_SLOTS], iron_error *err) {
    IRON_TRY(iron__gpu_feed_release(f, err));
    for (size_t k = 0; k < IRON_GPU_SLOTS; k++) {
        IRON_TRY(ensure(f, slot_memory(f), IRON_GPU_SLOT_BYTES, &f->slots[k], err));
        slots[k] = f->slots[k]->host;
    }
    return IRON_OK;
}

iron_status iron__gpu_feed_slot(iron__gpu_feed *f, size_t slot, iron_dtype dtype, size_t count,
                                size_t *released, iron_error *err) {
    *released = 0;
    return send(f, f->slots[slot]->host, dtype, count, released, err);
}
