/* SPDX-License-Identifier: MIT */
/*
 * test_store_incoming.c: what is on its way to an engine, and what a glance tells of a store.
 */
#include "store_support.h"

#define LARGE ((size_t)300000) /* tokens of one byte */

static iron__feed *begin(iron__kept *kept, uint64_t expected, const char *key) {
    iron__feed_request request = {.dtype = IRON_DTYPE_U8, .expected_bytes = expected, .key = key};
    iron__feed_answer answer;
    iron__feed *feed = NULL;
    iron_error err = {0};

    assert_int_equal(iron__feed_begin(kept, &request, &feed, &answer, &err), IRON_FEED_DONE);
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

static void stands(iron__kept *kept, uint64_t incoming, uint64_t tokens) {
    iron__kept_view view;

    iron__kept_look(kept, &view);
    assert_int_equal(view.incoming, incoming);
    assert_int_equal(view.tokens, tokens);
}

static void large_bodies_are_on_their_way(void **state) {
    folder place;
    iron__plan plan = small_plan("e");
    iron__store *store;
    iron__kept *kept;
    iron__feed *one, *other;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    stands(kept, 0, 0);
    one = begin(kept, LARGE, NULL);
    other = begin(kept, LARGE, NULL);
    take(one, 100001);
    stands(kept, 100001, 0);
    take(other, 5);
    stands(kept, 100006, 0);
    iron__feed_abandon(other);
    stands(kept, 100001, 0);
    take(one, LARGE - 100001);
    stands(kept, LARGE, 0);
    end(one);
    stands(kept, 0, LARGE);
    iron__kept_release(kept);
    iron__store_close(store);
    folder_remove(&place);
}

/* A body whose length nobody said is small until it is not. */
static void small_ones_are_not(void **state) {
    folder place;
    iron__plan plan = small_plan("e");
    iron__store *store;
    iron__kept *kept;
    iron__feed *feed;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    feed = begin(kept, UINT64_MAX, NULL);
    take(feed, 1000);
    stands(kept, 0, 0);
    take(feed, IRON_SMALL_BODY);
    stands(kept, IRON_SMALL_BODY + 1000, 0);
    iron__feed_abandon(feed);
    feed = begin(kept, 10, NULL);
    take(feed, 10);
    end(feed);
    stands(kept, 0, 10);
    iron__kept_release(kept);
    iron__store_close(store);
    folder_remove(&place);
}

static void repeats_are_not(void **state) {
    folder place;
    iron__plan plan = small_plan("e");
    iron__store *store;
    iron__kept *kept;
    iron__feed *feed;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    feed = begin(kept, LARGE, "key");
    take(feed, LARGE);
    end(feed);
    feed = begin(kept, LARGE, "key");
    take(feed, LARGE - 1);
    stands(kept, 0, LARGE);
    iron__feed_abandon(feed);
    iron__kept_release(kept);
    iron__store_close(store);
    folder_remove(&place);
}

/* Refused at its end since another was faster: what had come is gone. */
static void overtaken_ones_are_forgotten(void **state) {
    folder place;
    iron__plan plan = small_plan("e");
    iron__feed_answer answer;
    iron_error err = {0};
    iron__store *store;
    iron__kept *kept;
    iron__feed *slow, *fast;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    slow = begin(kept, LARGE, NULL);
    take(slow, LARGE);
    fast = begin(kept, 3, NULL);
    take(fast, 3);
    end(fast);
    stands(kept, LARGE, 3);
    assert_int_equal(iron__feed_end(slow, &answer, &err), IRON_FEED_POSITION);
    stands(kept, 0, 3);
    iron__kept_release(kept);
    iron__store_close(store);
    folder_remove(&place);
}

static void a_rate_is_that_of_what_came(void **state) {
    folder place;
    iron__plan plan = small_plan("e");
    iron__kept_view view;
    iron__store *store;
    iron__kept *kept;
    iron__feed *feed;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    iron__kept_look(kept, &view);
    assert_true(view.rate == 0);
    feed = begin(kept, LARGE, NULL);
    take(feed, LARGE);
    end(feed);
    iron__kept_look(kept, &view);
    /* counted once, when it came; by now some of it, or all, may be past */
    assert_true(view.rate >= 0 && view.rate <= (double)LARGE / 2);
    iron__kept_release(kept);
    iron__store_close(store);
    folder_remove(&place);
}

static iron__glimpse glimpse(iron__store *store, const char *name) {
    iron__glimpse all[8];
    size_t count = iron__store_glance(store, all, 8);

    for (size_t k = 0; k < count; k++)
        if (strcmp(all[k].name, name) == 0)
            return all[k];
    fail_msg("%s is not in the list", name);
    return all[0];
}

static void a_glance_tells_who_has_news(void **state) {
    iron__plan a = small_plan("a"), b = small_plan("b");
    folder place;
    iron__store *store;
    iron__kept *kept, *still;
    iron__glimpse before, after, quiet;
    iron__feed *feed;
    uint64_t seen;
    iron_error err = {0};

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    assert_int_equal(iron__store_glance(store, NULL, 0), 0);
    kept = make_engine(store, &a);
    still = make_engine(store, &b);
    before = glimpse(store, "a");
    quiet = glimpse(store, "b");
    seen = iron__store_wait(store, UINT64_MAX, 0);
    feed = begin(kept, LARGE, NULL);
    take(feed, 10);
    assert_true(iron__store_wait(store, seen, 0) > seen);
    after = glimpse(store, "a");
    assert_true(after.news > before.news && after.id == before.id);
    take(feed, LARGE - 10);
    end(feed);
    assert_true(glimpse(store, "a").news > after.news);
    assert_int_equal(glimpse(store, "b").news, quiet.news);
    seen = iron__store_wait(store, seen, 0);
    assert_ok(iron__store_delete(store, kept, &err), &err);
    assert_true(iron__store_wait(store, seen, 0) > seen);
    assert_int_equal(iron__store_glance(store, NULL, 0), 1);
    iron__kept_release(kept);
    kept = make_engine(store, &a);
    assert_true(glimpse(store, "a").id != before.id);
    iron__kept_release(kept);
    iron__kept_release(still);
    iron__store_stop(store);
    (void)iron__store_wait(store, iron__store_wait(store, 0, 0), UINT32_MAX);
    iron__store_close(store);
    folder_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_bodies_are_on_their_way),
        cmocka_unit_test(small_ones_are_not),
        cmocka_unit_test(repeats_are_not),
        cmocka_unit_test(overtaken_ones_are_forgotten),
        cmocka_unit_test(a_rate_is_that_of_what_came),
        cmocka_unit_test(a_glance_tells_who_has_news),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
