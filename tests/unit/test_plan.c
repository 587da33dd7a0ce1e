/* SPDX-License-Identifier: MIT */
/*
 * test_plan.c: who races over what, with ops made for it (fake_op.h): a case a combination of
 * values, values asked for, contenders of one value alone, ops whose race is about kernels. There
 * is no GPU here: rows of one that a glob names are planned all the same, with the reason.
 */
#include "fake_op.h"

#include "arena/plan.h"
#include "arena/race.h"

typedef struct wish {
    iron_arena_options o;
    const char *globs[4], *params[4];
} wish;

static void wish_make(wish *w, const char *glob) {
    *w = (wish){.globs = {glob}};
    iron_arena_options_init(&w->o);
    w->o.globs = w->globs;
    w->o.glob_count = glob != NULL;
    w->o.params = w->params;
}

static void wish_param(wish *w, const char *param) { w->params[w->o.param_count++] = param; }

static iron__plan planned(const wish *w) {
    iron__plan plan;
    iron_error err;

    assert_ok(iron__plan_make(&plan, &w->o, fake_op_at, &err), &err);
    return plan;
}

static void refused(const wish *w, const char *says) {
    iron__plan plan;
    iron_error err;

    assert_refused(iron__plan_make(&plan, &w->o, fake_op_at, &err), IRON_E_ARG, &err);
    assert_says(&err, says);
    assert_null(strchr(err.text, '\n'));
}

/* How many rows of that name there are. */
static size_t rows_of(const iron__plan *plan, const char *name) {
    size_t found = 0;

    for (size_t k = 0; k < plan->row_count; k++)
        found += strcmp(plan->rows[k].name, name) == 0;
    return found;
}

static void a_case_for_every_combination(void **state) {
    static const char *const expected[] = {
        "data plain, stride 1",  "data plain, stride 4",  "data plain, stride 16",
        "data sorted, stride 1", "data sorted, stride 4", "data sorted, stride 16",
        "data zipf, stride 1",   "data zipf, stride 4",   "data zipf, stride 16"};
    wish w;
    iron__plan plan;

    (void)state;
    wish_make(&w, "echo.cpu.*");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 9);
    for (size_t k = 0; k < COUNT(expected); k++) {
        assert_string_equal(plan.cases[k].axes.text, expected[k]);
        assert_string_equal(plan.cases[k].size, "1000");
    }
    assert_int_equal(rows_of(&plan, "echo.cpu.naive"), 9);
    for (size_t k = 1; k < plan.row_count; k++) /* one problem at a time */
        assert_true(plan.rows[k].case_index >= plan.rows[k - 1].case_index);
    iron__plan_deinit(&plan);
    w.o.sizes = "20,30";
    plan = planned(&w);
    assert_int_equal(plan.case_count, 18);
    assert_string_equal(plan.cases[8].size, "20");
    assert_string_equal(plan.cases[9].size, "30");
    iron__plan_deinit(&plan);
}

static void a_race_over_everything_takes_the_first_of_each(void **state) {
    wish w;
    iron__plan plan;

    (void)state;
    wish_make(&w, NULL);
    plan = planned(&w);
    assert_int_equal(plan.case_count, 2);
    assert_string_equal(plan.cases[0].axes.text, "data plain, stride 1");
    assert_string_equal(plan.cases[1].axes.text, "density 0.25");
    iron__plan_deinit(&plan);
    wish_param(&w, "data=sorted,zipf");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 3);
    assert_string_equal(plan.cases[1].axes.text, "data zipf, stride 1");
    iron__plan_deinit(&plan);
    wish_make(&w, "*");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 9 + 2);
    iron__plan_deinit(&plan);
}

