/* SPDX-License-Identifier: MIT */
/*
 * test_plan.c: the plan of a race: how globs, sizes, scopes, memory strategies and parameters are
 * parsed, and that nothing else is accepted; how parameters are written and compared; and, with the
 * ops of fake_op.h, which cases and rows are planned. It needs no GPU: rows of a backend that a
 * glob names are planned anyway, with the reason why they are skipped.
 */
#include "fake_op.h"

#include "arena/arena.c"

static void globs_match_the_whole_name(void **state) {
    (void)state;
    assert_true(glob_matches("atax.cpu.naive", "atax.cpu.naive"));
    assert_true(glob_matches("*", "atax.cpu.naive"));
    assert_true(glob_matches("atax.*", "atax.cuda.single-pass"));
    assert_true(glob_matches("*.cpu.*", "tokens.cpu.vector.neon"));
    assert_true(glob_matches("*.single-pass", "atax.opencl.single-pass"));
    assert_true(glob_matches("atax.c[pu]*.naive", "atax.cpu.naive"));
    assert_false(glob_matches("atax.cpu", "atax.cpux.naive"));
    assert_false(glob_matches("tax.*", "atax.cpu.naive"));
    assert_false(glob_matches("atax.cpu.naiv", "atax.cpu.naive"));
    assert_false(glob_matches("", "atax.cpu.naive"));
}

static void a_glob_that_ends_at_a_dot_matches_everything_below(void **state) {
    (void)state;
    assert_true(glob_matches("atax", "atax.cpu.naive"));
    assert_true(glob_matches("tokens.cpu", "tokens.cpu.vector.neon"));
    assert_true(glob_matches("tokens.cpu.vector", "tokens.cpu.vector.neon"));
    assert_false(glob_matches("tokens.cpu.vect", "tokens.cpu.vector.neon"));
}

static void a_wildcard_does_not_name_a_backend(void **state) {
    static const char *const globs[] = {"atax.opencl.*", "atax.*", "atax.open*"};
    iron_arena_options o = {.glob_count = 1};

    (void)state;
    for (size_t k = 0; k < COUNT(globs); k++) {
        o.globs = &globs[k];
        assert_int_equal(is_named(&o, "opencl"), k == 0);
    }
}

static const iron__op *op_named(const char *name) {
    const iron__op *op = iron__op_find(name);

    assert_non_null(op);
    return op;
}

static size_t sizes_of(const char *op, const char *list, chosen_size *sizes) {
    size_t count = 99;
    iron_error err;

    assert_ok(parse_sizes(op_named(op), list, sizes, &count, &err), &err);
    return count;
}

static void sizes_have_names_and_numbers(void **state) {
    chosen_size s[SIZES_MAX];

    (void)state;
    assert_int_equal(sizes_of("tokens", "1000", s), 1);
    assert_int_equal(s[0].rows, 1000);
    assert_int_equal(s[0].cols, 1);
    assert_string_equal(s[0].name, "");
    assert_int_equal(sizes_of("tokens", "batch:3MiB", s), 1);
    assert_int_equal(s[0].rows, 786432);
    assert_string_equal(s[0].name, "batch:3MiB");
    assert_int_equal(sizes_of("tokens", "3MiB,5", s), 2);
    assert_int_equal(s[1].rows, 5);
    assert_int_equal(sizes_of("tokens", "batch:*", s), op_named("tokens")->size_count);
}

static void a_bare_name_means_the_first_set(void **state) {
    chosen_size s[SIZES_MAX];

    (void)state;
    assert_int_equal(sizes_of("atax", "STANDARD", s), 1);
    assert_string_equal(s[0].name, "talk:STANDARD");
    assert_int_equal(s[0].rows, 4000);
    assert_int_equal(sizes_of("atax", "acc:LARGE,polybench:MEDIUM,7x9", s), 3);
    assert_int_equal(s[0].rows, 8192);
    assert_string_equal(s[0].dtype, "f32");
    assert_int_equal(s[1].rows, 390);
    assert_int_equal(s[1].cols, 410);
    assert_int_equal(s[2].rows, 7);
    assert_int_equal(s[2].cols, 9);
}

