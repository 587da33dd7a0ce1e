/* SPDX-License-Identifier: MIT */
/* writer.c: the queue, and what a group goes through. See writer.h. */
#include "store/writer.h"

#include "core/clock.h"
#include "core/fail.h"

#include <errno.h>
#include <stdlib.h>

/* The log goes into the file when it has grown to 16 MiB: seldom enough to cost nothing, and
 * recovery after a crash reads it in no time. */
#define CHECKPOINT_FRAMES 4096

/* Groups between two portions that are swept up while somebody always waits: a few per cent of the
 * time, and nothing that was deleted or abandoned stays for as long as the load does. */
#define SWEEP_GROUPS 32u

void iron__writer_do(iron__writer *w, iron__job *job) {
    sem_init(&job->done, 0, 0);
    job->next = NULL;
    pthread_mutex_lock(&w->lock);
    *w->last = job;
    w->last = &job->next;
    if (w->queued++ == 0)
        pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    while (sem_wait(&job->done) != 0)
        continue; /* a signal */
    sem_destroy(&job->done);
}

void iron__writer_sweep(iron__writer *w) {
    pthread_mutex_lock(&w->lock);
    w->wants_sweep = true;
    pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
}

iron_status iron__writer_touch(iron__writer *w, iron__kept *kept, iron_error *err) {
    for (size_t k = 0; k < w->ahead_count; k++)
        if (w->ahead[k] == kept)
            return IRON_OK;
    IRON_FAIL_IF(w->ahead_count == IRON_GROUP_JOBS, err, IRON_E_STATE,
                 "a group has changed more engines than it has jobs");
    w->ahead[w->ahead_count++] = iron__kept_hold(kept);
    return IRON_OK;
}

/* Up to IRON_GROUP_JOBS of those that wait. Called with the lock held. */
static iron__job *take_group(iron__writer *w, uint32_t *count) {
    iron__job *first = w->first, **end = &w->first;

    for (*count = 0; *end && *count < IRON_GROUP_JOBS; ++*count)
        end = &(*end)->next;
    w->first = *end;
    if (!w->first)
        w->last = &w->first;
    *end = NULL;
    w->queued -= *count;
    return first;
}

/* Everything up to COMMIT. */
static iron_status write_group(iron__writer *w, iron__job *group, bool is_closing,
                               iron_error *err) {
    IRON_TRY(iron__sql_do(w->db, IRON_SQL_BEGIN, "begin a transaction", err));
    if (w->wants_snapshots || is_closing)
        IRON_TRY(iron__snapshots_write(w, is_closing, err));
    for (iron__job *job = group; job; job = job->next)
        IRON_TRY(job->run(w, job, err));
    IRON_TRY(iron__lanes_flush(w, err));
    iron__database_rest(w->db);
    return iron__sql_do(w->db, IRON_SQL_COMMIT, "commit", err);
}

static void publish_group(iron__writer *w, iron__job *group) {
    for (size_t k = 0; k < w->ahead_count; k++) {
        iron__kept_publish(w->ahead[k]);
        w->wants_snapshots |= iron__kept_needs_snapshot(w->ahead[k], false);
    }
    for (iron__job *job = group; job; job = job->next)
        if (job->publish)
            job->publish(w->store, job);
}

/* Nothing of the group counts, and nothing will be written any more. */
static void fail_group(iron__writer *w, const iron_error *why) {
    iron__database_rest(w->db);
    if (!sqlite3_get_autocommit(w->db->handle))
        iron__sql_do(w->db, IRON_SQL_ROLLBACK, "roll back", NULL);
    w->lanes.used = 0;
    iron__store_fail(w->store, why);
}

static void answer(iron__writer *w, iron__job *group, bool is_refused) {
    for (iron__job *job = group, *next; job; job = next) {
        next = job->next; /* it is its caller's again when it is posted */
        job->is_refused = is_refused;
        if (is_refused)
            iron__store_failure(w->store, &job->error);
        sem_post(&job->done);
    }
    for (size_t k = 0; k < w->ahead_count; k++)
        iron__kept_release(w->ahead[k]);
    w->ahead_count = 0;
}

