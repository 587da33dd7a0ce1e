/* SPDX-License-Identifier: MIT */
/*
 * test_store_gpu.c: engines of a store on a GPU: the same results; when the device fails or is
 * missing, that feed is refused, nothing is lost, other engines continue, and so does this one once
 * it can be created again.
 */
#include "gpu_support.h"
#include "place.h"
#include "store/engines.c"
#include "store_support.h"

#include <limits.h>

#define LARGE_TOKENS ((size_t)40000)

static iron__store_plan gpu_plan(const char *name) {
    iron__store_plan plan = small_plan(name);

    plan.batch = 1000;
    snprintf(plan.backend, sizeof plan.backend, "%s", gpu_backend());
    snprintf(plan.mode, sizeof plan.mode, "champion");
    return plan;
}

static void feeds_equal_those_on_the_cpu(void **state) {
    static const size_t lengths[] = {1, 999, 1000, 2001, LARGE_TOKENS, 0, 5, LARGE_TOKENS + 1};
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS + 1);
    iron__store_plan plan = gpu_plan("device");
    iron_engine *direct = direct_engine(&plan);
    iron_report want = {0};
    iron__feed_answer answer;
    iron__store *store;
    iron__store_engine *entry;
    iron_error err = {0};

    (void)state;
    NEED_GPU();
    store = store_at_with(&place, (iron__store_options){.snapshot_batches = 20});
    entry = make_engine(store, &plan);
    assert_string_equal(look_at(entry).plan.backend, gpu_backend());
    for (size_t k = 0; k < COUNT(lengths); k++) {
        answer = feed_done(entry, (feeding){.key = k == 4 ? "large" : NULL, .piece = 50000}, tokens,
                           4 * lengths[k]);
        want = direct_feed(direct, IRON_DTYPE_U32, tokens, lengths[k]);
        assert_answer(&answer, &want);
        assert_view(entry, &want);
    }
    assert_int_equal(
        feed_as(entry, (feeding){.key = "large"}, tokens, 4 * LARGE_TOKENS, &answer, &err),
        IRON_FEED_REPEATED);
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    entry = found(store, "device");
    assert_string_equal(look_at(entry).plan.backend, gpu_backend());
    assert_view(entry, &want);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* The writer is idle between two feeds, so its engine may be changed from here. */
static void a_failing_device_costs_one_feed(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__store_plan plan = gpu_plan("broken"), other = small_plan("well");
    iron_engine *direct = direct_engine(&plan);
    iron__store *store;
    iron__store_engine *entry, *well;
    iron__feed_answer answer;
    iron_report want;
    iron_error err = {0};

    (void)state;
    NEED_GPU();
    store = store_at(&place);
    entry = make_engine(store, &plan);
    well = make_engine(store, &other);
    feed_done(entry, (feeding){.key = NULL}, tokens, 8000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 2000);
    entry->engine->failure = (iron_error){IRON_E_IO, -36, "the test broke the device"};
    assert_int_equal(feed_as(entry, (feeding){.key = NULL}, tokens, 4000, &answer, &err),
                     IRON_FEED_FAILED);
    assert_says(&err, "broke the device");
    assert_view(entry, &want);
    assert_int_equal(iron__store_failure(store, &err), IRON_OK);
    feed_done(well, (feeding){.key = NULL}, tokens, 4000);
    /* created again from the published state */
    answer = feed_done(entry, (feeding){.has_at = true, .at = 2000}, tokens, 4000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1000);
    assert_answer(&answer, &want);
    /* a large body is reduced on a fork; the failed engine is created again from it */
    entry->engine->failure = (iron_error){IRON_E_IO, -36, "the test broke the device"};
    answer = feed_done(entry, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, LARGE_TOKENS);
    assert_answer(&answer, &want);
    answer = feed_done(entry, (feeding){.key = NULL}, tokens, 4);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1);
    assert_answer(&answer, &want);
    iron__store_engine_release(entry);
    iron__store_engine_release(well);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* A driver whose downloads fail after the first `left`. */
static struct {
    const iron__gpu_ops *real;
    iron__gpu_ops ops;
    iron__gpu_queue_ops queue;
    unsigned left;
} driver;

static iron_status copy_or_fail(iron__gpu_queue *queue, const iron__gpu_copy *copy,
                                iron_error *err) {
    if (copy->to_host && driver.left == 0) {
        *err = (iron_error){IRON_E_IO, -36, "the test failed a download"};
        return IRON_E_IO;
    }
    driver.left -= copy->to_host != NULL;
    return driver.real->queue->copy(queue, copy, err);
}

static void fail_downloads_after(iron_engine *engine, unsigned count) {
    iron__gpu_device *device = device_of(engine);

    if (device->ops != &driver.ops)
        driver.real = device->ops;
    driver.ops = *driver.real;
    driver.queue = *driver.real->queue;
    driver.queue.copy = copy_or_fail;
    driver.ops.queue = &driver.queue;
    driver.left = count;
    device->ops = &driver.ops;
}