static void random_sizes_differ_and_stay_within_their_limit(void **state) {
    chosen_size s[SIZES_MAX], again[SIZES_MAX];
    size_t tall = 0, aligned = 0;

    (void)state;
    assert_int_equal(sizes_of("atax", "random:300:7:50000", s), 300);
    assert_int_equal(sizes_of("atax", "random:300:7:50000", again), 300);
    assert_memory_equal(s, again, 300 * sizeof s[0]);
    for (size_t k = 0; k < 300; k++) {
        assert_true(s[k].rows > 0 && s[k].cols > 0 && s[k].rows * s[k].cols <= 50000);
        tall += s[k].rows > s[k].cols;
        aligned += s[k].rows % 16 == 0 && s[k].cols % 16 == 0;
        for (size_t other = 0; other < k; other++)
            assert_true(s[k].rows != s[other].rows || s[k].cols != s[other].cols);
    }
    assert_in_range(tall, 100, 220);
    assert_in_range(aligned, 10, 100);
    assert_int_equal(sizes_of("tokens", "random:3", s), 3);
    assert_int_equal(s[2].cols, 1);
    assert_true(s[2].rows > 1000000);
}

/* A size of another kind is not for this op, but not an error: it may be for another op. */
static void sizes_of_other_ops_are_skipped(void **state) {
    chosen_size s[SIZES_MAX];

    (void)state;
    assert_int_equal(sizes_of("tokens", "4x4", s), 0);
    assert_int_equal(sizes_of("atax", "1000", s), 0);
    assert_int_equal(sizes_of("tokens", "STANDARD", s), 0);
}

static void invalid_sizes_are_refused(void **state) {
    static const char *const bad[] = {
        "",           "0",          "STANDART", "x5",        "5x",
        "5x0",        "-3",         "4 4",      "1e6",       "talk:",
        ":MINI",      "4x4x4",      "0x10",     "MINI,,",    "99999999999999999999",
        "random",     "random:",    "random:0", "random:5:", "random:5:1:9:9",
        "random:5x5", "random:2000"};
    chosen_size s[SIZES_MAX];
    size_t count;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(parse_sizes(op_named("atax"), bad[k], s, &count, &err), IRON_E_ARG, &err);
    assert_refused(parse_sizes(op_named("atax"), "STANDART", s, &count, &err), IRON_E_ARG, &err);
    assert_says(&err, "STANDART");
}

static void memory_strategies_become_bits(void **state) {
    uint32_t bits = 0;
    iron_error err;

    (void)state;
    assert_ok(parse_memory(NULL, &bits, &err), &err);
    assert_int_equal(bits, 0x3F);
    assert_ok(parse_memory("all", &bits, &err), &err);
    assert_int_equal(bits, 0x3F);
    assert_ok(parse_memory("pinned,zero-copy", &bits, &err), &err);
    assert_int_equal(bits, IRON_BIT(IRON_GPU_PINNED) | IRON_BIT(IRON_GPU_ZERO_COPY));
    assert_refused(parse_memory("pined", &bits, &err), IRON_E_ARG, &err);
    assert_says(&err, "pined");
    assert_refused(parse_memory("", &bits, &err), IRON_E_ARG, &err);
}

static void scopes_become_bits_and_include_kernel(void **state) {
    uint32_t bits = 0;
    iron_error err;

    (void)state;
    assert_ok(parse_scopes(NULL, &bits, &err), &err);
    assert_int_equal(bits, 0xF);
    assert_ok(parse_scopes("kernel", &bits, &err), &err);
    assert_int_equal(bits, IRON_BIT(IRON_SCOPE_KERNEL));
    assert_ok(parse_scopes("end_to_end,transfer", &bits, &err), &err);
    assert_int_equal(bits, IRON_BIT(IRON_SCOPE_KERNEL) | IRON_BIT(IRON_SCOPE_TRANSFER) |
                               IRON_BIT(IRON_SCOPE_END_TO_END));
    assert_refused(parse_scopes("kernels", &bits, &err), IRON_E_ARG, &err);
    assert_says(&err, "kernels");
    assert_refused(parse_scopes("", &bits, &err), IRON_E_ARG, &err);
}

static iron__params params_at(double data, double stride) {
    iron__case c = {
        .op = &op_echo, .rows = 100, .cols = 1, .element = IRON_U32, .at = {data, stride}};

    return iron__params_of(&c);
}