static void values_can_be_asked_for(void **state) {
    wish w;
    iron__plan plan;

    (void)state;
    wish_make(&w, "*.cpu.naive");
    wish_param(&w, "stride=7,9");
    wish_param(&w, "data=zipf");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 2 + 2); /* the other op's own are as they were */
    assert_string_equal(plan.cases[0].axes.text, "data zipf, stride 7");
    assert_string_equal(plan.cases[1].axes.text, "data zipf, stride 9");
    assert_string_equal(plan.cases[3].axes.text, "density 0.5");
    assert_true(plan.cases[1].c.at[0] == 2 && plan.cases[1].c.at[1] == 9);
    iron__plan_deinit(&plan);
}

static void what_nobody_has_is_refused(void **state) {
    wish w;

    (void)state;
    wish_make(&w, "echo.cpu");
    wish_param(&w, "data=zip");
    refused(&w, "data is 'zip'");
    wish_make(&w, "*");
    wish_param(&w, "density=2");
    refused(&w, "numbers from 0 to 1");
    wish_make(&w, "echo.*");
    wish_param(&w, "density=0.5");
    refused(&w, "'density'; they have data (echo), stride (echo)");
    wish_make(&w, NULL);
    wish_param(&w, "bins=4");
    refused(&w, "data (echo), stride (echo), density (grain)");
    wish_make(&w, "echo.*");
    wish_param(&w, "zipf");
    refused(&w, "'zipf' is no NAME=VALUE");
    wish_make(&w, "echo.*");
    wish_param(&w, "stride=1");
    wish_param(&w, "stride=4");
    refused(&w, "twice");
}

static void contenders_of_one_value_are_in_its_cases_alone(void **state) {
    wish w;
    iron__plan plan;

    (void)state;
    wish_make(&w, "echo.cpu.*");
    plan = planned(&w);
    assert_int_equal(rows_of(&plan, "echo.cpu.zipf-only"), 3);
    for (size_t k = 0; k < plan.row_count; k++)
        if (strcmp(plan.rows[k].name, "echo.cpu.zipf-only") == 0)
            assert_true(plan.cases[plan.rows[k].case_index].c.at[0] == 2);
    iron__plan_deinit(&plan);
    w.o.is_listing = 1; /* once, whatever the case */
    plan = planned(&w);
    assert_int_equal(rows_of(&plan, "echo.cpu.zipf-only"), 1);
    assert_int_equal(plan.case_count, 1);
    iron__plan_deinit(&plan);
    wish_make(&w, "echo.cpu.zipf-only");
    wish_param(&w, "data=plain");
    refused(&w, "no chosen contender is for these cases");
}

/* A value that nobody named and that does not fit is passed over; one that was named is not. */
static void what_an_op_cannot_do_at_a_size(void **state) {
    wish w;
    iron__plan plan;

    (void)state;
    wish_make(&w, "echo.cpu.naive");
    w.o.sizes = "5";
    plan = planned(&w);
    assert_int_equal(plan.case_count, 6);
    iron__plan_deinit(&plan);
    wish_param(&w, "data=zipf");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 2);
    iron__plan_deinit(&plan);
    wish_param(&w, "stride=16");
    refused(&w, "stride 16 is beyond 5 elements");
    w.params[1] = "stride=1,16";
    refused(&w, "stride 16 is beyond 5 elements");
    w.o.param_count = 1;
    w.params[0] = "stride=1,7";
    refused(&w, "stride 7 is beyond 5 elements");
}

static uint32_t memories_of(const iron__plan *plan, const char *name) {
    uint32_t bits = 0;

    for (size_t k = 0; k < plan->row_count; k++)
        if (strcmp(plan->rows[k].name, name) == 0)
            bits |= IRON_BIT(plan->rows[k].memory);
    return bits;
}

