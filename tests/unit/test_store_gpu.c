/* SPDX-License-Identifier: MIT */
/*
 * test_store_gpu.c: engines of a store on a GPU: the same results; when the device fails or is
 * missing, at most that feed is refused, nothing is lost, other engines continue, and so does this
 * one on the CPU.
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

static char noted[400];

static void hear(void *context, const char *sentence) {
    (void)context;
    snprintf(noted, sizeof noted, "%s", sentence);
}

static uint64_t moved_engines(iron__store *store) {
    iron__store_counts counts;

    iron__store_count(store, &counts, NULL);
    return counts.moved;
}

/* An idle fork fails before a large body: nobody but the log notices. */
static void a_failing_device_moves_the_engine_to_the_cpu(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__store_plan plan = gpu_plan("broken"), other = gpu_plan("well");
    iron_engine *direct = direct_engine(&plan);
    iron__store *store;
    iron__store_engine *entry, *well;
    iron__feed_answer answer;
    iron_report want;

    (void)state;
    NEED_GPU();
    store = store_at_with(&place, (iron__store_options){.note = hear});
    entry = make_engine(store, &plan);
    well = make_engine(store, &other);
    feed_done(entry, (feeding){.key = NULL}, tokens, 8000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 2000);
    assert_int_equal(entry->idle_count, 1); /* opened with the engine */
    entry->idle[0]->failure = (iron_error){IRON_E_IO, -36, "the test broke the device"};
    answer = feed_done(entry, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, LARGE_TOKENS);
    assert_answer(&answer, &want);
    assert_string_equal(look_at(entry).plan.backend, "cpu");
    assert_non_null(strstr(look_at(entry).device_failure, "broke the device"));
    assert_int_equal(moved_engines(store), 1);
    assert_string_equal(noted,
                        "engine broken: its device failed, it continues on the CPU: the test "
                        "broke the device");
    answer = feed_done(entry, (feeding){.has_at = true, .at = 2000 + LARGE_TOKENS}, tokens, 4000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1000);
    assert_answer(&answer, &want);
    feed_done(well, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
    assert_string_equal(look_at(well).plan.backend, gpu_backend());
    assert_string_equal(look_at(well).device_failure, "");
    iron__store_engine_release(entry);
    iron__store_engine_release(well);
    iron__store_close(store);
    store = store_at(&place); /* the device is tried again */
    entry = found(store, "broken");
    assert_string_equal(look_at(entry).plan.backend, gpu_backend());
    assert_view(entry, &want);
    iron__store_engine_release(entry);
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

/* Whichever download fails, at most that feed is refused, and the same feed then succeeds. */
static void every_failing_download_costs_one_feed(void **state) {
    uint32_t *tokens = grab_tokens(4, 1000, LARGE_TOKENS);
    iron__feed_outcome outcome = IRON_FEED_FAILED;
    iron__store *store;

    (void)state;
    NEED_GPU();
    store = store_at(&place);
    for (unsigned count = 0; outcome != IRON_FEED_DONE || count < 3; count++) {
        iron__store_plan plan = gpu_plan("device");
        iron_engine *direct = direct_engine(&plan);
        iron_report want = direct_feed(direct, IRON_DTYPE_U32, tokens, LARGE_TOKENS);
        iron__store_engine *entry = make_engine(store, &plan);
        iron__feed_answer answer;
        iron_error err = {0};

        assert_true(count < 1000);
        fail_downloads_after(entry->idle[0], count);
        outcome = feed_as(entry, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS, &answer, &err);
        driver.left = UINT_MAX;
        if (outcome != IRON_FEED_DONE) {
            assert_int_equal(outcome, IRON_FEED_FAILED);
            assert_says(&err, "failed a download");
            assert_true(look_at(entry).tokens == 0);
            assert_string_equal(look_at(entry).plan.backend, "cpu");
            answer = feed_done(entry, (feeding){.key = NULL}, tokens, 4 * LARGE_TOKENS);
        }
        assert_answer(&answer, &want);
        assert_view(entry, &want);
        assert_int_equal(iron__store_failure(store, &err), IRON_OK);
        assert_ok(iron__store_delete(store, entry, &err), &err);
        iron__store_engine_release(entry);
        iron_engine_destroy(direct);
    }
    assert_true(moved_engines(store) >= 1);
    iron__store_close(store);
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
            entry_drop_engine(entry);
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(feeds_equal_those_on_the_cpu),
        IN_A_PLACE(a_failing_device_moves_the_engine_to_the_cpu),
        IN_A_PLACE(every_failing_download_costs_one_feed),
        IN_A_PLACE(a_broken_engine_is_created_again),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