static void axes_come_first_then_facts(void **state) {
    iron__params p = params_at(2, 16);

    (void)state;
    assert_int_equal(p.count, 3);
    assert_string_equal(p.list[0].name, "data");
    assert_string_equal(p.list[0].word, "zipf");
    assert_string_equal(p.list[1].name, "stride");
    assert_string_equal(p.list[1].word, "");
    assert_true(p.list[1].number == 16);
    assert_string_equal(p.list[2].name, "bins");
    assert_string_equal(iron__params_text(&p, true).text, "data zipf, stride 16");
    assert_string_equal(iron__params_text(&p, false).text, "bins 4294967296");
    p.count = 0;
    assert_string_equal(iron__params_text(&p, true).text, "");
}

static void numbers_are_written_plainly(void **state) {
    static const struct {
        double number;
        const char *text;
    } numbers[] = {{0, "0"},
                   {-0.0, "0"},
                   {0.5, "0.5"},
                   {-3, "-3"},
                   {65536, "65536"},
                   {0.1, "0.1"},
                   {1e9, "1000000000"},
                   {1e-5, "1e-05"},
                   {1.0 / 3, "0.333333333"}};

    (void)state;
    for (size_t k = 0; k < COUNT(numbers); k++)
        assert_string_equal(iron__param_number(numbers[k].number).text, numbers[k].text);
    assert_true(iron__number_is_whole(9007199254740992.0));
    assert_false(iron__number_is_whole(1e300));
    assert_false(iron__number_is_whole((double)__builtin_nan("")));
}

static void equal_params_are_the_same_in_any_order(void **state) {
    iron__params a = params_at(0, 1), b = a;

    (void)state;
    assert_true(iron__params_are_same(&a, &b));
    b.list[0] = a.list[2];
    b.list[2] = a.list[0];
    assert_true(iron__params_are_same(&a, &b));
    b.list[1].number = 1 + 1e-12; /* a report has nine digits */
    assert_true(iron__params_are_same(&a, &b));
    b.list[1].number = 2;
    assert_false(iron__params_are_same(&a, &b));
    b = params_at(1, 1);
    assert_false(iron__params_are_same(&a, &b));
    b = a;
    b.count--;
    assert_false(iron__params_are_same(&a, &b));
    b = a;
    snprintf(b.list[2].name, sizeof b.list[2].name, "boxes");
    assert_false(iron__params_are_same(&a, &b));
}

static axis_values chosen(const iron__axis *axis, const char *param, bool is_wide) {
    axis_values v;
    iron_error err;

    assert_ok(choose_values(&op_echo, axis, &param, param != NULL, is_wide, &v, &err), &err);
    return v;
}

static void without_a_request_all_values_or_the_first(void **state) {
    axis_values v = chosen(&echo_axes[0], NULL, true);

    (void)state;
    assert_int_equal(v.count, 3);
    assert_true(v.at[2] == 2 && !v.is_asked);
    assert_int_equal(chosen(&echo_axes[0], NULL, false).count, 1);
    v = chosen(&echo_axes[1], NULL, true);
    assert_int_equal(v.count, 3);
    assert_true(v.at[2] == 16);
    v = chosen(&echo_axes[1], "data=zipf", false); /* of another axis */
    assert_int_equal(v.count, 1);
    assert_true(v.at[0] == 1 && !v.is_asked);
}

static void values_are_chosen_in_the_requested_order(void **state) {
    axis_values v = chosen(&echo_axes[0], "data=zipf,plain", false);

    (void)state;
    assert_true(v.is_asked);
    assert_int_equal(v.count, 2);
    assert_true(v.at[0] == 2 && v.at[1] == 0);
    assert_int_equal(chosen(&echo_axes[0], "data=zipf,zipf", true).count, 1);
    v = chosen(&echo_axes[1], "stride=64,7,1", true);
    assert_int_equal(v.count, 3);
    assert_true(v.at[0] == 64 && v.at[1] == 7 && v.at[2] == 1);
    v = chosen(&grain_axes[0], "density=0,.125,1e-3,1", true);
    assert_int_equal(v.count, 4);
    assert_true(v.at[1] == 0.125 && v.at[2] == 0.001);
}

