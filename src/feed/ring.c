/* SPDX-License-Identifier: MIT */
/*
 * ring.c: reader threads fill slots, the caller takes them in order.
 *
 * The stream is cut into stretches of a slot's capacity, numbered by tickets: ticket t is stretch t
 * and goes into slot t % slots. A reader waits for room, takes the next ticket, and reads its
 * stretch while others read theirs; files allow that, a pipe has one reader. Memory is the slots,
 * however long the stream.
 *
 *     tickets   ... freed ......... given ............. next ...
 *                     held by the     full or being       not begun
 *                     caller          read
 *
 * Invariants, under the mutex: 1. freed <= given <= next <= freed + slots; slots of tickets
 * freed ... given-1 are the caller's, of given ... next-1 the readers' until they are full.
 * 2. `end` is the first ticket known to hold nothing: behind the stream, or failed; `status` and
 * `error` are that ticket's. It only goes down, and never below `given`: so the error that is
 * reported is the stream's first, after every slot before it.
 */
#include "feed/ring.h"

#include "core/fail.h"
#include "core/team.h"
#include "formats/source.h"

#include <inttypes.h>
#include <string.h>

struct iron__ring {
    const iron_allocator *allocator;
    iron_source *source;
    iron__source_at *at; /* NULL: the source is read in order, by one thread */
    uint64_t begin;      /* with `at`: where the source stood, and how many tokens follow */
    uint64_t tokens;
    size_t capacity; /* tokens a slot holds */
    size_t slot_count;
    void *slots[IRON_RING_SLOTS_MAX];

    pthread_mutex_t mutex;
    pthread_cond_t room, full;
    uint64_t freed, given, next, end;
    size_t counts[IRON_RING_SLOTS_MAX]; /* tokens of a full slot, 0 of any other */
    iron_status status;
    iron_error error;
    atomic_bool stop;

    uint32_t started;
    pthread_t readers[IRON_RING_SLOTS_MAX];
};

/* Waits for a free slot; false when there is nothing left to read, or nobody to read it for. */
static bool take_ticket(iron__ring *r, uint64_t *ticket) {
    bool go_on;

    pthread_mutex_lock(&r->mutex);
    while (r->next - r->freed == r->slot_count && r->next < r->end && !atomic_load(&r->stop))
        pthread_cond_wait(&r->room, &r->mutex);
    go_on = r->next < r->end && !atomic_load(&r->stop);
    if (go_on)
        *ticket = r->next++;
    pthread_mutex_unlock(&r->mutex);
    return go_on;
}

static iron_status fill(iron__ring *r, uint64_t ticket, size_t *count, iron_error *err) {
    void *slot = r->slots[ticket % r->slot_count];
    uint64_t first = ticket * r->capacity;

    if (!r->at)
        return iron__source_read(r->source, slot, r->capacity, count, &r->stop, err);
    *count = r->tokens - first < r->capacity ? (size_t)(r->tokens - first) : r->capacity;
    return iron__source_at_read(r->at, first, slot, *count, &r->stop, err);
}

static void publish(iron__ring *r, uint64_t ticket, size_t count, iron_status status,
                    const iron_error *error) {
    pthread_mutex_lock(&r->mutex);
    if (status == IRON_OK && count > 0) {
        r->counts[ticket % r->slot_count] = count;
    } else if (ticket < r->end) {
        r->end = ticket;
        r->status = status;
        r->error = *error;
    }
    pthread_cond_signal(&r->full);
    pthread_mutex_unlock(&r->mutex);
}

static void *reader_main(void *argument) {
    iron__ring *r = argument;
    uint64_t ticket;

    while (take_ticket(r, &ticket)) {
        iron_error error = {0};
        size_t count = 0;
        iron_status status = fill(r, ticket, &count, &error);

        publish(r, ticket, count, status, &error);
    }
    return NULL;
}

static iron_status check_options(const iron__ring_options *o, iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(o->source));

    IRON_FAIL_IF(o->slot_count == 0 || o->slot_count > IRON_RING_SLOTS_MAX, err, IRON_E_ARG,
                 "a ring of %zu slots; it must have 1 to %u", o->slot_count, IRON_RING_SLOTS_MAX);
    IRON_FAIL_IF(o->slot_bytes < width, err, IRON_E_ARG,
                 "slots of %zu bytes; they must hold a token of %zu", o->slot_bytes, width);
    return IRON_OK;
}

