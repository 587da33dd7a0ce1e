/* SPDX-License-Identifier: MIT */
/*
 * test_store_changes.c: the rate counter, with a clock of the test; change notifications; tokens
 * that are being received; and the stamps that show which engines have changed.
 */
#include "store/engines.c"

#include "place.h"
#include "store_support.h"

#include <sched.h>

#define MS    UINT64_C(1000000)
#define START (UINT64_C(123456) * RATE_INTERVAL_NS)

static void an_empty_counter_has_rate_0(void **state) {
    iron__rate_counter rate_counter = {0};

    (void)state;
    assert_true(rate_counter_rate(&rate_counter, 0) == 0);
    assert_true(rate_counter_rate(&rate_counter, START) == 0);
    assert_false(rate_counter_add(&rate_counter, START, 0));
    assert_true(rate_counter_rate(&rate_counter, START) == 0);
}

static void tokens_count_for_two_seconds(void **state) {
    iron__rate_counter rate_counter = {0};

    (void)state;
    assert_true(rate_counter_add(&rate_counter, START, 1000));
    assert_true(rate_counter_rate(&rate_counter, START) == 500);
    assert_true(rate_counter_rate(&rate_counter, START + 1999 * MS) == 500);
    assert_true(rate_counter_rate(&rate_counter, START + 2125 * MS) == 250);
    assert_true(rate_counter_rate(&rate_counter, START + 2250 * MS) == 0);
    assert_true(rate_counter_rate(&rate_counter, START + 4000 * MS) == 0); /* its slot again */
    assert_true(rate_counter_rate(&rate_counter, START + 8000 * MS) == 0);
}

static void the_first_of_an_interval_is_reported(void **state) {
    iron__rate_counter rate_counter = {0};

    (void)state;
    assert_true(rate_counter_add(&rate_counter, START, 1));
    assert_false(rate_counter_add(&rate_counter, START + 100 * MS, 1));
    assert_false(rate_counter_add(&rate_counter, START + 249 * MS, 1));
    assert_true(rate_counter_add(&rate_counter, START + 250 * MS, 1));
    assert_true(
        rate_counter_add(&rate_counter, START + 4000 * MS, 1)); /* its slot, one round later */
    assert_true(rate_counter_rate(&rate_counter, START + 4000 * MS) == 0.5);
}

static void an_even_stream_has_an_even_rate(void **state) {
    iron__rate_counter rate_counter = {0};

    (void)state;
    for (uint64_t k = 0; k < 10000; k++)
        (void)rate_counter_add(&rate_counter, START + k * MS, 3);
    assert_true(rate_counter_rate(&rate_counter, START + 9999 * MS) >= 2990);
    assert_true(rate_counter_rate(&rate_counter, START + 9999 * MS) <= 3010);
}

static void a_count_saturates(void **state) {
    iron__rate_counter rate_counter = {0};

    (void)state;
    (void)rate_counter_add(&rate_counter, START, UINT64_MAX);
    (void)rate_counter_add(&rate_counter, START, UINT64_MAX);
    assert_true(rate_counter_rate(&rate_counter, START) == (double)((UINT64_C(1) << 40) - 1) / 2);
    assert_true(rate_counter_rate(&rate_counter, START + 3000 * MS) == 0);
}

#define ADDERS 4u
#define ADDED  20000u

static void *add_often(void *rate_counter) {
    for (uint32_t k = 0; k < ADDED; k++)
        (void)rate_counter_add(rate_counter, START + k % 2 * RATE_INTERVAL_NS, 2);
    return NULL;
}

static void threads_count_concurrently(void **state) {
    pthread_t threads[ADDERS];
    iron__rate_counter rate_counter = {0};

    (void)state;
    for (size_t k = 0; k < ADDERS; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, add_often, &rate_counter), 0);
    for (size_t k = 0; k < ADDERS; k++)
        pthread_join(threads[k], NULL);
    assert_true(rate_counter_rate(&rate_counter, START + RATE_INTERVAL_NS) == ADDERS * ADDED);
}

static void known_changes_are_not_waited_for(void **state) {
    iron__store *store;

    (void)state;
    store = store_at(&place);
    assert_int_equal(iron__store_wait(store, 0, 0), 0);
    assert_int_equal(iron__store_wait(store, 0, 1), 0);
    iron__store_notify(store);
    iron__store_notify(store);
    assert_int_equal(iron__store_wait(store, 0, UINT32_MAX), 2);
    assert_int_equal(iron__store_wait(store, 1, UINT32_MAX), 2);
    iron__store_stop(store);
    assert_int_equal(iron__store_wait(store, 2, UINT32_MAX), 2);
    iron__store_close(store);
}

