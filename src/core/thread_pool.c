/* SPDX-License-Identifier: MIT */
/*
 * thread_pool.c: the thread pool.
 *
 * A run is announced by raising `round` under the mutex; each worker that sees a new round works
 * until no index is left, then counts itself out of `busy`. A batch of 3 MiB takes some 60 us, and
 * waking a sleeping thread costs about as much; so workers and caller spin briefly before they
 * sleep.
 *
 * The indices of a plain run are divided into shares, one contiguous range per thread: neighbouring
 * tasks mostly read neighbouring memory, and a thread that continues where it was keeps its
 * prefetchers running (10 % on two cores compared with one common counter, with tasks of 256 KiB).
 * A thread that has finished its own share helps with the next one.
 *
 * The pieces of an ordered run come from one common counter instead: each thread runs one task, a
 * loop that takes the next piece until none is left. Since pieces are handed out in order, every
 * piece before a failed one has been handed out when it fails, and runs to its end; so the lowest
 * failure is the same one that a single thread would have met.
 *
 * Invariants: 1. task, context and shares change only while busy == 0. 2. A run is over when all
 * shares are used up and busy is 0 again; so no thread can touch the task of an earlier run.
 */
#include "core/thread_pool.h"

#include "core/fail.h"

#include <signal.h>
#include <string.h>

/* About 20 us of spinning before sleeping. */
#define SPINS 2000

/* Virtual memory may be limited: the default of 8 MiB per thread would be most of our footprint. */
#define STACK_BYTES ((size_t)256 * 1024)

/* One thread's share of the indices. */
typedef struct share {
    _Alignas(IRON_CACHE_LINE) atomic_size_t next;
    size_t end;
} share;

typedef struct worker {
    iron__thread_pool *pool;
    uint32_t index; /* of its share; the caller's is 0 */
    pthread_t thread;
} worker;

struct iron__thread_pool {
    const iron_allocator *allocator;
    uint32_t threads; /* the caller and the workers */
    uint32_t started; /* how many of them run, the caller included */
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    atomic_uint round;
    atomic_uint busy;
    atomic_bool stop;
    iron__task task;
    void *context;
    share *shares;
    worker *workers; /* [0] is the caller */
};

