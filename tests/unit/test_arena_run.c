/* SPDX-License-Identifier: MIT */
/*
 * test_arena_run.c: how the requested time is divided among races that follow each other; and when
 * a round counts as throttled: the driver says so, or the clock dropped during it. A clock that
 * stays low does not spoil every round.
 */
#include "support.h"

#include "arena/run.c"

#include <math.h>

#define CASES 32u
#define ROWS  6u /* per case */

/* A race of many cases that each take `greed` times the share they are given; returns the total. */
static double total_time(double seconds, double greed, double *least, double *most) {
    iron_arena arena = {.options = {.seconds = seconds}};
    run r = {.arena = &arena, .rows_total = (size_t)CASES * ROWS, .rows_now = ROWS};

    *least = seconds;
    *most = 0;
    for (unsigned k = 0; k < CASES; k++) {
        double share = share_of_time(&r);

        *least = share < *least ? share : *least;
        *most = share > *most ? share : *most;
        r.spent += greed * share;
        r.rows_done += ROWS;
    }
    return r.spent;
}

static void cases_have_equal_shares(void **state) {
    double least, most;

    (void)state;
    assert_true(fabs(total_time(60, 1, &least, &most) - 60) < 1e-9);
    assert_true(fabs(least - 60.0 / CASES) < 1e-9 && fabs(most - least) < 1e-9);
    assert_true(fabs(total_time(0, 1, &least, &most) - 60) < 1e-9); /* the default */
}

static void unused_time_goes_to_later_cases(void **state) {
    double least, most;

    (void)state;
    assert_true(total_time(60, 0.5, &least, &most) < 60);
    assert_true(fabs(least - 60.0 / CASES) < 1e-9);
    assert_true(most > 2 * least);
}

static void every_case_has_half_a_share_at_least(void **state) {
    double least, most;

    (void)state;
    assert_true(total_time(60, 10, &least, &most) > 60);
    assert_true(fabs(least - 60.0 / CASES / 2) < 1e-9);
}

/* Cases with many rows have as much time for each row as cases with few. */
static void shares_are_per_row(void **state) {
    iron_arena arena = {.options = {.seconds = 30}};
    run r = {.arena = &arena, .rows_total = 100, .rows_now = 90};

    (void)state;
    assert_true(fabs(share_of_time(&r) - 27) < 1e-9);
    r.spent = 27;
    r.rows_done = 90;
    r.rows_now = 10;
    assert_true(fabs(share_of_time(&r) - 3) < 1e-9);
}

/* A row may take what all rows of its race may, or a quarter of all that is left. */
static void a_slow_row_has_a_limit(void **state) {
    iron_arena arena = {.options = {.seconds = 40}};
    run r = {.arena = &arena, .rows_total = 100, .rows_now = 10};

    (void)state;
    assert_true(fabs(limit_of_row(&r) - 10) < 1e-9);
    r.rows_now = 90;
    assert_true(fabs(limit_of_row(&r) - 36) < 1e-9);
    r.spent = 1000; /* nothing is left: half of an equal share */
    assert_true(fabs(limit_of_row(&r) - 18) < 1e-9);
    arena.options.runs = 3;
    assert_true(limit_of_row(&r) <= 0);
}

static bool look(clock_state *clock, iron__report_device *seen, uint32_t mhz, bool is_throttled) {
    iron__gpu_clocks clocks = {
        .core_mhz = mhz, .memory_mhz = 2600, .is_throttled = is_throttled, .reasons = "heat"};

    return is_gpu_throttled(clock, &clocks, seen);
}

static void a_steady_clock_is_not_throttled(void **state) {
    clock_state clock = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(look(&clock, &seen, 1980, false));
    assert_false(look(&clock, &seen, 1965, false)); /* a step of the boost clock */
    assert_false(look(&clock, &seen, 1980, false));
    assert_int_equal(seen.clock_min, 1965);
    assert_int_equal(seen.clock_max, 1980);
    assert_int_equal(seen.memory_clock, 2600);
    assert_string_equal(seen.throttle, "");
}

static void a_clock_drop_is_throttling_once(void **state) {
    clock_state clock = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(look(&clock, &seen, 1980, false));
    assert_true(look(&clock, &seen, 1500, false));
    assert_false(look(&clock, &seen, 1500, false));
    assert_false(look(&clock, &seen, 1980, false)); /* it may rise again */
    assert_int_equal(seen.clock_min, 1500);
}

static void the_driver_decides_whatever_the_clock(void **state) {
    clock_state clock = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_true(look(&clock, &seen, 1980, true));
    assert_true(look(&clock, &seen, 1980, true));
    assert_string_equal(seen.throttle, "heat");
}

static void an_unknown_clock_is_not_a_drop(void **state) {
    clock_state clock = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(look(&clock, &seen, 0, false));
    assert_false(look(&clock, &seen, 0, false));
    assert_int_equal(seen.clock_min, 0);
    assert_int_equal(seen.clock_max, 0);
}

static void only_the_counter_decides_on_a_cpu(void **state) {
    clock_state clock = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(is_cpu_throttled(&clock, 3000, 17, &seen)); /* counted before the race */
    assert_false(is_cpu_throttled(&clock, 1200, 17, &seen)); /* the clock of an idle core */
    assert_true(is_cpu_throttled(&clock, 2900, 19, &seen));
    assert_false(is_cpu_throttled(&clock, 2900, 19, &seen));
    assert_int_equal(seen.clock_min, 1200);
    assert_int_equal(seen.clock_max, 3000);
    assert_string_equal(seen.throttle, "heat");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_have_equal_shares),
        cmocka_unit_test(unused_time_goes_to_later_cases),
        cmocka_unit_test(every_case_has_half_a_share_at_least),
        cmocka_unit_test(shares_are_per_row),
        cmocka_unit_test(a_slow_row_has_a_limit),
        cmocka_unit_test(a_steady_clock_is_not_throttled),
        cmocka_unit_test(a_clock_drop_is_throttling_once),
        cmocka_unit_test(the_driver_decides_whatever_the_clock),
        cmocka_unit_test(an_unknown_clock_is_not_a_drop),
        cmocka_unit_test(only_the_counter_decides_on_a_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
