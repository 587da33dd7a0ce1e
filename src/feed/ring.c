/* SPDX-License-Identifier: MIT */
/*
 * ring.c: reader threads fill slots, the caller takes them in order.
 *
 * The stream is cut into stretches of a slot's capacity, numbered by tickets: ticket t is stretch t
 * and goes into slot t % slots. A stretch is read in pieces, which are numbered through: a reader
 * waits for room, takes the next piece, and reads it while others read theirs; files allow that, a
 * pipe has one reader and takes a stretch at once. Memory is the slots, however long the stream.
 *
 *     tickets   ... freed ......... given ............. next ...
 *                     held by the     full or being       not begun
 *                     caller          read
 *
 * Invariants, under the mutex, `next` and `end` counted in tickets: 1. freed <= given <= next <=
 * freed + slots; slots of tickets freed ... given-1 are the caller's, of given ... next-1 the
 * readers' until they are full. 2. `end` is the first piece known to hold nothing: behind the
 * stream, or failed; `status` and `error` are that piece's. It only goes down, and never below the
 * pieces of `given`: so the error that is reported is the stream's first, after every slot before
 * it, once the pieces before it in its own slot have been read.
 */
#include "feed/ring.h"

#include "core/fail.h"
#include "core/team.h"
#include "formats/source.h"

#include <inttypes.h>
#include <string.h>

#define PIECES_MAX  64u /* of a slot: bits of a word */
#define READERS_MAX 64u

struct iron__ring {
    const iron_allocator *allocator;
    iron_source *source;
    iron__source_at *at; /* NULL: the source is read in order, by one thread */
    uint64_t begin;      /* with `at`: where the source stood, and how many tokens follow */
    uint64_t tokens;
    size_t width;
    size_t capacity; /* tokens a slot holds */
    size_t piece;    /* tokens a reader takes at a time */
    size_t pieces;   /* of a slot, the last of them may be shorter */
    size_t slot_count;
    void *slots[IRON_RING_SLOTS_MAX];

    pthread_mutex_t mutex;
    pthread_cond_t room, full;
    uint64_t freed, given;              /* tickets */
    uint64_t next, end;                 /* pieces */
    uint64_t read[IRON_RING_SLOTS_MAX]; /* of a slot that is being read: bit k is piece k */
    size_t counts[IRON_RING_SLOTS_MAX]; /* and its tokens so far */
    iron_status status;
    iron_error error;
    atomic_bool stop;

    uint32_t started;
    pthread_t readers[READERS_MAX];
};

/* Waits for room; false when there is nothing left to read, or nobody to read it for. */
static bool take_piece(iron__ring *r, uint64_t *piece) {
    bool go_on;

    pthread_mutex_lock(&r->mutex);
    while (r->next / r->pieces - r->freed == r->slot_count && r->next < r->end &&
           !atomic_load(&r->stop))
        pthread_cond_wait(&r->room, &r->mutex);
    go_on = r->next < r->end && !atomic_load(&r->stop);
    if (go_on)
        *piece = r->next++;
    pthread_mutex_unlock(&r->mutex);
    return go_on;
}

static iron_status fill(iron__ring *r, uint64_t piece, size_t *count, iron_error *err) {
    uint64_t ticket = piece / r->pieces;
    size_t begin = (size_t)(piece % r->pieces) * r->piece;
    char *to = (char *)r->slots[ticket % r->slot_count] + begin * r->width;
    uint64_t first = ticket * r->capacity + begin;
    uint64_t most = r->capacity - begin < r->piece ? r->capacity - begin : r->piece;

    if (!r->at)
        return iron__source_read(r->source, to, r->capacity, count, &r->stop, err);
    *count = (size_t)(r->tokens - first < most ? r->tokens - first : most);
    return iron__source_at_read(r->at, first, to, *count, &r->stop, err);
}

/* With the mutex held: how many pieces there are of the slot whose turn it is. */
static size_t pieces_due(const iron__ring *r) {
    uint64_t first = r->given * r->pieces, left = r->end > first ? r->end - first : 0;

    return left < r->pieces ? (size_t)left : r->pieces;
}

/* And have all of them been read, so that it is known what has become of the slot? */
static bool is_settled(const iron__ring *r) {
    size_t due = pieces_due(r);
    uint64_t all = due == 64 ? UINT64_MAX : ((uint64_t)1 << due) - 1;

    return (r->read[r->given % r->slot_count] & all) == all;
}

static void publish(iron__ring *r, uint64_t piece, size_t count, iron_status status,
                    const iron_error *error) {
    size_t slot = (size_t)(piece / r->pieces % r->slot_count);

    pthread_mutex_lock(&r->mutex);
    if (status == IRON_OK && count > 0) {
        r->read[slot] |= (uint64_t)1 << piece % r->pieces;
        r->counts[slot] += count;
    } else if (piece < r->end) {
        r->end = piece;
        r->status = status;
        r->error = *error;
    }
    if (is_settled(r))
        pthread_cond_signal(&r->full);
    pthread_mutex_unlock(&r->mutex);
}

