/* SPDX-License-Identifier: MIT */
/*
 * blocks.c: the cache of blocks.
 *
 * A slot is free, being filled by one thread, or full. A full slot that nobody uses may be given
 * to another block; the one that was not used for longest goes first. Invariants, under the mutex:
 * 1. a block is in at most one slot; 2. a slot that is being filled, or has users, keeps its block.
 *
 * There are more slots than threads, and a thread holds one at a time: so a thread that needs a
 * slot finds one.
 */
#include "io/blocks.h"

#include "core/clock.h"
#include "core/fail.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* How soon a waiting thread notices a stop flag. */
#define STOP_POLL_NS 100000000u

/* Blocks that are produced ahead hold at most so many bytes, all together. */
#define AHEAD_BYTES_MAX ((uint64_t)256 << 20)

/* Alignment of data: vector loads, and a line of the cache. */
#define ALIGNMENT 64u

/* Large blocks are in huge pages. Rounding up also means that the next block of a file, which is
 * about as large, fits into the same memory. */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

typedef enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_FULL } slot_state;

typedef struct slot {
    iron__block block; /* first, so that a block's address is its slot's */
    slot_state state;
    uint64_t index;
    unsigned users;
    uint64_t last_use;
    size_t used;     /* bytes that were looked at */
    bool is_used_up; /* all of them */
    uint64_t held;   /* bytes; while it is being filled, those that are expected */
} slot;

struct iron__blocks {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t clock;
    size_t count;
    slot slots[];
};

iron_status iron__block_reserve(iron__block *block, size_t bytes, iron_error *err) {
    size_t least = block->bytes > 0 && bytes < 2 * block->capacity ? 2 * block->capacity : bytes;
    size_t alignment = least < HUGE_PAGE_BYTES ? ALIGNMENT : HUGE_PAGE_BYTES;
    size_t capacity = (least + alignment - 1) / alignment * alignment;
    unsigned char *data;

    if (bytes <= block->capacity && block->data)
        return IRON_OK;
    data = capacity < bytes ? NULL : aligned_alloc(alignment, capacity ? capacity : alignment);
    if (data && alignment == HUGE_PAGE_BYTES)
        (void)madvise(data, capacity, MADV_HUGEPAGE); /* a hint: fewer page faults */
    IRON_FAIL_IF(!data, err, IRON_E_NOMEM, "out of memory for a block of %zu bytes", bytes);
    if (block->data && block->bytes > 0)
        memcpy(data, block->data, block->bytes);
    free(block->data);
    block->data = data;
    block->capacity = capacity ? capacity : alignment;
    return IRON_OK;
}

iron_status iron__block_reserve_places(iron__block *block, size_t count, iron_error *err) {
    size_t twice = block->place_count > 0 ? 2 * block->place_capacity : 256;
    uint64_t *places;

    if (count <= block->place_capacity)
        return IRON_OK;
    count = count > twice ? count : twice;
    places =
        count > SIZE_MAX / sizeof *places ? NULL : realloc(block->places, count * sizeof *places);
    IRON_FAIL_IF(!places, err, IRON_E_NOMEM, "out of memory for %zu rows", count);
    block->places = places;
    block->place_capacity = count;
    return IRON_OK;
}

iron_status iron__block_add_place(iron__block *block, uint64_t place, iron_error *err) {
    if (block->place_count == block->place_capacity)
        IRON_TRY(iron__block_reserve_places(block, block->place_count + 1, err));
    block->places[block->place_count++] = place;
    return IRON_OK;
}

void iron__block_clear(iron__block *block) {
    free(block->data);
    free(block->places);
    *block = (iron__block){.data = NULL};
}

iron_status iron__blocks_create(uint32_t threads, iron__blocks **out, iron_error *err) {
    size_t count = 2 * (size_t)threads + 2;
    iron__blocks *b = calloc(1, sizeof *b + count * sizeof b->slots[0]);

    *out = NULL;
    if (!b)
        return iron__no_memory(err, "a cache of blocks");
    b->count = count;
    pthread_mutex_init(&b->mutex, NULL);
    iron__condition_init(&b->changed);
    *out = b;
    return IRON_OK;
}

void iron__blocks_destroy(iron__blocks *blocks) {
    if (!blocks)
        return;
    for (size_t k = 0; k < blocks->count; k++)
        iron__block_clear(&blocks->slots[k].block);
    pthread_cond_destroy(&blocks->changed);
    pthread_mutex_destroy(&blocks->mutex);
    free(blocks);
}

static slot *find(iron__blocks *b, uint64_t index) {
    for (size_t k = 0; k < b->count; k++)
        if (b->slots[k].state != SLOT_FREE && b->slots[k].index == index)
            return &b->slots[k];
    return NULL;
}