static void invalid_values_are_refused(void **state) {
    static const struct {
        const iron__axis *axis;
        const char *param, *value, *takes;
    } bad[] = {
        {&echo_axes[0], "data=zip", "'zip'", "plain, sorted or zipf"},
        {&echo_axes[0], "data=zipf,Plain", "'Plain'", "plain, sorted or zipf"},
        {&echo_axes[0], "data=zipf,", "''", "plain, sorted or zipf"},
        {&echo_axes[0], "data=1", "'1'", "plain, sorted or zipf"},
        {&echo_axes[1], "stride=0", "'0'", "whole numbers from 1 to 64"},
        {&echo_axes[1], "stride=65", "'65'", "whole numbers from 1 to 64"},
        {&echo_axes[1], "stride=1.5", "'1.5'", "whole numbers from 1 to 64"},
        {&echo_axes[1], "stride=wide", "'wide'", "whole numbers from 1 to 64"},
        {&echo_axes[1], "stride=0x10", "'0x10'", "whole"},
        {&echo_axes[1], "stride= 4", "' 4'", "whole"},
        {&echo_axes[1], "stride=4e", "'4e'", "whole"},
        {&echo_axes[1], "stride=.", "'.'", "whole"},
        {&echo_axes[1], "stride=1e999", "'1e999'", "whole"},
        {&echo_axes[1], "stride=nan", "'nan'", "whole"},
        {&grain_axes[0], "density=1.1", "'1.1'", "numbers from 0 to 1"},
        {&grain_axes[0], "density=-0.1", "'-0.1'", "numbers from 0 to 1"},
    };
    char many[1000] = "stride=";
    const char *param = many;
    axis_values v;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        assert_refused(choose_values(&op_echo, bad[k].axis, &bad[k].param, 1, true, &v, &err),
                       IRON_E_ARG, &err);
        assert_says(&err, bad[k].value);
        assert_says(&err, bad[k].takes);
        assert_says(&err, bad[k].axis->name);
        assert_says(&err, "echo");
    }
    memset(many + 7, 'x', 500); /* longer than any word */
    assert_refused(choose_values(&op_echo, &echo_axes[1], &param, 1, true, &v, &err), IRON_E_ARG,
                   &err);
}

static void params_have_a_name_and_values(void **state) {
    static const char *const bad[] = {"", "=", "data", "data=", "=zipf"};
    static const char *const good[] = {"data=zipf", "stride=1,2"};
    static const char *const twice[] = {"data=zipf", "stride=1", "data=plain"};
    static const char *const alike[] = {"data=zipf", "dat=1", "datas=1"};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(check_params(&bad[k], 1, &err), IRON_E_ARG, &err);
    assert_ok(check_params(NULL, 0, &err), &err);
    assert_ok(check_params(good, 2, &err), &err);
    assert_ok(check_params(alike, 3, &err), &err);
    assert_refused(check_params(twice, 3, &err), IRON_E_ARG, &err);
    assert_says(&err, "'data'");
    assert_true(is_about_axis("data=zipf", &echo_axes[0]));
    assert_false(is_about_axis("datas=zipf", &echo_axes[0]));
    assert_false(is_about_axis("dat=zipf", &echo_axes[0]));
}

static bool is_plain(const char *text) {
    return text[0] && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.+") == strlen(text);
}

static void check_axis(const iron__op *op, const iron__axis *axis) {
    static const char *const taken[] = {"vocab", "nodes", "streams", "threads", "size_name"};

    assert_true(is_plain(axis->name) && strlen(axis->name) < sizeof((iron__param *)0)->name);
    assert_true(axis->about && axis->about[0]);
    assert_in_range(axis->count, 1, AXIS_VALUES_MAX);
    for (size_t k = 0; k < COUNT(taken); k++)
        assert_string_not_equal(axis->name, taken[k]);
    for (size_t k = 0; k < axis->count; k++) {
        if (axis->words) {
            assert_true(is_plain(axis->words[k]));
            assert_true(strlen(axis->words[k]) < sizeof((iron__param *)0)->word);
        } else if (!(axis->numbers[k] >= axis->least && axis->numbers[k] <= axis->most) ||
                   (axis->is_whole && !iron__number_is_whole(axis->numbers[k]))) {
            fail_msg("%s: %s: %g is not one of its values", op->name, axis->name, axis->numbers[k]);
        }
    }
}

