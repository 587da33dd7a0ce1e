/* SPDX-License-Identifier: MIT */
/*
 * thread_pool.c: the thread pool.
 *
 * A run is announced by a new `round`, whose lowest bits are the number of threads that take part:
 * as many as there are tasks. A worker enters a round, works until no index is left, and leaves.
 * When the caller finds no index left, it closes the round and waits only for workers that have
 * entered: on a busy machine, a worker can be without a processor for milliseconds. Each worker has
 * its own word for entering and leaving, so that they do not queue at one cache line.
 *
 * Waking a sleeping thread takes 50 us and more, as long as a batch of 3 MiB. So workers and caller
 * spin before they sleep, and for longer than that: if either slept while the other woke up, both
 * would sleep in every run. Only threads that sleep are signalled, which keeps the mutex out of
 * runs that follow each other: a sleeper says so before it looks at what it waits for, and the
 * other side changes that before it looks for sleepers (both sequentially consistent).
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
 * Invariants: 1. task, context and shares change only between rounds. 2. A round is over when all
 * shares are used up and each worker has left it or can no longer enter it; so no thread can touch
 * the task of an earlier run.
 */
#include "core/thread_pool.h"

#include "core/clock.h"
#include "core/fail.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

/* Spinning before sleeping: the clock is read after so many turns. */
#define SPIN_NS UINT64_C(150000)
#define SPINS   64

/* Rounds are multiples of this plus the number of threads; with this bit, a worker is in it. */
#define ROUND  UINT64_C(65536)
#define INSIDE (ROUND / 2)

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
    pthread_cond_t wake; /* a new round; the caller: the round is over */
    _Alignas(IRON_CACHE_LINE) atomic_bool is_asleep;
    _Alignas(IRON_CACHE_LINE) atomic_uint_fast64_t last; /* round; | INSIDE until it has left */
} worker;

struct iron__thread_pool {
    const iron_allocator *allocator;
    uint32_t threads; /* the caller and the workers */
    uint32_t started; /* how many of them run, the caller included */
    pthread_mutex_t mutex;
    iron__task task;
    void *context;
    share *shares;
    worker *workers; /* [0] is the caller */
    atomic_bool stop;
    _Alignas(IRON_CACHE_LINE) atomic_uint_fast64_t round;
};

static inline void relax(void) {
#if defined(__aarch64__)
    __asm__ volatile("isb");
#elif defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static int start_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*entry)(void *),
                        void *argument) {
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(thread, attributes, entry, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

int iron__thread_start_for_drivers(pthread_t *thread, void *(*entry)(void *), void *argument) {
    return start_thread(thread, NULL, entry, argument);
}

int iron__thread_start(pthread_t *thread, void *(*entry)(void *), void *argument) {
    pthread_attr_t attributes;
    int code;

    code = pthread_attr_init(&attributes);
    if (code)
        return code;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    code = start_thread(thread, &attributes, entry, argument);
    pthread_attr_destroy(&attributes);
    return code;
}

/* Looks before it takes: many threads that write to a share without tasks wait for each other. */
static void run_tasks(iron__thread_pool *pool, uint32_t own_share, uint32_t threads) {
    for (uint32_t k = 0; k < threads; k++) {
        share *s = &pool->shares[(own_share + k) % threads];
        size_t index;

        while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end &&
               (index = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
            pool->task(pool->context, index);
    }
}

static bool is_new_round(iron__thread_pool *pool, uint64_t seen) {
    return atomic_load(&pool->round) != seen;
}

/* False if the worker is too late: the round is closed to it, or a later one already is. */
static bool enter(worker *w, uint64_t round) {
    uint64_t last = atomic_load(&w->last);

    return last < round && atomic_compare_exchange_strong(&w->last, &last, round | INSIDE);
}

/* Closes the round to workers that have not entered it. */
static bool is_over(iron__thread_pool *pool, uint64_t round) {
    for (uint32_t k = 1; k < round % ROUND; k++) {
        uint64_t last = atomic_load(&pool->workers[k].last);

        if (last == (round | INSIDE))
            return false;
        if (last != round && !atomic_compare_exchange_strong(&pool->workers[k].last, &last, round))
            return false;
    }
    return true;
}

/* Waits until the condition holds: spins, then sleeps. */
static void wait_until(bool (*holds)(iron__thread_pool *pool, uint64_t round), worker *self,
                       uint64_t round) {
    iron__thread_pool *pool = self->pool;
    uint64_t end = 0, now;

    do {
        for (int spin = 0; spin < SPINS; spin++) {
            if (holds(pool, round))
                return;
            relax();
        }
        sched_yield(); /* what is waited for may have to run on this very core */
        now = iron__clock_ns();
        end = end ? end : now + SPIN_NS;
    } while (now < end);
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&self->is_asleep, true);
    while (!holds(pool, round))
        pthread_cond_wait(&self->wake, &pool->mutex);
    atomic_store(&self->is_asleep, false);
    pthread_mutex_unlock(&pool->mutex);
}

/* What the worker waits for holds already. */
static void wake(worker *w) {
    if (!atomic_load(&w->is_asleep))
        return;
    pthread_mutex_lock(&w->pool->mutex);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->pool->mutex);
}

static void *worker_main(void *argument) {
    worker *self = argument;
    iron__thread_pool *pool = self->pool;

    for (uint64_t seen = 0;;) {
        wait_until(is_new_round, self, seen);
        seen = atomic_load(&pool->round);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire))
            return NULL;
        if (self->index >= seen % ROUND || !enter(self, seen))
            continue;
        run_tasks(pool, self->index, (uint32_t)(seen % ROUND));
        atomic_store(&self->last, seen);
        wake(&pool->workers[0]);
    }
}