static void *reader_main(void *argument) {
    iron__ring *r = argument;
    uint64_t piece;

    while (take_piece(r, &piece)) {
        iron_error error = {0};
        size_t count = 0;
        iron_status status = fill(r, piece, &count, &error);

        publish(r, piece, count, status, &error);
    }
    return NULL;
}

void iron__ring_take_shape(iron__ring_options *options, const iron__feed_shape *shape) {
    options->readers = shape->readers;
    options->slot_count = shape->slot_count;
    options->slot_bytes = shape->slot_bytes;
    options->piece_bytes = shape->piece_bytes;
    options->direct = shape->direct;
}

static iron_status check_options(const iron__ring_options *o, iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(o->source));

    IRON_FAIL_IF(o->slot_count == 0 || o->slot_count > IRON_RING_SLOTS_MAX, err, IRON_E_ARG,
                 "a ring of %zu slots; it must have 1 to %u", o->slot_count, IRON_RING_SLOTS_MAX);
    IRON_FAIL_IF(o->slot_bytes < width, err, IRON_E_ARG,
                 "slots of %zu bytes; they must hold a token of %zu", o->slot_bytes, width);
    return IRON_OK;
}

/* Pieces are what was asked for, but no more than the bits of a word. */
static void cut_slots(iron__ring *r, size_t piece_bytes) {
    size_t least = (r->capacity + PIECES_MAX - 1) / PIECES_MAX;

    r->piece = piece_bytes / r->width;
    if (piece_bytes == 0 || r->piece > r->capacity)
        r->piece = r->capacity;
    if (r->piece < least)
        r->piece = least;
    r->pieces = (r->capacity + r->piece - 1) / r->piece;
}

/* A source of files can be cut into stretches beforehand. */
static iron_status open_files(iron__ring *r, const iron__ring_options *o, iron_error *err) {
    r->end = UINT64_MAX;
    r->pieces = 1;
    if (!iron__source_is_seekable(r->source))
        return IRON_OK;
    cut_slots(r, o->piece_bytes);
    IRON_TRY(iron__source_at_open(r->source, r->allocator, &r->at, err));
    r->begin = iron__source_position(r->source);
    r->tokens = iron__source_at_tokens(r->at);
    iron__source_at_direct(r->at, o->direct);
    if (o->tokens > 0 && o->tokens < r->tokens)
        r->tokens = o->tokens;
    r->end = r->tokens / r->capacity * r->pieces;
    r->end += (r->tokens % r->capacity + r->piece - 1) / r->piece;
    return IRON_OK;
}

/* More readers than pieces, of the stream or of the slots, would have nothing to do. */
static iron_status start_readers(iron__ring *r, uint32_t wanted, iron_error *err) {
    uint64_t useful = r->at ? r->end : 1, room = r->slot_count * r->pieces;
    uint64_t count = wanted > 0 ? wanted : 1;

    useful = useful < room ? useful : room;
    count = count < useful ? count : useful;
    count = count < READERS_MAX ? count : READERS_MAX;
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
    r->width = iron_dtype_bytes(iron_source_dtype(options->source));
    r->capacity = options->slot_bytes / r->width;
    r->slot_count = options->slot_count;
    memcpy(r->slots, options->slots, options->slot_count * sizeof *r->slots);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->room, NULL);
    pthread_cond_init(&r->full, NULL);
    status = open_files(r, options, err);
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
    size_t index = (size_t)(r->given % r->slot_count), due = pieces_due(r);

    IRON_FAIL_IF(!is_settled(r), err, IRON_E_STATE,
                 "all %zu slots of the reading ring are held; give one back first", r->slot_count);
    if (due == 0 || (due < r->pieces && r->status != IRON_OK)) {
        if (r->status != IRON_OK && err)
            *err = r->error;
        return r->status;
    }
    *slot = index;
    *count = r->counts[index];
    r->counts[index] = 0;
    r->read[index] = 0;
    r->given++;
    return IRON_OK;
}

iron_status iron__ring_next(iron__ring *ring, size_t *slot, size_t *count, iron_error *err) {
    iron_status status;

    *count = 0;
    pthread_mutex_lock(&ring->mutex);
    while (!is_settled(ring) && ring->given - ring->freed < ring->slot_count)
        pthread_cond_wait(&ring->full, &ring->mutex);
    status = take_full(ring, slot, count, err);
    pthread_mutex_unlock(&ring->mutex);
    return status;
}

void iron__ring_free(iron__ring *ring) {
    pthread_mutex_lock(&ring->mutex);
    if (ring->freed < ring->given)
        ring->freed++;
    if (ring->pieces > 1)
        pthread_cond_broadcast(&ring->room); /* a slot is work for several */
    else
        pthread_cond_signal(&ring->room);
    pthread_mutex_unlock(&ring->mutex);
}
