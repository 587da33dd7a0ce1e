/* SPDX-License-Identifier: MIT */
/*
 * thread_pool.h: a fixed set of threads that share numbered tasks.
 *
 * iron__thread_pool_run runs tasks 0 ... count-1 in no particular order.
 * iron__thread_pool_run_ordered hands out pieces in order and reports the first failure in that
 * order. In both the calling thread works too, and the call returns when all threads are done. A
 * pool belongs to one caller at a time. Workers block all signals and never allocate.
 *
 * iron__pieces is the rule behind the ordered run, for code that starts its own threads
 * (feed/ring.c): pieces are handed out in order; the lowest piece that ends the order decides what
 * is reported, whatever the threads did.
 */
#ifndef IRON_CORE_THREAD_POOL_H
#define IRON_CORE_THREAD_POOL_H

#include "core/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define IRON_THREADS_MAX 1024u

typedef struct iron__thread_pool iron__thread_pool;
typedef void (*iron__task)(void *context, size_t index);

/* threads counts the caller: 1 makes a pool without workers. */
iron_status iron__thread_pool_create(uint32_t threads, const iron_allocator *allocator,
                                     iron__thread_pool **out, iron_error *err);
void iron__thread_pool_destroy(iron__thread_pool *pool);
uint32_t iron__thread_pool_threads(const iron__thread_pool *pool);
void iron__thread_pool_run(iron__thread_pool *pool, iron__task task, void *context, size_t count);

typedef struct iron__ordered_run {
    uint64_t count; /* of pieces */
    /* Processes one piece. `worker` is below the pool's number of threads, and no two calls with
     * the same worker overlap. Long waits should give up, with any error, once *stop is set. */
    iron_status (*piece)(void *context, uint32_t worker, uint64_t piece, const atomic_bool *stop,
                         iron_error *err);
    /* NULL, or called on the calling thread after each piece that this thread processed. An error
     * cancels the run: *stop is set. */
    iron_status (*progress)(void *context, uint64_t piece, iron_error *err);
    void *context;
} iron__ordered_run;

/* Hands out pieces in order. After a failure no further piece is handed out; every piece before the
 * failed one has run to its end when this returns. Returns the error of the lowest failed piece. */
iron_status iron__thread_pool_run_ordered(iron__thread_pool *pool, const iron__ordered_run *run,
                                          iron_error *err);

/* The pieces of one ordered run. */
typedef struct iron__pieces {
    atomic_uint_fast64_t next; /* to be handed out */
    atomic_uint_fast64_t end;  /* no piece from here on is handed out; only goes down */
    atomic_bool stop;          /* no piece at all is handed out, and those running may give up */
    pthread_mutex_t mutex;     /* of the two below: why `end` is not the initial count */
    iron_status status;
    iron_error error;
} iron__pieces;

static inline void iron__pieces_init(iron__pieces *p, uint64_t count) {
    *p = (iron__pieces){.status = IRON_OK};
    atomic_init(&p->end, count);
    pthread_mutex_init(&p->mutex, NULL);
}

static inline void iron__pieces_deinit(iron__pieces *p) { pthread_mutex_destroy(&p->mutex); }

/* False: none is left. */
static inline bool iron__pieces_take(iron__pieces *p, uint64_t *piece) {
    if (atomic_load_explicit(&p->stop, memory_order_relaxed))
        return false;
    *piece = atomic_fetch_add(&p->next, 1);
    return *piece < atomic_load(&p->end);
}

/* The order ends before this piece: with its error, or with IRON_OK and a NULL error where the
 * piece turned out to be past the end. Of several calls the one with the lowest piece counts. */
void iron__pieces_end(iron__pieces *p, uint64_t piece, iron_status status, const iron_error *error);

/* Starts a single thread like the pool's: small stack, all signals blocked. Returns
 * pthread_create's code. The other one gives it the usual stack, for calls into drivers, whose
 * compilers need it. */
int iron__thread_start(pthread_t *thread, void *(*entry)(void *), void *argument);
int iron__thread_start_for_drivers(pthread_t *thread, void *(*entry)(void *), void *argument);

#endif
