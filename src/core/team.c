/* SPDX-License-Identifier: MIT */
/*
 * team.c: the thread team.
 *
 * A run is announced by raising `round` under the mutex; each worker that sees a new round works
 * until no index is left, then counts itself out of `busy`. A batch of 3 MiB takes some 60 us, and
 * waking a sleeper costs about as much; so workers and caller spin briefly before they sleep.
 *
 * Indices are dealt out in lanes, one contiguous stretch a thread: neighbouring tasks are mostly
 * neighbouring memory, and a thread that goes on where it was keeps its prefetchers running (10 %
 * on two cores against one common counter, with tasks of 256 KiB). Whoever has finished its own
 * lane helps in the next one.
 *
 * Invariants: 1. task, context and lanes change only while busy == 0. 2. A run is over when all
 * lanes are used up and busy is 0 again; so nobody can touch the task of an earlier run.
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
#define STACK_BYTES ((size_t)256 * 1024)

typedef struct lane {
    _Alignas(IRON_CACHE_LINE) atomic_size_t next;
    size_t end;
} lane;

typedef struct worker {
    iron__team *team;
    uint32_t index; /* of its lane; the caller's is 0 */
    pthread_t thread;
} worker;

struct iron__team {
    const iron_allocator *allocator;
    uint32_t threads; /* the caller and the workers */
    uint32_t started; /* of those that run, the caller among them */
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    atomic_uint round;
    atomic_uint busy;
    atomic_bool stop;
    iron__task task;
    void *context;
    lane *lanes;
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

static void take_tasks(iron__team *team, uint32_t own_lane) {
    for (uint32_t k = 0; k < team->threads; k++) {
        lane *l = &team->lanes[(own_lane + k) % team->threads];
        size_t index;

        while ((index = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed)) < l->end)
            team->task(team->context, index);
    }
}

static void deal_out(iron__team *team, size_t count) {
    size_t share = count / team->threads, more = count % team->threads, begin = 0;

    for (uint32_t k = 0; k < team->threads; k++) {
        lane *l = &team->lanes[k];

        atomic_store_explicit(&l->next, begin, memory_order_relaxed);
        begin += share + (k < more);
        l->end = begin;
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
    const worker *self = argument;
    iron__team *team = self->team;

    for (unsigned seen = 0;; seen++) {
        wait_for_round(team, seen);
        if (atomic_load_explicit(&team->stop, memory_order_acquire))
            return NULL;
        take_tasks(team, self->index);
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

static iron_status allocate_team(uint32_t threads, const iron_allocator *allocator,
                                 iron__team **out, iron_error *err) {
    iron__team *team = iron__allocate(allocator, 1, sizeof *team, "a thread team", err);

    if (!team)
        return IRON_E_NOMEM;
    team->allocator = allocator;
    team->lanes = iron__allocate(allocator, threads, sizeof *team->lanes, "a team's lanes", err);
    if (team->lanes)
        team->workers =
            iron__allocate(allocator, threads, sizeof *team->workers, "a team's threads", err);
    if (!team->workers) {
        iron__release(allocator, team->lanes);
        iron__release(allocator, team);
        return IRON_E_NOMEM;
    }
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->done, NULL);
    *out = team;
    return IRON_OK;
}

iron_status iron__team_create(uint32_t threads, const iron_allocator *allocator, iron__team **out,
                              iron_error *err) {
    iron__team *team = NULL;

    *out = NULL;
    IRON_TRY(allocate_team(threads, allocator, &team, err));
    team->threads = threads;
    for (team->started = 1; team->started < threads; team->started++) {
        worker *w = &team->workers[team->started];
        int code;

        w->team = team;
        w->index = team->started;
        code = iron__thread_start(&w->thread, worker_main, w);
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
    const iron_allocator *allocator;

    if (!team)
        return;
    atomic_store_explicit(&team->stop, true, memory_order_release);
    announce_round(team);
    for (uint32_t k = 1; k < team->started; k++)
        pthread_join(team->workers[k].thread, NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->wake);
    pthread_mutex_destroy(&team->mutex);
    allocator = team->allocator;
    iron__release(allocator, team->workers);
    iron__release(allocator, team->lanes);
    iron__release(allocator, team);
}

uint32_t iron__team_threads(const iron__team *team) { return team->threads; }

void iron__team_run(iron__team *team, iron__task task, void *context, size_t count) {
    if (team->threads == 1 || count <= 1) {
        for (size_t k = 0; k < count; k++)
            task(context, k);
        return;
    }
    team->task = task;
    team->context = context;
    deal_out(team, count);
    atomic_store_explicit(&team->busy, team->threads - 1, memory_order_relaxed);
    announce_round(team);
    take_tasks(team, 0);
    wait_for_workers(team);
}