/* Whichever download fails, the feed gets an error, and the next feed works again. */
static void every_failing_download_costs_one_feed(void **state) {
    static const size_t lengths[] = {1500, LARGE_TOKENS};
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__store_plan plan = gpu_plan("device");
    iron_engine *direct = direct_engine(&plan);
    iron__store *store;
    iron__store_engine *entry;
    iron__feed_answer answer;
    iron_report want;
    iron_error err = {0};

    (void)state;
    NEED_GPU();
    store = store_at(&place);
    entry = make_engine(store, &plan);
    for (size_t k = 0; k < COUNT(lengths); k++) {
        iron__feed_outcome outcome = IRON_FEED_FAILED;

        for (unsigned count = 0; outcome != IRON_FEED_DONE; count++) {
            assert_true(count < 1000);
            answer = feed_done(entry, (feeding){.key = NULL}, tokens, 4 * lengths[k]);
            want = direct_feed(direct, IRON_DTYPE_U32, tokens, lengths[k]);
            assert_answer(&answer, &want);
            fail_downloads_after(k == 0 ? entry->engine : entry->idle[entry->idle_count - 1],
                                 count);
            outcome = feed_as(entry, (feeding){.key = NULL}, tokens, 4 * lengths[k], &answer, &err);
            driver.left = UINT_MAX;
            if (outcome == IRON_FEED_DONE) {
                want = direct_feed(direct, IRON_DTYPE_U32, tokens, lengths[k]);
                assert_true(count >= 3); /* downloads did fail before */
            } else {
                assert_int_equal(outcome, IRON_FEED_FAILED);
                assert_says(&err, "failed a download");
            }
            assert_view(entry, &want);
            assert_int_equal(iron__store_failure(store, &err), IRON_OK);
        }
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* An engine on the CPU is created again, too, within a group and between groups. */
static void a_broken_engine_is_created_again(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, 2000);
    iron__store_plan plan = small_plan("again");
    iron__store *store = store_at(&place);
    iron__store_engine *entry = make_engine(store, &plan);
    iron_engine *direct = direct_engine(&plan);

    (void)state;
    for (size_t k = 1; k < 40; k++) {
        iron__feed_answer answer = feed_done(entry, (feeding){.key = NULL}, tokens, 4 * k);
        iron_report want = direct_feed(direct, IRON_DTYPE_U32, tokens, k);

        assert_answer(&answer, &want);
        if (k % 3 == 0)
            entry_mark_failed(entry, &(iron_error){IRON_E_IO, 0, "broken by the test"});
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* A store that was written on a machine with a device, opened on one without: its engine can be
 * read but not fed, and the error has the reason. */
static void a_missing_device_does_not_affect_others(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__store_plan plan = small_plan("elsewhere"), other = small_plan("here");
    iron__store *store = store_at(&place);
    iron__store_engine *entry = make_engine(store, &plan), *here = make_engine(store, &other);
    iron__store_engine_view before;
    iron__feed_answer answer;
    unsigned char *bytes = NULL;
    size_t count;
    iron_error err = {0};

    (void)state;
    feed_done(entry, (feeding){.key = "k"}, tokens, 400);
    before = look_at(entry);
    snprintf(entry->plan.backend, sizeof entry->plan.backend, "cuda"); /* as if it had existed */
    snprintf(entry->in_use.backend, sizeof entry->in_use.backend, "cuda");
    entry_mark_failed(entry, &(iron_error){IRON_E_UNSUPPORTED, 0, "cuda: there is no driver"});
    for (size_t body = 4; body <= 4 * LARGE_TOKENS; body += 4 * LARGE_TOKENS - 4) {
        assert_int_equal(feed_as(entry, (feeding){.key = NULL}, tokens, body, &answer, &err),
                         IRON_FEED_FAILED);
        assert_true(err.status == IRON_E_UNSUPPORTED && err.text[0] != '\0');
    }
    assert_true(look_at(entry).state == before.state && look_at(entry).feeds == 1);
    /* requests that need no device work */
    assert_int_equal(feed_as(entry, (feeding){.key = "k"}, tokens, 400, &answer, &err),
                     IRON_FEED_REPEATED);
    assert_ok(iron__store_engine_serialize(entry, &bytes, &count, &err), &err);
    free(bytes);
    feed_done(here, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
    iron__store_engine_release(entry);
    iron__store_engine_release(here);
    iron__store_close(store);
    free(tokens);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(feeds_equal_those_on_the_cpu),
        IN_A_PLACE(a_failing_device_costs_one_feed),
        IN_A_PLACE(every_failing_download_costs_one_feed),
        IN_A_PLACE(a_broken_engine_is_created_again),
        IN_A_PLACE(a_missing_device_does_not_affect_others),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