static void count_commit(iron__writer *w, uint32_t jobs, uint64_t ns) {
    pthread_mutex_lock(&w->lock);
    w->commits++;
    w->jobs += jobs;
    w->last_commit_ms = iron__now_ms();
    iron__latency_count(&w->commit_latency, ns);
    pthread_mutex_unlock(&w->lock);
}

static void run_group(iron__writer *w, iron__job *group, uint32_t count, bool is_closing) {
    bool has_failed = atomic_load(&w->store->has_failed);
    uint64_t began = iron__clock_ns();
    iron_error why = {0};

    w->group_ms = iron__now_ms();
    if (!has_failed && write_group(w, group, is_closing, &why) != IRON_OK) {
        fail_group(w, &why);
        has_failed = true;
    }
    if (!has_failed)
        publish_group(w, group);
    if (!has_failed)
        count_commit(w, count, iron__clock_ns() - began);
    answer(w, group, has_failed);
}

/* Nobody waits for this; but if it fails, what SQLite would believe of the disk is not true. */
static void shorten_log(iron__writer *w) {
    iron_error why = {0};

    if (!atomic_load(&w->store->has_failed) && w->db->wal_frames > CHECKPOINT_FRAMES &&
        iron__database_checkpoint(w->db, SQLITE_CHECKPOINT_PASSIVE, NULL, &why) != IRON_OK)
        iron__store_fail(w->store, &why);
}

/* Waits for work; false when there will be none. */
static bool next_group(iron__writer *w, iron__job **group, uint32_t *count) {
    bool has_failed, is_over;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        has_failed = atomic_load(&w->store->has_failed);
        if (w->wants_sweep)
            iron__sweep_begin(&w->sweep);
        w->wants_sweep = false;
        if (w->first || w->is_closing ||
            (!has_failed && (w->wants_snapshots || w->sweep.is_wanted)))
            break;
        pthread_cond_wait(&w->has_work, &w->lock);
    }
    *group = take_group(w, count);
    is_over = w->is_closing && !*group;
    pthread_mutex_unlock(&w->lock);
    return !is_over;
}

static void sweep(iron__writer *w) {
    iron_error why = {0};

    w->unswept = 0;
    if (iron__sweep_some(w, &why) != IRON_OK)
        fail_group(w, &why);
}

static void *write_on(void *context) {
    iron__writer *w = context;
    iron__job *group;
    uint32_t count;

    while (next_group(w, &group, &count)) {
        bool is_idle = !group && !w->wants_snapshots;

        atomic_store(&w->busy_since_ns, iron__clock_ns());
        if (!is_idle)
            run_group(w, group, count, false);
        if (is_idle || (w->sweep.is_wanted && ++w->unswept > SWEEP_GROUPS &&
                        !atomic_load(&w->store->has_failed)))
            sweep(w);
        shorten_log(w);
        atomic_store(&w->busy_since_ns, 0);
    }
    run_group(w, NULL, 0, true);
    return NULL;
}

iron_status iron__writer_start(iron__store *store, iron__database *db, const iron__ledger *ledger,
                               iron_error *err) {
    iron__writer *w = calloc(1, sizeof *w);

    if (!w || !(w->ahead = calloc(IRON_GROUP_JOBS, sizeof(iron__kept *)))) {
        free(w);
        IRON_FAIL(err, IRON_E_NOMEM, "out of memory: the writer");
    }
    w->store = store;
    w->db = db;
    w->ledger = *ledger;
    w->last = &w->first;
    w->wants_sweep = true; /* of what the last process left behind */
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->has_work, NULL);
    store->writer = w;
    if (pthread_create(&w->thread, NULL, write_on, w) != 0) {
        iron__fail(err, IRON_E_NOMEM, errno, "no thread can be made for the writer");
        return IRON_E_NOMEM;
    }
    w->has_thread = true;
    return IRON_OK;
}

void iron__writer_stop(iron__writer *w) {
    iron_error why = {0};

    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_closing = true;
    pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    if (!atomic_load(&w->store->has_failed) && w->has_thread &&
        iron__database_checkpoint(w->db, SQLITE_CHECKPOINT_TRUNCATE, NULL, &why) != IRON_OK)
        iron__store_fail(w->store, &why);
    pthread_cond_destroy(&w->has_work);
    pthread_mutex_destroy(&w->lock);
    iron__lanes_free(&w->lanes);
    free(w->ahead);
    free(w);
}
