/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c: tokens from a source, with reading and reducing at the same time.
 *
 * A reader thread fills a ring of slots; the caller feeds full slots to the engine, whose team
 * reduces them while the reader fills the next. Memory is the ring, however long the stream.
 *
 *     reader  ->  [slot 0][slot 1][slot 2][slot 3]  ->  iron_engine_feed_as
 *                    ^ taken            ^ filled
 *
 * Invariants: 1. slots taken ... filled-1 (modulo the ring) belong to the caller, the others to the
 * reader. 2. The reader's error becomes visible only after the slots filled before it are used up.
 */
#include "core/fail.h"
#include "engine/engine.h"
#include "formats/source.h"

#include <pthread.h>
#include <string.h>

/* 4 x 4 MiB stays inside a server's last-level cache: what was read is reduced from there. */
#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)

typedef struct pipeline {
    iron_source *source;
    size_t capacity; /* tokens a slot holds */
    char *slots;
    size_t counts[SLOTS];
    size_t filled, taken;
    bool has_ended; /* nothing will be filled any more */
    atomic_bool stop;
    iron_status status;
    iron_error error;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} pipeline;

static char *slot_at(const pipeline *p, size_t index) {
    return p->slots + index % SLOTS * SLOT_BYTES;
}

static void publish(pipeline *p, size_t count, iron_status status, const iron_error *error) {
    pthread_mutex_lock(&p->mutex);
    if (status == IRON_OK && count > 0) {
        p->counts[p->filled % SLOTS] = count;
        p->filled++;
    } else {
        p->has_ended = true;
        p->status = status;
        p->error = *error;
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

/* Waits for a free slot; false when the caller has given up. */
static bool wait_for_room(pipeline *p) {
    bool go_on;

    pthread_mutex_lock(&p->mutex);
    while (p->filled - p->taken == SLOTS && !atomic_load(&p->stop))
        pthread_cond_wait(&p->changed, &p->mutex);
    go_on = !atomic_load(&p->stop);
    pthread_mutex_unlock(&p->mutex);
    return go_on;
}

static void *reader_main(void *argument) {
    pipeline *p = argument;

    while (wait_for_room(p)) {
        iron_error error = {0};
        size_t count = 0;
        /* only this thread writes `filled`, so reading it here needs no lock */
        iron_status status = iron__source_read(p->source, slot_at(p, p->filled), p->capacity,
                                               &count, &p->stop, &error);

        publish(p, count, status, &error);
        if (status != IRON_OK || count == 0)
            break;
    }
    return NULL;
}

/* The next full slot's index in *slot; false at the end or on the reader's error. */
static bool wait_for_slot(pipeline *p, size_t *slot) {
    bool is_there;

    pthread_mutex_lock(&p->mutex);
    while (p->taken == p->filled && !p->has_ended)
        pthread_cond_wait(&p->changed, &p->mutex);
    is_there = p->taken < p->filled;
    *slot = p->taken;
    pthread_mutex_unlock(&p->mutex);
    return is_there;
}

static void free_slot(pipeline *p) {
    pthread_mutex_lock(&p->mutex);
    p->taken++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

static iron_status consume(pipeline *p, iron_engine *e, iron_progress progress, void *context,
                           iron_error *err) {
    iron_dtype dtype = iron_source_dtype(p->source);
    uint64_t done = 0, total = iron_source_tokens(p->source);
    size_t slot;

    while (wait_for_slot(p, &slot)) {
        size_t count = p->counts[slot % SLOTS];

        IRON_TRY(iron_engine_feed_as(e, dtype, slot_at(p, slot), count, err));
        free_slot(p);
        done += count;
        IRON_FAIL_IF(progress && progress(context, done, total), err, IRON_E_CANCELLED,
                     "cancelled after %llu tokens", (unsigned long long)done);
    }
    if (p->status != IRON_OK && err)
        *err = p->error;
    return p->status;
}

static void stop_reader(pipeline *p, pthread_t reader) {
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(reader, NULL);
}

iron_status iron_engine_feed_source(iron_engine *engine, iron_source *source,
                                    iron_progress progress, void *context, iron_error *err) {
    pipeline p = {.source = source,
                  .capacity = SLOT_BYTES / iron_dtype_bytes(iron_source_dtype(source)),
                  .mutex = PTHREAD_MUTEX_INITIALIZER,
                  .changed = PTHREAD_COND_INITIALIZER};
    iron_status status;
    pthread_t reader;
    int code;

    p.slots = iron__allocate(engine->allocator, SLOTS, SLOT_BYTES, "the reading ring", err);
    if (!p.slots)
        return IRON_E_NOMEM;
    code = iron__thread_start(&reader, reader_main, &p);
    if (code == 0) {
        status = consume(&p, engine, progress, context, err);
        stop_reader(&p, reader);
    } else {
        status = iron__fail(err, IRON_E_NOMEM, code, "cannot start the reading thread: %s",
                            strerror(code));
    }
    iron__release(engine->allocator, p.slots);
    return status;
}
