/* SPDX-License-Identifier: MIT */
/* test_course.c: how the time asked for is dealt out to races that follow each other. */
#include "support.h"

#include "arena/course.h"

#include <math.h>

#define CASES 32u
#define ROWS  6u /* a case */

/* A race of many cases that take what they are given, times `greed`; returns what all took. */
static double dealt(double seconds, double greed, double *least, double *most) {
    iron_arena arena = {.options = {.seconds = seconds}};
    iron__course c = {.arena = &arena, .racing = (size_t)CASES * ROWS, .now = ROWS};

    *least = seconds;
    *most = 0;
    for (unsigned k = 0; k < CASES; k++) {
        double share = iron__course_share(&c);

        *least = share < *least ? share : *least;
        *most = share > *most ? share : *most;
        c.spent += greed * share;
        c.raced += ROWS;
    }
    return c.spent;
}

static void equal_shares_of_all_of_it(void **state) {
    double least, most;

    (void)state;
    assert_true(fabs(dealt(60, 1, &least, &most) - 60) < 1e-9);
    assert_true(fabs(least - 60.0 / CASES) < 1e-9 && fabs(most - least) < 1e-9);
    assert_true(fabs(dealt(0, 1, &least, &most) - 60) < 1e-9); /* unless told */
}

static void what_is_left_goes_to_those_behind(void **state) {
    double least, most;

    (void)state;
    assert_true(dealt(60, 0.5, &least, &most) < 60);
    assert_true(fabs(least - 60.0 / CASES) < 1e-9);
    assert_true(most > 2 * least);
}

static void nobody_starves(void **state) {
    double least, most;

    (void)state;
    assert_true(dealt(60, 10, &least, &most) > 60);
    assert_true(fabs(least - 60.0 / CASES / 2) < 1e-9);
}

/* Cases with many rows have as much time for each row as cases with few. */
static void rows_count_not_cases(void **state) {
    iron_arena arena = {.options = {.seconds = 30}};
    iron__course c = {.arena = &arena, .racing = 100, .now = 90};

    (void)state;
    assert_true(fabs(iron__course_share(&c) - 27) < 1e-9);
    c.spent = 27;
    c.raced = 90;
    c.now = 10;
    assert_true(fabs(iron__course_share(&c) - 3) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_of_all_of_it),
        cmocka_unit_test(what_is_left_goes_to_those_behind),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(rows_count_not_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
