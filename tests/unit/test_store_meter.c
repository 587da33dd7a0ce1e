/* SPDX-License-Identifier: MIT */
/*
 * test_store_meter.c: the rate of what comes in, by a clock of the test's; and word of changes to
 * those who wait.
 */
#include "support.h"

#include "store/meter.h"
#include "store/news.h"

#include <sched.h>

#define MS    UINT64_C(1000000)
#define START (UINT64_C(123456) * IRON_METER_QUARTER_NS)

static void nothing_came(void **state) {
    iron__meter meter = {0};

    (void)state;
    assert_true(iron__meter_rate(&meter, 0) == 0);
    assert_true(iron__meter_rate(&meter, START) == 0);
    assert_false(iron__meter_add(&meter, START, 0));
    assert_true(iron__meter_rate(&meter, START) == 0);
}

static void a_run_counts_for_two_seconds(void **state) {
    iron__meter meter = {0};

    (void)state;
    assert_true(iron__meter_add(&meter, START, 1000));
    assert_true(iron__meter_rate(&meter, START) == 500);
    assert_true(iron__meter_rate(&meter, START + 1999 * MS) == 500);
    assert_true(iron__meter_rate(&meter, START + 2125 * MS) == 250);
    assert_true(iron__meter_rate(&meter, START + 2250 * MS) == 0);
    assert_true(iron__meter_rate(&meter, START + 4000 * MS) == 0); /* its slot once more */
    assert_true(iron__meter_rate(&meter, START + 8000 * MS) == 0);
}

static void only_the_first_of_a_quarter_is_news(void **state) {
    iron__meter meter = {0};

    (void)state;
    assert_true(iron__meter_add(&meter, START, 1));
    assert_false(iron__meter_add(&meter, START + 100 * MS, 1));
    assert_false(iron__meter_add(&meter, START + 249 * MS, 1));
    assert_true(iron__meter_add(&meter, START + 250 * MS, 1));
    assert_true(iron__meter_add(&meter, START + 4000 * MS, 1)); /* its slot, another round */
    assert_true(iron__meter_rate(&meter, START + 4000 * MS) == 0.5);
}

static void what_comes_evenly_is_told_as_it_comes(void **state) {
    iron__meter meter = {0};

    (void)state;
    for (uint64_t k = 0; k < 10000; k++)
        (void)iron__meter_add(&meter, START + k * MS, 3);
    assert_true(iron__meter_rate(&meter, START + 9999 * MS) >= 2990);
    assert_true(iron__meter_rate(&meter, START + 9999 * MS) <= 3010);
}

static void a_count_has_an_end(void **state) {
    iron__meter meter = {0};

    (void)state;
    (void)iron__meter_add(&meter, START, UINT64_MAX);
    (void)iron__meter_add(&meter, START, UINT64_MAX);
    assert_true(iron__meter_rate(&meter, START) == (double)((UINT64_C(1) << 40) - 1) / 2);
    assert_true(iron__meter_rate(&meter, START + 3000 * MS) == 0);
}

#define ADDERS 4u
#define ADDED  20000u

static void *add_often(void *meter) {
    for (uint32_t k = 0; k < ADDED; k++)
        (void)iron__meter_add(meter, START + k % 2 * IRON_METER_QUARTER_NS, 2);
    return NULL;
}

static void many_count_at_once(void **state) {
    pthread_t threads[ADDERS];
    iron__meter meter = {0};

    (void)state;
    for (size_t k = 0; k < ADDERS; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, add_often, &meter), 0);
    for (size_t k = 0; k < ADDERS; k++)
        pthread_join(threads[k], NULL);
    assert_true(iron__meter_rate(&meter, START + IRON_METER_QUARTER_NS) == ADDERS * ADDED);
}

static void news_that_were_told_are_not_waited_for(void **state) {
    iron__news news = {0};

    (void)state;
    iron__news_init(&news);
    assert_int_equal(iron__news_wait(&news, 0, 0), 0);
    assert_int_equal(iron__news_wait(&news, 0, 1), 0);
    iron__news_tell(&news);
    iron__news_tell(&news);
    assert_int_equal(iron__news_wait(&news, 0, UINT32_MAX), 2);
    assert_int_equal(iron__news_wait(&news, 1, UINT32_MAX), 2);
    iron__news_end(&news);
    assert_int_equal(iron__news_wait(&news, 2, UINT32_MAX), 2);
    iron__news_deinit(&news);
}

#define NEWS 2000u

static void *hear_all(void *context) {
    iron__news *news = context;
    uint64_t seen = 0;

    while (seen < NEWS)
        seen = iron__news_wait(news, seen, UINT32_MAX); /* a missed one would last for weeks */
    return NULL;
}

static void no_news_is_missed(void **state) {
    pthread_t readers[ADDERS];
    iron__news news = {0};

    (void)state;
    iron__news_init(&news);
    for (size_t k = 0; k < ADDERS; k++)
        assert_int_equal(pthread_create(&readers[k], NULL, hear_all, &news), 0);
    for (uint32_t k = 0; k < NEWS; k++) {
        iron__news_tell(&news);
        if (k % 16 == 0)
            sched_yield();
    }
    for (size_t k = 0; k < ADDERS; k++)
        pthread_join(readers[k], NULL);
    iron__news_deinit(&news);
}

static void *wait_for_the_end(void *context) {
    (void)iron__news_wait(context, 0, UINT32_MAX);
    return NULL;
}

static void the_end_wakes(void **state) {
    iron__news news = {0};
    pthread_t reader;

    (void)state;
    iron__news_init(&news);
    assert_int_equal(pthread_create(&reader, NULL, wait_for_the_end, &news), 0);
    iron__news_end(&news);
    pthread_join(reader, NULL);
    iron__news_deinit(&news);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_came),
        cmocka_unit_test(a_run_counts_for_two_seconds),
        cmocka_unit_test(only_the_first_of_a_quarter_is_news),
        cmocka_unit_test(what_comes_evenly_is_told_as_it_comes),
        cmocka_unit_test(a_count_has_an_end),
        cmocka_unit_test(many_count_at_once),
        cmocka_unit_test(news_that_were_told_are_not_waited_for),
        cmocka_unit_test(no_news_is_missed),
        cmocka_unit_test(the_end_wakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
