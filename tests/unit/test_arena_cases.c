/* SPDX-License-Identifier: MIT */
/*
 * test_arena_cases.c: a race over several cases on the CPU, with the ops of fake_op.h: which rows
 * are compared, how reports show parameters, answers in the contender's own order, one problem in
 * memory at a time, and one measurement of the ceilings for all cases.
 */
#include "fake_op.h"

#include "arena/arena.c"
#include "arena/compare.c"
#include "arena/device_cpu.c"
#include "arena/report.c"

#include <math.h>

#define RUNS 3u

/* One race for most of the tests. */
static iron_arena *arena;
static iron_status outcome;
static iron_error outcome_says;

static const char *const globs[] = {"echo.cpu.*", "grain.cpu.*"};
static const char *const params[] = {"stride=4,1", "density=0.125"};

static iron_arena *opened(void) {
    iron_arena_options o;
    iron_arena *a = NULL;
    iron_error err;

    iron_arena_options_init(&o);
    o.globs = globs;
    o.glob_count = COUNT(globs);
    o.params = params;
    o.param_count = COUNT(params);
    o.runs = RUNS;
    o.threads = 1;
    assert_ok(open_arena(&o, fake_op_at, &a, &err), &err);
    a->ceiling_bytes = 16 << 20;
    return a;
}

static int set_up(void **state) {
    (void)state;
    arena = opened();
    outcome = iron_arena_race(arena, &outcome_says);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    iron_arena_close(arena);
    return 0;
}

static const iron__report_row *row_of(const char *contender, const char *axes) {
    for (size_t k = 0; k < arena->report.row_count; k++) {
        const iron__report_row *r = &arena->report.rows[k];

        if (strcmp(r->contender, contender) == 0 &&
            strcmp(iron__params_text(&r->params, true).text, axes) == 0)
            return r;
    }
    fail_msg("no %s, %s", contender, axes);
    return NULL;
}