/* Requirements of the arena, for all ops. */
static void the_axes_of_all_ops_are_valid(void **state) {
    (void)state;
    for (size_t k = 0; iron__op_at(k); k++) {
        const iron__op *op = iron__op_at(k);
        iron__case c = {.op = op, .rows = 64, .cols = op->is_line ? 1 : 64, .element = op->usual};
        iron__params p;

        assert_in_range(op->axis_count, 0, IRON_OP_AXES);
        for (size_t a = 0; a < op->axis_count; a++) {
            check_axis(op, &op->axes[a]);
            c.at[a] = op->axes[a].words ? 0 : op->axes[a].numbers[0];
        }
        p = iron__params_of(&c);
        assert_in_range(p.count, op->axis_count, IRON_PARAMS_MAX);
        for (size_t a = 0; a < p.count; a++)
            for (size_t b = 0; b < a; b++)
                assert_string_not_equal(p.list[a].name, p.list[b].name);
    }
}

typedef struct request {
    iron_arena_options o;
    const char *globs[4], *params[4];
} request;

static void request_make(request *w, const char *glob) {
    *w = (request){.globs = {glob}};
    iron_arena_options_init(&w->o);
    w->o.globs = w->globs;
    w->o.glob_count = glob != NULL;
    w->o.params = w->params;
}

static void request_param(request *w, const char *param) { w->params[w->o.param_count++] = param; }

static iron__race_plan planned(const request *w) {
    iron__race_plan plan;
    iron_error err;

    assert_ok(plan_make(&plan, &w->o, fake_op_at, &err), &err);
    return plan;
}

static void refused(const request *w, const char *says) {
    iron__race_plan plan;
    iron_error err;

    assert_refused(plan_make(&plan, &w->o, fake_op_at, &err), IRON_E_ARG, &err);
    assert_says(&err, says);
    assert_null(strchr(err.text, '\n'));
}

/* The number of rows of that name. */
static size_t rows_of(const iron__race_plan *plan, const char *name) {
    size_t found = 0;

    for (size_t k = 0; k < plan->row_count; k++)
        found += strcmp(plan->rows[k].name, name) == 0;
    return found;
}

static void one_case_per_combination(void **state) {
    static const char *const expected[] = {
        "data plain, stride 1",  "data plain, stride 4",  "data plain, stride 16",
        "data sorted, stride 1", "data sorted, stride 4", "data sorted, stride 16",
        "data zipf, stride 1",   "data zipf, stride 4",   "data zipf, stride 16"};
    request w;
    iron__race_plan plan;

    (void)state;
    request_make(&w, "echo.cpu.*");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 9);
    for (size_t k = 0; k < COUNT(expected); k++) {
        assert_string_equal(plan.cases[k].axes.text, expected[k]);
        assert_string_equal(plan.cases[k].size, "1000");
    }
    assert_int_equal(rows_of(&plan, "echo.cpu.naive"), 9);
    for (size_t k = 1; k < plan.row_count; k++) /* one problem at a time */
        assert_true(plan.rows[k].case_index >= plan.rows[k - 1].case_index);
    plan_deinit(&plan);
    w.o.sizes = "20,30";
    plan = planned(&w);
    assert_int_equal(plan.case_count, 18);
    assert_string_equal(plan.cases[8].size, "20");
    assert_string_equal(plan.cases[9].size, "30");
    plan_deinit(&plan);
}

static void a_race_over_everything_takes_the_first_values(void **state) {
    request w;
    iron__race_plan plan;

    (void)state;
    request_make(&w, NULL);
    plan = planned(&w);
    assert_int_equal(plan.case_count, 2);
    assert_string_equal(plan.cases[0].axes.text, "data plain, stride 1");
    assert_string_equal(plan.cases[1].axes.text, "density 0.25");
    plan_deinit(&plan);
    request_param(&w, "data=sorted,zipf");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 3);
    assert_string_equal(plan.cases[1].axes.text, "data zipf, stride 1");
    plan_deinit(&plan);
    request_make(&w, "*");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 9 + 2);
    plan_deinit(&plan);
}

static void values_can_be_requested(void **state) {
    request w;
    iron__race_plan plan;

    (void)state;
    request_make(&w, "*.cpu.naive");
    request_param(&w, "stride=7,9");
    request_param(&w, "data=zipf");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 2 + 2); /* the other op's parameters are unchanged */
    assert_string_equal(plan.cases[0].axes.text, "data zipf, stride 7");
    assert_string_equal(plan.cases[1].axes.text, "data zipf, stride 9");
    assert_string_equal(plan.cases[3].axes.text, "density 0.5");
    assert_true(plan.cases[1].c.at[0] == 2 && plan.cases[1].c.at[1] == 9);
    plan_deinit(&plan);
}

