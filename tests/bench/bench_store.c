/* SPDX-License-Identifier: MIT */
/*
 * bench_store.c: measures durable feeds per second through the store alone, without HTTP. The
 * arguments are the number of threads, the body size, the number of engines and the duration.
 *
 *   bench-store DIRECTORY [THREADS 64] [BYTES 4096] [ENGINES 1] [SECONDS 5] [with-keys]
 */
#include "core/clock.h"
#include "store/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct feeder {
    pthread_t thread;
    unsigned number;
    iron__store_engine *entry;
    size_t bytes;
    uint64_t until_ns, fed, slowest_ns;
    bool with_keys, has_failed;
} feeder;

static bool feed_once(feeder *f, const unsigned char *body) {
    char key[64];
    iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = f->bytes};
    iron__feed_answer answer;
    iron__feed *feed;
    iron_error err = {0};

    snprintf(key, sizeof key, "a-key-as-clients-make-them-%u-%" PRIu64, f->number, f->fed);
    request.key = f->with_keys ? key : NULL;
    if (iron__feed_begin(f->entry, &request, &feed, &answer, &err) != IRON_FEED_DONE ||
        iron__feed_take(feed, body, f->bytes, &answer, &err) != IRON_FEED_DONE ||
        iron__feed_end(feed, &answer, &err) != IRON_FEED_DONE) {
        fprintf(stderr, "bench-store: %s\n", err.text);
        return false;
    }
    return true;
}

static void *feed_on(void *context) {
    feeder *f = context;
    unsigned char *body = calloc(1, f->bytes);

    for (uint64_t now = iron__clock_ns(), after; now < f->until_ns && !f->has_failed; now = after) {
        f->has_failed = !body || !feed_once(f, body);
        f->fed++;
        after = iron__clock_ns();
        if (after - now > f->slowest_ns)
            f->slowest_ns = after - now;
    }
    free(body);
    return NULL;
}

static iron__store_engine *engine_number(iron__store *store, unsigned number) {
    iron__store_plan plan;
    iron__store_engine *entry = NULL;
    iron_error err = {0};

    iron__store_plan_init(&plan);
    snprintf(plan.name, sizeof plan.name, "bench-%u", number);
    entry = iron__store_find(store, plan.name);
    if (!entry && iron__store_create(store, &plan, &entry, &err) != IRON_OK)
        fprintf(stderr, "bench-store: %s\n", err.text);
    return entry;
}

static void report(iron__store *store, const feeder *all, unsigned threads, double seconds) {
    iron__store_counts counts;
    uint64_t fed = 0, slowest = 0;

    for (unsigned k = 0; k < threads; k++) {
        fed += all[k].fed;
        slowest = all[k].slowest_ns > slowest ? all[k].slowest_ns : slowest;
    }
    iron__store_count(store, &counts, NULL);
    printf("feeds/s     %.0f\n", (double)fed / seconds);
    printf("commits/s   %.0f, %.1f feeds each\n", (double)counts.commits / seconds,
           (double)counts.jobs / (double)(counts.commits ? counts.commits : 1));
    printf("group       %.1f us, %.2f us a feed\n",
           (double)counts.commit_latency.ns / 1e3 / (double)(counts.commits ? counts.commits : 1),
           (double)counts.commit_latency.ns / 1e3 / (double)(counts.jobs ? counts.jobs : 1));
    printf("slowest     %.1f ms\n", (double)slowest / 1e6);
}

static unsigned number_at(int argc, char **argv, int at, unsigned otherwise) {
    return argc > at ? (unsigned)strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    unsigned threads = number_at(argc, argv, 2, 64), engines = number_at(argc, argv, 4, 1);
    iron__store_options options = {.directory = argc > 1 ? argv[1] : "bench-store-data"};
    uint64_t seconds = number_at(argc, argv, 5, 5);
    feeder *all = calloc(threads, sizeof *all);
    iron__store *store = NULL;
    iron_error err = {0};

    if (!all || !threads || !engines || !seconds ||
        iron__store_open(&options, &store, &err) != IRON_OK) {
        fprintf(stderr, "bench-store: %s\n", err.text);
        free(all);
        return 2;
    }
    for (unsigned k = 0; k < threads; k++) {
        all[k].entry = engine_number(store, k % engines);
        all[k].number = k;
        all[k].bytes = number_at(argc, argv, 3, 4096);
        all[k].with_keys = argc > 6;
        all[k].until_ns = iron__clock_ns() + seconds * UINT64_C(1000000000);
        if (!all[k].entry || pthread_create(&all[k].thread, NULL, feed_on, &all[k]) != 0)
            return 2;
    }
    for (unsigned k = 0; k < threads; k++) {
        pthread_join(all[k].thread, NULL);
        iron__store_engine_release(all[k].entry);
    }
    report(store, all, threads, (double)seconds);
    iron__store_close(store);
    free(all);
    return 0;
}
