/* SPDX-License-Identifier: MIT */
/*
 * scan_pipe.c: a stream that can only be read once, in order: the ring reads ahead, the crew takes
 * each slot.
 *
 * A window that begins at the end of a slot ends in the next one. So a slot is taken only when its
 * successor is there, whose first tokens are put behind it: every slot has room for them.
 */
#include "digest/scan.h"

#include "core/fail.h"
#include "feed/ring.h"

#include <string.h>

/* As the engine's: 16 MiB stay inside a server's last-level cache. */
#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)
#define ROOM_BYTES (SLOT_BYTES + IRON_SCAN_SLACK)

typedef struct slot {
    char *tokens;
    size_t count; /* 0: there is none */
} slot;

typedef struct pipe_scan {
    iron__scan *scan;
    size_t width;
    char *memory;
    iron__ring *ring;
    iron__crew *crew;
    slot now;
    uint64_t done; /* tokens that were taken */
} pipe_scan;

static iron_status fetch(void *context, uint64_t offset, size_t count, void *buffer,
                         const void **tokens, const atomic_bool *stop, iron_error *err) {
    const pipe_scan *p = context;

    (void)count;
    (void)buffer;
    (void)stop;
    (void)err;
    *tokens = p->now.tokens + offset * p->width;
    return IRON_OK;
}

static iron_status open_ring(pipe_scan *p, iron_error *err) {
    void *slots[SLOTS];
    iron__ring_options o = {.source = p->scan->source,
                            .slots = slots,
                            .slot_count = SLOTS,
                            .slot_bytes = SLOT_BYTES,
                            .readers = 1,
                            .allocator = iron__allocator_default()};

    p->memory = iron__allocate(iron__allocator_default(), SLOTS, ROOM_BYTES, "reading slots", err);
    if (!p->memory)
        return IRON_E_NOMEM;
    for (size_t k = 0; k < SLOTS; k++)
        slots[k] = p->memory + k * ROOM_BYTES;
    return iron__ring_create(&o, &p->ring, err);
}

static iron_status next_slot(const pipe_scan *p, slot *s, iron_error *err) {
    size_t index = 0;

    s->count = 0;
    IRON_TRY(iron__ring_next(p->ring, &index, &s->count, err));
    s->tokens = p->memory + index * ROOM_BYTES;
    return IRON_OK;
}

static iron_status take_slot(pipe_scan *p, const slot *next, iron_error *err) {
    const slot *now = &p->now;
    size_t ahead = next->count < IRON_MARK_TOKENS - 1 ? next->count : IRON_MARK_TOKENS - 1;
    iron__scan_stretch stretch = {p->done, now->count, ahead, fetch, p};

    if (ahead > 0)
        memcpy(now->tokens + now->count * p->width, next->tokens, ahead * p->width);
    IRON_TRY(iron__scan_reserve(p->scan, p->done + now->count, err));
    IRON_TRY(iron__crew_run(p->crew, &stretch, err));
    p->done += now->count;
    iron__ring_free(p->ring);
    return iron__scan_tell(p->scan, p->done, err);
}

static iron_status run(pipe_scan *p, iron_error *err) {
    IRON_TRY(next_slot(p, &p->now, err));
    while (p->now.count > 0) {
        slot next;

        IRON_TRY(next_slot(p, &next, err));
        IRON_TRY(take_slot(p, &next, err));
        p->now = next;
    }
    p->scan->count = p->done;
    iron__crew_settle(p->crew);
    return IRON_OK;
}

iron_status iron__scan_pipe(iron__scan *scan, iron_error *err) {
    pipe_scan p = {.scan = scan, .width = iron_dtype_bytes(scan->dtype)};
    size_t pieces = SLOT_BYTES / p.width / iron__crew_piece_tokens(scan) + 1;
    iron_status status = iron__crew_create(scan, pieces, false, &p.crew, err);

    if (status == IRON_OK)
        status = open_ring(&p, err);
    if (status == IRON_OK)
        status = run(&p, err);
    iron__ring_destroy(p.ring);
    iron__release(iron__allocator_default(), p.memory);
    iron__crew_destroy(p.crew);
    return status;
}