/* A source of files can be cut into stretches beforehand. */
static iron_status open_files(iron__ring *r, uint64_t most, iron_error *err) {
    r->end = UINT64_MAX;
    if (!iron__source_is_seekable(r->source))
        return IRON_OK;
    IRON_TRY(iron__source_at_open(r->source, r->allocator, &r->at, err));
    r->begin = iron__source_position(r->source);
    r->tokens = iron__source_at_tokens(r->at);
    if (most > 0 && most < r->tokens)
        r->tokens = most;
    r->end = r->tokens / r->capacity + (r->tokens % r->capacity != 0);
    return IRON_OK;
}

/* More readers than slots or stretches would have nothing to do. */
static iron_status start_readers(iron__ring *r, uint32_t wanted, iron_error *err) {
    uint64_t useful = r->at ? r->end : 1;
    uint64_t count = wanted > 0 ? wanted : 1;

    useful = useful < r->slot_count ? useful : r->slot_count;
    count = count < useful ? count : useful;
    for (; r->started < count; r->started++) {
        int code = iron__thread_start(&r->readers[r->started], reader_main, r);

        if (code)
            return iron__fail(err, IRON_E_NOMEM, code,
                              "cannot start %" PRIu64 " reading threads: %s", count,
                              strerror(code));
    }
    return IRON_OK;
}

iron_status iron__ring_create(const iron__ring_options *options, iron__ring **out,
                              iron_error *err) {
    iron_status status;
    iron__ring *r;

    *out = NULL;
    IRON_TRY(check_options(options, err));
    r = iron__allocate(options->allocator, 1, sizeof *r, "a ring of slots", err);
    if (!r)
        return IRON_E_NOMEM;
    r->allocator = options->allocator;
    r->source = options->source;
    r->capacity = options->slot_bytes / iron_dtype_bytes(iron_source_dtype(options->source));
    r->slot_count = options->slot_count;
    memcpy(r->slots, options->slots, options->slot_count * sizeof *r->slots);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->room, NULL);
    pthread_cond_init(&r->full, NULL);
    status = open_files(r, options->tokens, err);
    if (status == IRON_OK)
        status = start_readers(r, options->readers, err);
    if (status != IRON_OK) {
        iron__ring_destroy(r);
        return status;
    }
    *out = r;
    return IRON_OK;
}

static void stop_readers(iron__ring *r) {
    pthread_mutex_lock(&r->mutex);
    atomic_store(&r->stop, true);
    pthread_cond_broadcast(&r->room);
    pthread_mutex_unlock(&r->mutex);
    for (uint32_t k = 0; k < r->started; k++)
        pthread_join(r->readers[k], NULL);
}

void iron__ring_destroy(iron__ring *ring) {
    if (!ring)
        return;
    stop_readers(ring);
    if (ring->at) {
        uint64_t taken = ring->given * ring->capacity;

        iron__source_seek(ring->source,
                          ring->begin + (taken < ring->tokens ? taken : ring->tokens));
        iron__source_at_close(ring->at);
    }
    pthread_cond_destroy(&ring->full);
    pthread_cond_destroy(&ring->room);
    pthread_mutex_destroy(&ring->mutex);
    iron__release(ring->allocator, ring);
}

/* The status of taking, with the mutex held. */
static iron_status take_full(iron__ring *r, size_t *slot, size_t *count, iron_error *err) {
    size_t index = (size_t)(r->given % r->slot_count);

    if (r->given == r->end) {
        if (r->status != IRON_OK && err)
            *err = r->error;
        return r->status;
    }
    IRON_FAIL_IF(r->counts[index] == 0, err, IRON_E_STATE,
                 "all %zu slots of the reading ring are held; give one back first", r->slot_count);
    *slot = index;
    *count = r->counts[index];
    r->counts[index] = 0;
    r->given++;
    return IRON_OK;
}

iron_status iron__ring_next(iron__ring *ring, size_t *slot, size_t *count, iron_error *err) {
    iron_status status;

    *count = 0;
    pthread_mutex_lock(&ring->mutex);
    while (ring->given < ring->end && ring->given - ring->freed < ring->slot_count &&
           ring->counts[ring->given % ring->slot_count] == 0)
        pthread_cond_wait(&ring->full, &ring->mutex);
    status = take_full(ring, slot, count, err);
    pthread_mutex_unlock(&ring->mutex);
    return status;
}

void iron__ring_free(iron__ring *ring) {
    pthread_mutex_lock(&ring->mutex);
    if (ring->freed < ring->given)
        ring->freed++;
    pthread_cond_signal(&ring->room);
    pthread_mutex_unlock(&ring->mutex);
}
