/* SPDX-License-Identifier: MIT */
/*
 * test_clock_watch.c: a round counts as disturbed when the driver says that the device was held
 * back, or when its clock fell during it; a clock that stays low does not spoil every round.
 */
#include "support.h"

#include "arena/clock_watch.h"

static bool look(iron__clock_watch *watch, iron__report_device *seen, uint32_t mhz,
                 bool is_throttled) {
    iron__gpu_clocks clocks = {
        .core_mhz = mhz, .memory_mhz = 2600, .is_throttled = is_throttled, .reasons = "heat"};

    return iron__clock_watch_look(watch, &clocks, seen);
}

static void a_steady_clock_is_fine(void **state) {
    iron__clock_watch watch = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(look(&watch, &seen, 1980, false));
    assert_false(look(&watch, &seen, 1965, false)); /* a step of the boost */
    assert_false(look(&watch, &seen, 1980, false));
    assert_int_equal(seen.clock_min, 1965);
    assert_int_equal(seen.clock_max, 1980);
    assert_int_equal(seen.memory_clock, 2600);
    assert_string_equal(seen.throttle, "");
}

static void a_clock_that_falls_spoils_the_round_in_which_it_fell(void **state) {
    iron__clock_watch watch = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(look(&watch, &seen, 1980, false));
    assert_true(look(&watch, &seen, 1500, false));
    assert_false(look(&watch, &seen, 1500, false));
    assert_false(look(&watch, &seen, 1980, false)); /* and it may rise again */
    assert_int_equal(seen.clock_min, 1500);
}

static void the_drivers_word_counts_whatever_the_clock(void **state) {
    iron__clock_watch watch = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_true(look(&watch, &seen, 1980, true));
    assert_true(look(&watch, &seen, 1980, true));
    assert_string_equal(seen.throttle, "heat");
}

static void an_unknown_clock_is_no_fall(void **state) {
    iron__clock_watch watch = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(look(&watch, &seen, 0, false));
    assert_false(look(&watch, &seen, 0, false));
    assert_int_equal(seen.clock_min, 0);
    assert_int_equal(seen.clock_max, 0);
}

static void a_cpu_is_judged_by_its_counter_alone(void **state) {
    iron__clock_watch watch = {0};
    iron__report_device seen = {0};

    (void)state;
    assert_false(iron__clock_watch_look_cpu(&watch, 3000, 17, &seen)); /* of long ago */
    assert_false(iron__clock_watch_look_cpu(&watch, 1200, 17, &seen)); /* an idle core's clock */
    assert_true(iron__clock_watch_look_cpu(&watch, 2900, 19, &seen));
    assert_false(iron__clock_watch_look_cpu(&watch, 2900, 19, &seen));
    assert_int_equal(seen.clock_min, 1200);
    assert_int_equal(seen.clock_max, 3000);
    assert_string_equal(seen.throttle, "heat");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_clock_is_fine),
        cmocka_unit_test(a_clock_that_falls_spoils_the_round_in_which_it_fell),
        cmocka_unit_test(the_drivers_word_counts_whatever_the_clock),
        cmocka_unit_test(an_unknown_clock_is_no_fall),
        cmocka_unit_test(a_cpu_is_judged_by_its_counter_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
