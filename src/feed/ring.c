/* SPDX-License-Identifier: MIT */
/*
 * ring.c: reader threads fill slots ahead of the caller, who takes them in order.
 *
 * The stream is cut into slots' worth of tokens, numbered by tickets: ticket t goes into slot
 * t % slots. Each ticket is read in pieces, which are numbered through the whole stream: a reader
 * waits until the slot of the next piece is free, takes the piece, and reads it while others read
 * theirs. Files allow that; a pipe has one reader and one piece per slot. Memory is the slots,
 * however long the stream.
 *
 *     tickets   ... freed ......... given ............. next ...
 *                     held by the     full or being       not begun
 *                     caller          read
 *
 * Handing out pieces and keeping the first failure is iron__pieces (core/thread_pool.h). The
 * threads are the ring's own, since they run while the caller works and wait for slots that it
 * gives back; a pool's run would occupy the caller.
 *
 * Invariants, under the mutex, with pieces.next and pieces.end counted in tickets: 1. freed <=
 * given <= next <= freed + slots; slots of tickets freed ... given-1 are the caller's, those of
 * given ... next-1 the readers' until they are full. 2. pieces.end is the first piece known to be
 * empty or failed. It only goes down, and never below the pieces of `given`: so the error reported
 * is the first of the stream, after every slot before it, once the pieces before it in its own slot
 * have been read.
 */
#include "feed/ring.h"

#include "core/fail.h"
#include "core/number.h"
#include "core/thread_pool.h"
#include "formats/source.h"

#include <inttypes.h>
#include <string.h>

#define PIECES_MAX  64u /* of a slot: bits of a word */
#define READERS_MAX 64u

struct iron__ring {
    const iron_allocator *allocator;
    iron_source *source;
    iron__parallel_source *at; /* NULL: the source is read in order, by one thread */
    uint64_t begin;            /* with `at`: the source's position, and how many tokens follow */
    uint64_t tokens;
    bool is_shared; /* with other rings, which begin elsewhere: */
    uint64_t skip;  /* tokens from the position to this ring's first */
    size_t width;
    size_t capacity;     /* tokens a slot holds */
    size_t piece_tokens; /* what a reader reads at a time */
    size_t slot_pieces;  /* of a slot; the last of them may be shorter */
    size_t slot_count;
    void *slots[IRON_RING_SLOTS_MAX];
    char *memory; /* of slots that are the ring's own */
    void (*filled)(void *context, const iron__ring_piece *piece); /* or NULL */
    void *context;
    uint64_t piped; /* tokens of a pipe so far */

    pthread_mutex_t mutex;
    pthread_cond_t freed_slot, full_slot;
    iron__pieces pieces;
    uint64_t freed, given;              /* tickets */
    uint64_t read[IRON_RING_SLOTS_MAX]; /* of a slot that is being read: bit k is piece k */
    size_t counts[IRON_RING_SLOTS_MAX]; /* and its tokens so far */

    uint32_t started;
    pthread_t readers[READERS_MAX];
};

static iron_status fill(iron__ring *r, uint64_t index, iron__ring_piece *piece, iron_error *err) {
    uint64_t ticket = index / r->slot_pieces;
    size_t begin = (size_t)(index % r->slot_pieces) * r->piece_tokens;
    size_t slot = (size_t)(ticket % r->slot_count);
    char *to = (char *)r->slots[slot] + begin * r->width;
    uint64_t most = iron__min(r->capacity - begin, r->piece_tokens);

    *piece = (iron__ring_piece){.slot = slot, .tokens = to, .first = ticket * r->capacity + begin};
    if (!r->at) { /* its only reader */
        piece->first = r->piped;
        IRON_TRY(
            iron__source_read(r->source, to, r->capacity, &piece->count, &r->pieces.stop, err));
        r->piped += piece->count;
        return IRON_OK;
    }
    piece->count = (size_t)iron__min(r->tokens - piece->first, most);
    return iron__parallel_source_read(r->at, r->skip + piece->first, to, piece->count,
                                      &r->pieces.stop, err);
}