#define CHANGES 2000u

static void *see_all(void *context) {
    iron__store *store = context;
    uint64_t seen = 0;

    while (seen < CHANGES)
        seen = iron__store_wait(store, seen, UINT32_MAX); /* a missed one would block for weeks */
    return NULL;
}

static void no_change_is_missed(void **state) {
    pthread_t readers[ADDERS];
    iron__store *store;

    (void)state;
    store = store_at(&place);
    for (size_t k = 0; k < ADDERS; k++)
        assert_int_equal(pthread_create(&readers[k], NULL, see_all, store), 0);
    for (uint32_t k = 0; k < CHANGES; k++) {
        iron__store_notify(store);
        if (k % 16 == 0)
            sched_yield();
    }
    for (size_t k = 0; k < ADDERS; k++)
        pthread_join(readers[k], NULL);
    iron__store_close(store);
}

static void *wait_for_the_end(void *context) {
    (void)iron__store_wait(context, 0, UINT32_MAX);
    return NULL;
}

static void stopping_wakes(void **state) {
    iron__store *store;
    pthread_t reader;

    (void)state;
    store = store_at(&place);
    assert_int_equal(pthread_create(&reader, NULL, wait_for_the_end, store), 0);
    iron__store_stop(store);
    pthread_join(reader, NULL);
    iron__store_close(store);
}

#define LARGE ((size_t)300000) /* one-byte tokens */

static iron__feed *begin(iron__store_engine *entry, uint64_t expected, const char *key) {
    iron__feed_request request = {.dtype = IRON_DTYPE_U8, .expected_bytes = expected, .key = key};
    iron__feed_answer answer;
    iron__feed *feed = NULL;
    iron_error err = {0};

    assert_int_equal(iron__feed_begin(entry, &request, &feed, &answer, &err), IRON_FEED_DONE);
    return feed;
}

static void take(iron__feed *feed, size_t bytes) {
    unsigned char *body = grab(bytes);
    iron__feed_answer answer;
    iron_error err = {0};

    memset(body, 7, bytes);
    assert_int_equal(iron__feed_take(feed, body, bytes, &answer, &err), IRON_FEED_DONE);
    free(body);
}

static void end(iron__feed *feed) {
    iron__feed_answer answer;
    iron_error err = {0};

    assert_int_equal(iron__feed_end(feed, &answer, &err), IRON_FEED_DONE);
}

static void assert_tokens(iron__store_engine *entry, uint64_t incoming, uint64_t tokens) {
    iron__store_engine_view view;

    iron__store_engine_get_view(entry, &view, NULL);
    assert_int_equal(view.incoming, incoming);
    assert_int_equal(view.tokens, tokens);
}

