/* SPDX-License-Identifier: MIT */
/* store.c: a store opened and closed, its failure, its counters. */
#include "store/store.h"

#include "core/clock.h"
#include "core/fail.h"
#include "store/directory.h"
#include "store/inspection.h"
#include "store/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void set_defaults(iron__store_options *o) {
    o->engines_max = o->engines_max ? o->engines_max : 256;
    o->nodes_max = o->nodes_max ? o->nodes_max : UINT64_C(1) << 24;
    o->uploads_max = o->uploads_max ? o->uploads_max : 64;
    o->inspected_bytes = o->inspected_bytes ? o->inspected_bytes : UINT64_C(1) << 28;
}

static iron_status open_all(iron__store *store, iron_error *err) {
    iron__ledger ledger;

    IRON_TRY(iron__directory_lock(store->directory, &store->directory_lock, err));
    IRON_TRY(iron__database_file(store->directory, err));
    IRON_TRY(iron__database_open(store->directory, true, &store->written, err));
    IRON_TRY(iron__database_open(store->directory, false, &store->reader, err));
    IRON_TRY(iron__inspect_now(store, err));
    IRON_TRY(iron__store_load(store, store->written, &ledger, err));
    IRON_TRY(iron__writer_start(store, store->written, &ledger, err));
    return iron__inspection_start(store, err);
}

/* In the order of dependence: the writer uses engines, engines use the store. */
static void store_destroy(iron__store *store) {
    bool is_well;

    iron__inspection_stop(store);
    iron__writer_stop(store->writer);
    for (size_t k = 0; k < store->engine_count; k++)
        iron__kept_release(store->engines[k]);
    is_well = store->writer && !atomic_load(&store->has_failed);
    iron__database_close(store->reader, false);
    iron__database_close(store->written, is_well);
    if (store->directory_lock >= 0)
        close(store->directory_lock);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->read_lock);
    iron__news_deinit(&store->news);
    free(store->engines);
    free(store->open_uploads);
    free(store->directory);
    free(store);
}

iron_status iron__store_open(const iron__store_options *options, iron__store **out,
                             iron_error *err) {
    iron__store *store = calloc(1, sizeof *store);
    iron_status status = IRON_E_NOMEM;

    *out = NULL;
    IRON_FAIL_IF(!store, err, IRON_E_NOMEM, "out of memory: a store");
    store->options = *options;
    set_defaults(&store->options);
    store->directory_lock = -1;
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->read_lock, NULL);
    iron__news_init(&store->news);
    store->directory = strdup(options->directory);
    store->open_uploads = calloc(store->options.uploads_max, sizeof *store->open_uploads);
    store->options.directory = store->directory;
    if (store->directory && store->open_uploads)
        status = open_all(store, err);
    else
        iron__fail(err, status, 0, "out of memory: a store");
    if (status == IRON_OK)
        *out = store;
    else
        store_destroy(store);
    return status;
}

void iron__store_stop(iron__store *store) {
    atomic_store(&store->is_stopping, true);
    iron__news_end(&store->news);
    pthread_mutex_lock(&store->lock);
    for (size_t k = 0; k < store->engine_count; k++) {
        iron__kept *kept = store->engines[k];

        pthread_mutex_lock(&kept->lock);
        pthread_cond_broadcast(&kept->changed);
        pthread_mutex_unlock(&kept->lock);
    }
    pthread_mutex_unlock(&store->lock);
}

uint32_t iron__store_feeds_open(iron__store *store) { return atomic_load(&store->feeds_open); }

void iron__store_close(iron__store *store) {
    if (!store)
        return;
    iron__store_stop(store);
    store_destroy(store);
}

void iron__store_fail(iron__store *store, const iron_error *why) {
    pthread_mutex_lock(&store->lock);
    if (store->failure.status == IRON_OK)
        store->failure = *why;
    pthread_mutex_unlock(&store->lock);
    atomic_store(&store->has_failed, true);
}

iron_status iron__store_failure(iron__store *store, iron_error *why) {
    iron_status status;

    if (!atomic_load(&store->has_failed))
        return IRON_OK;
    pthread_mutex_lock(&store->lock);
    status = store->failure.status;
    if (why)
        *why = store->failure;
    pthread_mutex_unlock(&store->lock);
    return status;
}

uint64_t iron__store_busy_ns(iron__store *store) {
    uint64_t began = atomic_load(&store->writer->busy_since_ns), now = iron__clock_ns();

    return began && now > began ? now - began : 0;
}

void iron__store_count(iron__store *store, iron__store_counts *counts) {
    iron__writer *w = store->writer;

    *counts = (iron__store_counts){
        .feeds = atomic_load(&store->fed_feeds),
        .tokens = atomic_load(&store->fed_tokens),
        .bytes = atomic_load(&store->fed_bytes),
        .batches = atomic_load(&store->fed_batches),
        .uploads = atomic_load(&store->uploads),
    };
    for (size_t k = 0; k <= IRON_FEED_FAILED; k++)
        counts->refused[k] = k == IRON_FEED_DONE ? 0 : atomic_load(&store->outcomes[k]);
    pthread_mutex_lock(&w->lock);
    counts->commits = w->commits;
    counts->jobs = w->jobs;
    iron__latency_add(&w->commit_latency, &counts->commit_latency);
    counts->last_commit_ms = w->last_commit_ms;
    counts->snapshots = w->snapshots;
    counts->queued = w->queued;
    pthread_mutex_unlock(&w->lock);
}

static uint64_t file_bytes(const char *path) {
    struct stat about;

    return stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
}

void iron__store_weigh(const iron__store *store, iron__store_disk *disk) {
    struct statvfs about;
    char *log = NULL;

    *disk = (iron__store_disk){.database = file_bytes(store->written->path)};
    if (asprintf(&log, "%s-wal", store->written->path) >= 0) {
        disk->log = file_bytes(log);
        free(log);
    }
    if (fstatvfs(store->directory_lock, &about) == 0) {
        disk->size = (uint64_t)about.f_blocks * about.f_frsize;
        disk->free = (uint64_t)about.f_bavail * about.f_frsize;
    }
}