/* With the mutex held: how many pieces the slot has whose turn it is. */
static size_t pieces_due(const iron__ring *r) {
    uint64_t first = r->given * r->slot_pieces, end = atomic_load(&r->pieces.end);

    return iron__min_size(r->slot_pieces, end > first ? end - first : 0);
}

/* With the mutex held: have all of them been read, so that the outcome of the slot is known? */
static bool is_next_ready(const iron__ring *r) {
    size_t due = pieces_due(r);
    uint64_t all = due == 64 ? UINT64_MAX : ((uint64_t)1 << due) - 1;

    return (r->read[r->given % r->slot_count] & all) == all;
}

static void *reader_main(void *argument) {
    iron__ring *r = argument;
    iron__pieces *p = &r->pieces;
    uint64_t index;

    for (;;) {
        iron__ring_piece piece;
        iron_error error = {0};
        iron_status status;
        bool is_taken;

        pthread_mutex_lock(&r->mutex);
        while (atomic_load(&p->next) / r->slot_pieces - r->freed == r->slot_count &&
               atomic_load(&p->next) < atomic_load(&p->end) && !atomic_load(&p->stop))
            pthread_cond_wait(&r->freed_slot, &r->mutex);
        is_taken = iron__pieces_take(p, &index);
        pthread_mutex_unlock(&r->mutex);
        if (!is_taken) /* nothing is left to read, or the ring is being destroyed */
            return NULL;
        status = fill(r, index, &piece, &error);
        if (r->filled && status == IRON_OK)
            r->filled(r->context, &piece);
        pthread_mutex_lock(&r->mutex);
        if (status == IRON_OK && piece.count > 0) {
            r->read[piece.slot] |= (uint64_t)1 << index % r->slot_pieces;
            r->counts[piece.slot] += piece.count;
        } else {
            iron__pieces_end(p, index, status, &error);
        }
        if (is_next_ready(r))
            pthread_cond_signal(&r->full_slot);
        pthread_mutex_unlock(&r->mutex);
    }
}

/* Files are cut into pieces beforehand: slots into pieces of the size asked for, but at most
 * PIECES_MAX of them. A pipe is read in order until it ends. */
static iron_status plan_pieces(iron__ring *r, const iron__ring_options *o, iron_error *err) {
    size_t least = (r->capacity + PIECES_MAX - 1) / PIECES_MAX;
    uint64_t count;

    iron__pieces_init(&r->pieces, UINT64_MAX);
    r->slot_pieces = 1;
    if (!iron__source_is_seekable(r->source))
        return IRON_OK;
    r->piece_tokens = o->shape.piece_bytes ? o->shape.piece_bytes / r->width : r->capacity;
    r->piece_tokens = iron__max(iron__min(r->piece_tokens, r->capacity), least);
    r->slot_pieces = (r->capacity + r->piece_tokens - 1) / r->piece_tokens;
    IRON_TRY(iron__parallel_source_open(r->source, r->allocator, &r->at, err));
    r->begin = iron__source_position(r->source);
    r->is_shared = o->is_shared;
    r->skip = o->is_shared ? o->skip : 0;
    r->tokens = iron__parallel_source_tokens(r->at) - r->skip;
    iron__parallel_source_set_direct(r->at, o->shape.direct);
    r->tokens = iron__min(r->tokens, o->tokens > 0 ? o->tokens : r->tokens);
    count = r->tokens / r->capacity * r->slot_pieces;
    count += (r->tokens % r->capacity + r->piece_tokens - 1) / r->piece_tokens;
    atomic_store(&r->pieces.end, count);
    return IRON_OK;
}