static uint64_t announce_round(iron__thread_pool *pool, uint32_t threads) {
    uint64_t before = atomic_load_explicit(&pool->round, memory_order_relaxed);
    uint64_t round = (before / ROUND + 1) * ROUND + threads;

    atomic_store(&pool->round, round);
    for (uint32_t k = 1; k < threads; k++)
        wake(&pool->workers[k]);
    return round;
}

iron_status iron__thread_pool_create(uint32_t threads, const iron_allocator *allocator,
                                     iron__thread_pool **out, iron_error *err) {
    iron__thread_pool *pool;

    *out = NULL;
    IRON_TRY(IRON_ALLOCATE(&pool, allocator, 1, "a thread pool", err));
    pool->allocator = allocator;
    pool->threads = threads;
    pthread_mutex_init(&pool->mutex, NULL);
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
        pthread_cond_init(&w->wake, NULL);
        code = w->index > 0 ? iron__thread_start(&w->thread, worker_main, w) : 0;
        if (code) {
            pthread_cond_destroy(&w->wake);
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
    announce_round(pool, pool->started);
    /* The last worker of a run may still be about to wake the caller, who did not sleep. */
    for (uint32_t k = 1; k < pool->started; k++)
        pthread_join(pool->workers[k].thread, NULL);
    for (uint32_t k = 0; k < pool->started; k++)
        pthread_cond_destroy(&pool->workers[k].wake);
    pthread_mutex_destroy(&pool->mutex);
    allocator = pool->allocator;
    iron__release(allocator, pool->workers);
    iron__release(allocator, pool->shares);
    iron__release(allocator, pool);
}

uint32_t iron__thread_pool_threads(const iron__thread_pool *pool) { return pool->threads; }

void iron__thread_pool_run(iron__thread_pool *pool, iron__task task, void *context, size_t count) {
    uint32_t threads = count < pool->threads ? (uint32_t)count : pool->threads;
    size_t begin = 0;
    uint64_t round;

    if (threads <= 1) {
        for (size_t k = 0; k < count; k++)
            task(context, k);
        return;
    }
    pool->task = task;
    pool->context = context;
    for (uint32_t k = 0; k < threads; k++) {
        atomic_store_explicit(&pool->shares[k].next, begin, memory_order_relaxed);
        begin += count / threads + (k < count % threads);
        pool->shares[k].end = begin;
    }
    round = announce_round(pool, threads);
    run_tasks(pool, 0, threads);
    wait_until(is_over, &pool->workers[0], round);
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