/* Whether `s` is a better slot for another block than `than`: of those that were used up the
 * latest, which is likely to be in this thread's cache, else a free one, else the one that was not
 * used for longest. */
static bool is_better(const slot *s, const slot *than) {
    if (!than || s->is_used_up != than->is_used_up)
        return !than || s->is_used_up;
    if (s->is_used_up)
        return s->last_use > than->last_use;
    if (s->state != than->state)
        return s->state == SLOT_FREE;
    return s->last_use < than->last_use;
}

/* A slot for another block, or NULL: all are in use. Blocks after `before` are not given up for one
 * that is only produced ahead: they were, too. */
static slot *find_slot(iron__blocks *b, bool is_ahead, uint64_t before) {
    slot *best = NULL;

    for (size_t k = 0; k < b->count; k++) {
        slot *s = &b->slots[k];
        bool is_idle = s->state == SLOT_FULL && s->users == 0 && !(is_ahead && s->index >= before);

        if ((s->state == SLOT_FREE || is_idle) && is_better(s, best))
            best = s;
    }
    return best;
}

/* Fills a slot with a block; called with the mutex held, which is released meanwhile. */
static iron_status fill(iron__blocks *b, const iron__blocks_owner *owner, slot *s, uint64_t index,
                        const atomic_bool *stop, iron_error *err) {
    iron_status status;

    s->state = SLOT_FILLING;
    s->index = index;
    s->held = owner->size ? owner->size(owner->context, index) : s->block.capacity;
    s->block.bytes = 0;
    s->block.place_count = 0;
    s->used = 0;
    s->is_used_up = false;
    pthread_mutex_unlock(&b->mutex);
    status = owner->fill(owner->context, index, &s->block, stop, err);
    pthread_mutex_lock(&b->mutex);
    s->state = status == IRON_OK ? SLOT_FULL : SLOT_FREE;
    s->held = s->block.capacity;
    s->last_use = ++b->clock;
    pthread_cond_broadcast(&b->changed);
    return status;
}

/* Produces one of the blocks after `index` if there is room; false: nothing to do. An error is
 * forgotten: it comes again when the block is needed. */
static bool work_ahead(iron__blocks *b, const iron__blocks_owner *owner, uint64_t index,
                       const atomic_bool *stop) {
    uint64_t bytes = 0;

    for (size_t k = 0; k < b->count; k++)
        if (b->slots[k].state != SLOT_FREE && b->slots[k].index >= index)
            bytes += b->slots[k].held;
    for (uint64_t next = index + 1; next < owner->count && next - index < b->count / 2; next++) {
        slot *s;

        if (find(b, next))
            continue;
        if (owner->size)
            bytes += owner->size(owner->context, next);
        s = bytes <= AHEAD_BYTES_MAX ? find_slot(b, true, index) : NULL;
        if (!s)
            return false;
        (void)fill(b, owner, s, next, stop, NULL);
        return true;
    }
    return false;
}

/* With the mutex held. */
static iron_status get(iron__blocks *b, const iron__blocks_owner *owner, uint64_t index, slot **out,
                       const atomic_bool *stop, iron_error *err) {
    for (;;) {
        slot *s = find(b, index);
        struct timespec until;

        IRON_FAIL_IF(stop && atomic_load(stop), err, IRON_E_CANCELLED, "reading was cancelled");
        if (s && s->state == SLOT_FULL) {
            *out = s;
            return IRON_OK;
        }
        if (!s && (s = find_slot(b, false, 0))) {
            IRON_TRY(fill(b, owner, s, index, stop, err));
            continue;
        }
        if (!work_ahead(b, owner, index, stop)) {
            until = iron__deadline_after(STOP_POLL_NS);
            (void)pthread_cond_timedwait(&b->changed, &b->mutex, &until);
        }
    }
}

iron_status iron__blocks_get(iron__blocks *blocks, const iron__blocks_owner *owner, uint64_t index,
                             const iron__block **out, const atomic_bool *stop, iron_error *err) {
    slot *s = NULL;
    iron_status status;

    pthread_mutex_lock(&blocks->mutex);
    status = get(blocks, owner, index, &s, stop, err);
    if (status == IRON_OK) {
        assert(s);
        s->users++;
        s->last_use = ++blocks->clock;
        *out = &s->block;
    }
    pthread_mutex_unlock(&blocks->mutex);
    return status;
}

void iron__blocks_put(iron__blocks *blocks, const iron__block *block, size_t used) {
    slot *s = (slot *)(uintptr_t)block; /* a slot begins with its block */

    pthread_mutex_lock(&blocks->mutex);
    s->used += used;
    s->is_used_up = s->used >= s->block.bytes;
    s->last_use = ++blocks->clock;
    if (--s->users == 0)
        pthread_cond_broadcast(&blocks->changed);
    pthread_mutex_unlock(&blocks->mutex);
}
