/* SPDX-License-Identifier: MIT */
/*
 * test_store_history.c: an engine's history, read batch by batch; blocks of large feeds; snapshots
 * limit the replay; the history written by many threads equals a serial replay.
 */
#include "engine/checkpoint.h"
#include "place.h"
#include "store/store_internal.h"
#include "store_support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* All batches, read in portions of `portion`; free() them. */
static iron__batch_row *history_of(iron__store_engine *entry, size_t portion, size_t *count) {
    uint64_t batches = look_at(entry).batches;
    iron__batch_row *rows = grab(batches * sizeof *rows);
    iron_error err = {0};

    for (*count = 0; *count < batches;) {
        size_t got, room = batches - *count < portion ? batches - *count : portion;

        assert_ok(iron__store_engine_batches(entry, *count, rows + *count, room, &got, NULL, &err),
                  &err);
        assert_int_equal(got, room);
        *count += got;
    }
    return rows;
}

/* The history, replayed on a new engine, gives the published state. */
static void assert_history(iron__store_engine *entry, const iron__store_plan *plan,
                           size_t portion) {
    size_t count;
    iron__batch_row *rows = history_of(entry, portion, &count);
    iron_engine *engine = direct_engine(plan);
    iron__store_engine_view view = look_at(entry);
    uint64_t position = 0;
    iron_report report;

    for (size_t k = 0; k < count; k++) {
        iron__contribution batch = {rows[k].tokens, rows[k].sum, rows[k].xors};
        iron__seal seal;

        assert_true(rows[k].batch == k && rows[k].position == position);
        position += rows[k].tokens;
        seal = iron__seal_of_count(position);
        assert_int_equal(iron__engine_replay(engine, &batch, 1, &seal, NULL), IRON_OK);
    }
    report = report_now(engine);
    assert_true(report.tokens == view.tokens && report.batches == view.batches);
    assert_true(report.sum == view.sum && report.xor_total == view.xors);
    assert_true(report.state == view.state);
    iron_engine_destroy(engine);
    free(rows);
}