/* Everything that a printer writes; free() it. */
static char *printed(void (*print)(const iron__report *report, FILE *to)) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    assert_non_null(to);
    print(&arena->report, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void table(const iron__report *report, FILE *to) { print_table(report, to, false, 100); }

/* echo: 3 words x 2 strides; naive and packed in each, zipf-only in two. grain: 1 x 2. */
static void every_case_has_its_rows(void **state) {
    (void)state;
    assert_int_equal(arena->plan.case_count, 7);
    assert_int_equal(arena->report.row_count, 6 * 2 + 2 + 2);
    (void)row_of("zipf-only", "data zipf, stride 4");
    (void)row_of("zipf-only", "data zipf, stride 1");
    assert_int_equal(arena->report.op_count, 2);
    assert_ptr_equal(arena->report.ops[1], &op_grain);
}

static void one_problem_is_in_memory_at_a_time(void **state) {
    (void)state;
    assert_int_equal(fake_problems.made, 7);
    assert_int_equal(fake_problems.most_alive, 1);
    assert_int_equal(fake_problems.alive, 0);
}

static void ceilings_are_measured_per_device(void **state) {
    const iron__report *r = &arena->report;

    (void)state;
    assert_int_equal(r->ceiling_count, 4);
    for (size_t k = 0; k < r->row_count; k++) {
        const iron__report_scope *kernel = iron__row_scope(&r->rows[k], IRON_SCOPE_KERNEL);
        size_t which = strcmp(r->rows[k].op, "echo") == 0 ? 2 : 0; /* copy, read */

        if (kernel)
            assert_true(fabs(kernel->percent_of_ceiling * r->ceilings[which].figures.gb_s / 100 -
                             kernel->gb_s) < 1e-6 * kernel->gb_s);
    }
}

static void answers_in_another_order_are_unpacked(void **state) {
    (void)state;
    for (size_t k = 0; k < arena->report.row_count; k++) {
        const iron__report_row *r = &arena->report.rows[k];
        bool is_wrong = strcmp(r->contender, "forgetful") == 0;

        assert_int_equal(r->status, is_wrong ? IRON_ROW_WRONG : IRON_ROW_OK);
        assert_int_equal(r->is_verified, !is_wrong);
        assert_null(r->kernels);
    }
}

/* Elements that unpack does not write are not taken from an earlier answer. */
static void incomplete_unpacking_is_wrong(void **state) {
    const iron__report_row *r = row_of("forgetful", "density 0.125");

    (void)state;
    assert_non_null(strstr(r->reason, "y[999] is ffffffff"));
    assert_int_equal(outcome, IRON_E_MISMATCH);
    assert_says(&outcome_says, "1 wrong: grain.cpu.forgetful, density 0.125: kernel: y[999]");
}

static void a_case_is_a_group(void **state) {
    const iron__report *r = &arena->report;
    size_t groups = 0;

    (void)state;
    for (size_t first = 0, end; first < r->row_count; first = end, groups++) {
        end = iron__report_group_end(r, first);
        for (size_t k = first; k < end; k++) {
            const iron__report_row *row = &r->rows[k];
            const iron__report_row *base =
                row_of("naive", iron__params_text(&row->params, true).text);

            if (row->status != IRON_ROW_OK)
                continue;
            assert_int_equal(row->rank, k - first + 1);
            assert_true(fabs(row->speedup - base->scopes[IRON_SCOPE_KERNEL].warm.median /
                                                row->scopes[IRON_SCOPE_KERNEL].warm.median) <
                        1e-9 * row->speedup);
        }
    }
    assert_int_equal(groups, 7);
}

static void json_has_words_and_numbers(void **state) {
    char *text = printed(print_json);

    (void)state;
    assert_non_null(strstr(text, "\"params\": {\"data\": \"zipf\", \"stride\": 4, \"bins\": "
                                 "4294967296, \"threads\": 1}"));
    assert_non_null(strstr(text, "\"params\": {\"density\": 0.125, \"threads\": 1}"));
    assert_non_null(strstr(text, "\"kernels\": []"));
    assert_non_null(strstr(text, "'echo.cpu.*' 'grain.cpu.*' --param 'stride=4,1' --param "
                                 "'density=0.125' "));
    free(text);
}

static void tables_have_the_case_as_title(void **state) {
    char *text = printed(table);

    (void)state;
    assert_non_null(strstr(text, "\necho 1000 u32, data sorted, stride 4: 7.8 KiB of useful bytes; "
                                 "bins 4294967296\n"));
    assert_non_null(strstr(text, "\ngrain 1000 u32, density 0.125: 7.8 KiB of useful bytes\n"));
    assert_null(strstr(text, "regs"));
    free(text);
    text = printed(print_markdown);
    assert_non_null(strstr(text, "\n## echo 1000 u32, data sorted, stride 4\n\n7.8 KiB of useful "
                                 "bytes; bins 4294967296.\n"));
    assert_null(strstr(text, "registers"));
    free(text);
}

static void csv_has_one_field_per_param(void **state) {
    char *text = printed(print_csv);
    size_t lines = 0;

    (void)state;
    assert_non_null(strstr(
        text, ",occupancy_percent,params.data,params.stride,params.bins,params.density\r\n"));
    for (const char *at = text; (at = strstr(at, ",zipf,4,4294967296,\r\n")); at++)
        lines++;
    assert_int_equal(lines, 3);
    assert_non_null(strstr(text, ",,,,0.125\r\n"));
    free(text);
}

static void pages_contain_the_texts_of_ops(void **state) {
    char *text = printed(print_html);

    (void)state;
    assert_non_null(strstr(text, "{\"title\": \"Bytes moved\", \"text\": \"x once, y once.\"}"));
    assert_non_null(strstr(text, "Nowhere, \\u003c/script> not even here."));
    assert_null(strstr(text, "\"title\": \"Measured\""));
    assert_non_null(strstr(text, "\"values\": \"plain, sorted, zipf\""));
    assert_non_null(strstr(text, "{\"name\": \"packed\", \"backends\": \"cpu\", \"idea\": \"the "
                                 "last comes first\", \"beats\": \"naive\"}"));
    assert_non_null(strstr(text, "\"backends\": \"cuda, opencl\""));
    free(text);
}

static void plan_rows_have_params(void **state) {
    iron_arena_row row = {.struct_size = sizeof row};
    iron_error err;

    (void)state;
    assert_ok(iron_arena_at(arena, 0, &row, &err), &err);
    assert_string_equal(row.params, "data plain, stride 4");
}

/* Compares the race with its own report, in which `from` is replaced by `to`. */
static comparison compare_edited(const char *from, const char *to) {
    char *text = printed(print_json);
    folder home;
    file_name old;
    iron_error err;
    comparison c;

    assert_int_equal(strlen(from), strlen(to));
    for (char *at = text; (at = strstr(at, from)); at += strlen(from))
        for (size_t k = 0; to[k]; k++)
            at[k] = to[k];
    folder_make(&home);
    old = name_in(&home, "old.json");
    file_write(old.path, text, strlen(text));
    free(text);
    assert_ok(compare_reports(old.path, &arena->report, 5, &c, &err), &err);
    folder_remove(&home);
    return c;
}

/* 15 rows are right, the wrong one is the same before and now. */
static void a_comparison_finds_each_case(void **state) {
    static const struct {
        const char *from, *to;
        size_t same;
    } changes[] = {{"zipf\"", "zipf\"", 15},
                   {"\"zipf\"", "\"flat\"", 15 - 6},
                   {"\"stride\": 4", "\"stride\": 5", 15 - 7},
                   {"0.125", "0.126", 15 - 1},
                   {"\"bins\"", "\"bits\"", 15 - 14}};

    (void)state;
    for (size_t k = 0; k < COUNT(changes); k++) {
        comparison c = compare_edited(changes[k].from, changes[k].to);

        assert_int_equal(c.counts[CHANGE_SAME], changes[k].same);
        assert_true(c.counts[CHANGE_GONE] == c.counts[CHANGE_NEW]);
        comparison_deinit(&c);
    }
}

/* Outputs of all contenders are in memory at once; one that does not fit is refused. */
static void contenders_that_do_not_fit_are_refused(void **state) {
    iron__op_problem p = {.c = {.op = &op_echo}, .output_bytes = 4096};
    cpu_device s = {.problem = &p, .host_bytes = 16384, .used_bytes = 8192};
    iron__race_contender *first = NULL, *second = NULL;
    iron__race_plan_row row = {.case_index = 0};
    iron_error err;

    (void)state;
    assert_true(op_echo.contender_at(0, &row.contender));
    assert_ok(open_contender(&s.base, &row, NULL, &first, &err), &err);
    assert_int_equal(open_contender(&s.base, &row, NULL, &second, &err), IRON_E_NOMEM);
    assert_null(second);
    assert_says(&err, "too large for this machine beside the others");
    assert_int_equal(s.used_bytes, 8192 + 4096);
    first->ops->close(first);
    assert_int_equal(s.used_bytes, 8192);
    assert_ok(open_contender(&s.base, &row, NULL, &second, &err), &err);
    second->ops->close(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_has_its_rows),
        cmocka_unit_test(one_problem_is_in_memory_at_a_time),
        cmocka_unit_test(ceilings_are_measured_per_device),
        cmocka_unit_test(answers_in_another_order_are_unpacked),
        cmocka_unit_test(incomplete_unpacking_is_wrong),
        cmocka_unit_test(a_case_is_a_group),
        cmocka_unit_test(json_has_words_and_numbers),
        cmocka_unit_test(tables_have_the_case_as_title),
        cmocka_unit_test(csv_has_one_field_per_param),
        cmocka_unit_test(pages_contain_the_texts_of_ops),
        cmocka_unit_test(plan_rows_have_params),
        cmocka_unit_test(a_comparison_finds_each_case),
        cmocka_unit_test(contenders_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