static void large_bodies_are_incoming(void **state) {
    iron__store_plan plan = small_plan("e");
    iron__store *store;
    iron__store_engine *entry;
    iron__feed *one, *other;

    (void)state;
    store = store_at(&place);
    entry = make_engine(store, &plan);
    assert_tokens(entry, 0, 0);
    one = begin(entry, LARGE, NULL);
    other = begin(entry, LARGE, NULL);
    take(one, 100001);
    assert_tokens(entry, 100001, 0);
    take(other, 5);
    assert_tokens(entry, 100006, 0);
    iron__feed_abandon(other);
    assert_tokens(entry, 100001, 0);
    take(one, LARGE - 100001);
    assert_tokens(entry, LARGE, 0);
    end(one);
    assert_tokens(entry, 0, LARGE);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* A body of unknown length is small until it exceeds the limit. */
static void small_bodies_are_not_incoming(void **state) {
    iron__store_plan plan = small_plan("e");
    iron__store *store;
    iron__store_engine *entry;
    iron__feed *feed;

    (void)state;
    store = store_at(&place);
    entry = make_engine(store, &plan);
    feed = begin(entry, UINT64_MAX, NULL);
    take(feed, 1000);
    assert_tokens(entry, 0, 0);
    take(feed, IRON_SMALL_BODY);
    assert_tokens(entry, IRON_SMALL_BODY + 1000, 0);
    iron__feed_abandon(feed);
    feed = begin(entry, 10, NULL);
    take(feed, 10);
    end(feed);
    assert_tokens(entry, 0, 10);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

static void repeats_are_not_incoming(void **state) {
    iron__store_plan plan = small_plan("e");
    iron__store *store;
    iron__store_engine *entry;
    iron__feed *feed;

    (void)state;
    store = store_at(&place);
    entry = make_engine(store, &plan);
    feed = begin(entry, LARGE, "key");
    take(feed, LARGE);
    end(feed);
    feed = begin(entry, LARGE, "key");
    take(feed, LARGE - 1);
    assert_tokens(entry, 0, LARGE);
    iron__feed_abandon(feed);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* Another feed commits first: the body is refused at its end, and no longer incoming. */
static void overtaken_bodies_are_dropped(void **state) {
    iron__store_plan plan = small_plan("e");
    iron__feed_answer answer;
    iron_error err = {0};
    iron__store *store;
    iron__store_engine *entry;
    iron__feed *slow, *fast;

    (void)state;
    store = store_at(&place);
    entry = make_engine(store, &plan);
    slow = begin(entry, LARGE, NULL);
    take(slow, LARGE);
    fast = begin(entry, 3, NULL);
    take(fast, 3);
    end(fast);
    assert_tokens(entry, LARGE, 3);
    assert_int_equal(iron__feed_end(slow, &answer, &err), IRON_FEED_POSITION);
    assert_tokens(entry, 0, 3);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

static void the_rate_counts_received_tokens(void **state) {
    iron__store_plan plan = small_plan("e");
    iron__store_engine_view view;
    iron__store *store;
    iron__store_engine *entry;
    iron__feed *feed;

    (void)state;
    store = store_at(&place);
    entry = make_engine(store, &plan);
    iron__store_engine_get_view(entry, &view, NULL);
    assert_true(view.rate == 0);
    feed = begin(entry, LARGE, NULL);
    take(feed, LARGE);
    end(feed);
    iron__store_engine_get_view(entry, &view, NULL);
    /* counted once, when it was received; by now some or all of it may be too old */
    assert_true(view.rate >= 0 && view.rate <= (double)LARGE / 2);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

static iron__engine_stamp stamp_of(iron__store *store, const char *name) {
    iron__engine_stamp all[8];
    size_t count = iron__store_stamps(store, all, 8);

    for (size_t k = 0; k < count; k++)
        if (strcmp(all[k].name, name) == 0)
            return all[k];
    fail_msg("%s is not in the list", name);
    return all[0];
}

static void stamps_tell_which_engines_changed(void **state) {
    iron__store_plan a = small_plan("a"), b = small_plan("b");
    iron__store *store;
    iron__store_engine *entry, *still;
    iron__engine_stamp before, after, quiet;
    iron__feed *feed;
    uint64_t seen;
    iron_error err = {0};

    (void)state;
    store = store_at(&place);
    assert_int_equal(iron__store_stamps(store, NULL, 0), 0);
    entry = make_engine(store, &a);
    still = make_engine(store, &b);
    before = stamp_of(store, "a");
    quiet = stamp_of(store, "b");
    seen = iron__store_wait(store, UINT64_MAX, 0);
    feed = begin(entry, LARGE, NULL);
    take(feed, 10);
    assert_true(iron__store_wait(store, seen, 0) > seen);
    after = stamp_of(store, "a");
    assert_true(after.changes > before.changes && after.id == before.id);
    take(feed, LARGE - 10);
    end(feed);
    assert_true(stamp_of(store, "a").changes > after.changes);
    assert_int_equal(stamp_of(store, "b").changes, quiet.changes);
    seen = iron__store_wait(store, seen, 0);
    assert_ok(iron__store_delete(store, entry, &err), &err);
    assert_true(iron__store_wait(store, seen, 0) > seen);
    assert_int_equal(iron__store_stamps(store, NULL, 0), 1);
    iron__store_engine_release(entry);
    entry = make_engine(store, &a);
    assert_true(stamp_of(store, "a").id != before.id);
    iron__store_engine_release(entry);
    iron__store_engine_release(still);
    iron__store_stop(store);
    (void)iron__store_wait(store, iron__store_wait(store, 0, 0), UINT32_MAX);
    iron__store_close(store);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_counter_has_rate_0),
        cmocka_unit_test(tokens_count_for_two_seconds),
        cmocka_unit_test(the_first_of_an_interval_is_reported),
        cmocka_unit_test(an_even_stream_has_an_even_rate),
        cmocka_unit_test(a_count_saturates),
        cmocka_unit_test(threads_count_concurrently),
        IN_A_PLACE(known_changes_are_not_waited_for),
        IN_A_PLACE(no_change_is_missed),
        IN_A_PLACE(stopping_wakes),
        IN_A_PLACE(large_bodies_are_incoming),
        IN_A_PLACE(small_bodies_are_not_incoming),
        IN_A_PLACE(repeats_are_not_incoming),
        IN_A_PLACE(overtaken_bodies_are_dropped),
        IN_A_PLACE(the_rate_counts_received_tokens),
        IN_A_PLACE(stamps_tell_which_engines_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