iron_status iron__ring_create(const iron__ring_options *options, iron__ring **out,
                              iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(options->source));
    size_t stride = options->shape.slot_bytes + options->slack_bytes;
    iron_status status = IRON_OK;
    uint64_t readers;
    iron__ring *r;

    *out = NULL;
    IRON_FAIL_IF(options->shape.slot_count == 0 || options->shape.slot_count > IRON_RING_SLOTS_MAX,
                 err, IRON_E_ARG, "a ring of %zu slots; it must have 1 to %u",
                 options->shape.slot_count, IRON_RING_SLOTS_MAX);
    IRON_FAIL_IF(options->shape.slot_bytes < width, err, IRON_E_ARG,
                 "slots of %zu bytes; they must hold a token of %zu", options->shape.slot_bytes,
                 width);
    IRON_TRY(IRON_ALLOCATE(&r, options->allocator, 1, "a ring of slots", err));
    r->allocator = options->allocator;
    r->source = options->source;
    r->width = width;
    r->capacity = options->shape.slot_bytes / r->width;
    r->slot_count = options->shape.slot_count;
    r->filled = options->filled;
    r->context = options->context;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->freed_slot, NULL);
    pthread_cond_init(&r->full_slot, NULL);
    if (!options->slots)
        status = iron__allocate_at((iron__array *)&r->memory, r->allocator, r->slot_count, stride,
                                   "the reading ring", err);
    for (size_t k = 0; status == IRON_OK && k < r->slot_count; k++)
        r->slots[k] = options->slots ? options->slots[k] : r->memory + k * stride;
    if (status == IRON_OK)
        status = plan_pieces(r, options, err);
    /* more readers than pieces, of the stream or of the slots, would have nothing to do */
    readers = iron__min(iron__max(options->shape.readers, 1), READERS_MAX);
    readers = iron__min(readers, iron__min(r->at ? atomic_load(&r->pieces.end) : 1,
                                           r->slot_count * r->slot_pieces));
    for (; status == IRON_OK && r->started < readers; r->started += status == IRON_OK) {
        int code = iron__thread_start(&r->readers[r->started], reader_main, r);

        if (code)
            status =
                iron__fail(err, IRON_E_NOMEM, code, "cannot start %" PRIu64 " reading threads: %s",
                           readers, strerror(code));
    }
    if (status == IRON_OK)
        *out = r;
    else
        iron__ring_destroy(r);
    return status;
}

void iron__ring_destroy(iron__ring *ring) {
    if (!ring)
        return;
    pthread_mutex_lock(&ring->mutex);
    atomic_store(&ring->pieces.stop, true);
    pthread_cond_broadcast(&ring->freed_slot);
    pthread_mutex_unlock(&ring->mutex);
    for (uint32_t k = 0; k < ring->started; k++)
        pthread_join(ring->readers[k], NULL);
    if (ring->at && !ring->is_shared)
        iron__source_seek(ring->source,
                          ring->begin + iron__min(ring->given * ring->capacity, ring->tokens));
    iron__parallel_source_close(ring->at);
    iron__pieces_deinit(&ring->pieces);
    pthread_cond_destroy(&ring->full_slot);
    pthread_cond_destroy(&ring->freed_slot);
    pthread_mutex_destroy(&ring->mutex);
    iron__release(ring->allocator, ring->memory);
    iron__release(ring->allocator, ring);
}

/* With the mutex held. */
static iron_status take_slot(iron__ring *r, size_t *slot, size_t *count, iron_error *err) {
    size_t index = (size_t)(r->given % r->slot_count), due = pieces_due(r);

    IRON_FAIL_IF(!is_next_ready(r), err, IRON_E_STATE,
                 "all %zu slots of the reading ring are held; give one back first", r->slot_count);
    if (due == 0 || (due < r->slot_pieces && r->pieces.status != IRON_OK)) {
        if (r->pieces.status != IRON_OK && err)
            *err = r->pieces.error;
        return r->pieces.status;
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
    while (!is_next_ready(ring) && ring->given - ring->freed < ring->slot_count)
        pthread_cond_wait(&ring->full_slot, &ring->mutex);
    status = take_slot(ring, slot, count, err);
    pthread_mutex_unlock(&ring->mutex);
    return status;
}

void *iron__ring_slot(const iron__ring *ring, size_t slot) { return ring->slots[slot]; }

void iron__ring_free(iron__ring *ring) {
    pthread_mutex_lock(&ring->mutex);
    if (ring->freed < ring->given)
        ring->freed++;
    if (ring->slot_pieces > 1)
        pthread_cond_broadcast(&ring->freed_slot); /* work for several readers */
    else
        pthread_cond_signal(&ring->freed_slot);
    pthread_mutex_unlock(&ring->mutex);
}
