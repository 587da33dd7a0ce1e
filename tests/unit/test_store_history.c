/* SPDX-License-Identifier: MIT */
/*
 * test_store_history.c: the history of an engine read back batch by batch; blocks of large feeds;
 * snapshots, and that they limit what is replayed; many threads against a serial replay of what was
 * written.
 */
#include "engine/state_file.h"
#include "place.h"
#include "store/inside.h"
#include "store_support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* All batches, read in portions of `portion`; free() them. */
static iron__batch_row *history_of(iron__kept *kept, size_t portion, size_t *count) {
    uint64_t batches = look_at(kept).batches;
    iron__batch_row *rows = grab(batches * sizeof *rows);
    iron_error err = {0};

    for (*count = 0; *count < batches;) {
        size_t got, room = batches - *count < portion ? batches - *count : portion;

        assert_ok(iron__kept_batches(kept, *count, rows + *count, room, &got, &err), &err);
        assert_int_equal(got, room);
        *count += got;
    }
    return rows;
}

/* The history, replayed one by one on a fresh engine, gives what is published. */
static void assert_history(iron__kept *kept, const iron__plan *plan, size_t portion) {
    size_t count;
    iron__batch_row *rows = history_of(kept, portion, &count);
    iron_engine *engine = direct_engine(plan);
    iron__kept_view view = look_at(kept);
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
    iron__plan plan = small_plan("read");
    iron__kept *kept = make_engine(store, &plan);
    uint32_t *tokens = grab_tokens(5, 1000, 300000);
    iron__batch_row row;
    iron_error err = {0};
    size_t count;

    (void)state;
    assert_ok(iron__kept_batches(kept, 0, &row, 1, &count, &err), &err);
    assert_int_equal(count, 0);
    for (size_t k = 0; k < 40; k++) {
        feed_done(kept, (feeding){.key = NULL}, tokens, 4 * (1 + 7 * k % 50));
        if (k % 5 == 0) {
            char key[20];

            snprintf(key, sizeof key, "nothing-%zu", k);
            feed_done(kept, (feeding){.key = key}, tokens, 0);
        }
        if (k % 13 == 0)
            feed_done(kept, (feeding){.piece = 70000}, tokens, 4 * 200000);
    }
    assert_history(kept, &plan, 1000);
    assert_history(kept, &plan, 4097);
    assert_ok(iron__kept_batches(kept, look_at(kept).batches, &row, 1, &count, &err), &err);
    assert_int_equal(count, 0);
    assert_ok(iron__kept_batches(kept, UINT64_MAX, &row, 1, &count, &err), &err);
    assert_int_equal(count, 0);
    /* from anywhere */
    for (uint64_t since = 0; since < look_at(kept).batches; since += 777) {
        assert_ok(iron__kept_batches(kept, since, &row, 1, &count, &err), &err);
        assert_true(count == 1 && row.batch == since);
    }
    iron__kept_release(kept);
    iron__store_close(store);
    store = store_at(&place);
    kept = found(store, "read");
    assert_history(kept, &plan, 5000);
    iron__kept_release(kept);
    iron__store_close(store);
    free(tokens);
}