static void unknown_params_are_refused(void **state) {
    request w;

    (void)state;
    request_make(&w, "echo.cpu");
    request_param(&w, "data=zip");
    refused(&w, "data is 'zip'");
    request_make(&w, "*");
    request_param(&w, "density=2");
    refused(&w, "numbers from 0 to 1");
    request_make(&w, "echo.*");
    request_param(&w, "density=0.5");
    refused(&w, "'density'; they have data (echo), stride (echo)");
    request_make(&w, NULL);
    request_param(&w, "bins=4");
    refused(&w, "data (echo), stride (echo), density (grain)");
    request_make(&w, "echo.*");
    request_param(&w, "zipf");
    refused(&w, "'zipf' is not NAME=VALUE");
    request_make(&w, "echo.*");
    request_param(&w, "stride=1");
    request_param(&w, "stride=4");
    refused(&w, "twice");
}

static void a_contender_races_only_in_cases_that_suit_it(void **state) {
    request w;
    iron__race_plan plan;

    (void)state;
    request_make(&w, "echo.cpu.*");
    plan = planned(&w);
    assert_int_equal(rows_of(&plan, "echo.cpu.zipf-only"), 3);
    for (size_t k = 0; k < plan.row_count; k++)
        if (strcmp(plan.rows[k].name, "echo.cpu.zipf-only") == 0)
            assert_true(plan.cases[plan.rows[k].case_index].c.at[0] == 2);
    plan_deinit(&plan);
    w.o.is_listing = 1; /* once, whatever the case */
    plan = planned(&w);
    assert_int_equal(rows_of(&plan, "echo.cpu.zipf-only"), 1);
    assert_int_equal(plan.case_count, 1);
    plan_deinit(&plan);
    request_make(&w, "echo.cpu.zipf-only");
    request_param(&w, "data=plain");
    refused(&w, "no chosen contender is for these cases");
}

/* A value that was not requested and does not fit is skipped; a requested one is refused. */
static void values_that_do_not_fit_a_size(void **state) {
    request w;
    iron__race_plan plan;

    (void)state;
    request_make(&w, "echo.cpu.naive");
    w.o.sizes = "5";
    plan = planned(&w);
    assert_int_equal(plan.case_count, 6);
    plan_deinit(&plan);
    request_param(&w, "data=zipf");
    plan = planned(&w);
    assert_int_equal(plan.case_count, 2);
    plan_deinit(&plan);
    request_param(&w, "stride=16");
    refused(&w, "stride 16 is beyond 5 elements");
    w.params[1] = "stride=1,16";
    refused(&w, "stride 16 is beyond 5 elements");
    w.o.param_count = 1;
    w.params[0] = "stride=1,7";
    refused(&w, "stride 7 is beyond 5 elements");
}

static uint32_t memories_of(const iron__race_plan *plan, const char *name) {
    uint32_t bits = 0;

    for (size_t k = 0; k < plan->row_count; k++)
        if (strcmp(plan->rows[k].name, name) == 0)
            bits |= IRON_BIT(plan->rows[k].memory);
    return bits;
}

static void resident_ops_time_kernels_only_by_default(void **state) {
    const uint32_t kernel = IRON_BIT(IRON_SCOPE_KERNEL), all = IRON_BIT(IRON_SCOPES) - 1;
    request w;
    iron__race_plan plan;

    (void)state;
    request_make(&w, "*.cuda.naive");
    plan = planned(&w);
    assert_int_equal(memories_of(&plan, "echo.cuda.naive"), IRON_BIT(IRON_GPU_PAGEABLE));
    assert_int_equal(memories_of(&plan, "grain.cuda.naive"), IRON_BIT(IRON_GPU_STRATEGIES) - 1);
    assert_int_equal(plan.cases[0].scopes, kernel);
    assert_int_equal(plan.cases[plan.case_count - 1].scopes, all);
    plan_deinit(&plan);
    w.o.memory = "all";
    w.o.scopes = "transfer";
    plan = planned(&w);
    assert_int_equal(memories_of(&plan, "echo.cuda.naive"), IRON_BIT(IRON_GPU_STRATEGIES) - 1);
    assert_int_equal(plan.cases[0].scopes, kernel | IRON_BIT(IRON_SCOPE_TRANSFER));
    plan_deinit(&plan);
    w.o.memory = "zero-copy,uvm";
    w.o.scopes = NULL;
    plan = planned(&w);
    assert_int_equal(memories_of(&plan, "echo.cuda.naive"),
                     IRON_BIT(IRON_GPU_ZERO_COPY) | IRON_BIT(IRON_GPU_UVM));
    assert_int_equal(plan.cases[0].scopes, kernel);
    plan_deinit(&plan);
}