static void a_race_about_kernels_is_short_unless_told_otherwise(void **state) {
    const uint32_t kernel = IRON_BIT(IRON_SCOPE_KERNEL), all = IRON_BIT(IRON_SCOPES) - 1;
    wish w;
    iron__plan plan;

    (void)state;
    wish_make(&w, "*.cuda.naive");
    plan = planned(&w);
    assert_int_equal(memories_of(&plan, "echo.cuda.naive"), IRON_BIT(IRON_GPU_PAGEABLE));
    assert_int_equal(memories_of(&plan, "grain.cuda.naive"), IRON_BIT(IRON_GPU_STRATEGIES) - 1);
    assert_int_equal(plan.cases[0].scopes, kernel);
    assert_int_equal(plan.cases[plan.case_count - 1].scopes, all);
    iron__plan_deinit(&plan);
    w.o.memory = "all";
    w.o.scopes = "transfer";
    plan = planned(&w);
    assert_int_equal(memories_of(&plan, "echo.cuda.naive"), IRON_BIT(IRON_GPU_STRATEGIES) - 1);
    assert_int_equal(plan.cases[0].scopes, kernel | IRON_BIT(IRON_SCOPE_TRANSFER));
    iron__plan_deinit(&plan);
    w.o.memory = "zero-copy,uvm";
    w.o.scopes = NULL;
    plan = planned(&w);
    assert_int_equal(memories_of(&plan, "echo.cuda.naive"),
                     IRON_BIT(IRON_GPU_ZERO_COPY) | IRON_BIT(IRON_GPU_UVM));
    assert_int_equal(plan.cases[0].scopes, kernel);
    iron__plan_deinit(&plan);
}

/* A run of a second is fine in a case that has eight, too long when nine cases share a minute. */
static void slow_rows_are_passed_over_when_cases_are_many(void **state) {
    wish w;
    iron__plan plan;
    size_t slow = 0;

    (void)state;
    wish_make(&w, "echo.cpu.zipf-only");
    w.o.seconds = 8;
    wish_param(&w, "data=zipf");
    wish_param(&w, "stride=4");
    plan = planned(&w);
    assert_int_equal(plan.row_count, 1);
    assert_string_equal(plan.rows[0].reason, "");
    iron__plan_deinit(&plan);
    wish_make(&w, "echo.cpu.*");
    plan = planned(&w);
    for (size_t k = 0; k < plan.row_count; k++)
        if (plan.rows[k].reason[0]) {
            assert_string_equal(plan.rows[k].name, "echo.cpu.zipf-only");
            assert_non_null(strstr(plan.rows[k].reason, "about 1 s"));
            assert_non_null(strstr(plan.rows[k].reason, "--time 72 or more"));
            slow++;
        }
    assert_int_equal(slow, 3);
    iron__plan_deinit(&plan);
    w.o.seconds = 72;
    plan = planned(&w);
    for (size_t k = 0; k < plan.row_count; k++)
        assert_string_equal(plan.rows[k].reason, "");
    iron__plan_deinit(&plan);
}

static void too_many_cases_are_refused(void **state) {
    char sizes[64 * 4 + 1] = "", strides[8 + 64 * 3] = "stride=";
    wish w;

    (void)state;
    for (int k = 0; k < 64; k++) {
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%d", k ? "," : "", 64 + k);
        snprintf(strides + strlen(strides), sizeof strides - strlen(strides), "%s%d", k ? "," : "",
                 1 + k);
    }
    wish_make(&w, "echo.cpu.naive");
    w.o.sizes = sizes;
    wish_param(&w, strides);
    refused(&w, "more than 4096 cases");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_for_every_combination),
        cmocka_unit_test(a_race_over_everything_takes_the_first_of_each),
        cmocka_unit_test(values_can_be_asked_for),
        cmocka_unit_test(what_nobody_has_is_refused),
        cmocka_unit_test(contenders_of_one_value_are_in_its_cases_alone),
        cmocka_unit_test(what_an_op_cannot_do_at_a_size),
        cmocka_unit_test(a_race_about_kernels_is_short_unless_told_otherwise),
        cmocka_unit_test(slow_rows_are_passed_over_when_cases_are_many),
        cmocka_unit_test(too_many_cases_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