/* One token a batch: every 4096 tokens are a block. Lengths around whole blocks. */
static void blocks_hold_large_feeds(void **state) {
    static const size_t lengths[] = {16385, 4 * 4096 + 4095, 5 * 4096, 5 * 4096 + 1, 100000};
    iron__store_options few = {.snapshot_batches = 1u << 30};
    iron__store *store = store_at_with(&place, few);
    iron__plan plan = small_plan("blocks");
    iron_engine *direct;
    uint32_t *tokens = grab_tokens(5, 1000, 100100);
    iron_report want = {0};
    iron__kept *kept;

    (void)state;
    plan.batch = 1;
    direct = direct_engine(&plan);
    kept = make_engine(store, &plan);
    for (size_t k = 0; k < COUNT(lengths); k++) {
        iron__feed_answer answer = feed_done(kept, (feeding){.piece = 33333, .is_chunked = k % 2},
                                             tokens + k, 4 * lengths[k]);

        want = direct_feed(direct, IRON_DTYPE_U32, tokens + k, lengths[k]);
        assert_answer(&answer, &want);
    }
    assert_history(kept, &plan, 3000);
    iron__kept_release(kept);
    iron__store_close(store);
    store = store_at_with(&place, few);
    kept = found(store, "blocks");
    assert_view(kept, &want);
    iron__kept_release(kept);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* Every 100 batches a snapshot: a start after a crash replays little more than that. */
static void snapshots_limit_what_is_replayed(void **state) {
    iron__store_options often = {.snapshot_batches = 100};
    uint32_t tokens[30] = {1, 2, 3};
    iron__plan plan = small_plan("shot");
    iron__store_counts counts;
    iron__store *store;
    iron__kept *kept;
    iron__kept_view view;
    pid_t child;
    int status;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        store = store_at_with(&place, often);
        kept = make_engine(store, &plan);
        for (size_t k = 0; k < 1000; k++)
            feed_done(kept, (feeding){.key = NULL}, tokens, sizeof tokens);
        iron__store_count(store, &counts);
        _exit(counts.snapshots >= 20 && counts.snapshots <= 30 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    store = store_at_with(&place, often);
    kept = found(store, "shot");
    view = look_at(kept);
    assert_true(view.feeds == 1000 && view.batches == 3000);
    assert_true(store->replayed > 0 && store->replayed <= 110);
    iron__kept_release(kept);
    iron__store_close(store);
    /* closed in order: there is nothing to replay */
    store = store_at_with(&place, often);
    kept = found(store, "shot");
    assert_true(store->replayed == 0 && look_at(kept).state == view.state);
    iron__kept_release(kept);
    iron__store_close(store);
}

/* What is given out as a saved state can be loaded, and is the engine. */
static void states_can_be_taken_away(void **state) {
    iron__store *store = store_at(&place);
    iron__plan plan = small_plan("state");
    iron__kept *kept = make_engine(store, &plan);
    uint32_t tokens[77] = {5, 6, 7};
    unsigned char *bytes;
    size_t count;
    iron_engine *engine = NULL;
    iron_error err = {0};
    iron_report report;
    uint32_t *xors = grab(61 * 4);
    float *potentials = grab(61 * 4), *activations = grab(61 * 4);
    iron__kept_view view;

    (void)state;
    feed_done(kept, (feeding){.key = NULL}, tokens, sizeof tokens);
    assert_ok(iron__kept_state(kept, &bytes, &count, &err), &err);
    assert_ok(iron__state_parse("taken", bytes, count, NULL, &engine, &err), &err);
    report = report_now(engine);
    assert_view(kept, &report);
    iron__kept_nodes(kept, &view, xors, potentials, activations);
    assert_memory_equal(xors, iron_engine_xor_accumulators(engine), 61 * 4);
    assert_memory_equal(potentials, iron_engine_potentials(engine), 61 * 4);
    assert_memory_equal(activations, iron_engine_activations(engine), 61 * 4);
    iron_engine_destroy(engine);
    free(bytes);
    free(xors);
    free(potentials);
    free(activations);
    iron__kept_release(kept);
    iron__store_close(store);
}

typedef struct feeder {
    pthread_t thread;
    iron__kept *kept[2];
    const uint32_t *tokens;
    uint64_t seed, fed[2], feeds[2];
} feeder;

static void *feed_on(void *context) {
    feeder *f = context;
    dice d = {f->seed};

    for (size_t k = 0; k < 60; k++) {
        size_t which = roll_below(&d, 2);
        size_t count = roll_below(&d, 8) ? roll_below(&d, 100) + 1 : 17000 + roll_below(&d, 9000);
        iron__feed_outcome outcome;
        iron__feed_answer answer;
        iron_error err = {0};

        outcome = feed_as(f->kept[which], (feeding){.is_chunked = k % 2, .piece = k % 3 * 5000},
                          f->tokens + roll_below(&d, 1000), 4 * count, &answer, &err);
        if (outcome == IRON_FEED_DONE) {
            f->fed[which] += count;
            f->feeds[which]++;
        } else if (outcome != IRON_FEED_POSITION)
            f->fed[0] = UINT64_MAX; /* seen below */
    }
    return NULL;
}

/* Eight threads, small and large bodies, two engines: the history is one that a serial feeding
 * could have had, nothing is lost and nothing counted twice. */
static void many_threads_make_one_history(void **state) {
    iron__store *store = store_at(&place);
    iron__plan plans[2] = {small_plan("first"), small_plan("second")};
    uint32_t *tokens = grab_tokens(5, 1000, 30000);
    feeder crowd[8];
    iron__kept *kept[2];

    (void)state;
    plans[1].batch = 3;
    plans[1].positions = IRON_POSITIONS_BATCH;
    plans[1].nodes = 7;
    for (size_t k = 0; k < 2; k++)
        kept[k] = make_engine(store, &plans[k]);
    for (size_t k = 0; k < COUNT(crowd); k++) {
        crowd[k] = (feeder){.kept = {kept[0], kept[1]}, .tokens = tokens, .seed = k + 1};
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
        assert_true(look_at(kept[e]).tokens == fed && look_at(kept[e]).feeds == feeds);
        assert_history(kept[e], &plans[e], 10000);
        iron__kept_release(kept[e]);
    }
    iron__store_close(store);
    store = store_at(&place);
    for (size_t e = 0; e < 2; e++) {
        kept[e] = found(store, plans[e].name);
        assert_history(kept[e], &plans[e], 10000);
        iron__kept_release(kept[e]);
    }
    iron__store_close(store);
    free(tokens);
}

/* Feeds without tokens leave a row for their key, and no batch. */
static void empty_feeds_come_to_a_snapshot(void **state) {
    iron__store *store = store_at_with(&place, (iron__store_options){.snapshot_batches = 5});
    iron__plan plan = small_plan("e");
    iron__kept *kept = make_engine(store, &plan);
    iron__store_counts counts = {.snapshots = 0};
    char key[20];

    (void)state;
    for (int k = 0; k < 11; k++) {
        snprintf(key, sizeof key, "key %d", k);
        feed_done(kept, (feeding){.key = key}, "", 0);
    }
    iron__store_count(store, &counts);
    assert_int_equal(counts.snapshots,
                     2); /* each is part of the next feed's transaction, or before */
    iron__kept_release(kept);
    iron__store_close(store);
}

/* Rows that were swept up are not taken for lost ones by somebody who still reads. */
static void history_of_a_deleted_engine(void **state) {
    iron__store *store = store_at(&place);
    iron__plan plan = small_plan("e");
    iron__kept *kept = make_engine(store, &plan);
    iron__batch_row row;
    size_t count = 1;
    uint32_t token = 7;
    iron_error err = {0};

    (void)state;
    feed_done(kept, (feeding){.at = 0}, &token, sizeof token);
    assert_ok(iron__store_delete(store, kept, &err), &err);
    while (count == 1 && iron__kept_batches(kept, 0, &row, 1, &count, &err) == IRON_OK)
        usleep(1000); /* the sweep comes when the writer idles */
    assert_int_equal(err.status, IRON_E_STATE);
    assert_int_equal(count, 0);
    iron__kept_release(kept);
    iron__store_close(store);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(batches_are_read_back),
        IN_A_PLACE(blocks_hold_large_feeds),
        IN_A_PLACE(snapshots_limit_what_is_replayed),
        IN_A_PLACE(states_can_be_taken_away),
        IN_A_PLACE(empty_feeds_come_to_a_snapshot),
        IN_A_PLACE(history_of_a_deleted_engine),
        IN_A_PLACE(many_threads_make_one_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