static void batches_are_read_back(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("read");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t *tokens = grab_tokens(5, 1000, 300000);
    iron__batch_row row;
    iron_error err = {0};
    size_t count;

    (void)state;
    assert_ok(iron__store_engine_batches(entry, 0, &row, 1, &count, NULL, &err), &err);
    assert_int_equal(count, 0);
    for (size_t k = 0; k < 40; k++) {
        feed_done(entry, (feeding){.key = NULL}, tokens, 4 * (1 + 7 * k % 50));
        if (k % 5 == 0) {
            char key[20];

            snprintf(key, sizeof key, "nothing-%zu", k);
            feed_done(entry, (feeding){.key = key}, tokens, 0);
        }
        if (k % 13 == 0)
            feed_done(entry, (feeding){.piece = 70000}, tokens, 4 * 200000);
    }
    assert_history(entry, &plan, 1000);
    assert_history(entry, &plan, 4097);
    assert_ok(
        iron__store_engine_batches(entry, look_at(entry).batches, &row, 1, &count, NULL, &err),
        &err);
    assert_int_equal(count, 0);
    assert_ok(iron__store_engine_batches(entry, UINT64_MAX, &row, 1, &count, NULL, &err), &err);
    assert_int_equal(count, 0);
    /* from any batch */
    for (uint64_t since = 0; since < look_at(entry).batches; since += 777) {
        assert_ok(iron__store_engine_batches(entry, since, &row, 1, &count, NULL, &err), &err);
        assert_true(count == 1 && row.batch == since);
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    entry = found(store, "read");
    assert_history(entry, &plan, 5000);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

/* One token per batch: every 4096 tokens are a block. Lengths around whole blocks. */
static void blocks_hold_large_feeds(void **state) {
    static const size_t lengths[] = {16385, 4 * 4096 + 4095, 5 * 4096, 5 * 4096 + 1, 100000};
    iron__store_options few = {.snapshot_batches = 1u << 30};
    iron__store *store = store_at_with(&place, few);
    iron__store_plan plan = small_plan("blocks");
    iron_engine *direct;
    uint32_t *tokens = grab_tokens(5, 1000, 100100);
    iron_report want = {0};
    iron__store_engine *entry;

    (void)state;
    plan.batch = 1;
    direct = direct_engine(&plan);
    entry = make_engine(store, &plan);
    for (size_t k = 0; k < COUNT(lengths); k++) {
        iron__feed_answer answer = feed_done(entry, (feeding){.piece = 33333, .is_chunked = k % 2},
                                             tokens + k, 4 * lengths[k]);

        want = direct_feed(direct, IRON_DTYPE_U32, tokens + k, lengths[k]);
        assert_answer(&answer, &want);
    }
    assert_history(entry, &plan, 3000);
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at_with(&place, few);
    entry = found(store, "blocks");
    assert_view(entry, &want);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* A snapshot every 100 batches: a start after a crash replays little more than that. */
static void snapshots_limit_what_is_replayed(void **state) {
    iron__store_options often = {.snapshot_batches = 100};
    uint32_t tokens[30] = {1, 2, 3};
    iron__store_plan plan = small_plan("shot");
    iron__store_counts counts;
    iron__store *store;
    iron__store_engine *entry;
    iron__store_engine_view view;
    pid_t child;
    int status;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        store = store_at_with(&place, often);
        entry = make_engine(store, &plan);
        for (size_t k = 0; k < 1000; k++)
            feed_done(entry, (feeding){.key = NULL}, tokens, sizeof tokens);
        iron__store_count(store, &counts, NULL);
        _exit(counts.snapshots >= 20 && counts.snapshots <= 30 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    store = store_at_with(&place, often);
    entry = found(store, "shot");
    view = look_at(entry);
    assert_true(view.feeds == 1000 && view.batches == 3000);
    assert_true(store->loading.batches > 0 && store->loading.batches <= 110);
    iron__store_engine_release(entry);
    iron__store_close(store);
    /* closed properly: there is nothing to replay */
    store = store_at_with(&place, often);
    entry = found(store, "shot");
    assert_true(store->loading.batches == 0 && look_at(entry).state == view.state);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* A serialized engine can be parsed, and is the same engine. */
static void states_are_serialized(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("state");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t tokens[77] = {5, 6, 7};
    unsigned char *bytes;
    size_t count;
    iron_engine *engine = NULL;
    iron_error err = {0};
    iron_report report;
    uint32_t *xors = grab(61 * 4);
    float *potentials = grab(61 * 4), *activations = grab(61 * 4);
    iron__store_engine_view view;

    (void)state;
    feed_done(entry, (feeding){.key = NULL}, tokens, sizeof tokens);
    assert_ok(iron__store_engine_serialize(entry, &bytes, &count, &err), &err);
    assert_ok(iron__state_parse("taken", bytes, count, NULL, &engine, &err), &err);
    report = report_now(engine);
    assert_view(entry, &report);
    iron__store_engine_get_view(entry, &view, &(iron__engine_nodes){xors, potentials, activations});
    assert_memory_equal(xors, iron_engine_xor_accumulators(engine), 61 * 4);
    assert_memory_equal(potentials, iron_engine_potentials(engine), 61 * 4);
    assert_memory_equal(activations, iron_engine_activations(engine), 61 * 4);
    iron_engine_destroy(engine);
    free(bytes);
    free(xors);
    free(potentials);
    free(activations);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

typedef struct feeder {
    pthread_t thread;
    iron__store_engine *entry[2];
    const uint32_t *tokens;
    uint64_t seed, fed[2], feeds[2];
} feeder;

static void *feed_on(void *context) {
    feeder *f = context;
    rng r = {f->seed};

    for (size_t k = 0; k < 60; k++) {
        size_t which = rng_below(&r, 2);
        size_t count = rng_below(&r, 8) ? rng_below(&r, 100) + 1 : 17000 + rng_below(&r, 9000);
        iron__feed_outcome outcome;
        iron__feed_answer answer;
        iron_error err = {0};

        outcome = feed_as(f->entry[which], (feeding){.is_chunked = k % 2, .piece = k % 3 * 5000},
                          f->tokens + rng_below(&r, 1000), 4 * count, &answer, &err);
        if (outcome == IRON_FEED_DONE) {
            f->fed[which] += count;
            f->feeds[which]++;
        } else if (outcome != IRON_FEED_POSITION)
            f->fed[0] = UINT64_MAX; /* seen below */
    }
    return NULL;
}

/* Eight threads, small and large bodies, two engines: the history equals some serial order of the
 * feeds, nothing is lost and nothing is counted twice. */
static void many_threads_make_one_history(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plans[2] = {small_plan("first"), small_plan("second")};
    uint32_t *tokens = grab_tokens(5, 1000, 30000);
    feeder crowd[8];
    iron__store_engine *entry[2];

    (void)state;
    plans[1].batch = 3;
    plans[1].positions = IRON_POSITIONS_BATCH;
    plans[1].nodes = 7;
    for (size_t k = 0; k < 2; k++)
        entry[k] = make_engine(store, &plans[k]);
    for (size_t k = 0; k < COUNT(crowd); k++) {
        crowd[k] = (feeder){.entry = {entry[0], entry[1]}, .tokens = tokens, .seed = k + 1};
        assert_int_equal(pthread_create(&crowd[k].thread, NULL, feed_on, &crowd[k]), 0);
    }
    for (size_t k = 0; k < COUNT(crowd); k++)
        pthread_join(crowd[k].thread, NULL);
    for (size_t e = 0; e < 2; e++) {
        uint64_t fed = 0, feeds = 0;

        for (size_t k = 0; k < COUNT(crowd); k++) {
            fed += crowd[k].fed[e];
            feeds += crowd[k].feeds[e];
        }
        assert_true(look_at(entry[e]).tokens == fed && look_at(entry[e]).feeds == feeds);
        assert_history(entry[e], &plans[e], 10000);
        iron__store_engine_release(entry[e]);
    }
    iron__store_close(store);
    store = store_at(&place);
    for (size_t e = 0; e < 2; e++) {
        entry[e] = found(store, plans[e].name);
        assert_history(entry[e], &plans[e], 10000);
        iron__store_engine_release(entry[e]);
    }
    iron__store_close(store);
    free(tokens);
}

/* Feeds without tokens leave a row for their key, but no batch. */
static void empty_feeds_count_for_snapshots(void **state) {
    iron__store *store = store_at_with(&place, (iron__store_options){.snapshot_batches = 5});
    iron__store_plan plan = small_plan("e");
    iron__store_engine *entry = make_engine(store, &plan);
    iron__store_counts counts = {.snapshots = 0};
    char key[20];

    (void)state;
    for (int k = 0; k < 11; k++) {
        snprintf(key, sizeof key, "key %d", k);
        feed_done(entry, (feeding){.key = key}, "", 0);
    }
    iron__store_count(store, &counts, NULL);
    assert_int_equal(counts.snapshots,
                     2); /* each is part of the next feed's transaction, or an earlier one */
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* A reader does not mistake removed rows of a deleted engine for damage. */
static void the_history_of_a_deleted_engine(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("e");
    iron__store_engine *entry = make_engine(store, &plan);
    iron__batch_row row;
    size_t count = 1;
    uint32_t token = 7;
    iron_error err = {0};

    (void)state;
    feed_done(entry, (feeding){.at = 0}, &token, sizeof token);
    assert_ok(iron__store_delete(store, entry, &err), &err);
    while (count == 1 &&
           iron__store_engine_batches(entry, 0, &row, 1, &count, NULL, &err) == IRON_OK)
        usleep(1000); /* the writer cleans up when it is idle */
    assert_int_equal(err.status, IRON_E_STATE);
    assert_int_equal(count, 0);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* Feeds of three batches and a snapshot every 100 batches. */
static void feed_many(iron__store_engine *entry, iron_engine *direct, size_t from, size_t count) {
    char key[32];

    for (size_t k = from; k < from + count; k++) {
        uint32_t tokens[30] = {(uint32_t)k, 2, 3};
        iron__feed_answer answer;
        iron_report want;

        snprintf(key, sizeof key, "key-%zu", k);
        answer = feed_done(entry, (feeding){.key = key}, tokens, sizeof tokens);
        want = direct_feed(direct, IRON_DTYPE_U32, tokens, 30);
        assert_answer(&answer, &want);
    }
}

/* Waits until feeds have been removed, and returns the first batch that is kept. All later ones are
 * there. */
static uint64_t first_kept(iron__store_engine *entry, uint64_t more_than) {
    uint64_t batches = look_at(entry).batches, first = 0;
    iron__batch_row *rows = grab(batches * sizeof *rows);
    iron_error err = {0};
    size_t count = 0;

    for (int k = 0; k < 60000 && first <= more_than; k++) {
        assert_ok(iron__store_engine_batches(entry, 0, rows, batches, &count, &first, &err), &err);
        usleep(1000);
    }
    assert_true(first > more_than && count == batches - first);
    for (size_t k = 0; k < count; k++)
        assert_true(rows[k].batch == first + k && rows[k].position == 10 * rows[k].batch);
    free(rows);
    return first;
}

/* --keep-batches: older feeds are removed, with their keys, and everything else is as it was. */
static void old_feeds_are_removed(void **state) {
    iron__store_options few = {.snapshot_batches = 100, .keep_batches = 200};
    iron__store *store = store_at_with(&place, few);
    iron__store_plan plan = small_plan("kept");
    iron_engine *direct = direct_engine(&plan);
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t tokens[30] = {999, 2, 3};
    iron_server_verified seen;
    iron__feed_answer answer;
    iron_error err = {0};
    iron_report want;
    uint64_t first;

    (void)state;
    feed_many(entry, direct, 0, 1000);
    first = first_kept(entry, 2400);
    assert_true(first <= 3000 - 200);
    /* the newest keys are known, the oldest are not */
    assert_int_equal(feed_as(entry, (feeding){.key = "key-999"}, tokens, 120, &answer, &err),
                     IRON_FEED_REPEATED);
    tokens[0] = 7;
    answer = feed_done(entry, (feeding){.key = "key-7"}, tokens, sizeof tokens);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 30);
    assert_answer(&answer, &want);
    iron__store_engine_release(entry);
    iron__store_close(store);
    assert_ok(iron_server_verify(place.path, &seen, &err), &err);
    assert_true(seen.removed > 800 && seen.feeds + seen.removed == 1001);
    /* without the option nothing more is removed */
    store = store_at(&place);
    entry = found(store, "kept");
    assert_view(entry, &want);
    feed_many(entry, direct, 1000, 200);
    want = report_now(direct);
    assert_view(entry, &want);
    assert_true(first_kept(entry, 0) >= first);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
}

/* Its blocks go with a large feed; a key that is not old enough keeps its feed. */
static void blocks_and_keys_of_old_feeds(void **state) {
    iron__store_options o = {
        .snapshot_batches = 100, .keep_batches = 1, .keep_keys_ms = 1000 * 1000};
    iron__store *store = store_at_with(&place, o);
    iron__store_plan plan = small_plan("blocks");
    uint32_t *tokens = grab_tokens(5, 1000, 100000);
    iron__store_engine *entry = make_engine(store, &plan);
    iron__feed_answer first = feed_done(entry, (feeding){.key = "large"}, tokens, 400000), again;
    iron_error err = {0};
    uint64_t blocks = 1;
    bool has_row;

    (void)state;
    for (size_t k = 0; k < 100; k++)
        feed_done(entry, (feeding){.key = NULL}, tokens, 120);
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at_with(&place, o);
    entry = found(store, "blocks");
    while (atomic_load(&store->is_cleaning))
        usleep(1000);
    assert_int_equal(feed_as(entry, (feeding){.key = "large"}, tokens, 400000, &again, &err),
                     IRON_FEED_REPEATED);
    assert_true(again.state == first.state);
    iron__store_engine_release(entry);
    iron__store_close(store);
    o.keep_keys_ms = 0;
    store = store_at_with(&place, o);
    entry = found(store, "blocks");
    (void)first_kept(entry, 10000);
    while (atomic_load(&store->is_cleaning))
        usleep(1000);
    assert_ok(iron__sql_number(store->reader, IRON_SQL_BLOCKS_NEXT_UPLOAD, IRON_WORDS(0), &has_row,
                               &blocks, "count", &err),
              &err);
    assert_false(has_row);
    feed_done(entry, (feeding){.key = "large"}, tokens, 400000); /* a new feed */
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

static void change_rows(const char *sql) {
    file_name path = name_in(&place, "iron.db");
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(path.path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Missing feeds without a snapshot after them are damage. */
static void missing_feeds_are_no_old_ones(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("gap");
    iron_engine *direct = direct_engine(&plan);
    iron__store_engine *entry = make_engine(store, &plan);
    iron_server_verified seen;
    iron_error err = {0};

    (void)state;
    feed_many(entry, direct, 0, 9);
    iron__store_engine_release(entry);
    iron__store_close(store);
    change_rows("DELETE FROM feeds WHERE number < 5; DELETE FROM snapshots");
    assert_int_equal(iron_server_verify(place.path, &seen, &err), IRON_E_MISMATCH);
    assert_says(&err, "no snapshot after it");
    change_rows("DELETE FROM feeds WHERE number = 7");
    assert_int_equal(iron_server_verify(place.path, &seen, &err), IRON_E_MISMATCH);
    assert_says(&err, "feed 7 is missing");
    iron_engine_destroy(direct);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(batches_are_read_back),
        IN_A_PLACE(blocks_hold_large_feeds),
        IN_A_PLACE(snapshots_limit_what_is_replayed),
        IN_A_PLACE(states_are_serialized),
        IN_A_PLACE(empty_feeds_count_for_snapshots),
        IN_A_PLACE(the_history_of_a_deleted_engine),
        IN_A_PLACE(many_threads_make_one_history),
        IN_A_PLACE(old_feeds_are_removed),
        IN_A_PLACE(blocks_and_keys_of_old_feeds),
        IN_A_PLACE(missing_feeds_are_no_old_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