static inline void relax(void) {
#if defined(__aarch64__)
    __asm__ volatile("isb");
#elif defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

int iron__thread_start(pthread_t *thread, void *(*entry)(void *), void *argument) {
    sigset_t all, before;
    pthread_attr_t attributes;
    int code;

    code = pthread_attr_init(&attributes);
    if (code)
        return code;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(thread, &attributes, entry, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}

static void run_tasks(iron__thread_pool *pool, uint32_t own_share) {
    for (uint32_t k = 0; k < pool->threads; k++) {
        share *s = &pool->shares[(own_share + k) % pool->threads];
        size_t index;

        while ((index = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
            pool->task(pool->context, index);
    }
}

static void wait_for_round(iron__thread_pool *pool, unsigned seen) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&pool->round, memory_order_acquire) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load_explicit(&pool->round, memory_order_acquire) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
    const worker *self = argument;
    iron__thread_pool *pool = self->pool;

    for (unsigned seen = 0;; seen++) {
        wait_for_round(pool, seen);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire))
            return NULL;
        run_tasks(pool, self->index);
        if (atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static void announce_round(iron__thread_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add_explicit(&pool->round, 1, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

static void wait_for_workers(iron__thread_pool *pool) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&pool->busy, memory_order_acquire) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load_explicit(&pool->busy, memory_order_acquire) != 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

iron_status iron__thread_pool_create(uint32_t threads, const iron_allocator *allocator,
                                     iron__thread_pool **out, iron_error *err) {
    iron__thread_pool *pool = iron__allocate(allocator, 1, sizeof *pool, "a thread pool", err);

    *out = NULL;
    if (!pool)
        return IRON_E_NOMEM;
    pool->allocator = allocator;
    pool->threads = threads;
    pool->started = 1;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->shares = iron__allocate(allocator, threads, sizeof *pool->shares, "a pool's shares", err);
    if (pool->shares)
        pool->workers =
            iron__allocate(allocator, threads, sizeof *pool->workers, "a pool's threads", err);
    if (!pool->workers) {
        iron__thread_pool_destroy(pool);
        return IRON_E_NOMEM;
    }
    for (; pool->started < threads; pool->started++) {
        worker *w = &pool->workers[pool->started];
        int code;

        w->pool = pool;
        w->index = pool->started;
        code = iron__thread_start(&w->thread, worker_main, w);
        if (code) {
            iron__thread_pool_destroy(pool);
            return iron__fail(err, IRON_E_NOMEM, code,
                              "cannot start %u threads: %s; ask for fewer with --threads", threads,
                              strerror(code));
        }
    }
    *out = pool;
    return IRON_OK;
}

void iron__thread_pool_destroy(iron__thread_pool *pool) {
    const iron_allocator *allocator;

    if (!pool)
        return;
    atomic_store_explicit(&pool->stop, true, memory_order_release);
    announce_round(pool);
    for (uint32_t k = 1; k < pool->started; k++)
        pthread_join(pool->workers[k].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    allocator = pool->allocator;
    iron__release(allocator, pool->workers);
    iron__release(allocator, pool->shares);
    iron__release(allocator, pool);
}

uint32_t iron__thread_pool_threads(const iron__thread_pool *pool) { return pool->threads; }

void iron__thread_pool_run(iron__thread_pool *pool, iron__task task, void *context, size_t count) {
    size_t each = count / pool->threads, more = count % pool->threads, begin = 0;

    if (pool->threads == 1 || count <= 1) {
        for (size_t k = 0; k < count; k++)
            task(context, k);
        return;
    }
    pool->task = task;
    pool->context = context;
    for (uint32_t k = 0; k < pool->threads; k++) {
        atomic_store_explicit(&pool->shares[k].next, begin, memory_order_relaxed);
        begin += each + (k < more);
        pool->shares[k].end = begin;
    }
    atomic_store_explicit(&pool->busy, pool->threads - 1, memory_order_relaxed);
    announce_round(pool);
    run_tasks(pool, 0);
    wait_for_workers(pool);
}

void iron__pieces_end(iron__pieces *p, uint64_t piece, iron_status status,
                      const iron_error *error) {
    pthread_mutex_lock(&p->mutex);
    if (piece < atomic_load(&p->end)) {
        atomic_store(&p->end, piece);
        p->status = status;
        p->error = error ? *error : (iron_error){0};
    }
    pthread_mutex_unlock(&p->mutex);
}

typedef struct ordered {
    const iron__ordered_run *run;
    pthread_t caller;
    iron__pieces pieces;
} ordered;

static void run_pieces(void *context, size_t worker_index) {
    ordered *o = context;
    const iron__ordered_run *run = o->run;
    uint64_t piece;

    while (iron__pieces_take(&o->pieces, &piece)) {
        iron_error error = {0};
        iron_status status =
            run->piece(run->context, (uint32_t)worker_index, piece, &o->pieces.stop, &error);

        if (status == IRON_OK && run->progress && pthread_equal(pthread_self(), o->caller)) {
            status = run->progress(run->context, piece, &error);
            if (status != IRON_OK)
                atomic_store(&o->pieces.stop, true);
        }
        if (status != IRON_OK)
            iron__pieces_end(&o->pieces, piece, status, &error);
    }
}

iron_status iron__thread_pool_run_ordered(iron__thread_pool *pool, const iron__ordered_run *run,
                                          iron_error *err) {
    ordered o = {.run = run, .caller = pthread_self()};
    size_t loops = run->count < pool->threads ? (size_t)run->count : pool->threads;
    iron_status status;

    iron__pieces_init(&o.pieces, run->count);
    iron__thread_pool_run(pool, run_pieces, &o, loops);
    status = o.pieces.status;
    if (status != IRON_OK && err)
        *err = o.pieces.error;
    iron__pieces_deinit(&o.pieces);
    return status;
}
