/* SPDX-License-Identifier: MIT */
/*
 * gpu_feed_host.c: tokens in the host's memory. Few of them collect in a slot until it is full or
 * somebody looks; many in memory that the device can read by itself are sent as they lie.
 */
#include "feed/gpu_feed_inside.h"

#include "core/fail.h"

#include <string.h>

#define COPY_PIECE ((size_t)256 << 10) /* of a copy that the team shares */

/* Waits for all that was sent, also after a failure: then nothing reads the host's memory any more.
 * The first thing that went wrong is what counts. */
static iron_status settle_sends(iron__gpu_feed *f, iron_status status, iron_error *err) {
    iron_status waited = iron__gpu_feed_release(f, status == IRON_OK ? err : NULL);

    return status == IRON_OK ? waited : status;
}

/* Sends what has collected in the slot that is being filled. */
iron_status iron__gpu_feed_flush(iron__gpu_feed *f, iron_error *err) {
    iron__gpu_buffer *slot = f->slots[f->sends % f->shape.slot_count];
    size_t count = f->collected;

    if (count == 0)
        return IRON_OK;
    f->collected = 0;
    if (f->strategy == IRON_GPU_PAGEABLE)
        return settle_sends(f, iron__gpu_feed_send(f, f->pageable_slot, f->dtype, count, NULL, err),
                            err);
    return iron__gpu_feed_is_copied(f)
               ? iron__gpu_feed_send(f, slot->host, f->dtype, count, NULL, err)
               : iron__gpu_feed_in_place(f, slot, f->dtype, count, err);
}

/* Where the host collects tokens; valid until the next flush. */
static iron_status slot_to_fill(iron__gpu_feed *f, char **memory, iron_error *err) {
    iron__gpu_buffer **slot = &f->slots[f->sends % f->shape.slot_count];

    if (f->strategy == IRON_GPU_PAGEABLE) {
        if (!f->pageable_slot)
            f->pageable_slot =
                iron__allocate(f->allocator, 1, f->shape.slot_bytes, "a slot of tokens", err);
        *memory = f->pageable_slot;
        return *memory ? IRON_OK : IRON_E_NOMEM;
    }
    IRON_TRY(iron__gpu_feed_ensure_slot(f, f->sends % f->shape.slot_count, err));
    if (!iron__gpu_feed_is_copied(f) && f->collected == 0) {
        /* not every device lets the host touch managed memory while a kernel runs */
        if (f->strategy == IRON_GPU_UVM)
            IRON_TRY(iron__gpu_queue_wait(iron__gpu_feed_kernels(f), err));
        IRON_TRY(iron__gpu_host_begin(iron__gpu_feed_kernels(f), *slot, err));
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
    size_t capacity = iron__gpu_feed_slot_bytes(f, view->dtype) / width, room;
    copying c;
    char *memory;

    if (f->collected > 0 && f->dtype != view->dtype)
        IRON_TRY(iron__gpu_feed_flush(f, err));
    room = capacity - f->collected;
    *taken = view->count < room ? view->count : room;
    IRON_TRY(slot_to_fill(f, &memory, err));
    c = (copying){memory + f->collected * width, view->data, *taken * width};
    iron__team_run(f->team, copy_piece, &c, (c.bytes + COPY_PIECE - 1) / COPY_PIECE);
    f->dtype = view->dtype;
    f->collected += *taken;
    return f->collected == capacity ? iron__gpu_feed_flush(f, err) : IRON_OK;
}

/* Sends straight from the caller's memory, which is free again when this returns. */
static iron_status send_all(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);
    size_t capacity = IRON_GPU_LANE_BYTES / (width > sizeof(uint32_t) ? width : sizeof(uint32_t));
    iron_status status = iron__gpu_feed_flush(f, err);

    for (size_t done = 0; status == IRON_OK && done < view->count;) {
        size_t count = view->count - done < capacity ? view->count - done : capacity;

        status = iron__gpu_feed_send(f, (const char *)view->data + done * width, view->dtype, count,
                                     NULL, err);
        done += count;
    }
    return settle_sends(f, status, err);
}

iron_status iron__gpu_feed_lend(iron__gpu_feed *f, size_t bytes, void **out, iron_error *err) {
    iron__gpu_loan *l = iron__allocate(f->allocator, 1, sizeof *l, "a loan", err);
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
    for (iron__gpu_loan **at = &f->loans; *at; at = &(*at)->next) {
        iron__gpu_loan *l = *at;

        if (l->buffer->host != memory)
            continue;
        *at = l->next;
        iron__gpu_buffer_destroy(l->buffer);
        iron__release(f->allocator, l);
        return;
    }
}

static bool is_lent(const iron__gpu_feed *f, const void *memory) {
    for (const iron__gpu_loan *l = f->loans; l; l = l->next)
        if ((uintptr_t)memory - (uintptr_t)l->buffer->host < l->buffer->bytes)
            return true;
    return false;
}

iron_status iron__gpu_feed_host(iron__gpu_feed *f, const iron__tokens_view *view, iron_error *err) {
    size_t bytes = view->count * iron_dtype_bytes(view->dtype);
    iron__tokens_view rest = *view;

    if (bytes >= f->shape.slot_bytes &&
        (f->strategy == IRON_GPU_PAGEABLE ||
         (iron__gpu_feed_is_copied(f) &&
          (is_lent(f, view->data) || iron__gpu_is_pinned(f->device, view->data, bytes)))))
        return send_all(f, view, err);
    while (rest.count > 0) {
        size_t taken = 0;

        IRON_TRY(collect(f, &rest, &taken, err));
        rest = iron__view_rest(&rest, taken);
    }
    return IRON_OK;
}
