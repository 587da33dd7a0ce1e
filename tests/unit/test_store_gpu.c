/* SPDX-License-Identifier: MIT */
/*
 * test_store_gpu.c: engines of a store on a GPU: the same answers; and what happens when the device
 * fails or is not there: that feed is refused, nothing is lost, other engines go on, and the engine
 * goes on too as soon as it can be made anew.
 */
#include "gpu_support.h"
#include "place.h"
#include "store/inside.h"
#include "store_support.h"

#define LARGE_TOKENS ((size_t)40000)

static iron__plan gpu_plan(const char *name) {
    iron__plan plan = small_plan(name);

    plan.batch = 1000;
    snprintf(plan.backend, sizeof plan.backend, "%s", gpu_backend());
    snprintf(plan.mode, sizeof plan.mode, "champion");
    return plan;
}

static void feeds_equal_the_cpus(void **state) {
    static const size_t lengths[] = {1, 999, 1000, 2001, LARGE_TOKENS, 0, 5, LARGE_TOKENS + 1};
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS + 1);
    iron__plan plan = gpu_plan("device");
    iron_engine *direct = direct_engine(&plan);
    iron_report want = {0};
    iron__feed_answer answer;
    iron__store *store;
    iron__kept *kept;
    iron_error err = {0};

    (void)state;
    NEED_GPU();
    store = store_at_with(&place, (iron__store_options){.snapshot_batches = 20});
    kept = make_engine(store, &plan);
    assert_string_equal(look_at(kept).plan.backend, gpu_backend());
    for (size_t k = 0; k < COUNT(lengths); k++) {
        answer = feed_done(kept, (feeding){.key = k == 4 ? "large" : NULL, .piece = 50000}, tokens,
                           4 * lengths[k]);
        want = direct_feed(direct, IRON_DTYPE_U32, tokens, lengths[k]);
        assert_answer(&answer, &want);
        assert_view(kept, &want);
    }
    assert_int_equal(
        feed_as(kept, (feeding){.key = "large"}, tokens, 4 * LARGE_TOKENS, &answer, &err),
        IRON_FEED_REPEATED);
    iron__kept_release(kept);
    iron__store_close(store);
    store = store_at(&place);
    kept = found(store, "device");
    assert_string_equal(look_at(kept).plan.backend, gpu_backend());
    assert_view(kept, &want);
    iron__kept_release(kept);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* The writer is idle between two feeds: its engine may be broken from here. */
static void a_failing_device_costs_one_feed(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__plan plan = gpu_plan("broken"), other = small_plan("well");
    iron_engine *direct = direct_engine(&plan);
    iron__store *store;
    iron__kept *kept, *well;
    iron__feed_answer answer;
    iron_report want;
    iron_error err = {0};

    (void)state;
    NEED_GPU();
    store = store_at(&place);
    kept = make_engine(store, &plan);
    well = make_engine(store, &other);
    feed_done(kept, (feeding){.key = NULL}, tokens, 8000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 2000);
    kept->engine->failure = (iron_error){IRON_E_IO, -36, "the test broke the device"};
    assert_int_equal(feed_as(kept, (feeding){.key = NULL}, tokens, 4000, &answer, &err),
                     IRON_FEED_FAILED);
    assert_says(&err, "broke the device");
    assert_view(kept, &want);
    assert_int_equal(iron__store_failure(store, &err), IRON_OK);
    feed_done(well, (feeding){.key = NULL}, tokens, 4000);
    /* made anew from what was published */
    answer = feed_done(kept, (feeding){.has_at = true, .at = 2000}, tokens, 4000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1000);
    assert_answer(&answer, &want);
    /* a large body goes to a fork, and the broken engine is replaced by where that stands */
    kept->engine->failure = (iron_error){IRON_E_IO, -36, "the test broke the device"};
    answer = feed_done(kept, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, LARGE_TOKENS);
    assert_answer(&answer, &want);
    answer = feed_done(kept, (feeding){.key = NULL}, tokens, 4);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1);
    assert_answer(&answer, &want);
    iron__kept_release(kept);
    iron__kept_release(well);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* An engine on the CPU that was broken is made anew too, within a group as between two. */
static void a_broken_engine_is_made_anew(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, 2000);
    iron__plan plan = small_plan("again");
    iron__store *store = store_at(&place);
    iron__kept *kept = make_engine(store, &plan);
    iron_engine *direct = direct_engine(&plan);

    (void)state;
    for (size_t k = 1; k < 40; k++) {
        iron__feed_answer answer = feed_done(kept, (feeding){.key = NULL}, tokens, 4 * k);
        iron_report want = direct_feed(direct, IRON_DTYPE_U32, tokens, k);

        assert_answer(&answer, &want);
        if (k % 3 == 0)
            iron__kept_break(kept, &(iron_error){IRON_E_IO, 0, "broken by the test"});
    }
    iron__kept_release(kept);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* A store that was written on a machine with a device, opened on one without: its engine is there
 * to be looked at, is not fed, and says why. */
static void an_absent_device_keeps_nobody_else(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__plan plan = small_plan("elsewhere"), other = small_plan("here");
    iron__store *store = store_at(&place);
    iron__kept *kept = make_engine(store, &plan), *here = make_engine(store, &other);
    iron__kept_view before;
    iron__feed_answer answer;
    unsigned char *bytes = NULL;
    size_t count;
    iron_error err = {0};

    (void)state;
    feed_done(kept, (feeding){.key = "k"}, tokens, 400);
    before = look_at(kept);
    snprintf(kept->plan.backend, sizeof kept->plan.backend, "cuda"); /* as if it had been there */
    snprintf(kept->in_force.backend, sizeof kept->in_force.backend, "cuda");
    iron__kept_break(kept, &(iron_error){IRON_E_UNSUPPORTED, 0, "cuda: there is no driver"});
    for (size_t body = 4; body <= 4 * LARGE_TOKENS; body += 4 * LARGE_TOKENS - 4) {
        assert_int_equal(feed_as(kept, (feeding){.key = NULL}, tokens, body, &answer, &err),
                         IRON_FEED_FAILED);
        assert_true(err.status == IRON_E_UNSUPPORTED && err.text[0] != '\0');
    }
    assert_true(look_at(kept).state == before.state && look_at(kept).feeds == 1);
    /* what needs no device is answered */
    assert_int_equal(feed_as(kept, (feeding){.key = "k"}, tokens, 400, &answer, &err),
                     IRON_FEED_REPEATED);
    assert_ok(iron__kept_state(kept, &bytes, &count, &err), &err);
    free(bytes);
    feed_done(here, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
    iron__kept_release(kept);
    iron__kept_release(here);
    iron__store_close(store);
    free(tokens);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(feeds_equal_the_cpus),
        IN_A_PLACE(a_failing_device_costs_one_feed),
        IN_A_PLACE(a_broken_engine_is_made_anew),
        IN_A_PLACE(an_absent_device_keeps_nobody_else),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
