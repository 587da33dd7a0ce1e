/* SPDX-License-Identifier: MIT */
/*
 * team.c: the thread team.
 *
 * A run is announced by raising `round` under the mutex; each worker that sees a new round takes
 * indices from `next` until they are used up, then counts itself out of `busy`. A batch of 3 MiB
 * takes some 60 us, and waking a sleeper costs about as much; so workers and caller spin briefly
 * before they sleep.
 *
 * Invariants: 1. task, context and count change only while busy == 0. 2. A run is over when next has
 * passed count and busy is 0 again; so nobody can touch the task of an earlier run.
 */
#include "core/team.h"

#include "core/fail.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* About 20 us of looking before sleeping. */
#define SPINS 2000

/* Virtual memory may be limited: the default of 8 MiB a thread would be most of our footprint. */
#define STACK_BYTES (256u * 1024)

struct iron__team {
    const iron_allocator *allocator;
    uint32_t workers;
    uint32_t started;
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    atomic_uint round;
    atomic_uint busy;
    atomic_bool stop;
    iron__task task;
    void *context;
    size_t count;
    _Alignas(IRON_CACHE_LINE) atomic_size_t next;
    pthread_t threads[];
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

static void take_tasks(iron__team *team) {
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);

        if (index >= team->count)
            return;
        team->task(team->context, index);
    }
}

static void wait_for_round(iron__team *team, unsigned seen) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&team->round, memory_order_acquire) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&team->mutex);
    while (atomic_load_explicit(&team->round, memory_order_acquire) == seen)
        pthread_cond_wait(&team->wake, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
}

static void *worker_main(void *argument) {
    iron__team *team = argument;

    for (unsigned seen = 0;; seen++) {
        wait_for_round(team, seen);
        if (atomic_load_explicit(&team->stop, memory_order_acquire))
            return NULL;
        take_tasks(team);
        if (atomic_fetch_sub_explicit(&team->busy, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&team->mutex);
            pthread_cond_signal(&team->done);
            pthread_mutex_unlock(&team->mutex);
        }
    }
}

static void announce_round(iron__team *team) {
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add_explicit(&team->round, 1, memory_order_release);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
}

static void wait_for_workers(iron__team *team) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&team->busy, memory_order_acquire) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&team->mutex);
    while (atomic_load_explicit(&team->busy, memory_order_acquire) != 0)
        pthread_cond_wait(&team->done, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
}

iron_status iron__team_create(uint32_t threads, const iron_allocator *allocator, iron__team **out,
                              iron_error *err) {
    iron__team *team;

    *out = NULL;
    team = iron__allocate(allocator, 1, sizeof *team + (threads - 1) * sizeof(pthread_t),
                          "a thread team", err);
    if (!team)
        return IRON_E_NOMEM;
    team->allocator = allocator;
    team->workers = threads - 1;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->done, NULL);
    for (; team->started < team->workers; team->started++) {
        int code = iron__thread_start(&team->threads[team->started], worker_main, team);

        if (code) {
            iron__team_destroy(team);
            return iron__fail(err, IRON_E_NOMEM, code,
                              "cannot start %u threads: %s; ask for fewer with --threads", threads,
                              strerror(code));
        }
    }
    *out = team;
    return IRON_OK;
}

void iron__team_destroy(iron__team *team) {
    if (!team)
        return;
    atomic_store_explicit(&team->stop, true, memory_order_release);
    announce_round(team);
    for (uint32_t k = 0; k < team->started; k++)
        pthread_join(team->threads[k], NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->wake);
    pthread_mutex_destroy(&team->mutex);
    iron__release(team->allocator, team);
}

uint32_t iron__team_threads(const iron__team *team) { return team->workers + 1; }

void iron__team_run(iron__team *team, iron__task task, void *context, size_t count) {
    if (team->workers == 0 || count <= 1) {
        for (size_t k = 0; k < count; k++)
            task(context, k);
        return;
    }
    team->task = task;
    team->context = context;
    team->count = count;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    atomic_store_explicit(&team->busy, team->workers, memory_order_relaxed);
    announce_round(team);
    take_tasks(team);
    wait_for_workers(team);
}
