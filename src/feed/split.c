/* SPDX-License-Identifier: MIT */
/*
 * split.c: see split.h. The parts are pieces of an ordered run (core/thread_pool.h): the lowest one
 * that fails decides what is reported. Their threads are started for the job, since they call
 * drivers, and take much longer than starting a thread does.
 */
#include "feed/split.h"

#include "core/thread_pool.h"

#include <time.h>

/* The caller's thread reports progress so often while it only waits. */
#define REPORT_NS 100000000

typedef struct split_run split_run;

typedef struct split_part {
    split_run *run;
    size_t index;
    pthread_t thread;
    bool is_started;
    atomic_uint_fast64_t done;
} split_part;

struct split_run {
    const iron__split *split;
    iron__pieces pieces;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t running; /* parts that are not done */
    split_part parts[IRON_SPLIT_MAX];
};

/* On the caller's thread: nonzero if the caller cancels. */
static int report(split_run *r) {
    const iron__split *s = r->split;
    uint64_t done = s->before;

    for (size_t k = 0; k < s->count; k++)
        done += atomic_load(&r->parts[k].done);
    return s->progress ? s->progress(s->progress_context, done, s->total) : 0;
}

static int part_progress(void *context, uint64_t done, uint64_t total) {
    split_part *p = context;

    (void)total;
    atomic_store(&p->done, done);
    if (p->index == 0 && report(p->run) != 0)
        return 1;
    return atomic_load(&p->run->pieces.stop) || atomic_load(&p->run->pieces.end) < p->index;
}

static void *run_part(void *argument) {
    split_part *p = argument;
    split_run *r = p->run;
    iron_error error = {0};
    iron_status status = r->split->part(r->split->context, p->index, part_progress, p, &error);

    if (status != IRON_OK)
        iron__pieces_end(&r->pieces, p->index, status, &error);
    pthread_mutex_lock(&r->mutex);
    r->running--;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Until all other threads are done. */
static void wait_for_parts(split_run *r) {
    pthread_mutex_lock(&r->mutex);
    while (r->running > 0) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += REPORT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&r->changed, &r->mutex, &until);
        pthread_mutex_unlock(&r->mutex);
        if (report(r) != 0 && !atomic_load(&r->pieces.stop)) {
            iron_error error = {.status = IRON_E_CANCELLED, .text = "cancelled"};

            iron__pieces_end(&r->pieces, 0, IRON_E_CANCELLED, &error);
            atomic_store(&r->pieces.stop, true);
        }
        pthread_mutex_lock(&r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
}

iron_status iron__split_run(const iron__split *split, iron_error *err) {
    split_run r = {.split = split, .running = split->count};
    iron_status status;

    iron__pieces_init(&r.pieces, split->count);
    pthread_mutex_init(&r.mutex, NULL);
    pthread_cond_init(&r.changed, NULL);
    for (size_t k = 0; k < split->count; k++) {
        split_part *p = &r.parts[k];

        p->run = &r;
        p->index = k;
        p->is_started = k > 0 && iron__thread_start_for_drivers(&p->thread, run_part, p) == 0;
    }
    for (size_t k = 0; k < split->count; k++)
        if (!r.parts[k].is_started) /* the first, and those that got no thread */
            run_part(&r.parts[k]);
    wait_for_parts(&r);
    for (size_t k = 1; k < split->count; k++)
        if (r.parts[k].is_started)
            pthread_join(r.parts[k].thread, NULL);
    status = r.pieces.status;
    if (status != IRON_OK && err)
        *err = r.pieces.error;
    pthread_cond_destroy(&r.changed);
    pthread_mutex_destroy(&r.mutex);
    iron__pieces_deinit(&r.pieces);
    return status;
}