/* A run of a second is accepted for a case with eight seconds, but too long when nine cases share a
 * minute. */
static void slow_rows_are_skipped_when_there_are_many_cases(void **state) {
    request w;
    iron__race_plan plan;
    size_t slow = 0;

    (void)state;
    request_make(&w, "echo.cpu.zipf-only");
    w.o.seconds = 8;
    request_param(&w, "data=zipf");
    request_param(&w, "stride=4");
    plan = planned(&w);
    assert_int_equal(plan.row_count, 1);
    assert_string_equal(plan.rows[0].reason, "");
    plan_deinit(&plan);
    request_make(&w, "echo.cpu.*");
    plan = planned(&w);
    for (size_t k = 0; k < plan.row_count; k++)
        if (plan.rows[k].reason[0]) {
            assert_string_equal(plan.rows[k].name, "echo.cpu.zipf-only");
            assert_non_null(strstr(plan.rows[k].reason, "about 1 s"));
            assert_non_null(strstr(plan.rows[k].reason, "--time 72 or more"));
            slow++;
        }
    assert_int_equal(slow, 3);
    plan_deinit(&plan);
    w.o.seconds = 72;
    plan = planned(&w);
    for (size_t k = 0; k < plan.row_count; k++)
        assert_string_equal(plan.rows[k].reason, "");
    plan_deinit(&plan);
}

static void too_many_cases_are_refused(void **state) {
    char sizes[64 * 4 + 1] = "", strides[8 + 64 * 3] = "stride=";
    request w;

    (void)state;
    for (int k = 0; k < 64; k++) {
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%d", k ? "," : "", 64 + k);
        snprintf(strides + strlen(strides), sizeof strides - strlen(strides), "%s%d", k ? "," : "",
                 1 + k);
    }
    request_make(&w, "echo.cpu.naive");
    w.o.sizes = sizes;
    request_param(&w, strides);
    refused(&w, "more than 4096 cases");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_the_whole_name),
        cmocka_unit_test(a_glob_that_ends_at_a_dot_matches_everything_below),
        cmocka_unit_test(a_wildcard_does_not_name_a_backend),
        cmocka_unit_test(sizes_have_names_and_numbers),
        cmocka_unit_test(a_bare_name_means_the_first_set),
        cmocka_unit_test(random_sizes_differ_and_stay_within_their_limit),
        cmocka_unit_test(sizes_of_other_ops_are_skipped),
        cmocka_unit_test(invalid_sizes_are_refused),
        cmocka_unit_test(memory_strategies_become_bits),
        cmocka_unit_test(scopes_become_bits_and_include_kernel),
        cmocka_unit_test(axes_come_first_then_facts),
        cmocka_unit_test(numbers_are_written_plainly),
        cmocka_unit_test(equal_params_are_the_same_in_any_order),
        cmocka_unit_test(without_a_request_all_values_or_the_first),
        cmocka_unit_test(values_are_chosen_in_the_requested_order),
        cmocka_unit_test(invalid_values_are_refused),
        cmocka_unit_test(params_have_a_name_and_values),
        cmocka_unit_test(the_axes_of_all_ops_are_valid),
        cmocka_unit_test(one_case_per_combination),
        cmocka_unit_test(a_race_over_everything_takes_the_first_values),
        cmocka_unit_test(values_can_be_requested),
        cmocka_unit_test(unknown_params_are_refused),
        cmocka_unit_test(a_contender_races_only_in_cases_that_suit_it),
        cmocka_unit_test(values_that_do_not_fit_a_size),
        cmocka_unit_test(resident_ops_time_kernels_only_by_default),
        cmocka_unit_test(slow_rows_are_skipped_when_there_are_many_cases),
        cmocka_unit_test(too_many_cases_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
