/* SPDX-License-Identifier: MIT */
/*
 * test_params.c: parameters of cases: how they are written, compared and chosen; that nothing is
 * understood but what an axis has; and that the axes of all ops can be told apart from what else
 * stands beside them in reports.
 */
#include "fake_op.h"

#include "arena/params.h"
#include "arena/select_params.h"

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
    assert_string_equal(iron__params_axes(&p).text, "data zipf, stride 16");
    assert_string_equal(iron__params_facts(&p).text, "bins 4294967296");
    p.count = 0;
    assert_string_equal(iron__params_axes(&p).text, "");
}

static void numbers_are_written_as_people_do(void **state) {
    static const struct {
        double number;
        const char *text;
    } told[] = {{0, "0"},
                {-0.0, "0"},
                {0.5, "0.5"},
                {-3, "-3"},
                {65536, "65536"},
                {0.1, "0.1"},
                {1e9, "1000000000"},
                {1e-5, "1e-05"},
                {1.0 / 3, "0.333333333"}};

    (void)state;
    for (size_t k = 0; k < COUNT(told); k++)
        assert_string_equal(iron__param_number(told[k].number).text, told[k].text);
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

static iron__axis_values chosen(const iron__axis *axis, const char *param, bool is_wide) {
    iron__axis_values v;
    iron_error err;

    assert_ok(iron__select_values(&op_echo, axis, &param, param != NULL, is_wide, &v, &err), &err);
    return v;
}

static void without_a_word_all_values_or_the_first(void **state) {
    iron__axis_values v = chosen(&echo_axes[0], NULL, true);

    (void)state;
    assert_int_equal(v.count, 3);
    assert_true(v.at[2] == 2 && !v.is_asked);
    assert_int_equal(chosen(&echo_axes[0], NULL, false).count, 1);
    v = chosen(&echo_axes[1], NULL, true);
    assert_int_equal(v.count, 3);
    assert_true(v.at[2] == 16);
    v = chosen(&echo_axes[1], "data=zipf", false); /* another axis's */
    assert_int_equal(v.count, 1);
    assert_true(v.at[0] == 1 && !v.is_asked);
}

static void values_are_chosen_in_the_order_asked_for(void **state) {
    iron__axis_values v = chosen(&echo_axes[0], "data=zipf,plain", false);

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

static void what_an_axis_does_not_have_is_refused(void **state) {
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
    iron__axis_values v;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        assert_refused(iron__select_values(&op_echo, bad[k].axis, &bad[k].param, 1, true, &v, &err),
                       IRON_E_ARG, &err);
        assert_says(&err, bad[k].value);
        assert_says(&err, bad[k].takes);
        assert_says(&err, bad[k].axis->name);
        assert_says(&err, "echo");
    }
    memset(many + 7, 'x', 500); /* longer than any word */
    assert_refused(iron__select_values(&op_echo, &echo_axes[1], &param, 1, true, &v, &err),
                   IRON_E_ARG, &err);
}

static void params_have_a_name_and_values(void **state) {
    static const char *const bad[] = {"", "=", "data", "data=", "=zipf"};
    static const char *const good[] = {"data=zipf", "stride=1,2"};
    static const char *const twice[] = {"data=zipf", "stride=1", "data=plain"};
    static const char *const alike[] = {"data=zipf", "dat=1", "datas=1"};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__params_check(&bad[k], 1, &err), IRON_E_ARG, &err);
    assert_ok(iron__params_check(NULL, 0, &err), &err);
    assert_ok(iron__params_check(good, 2, &err), &err);
    assert_ok(iron__params_check(alike, 3, &err), &err);
    assert_refused(iron__params_check(twice, 3, &err), IRON_E_ARG, &err);
    assert_says(&err, "'data'");
    assert_true(iron__param_is_of("data=zipf", &echo_axes[0]));
    assert_false(iron__param_is_of("datas=zipf", &echo_axes[0]));
    assert_false(iron__param_is_of("dat=zipf", &echo_axes[0]));
}

static bool is_plain(const char *text) {
    return text[0] && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.+") == strlen(text);
}

static void check_axis(const iron__op *op, const iron__axis *axis) {
    static const char *const taken[] = {"vocab", "nodes", "streams", "threads", "size_name"};

    assert_true(is_plain(axis->name) && strlen(axis->name) < sizeof((iron__param *)0)->name);
    assert_true(axis->about && axis->about[0]);
    assert_in_range(axis->count, 1, IRON_AXIS_VALUES_MAX);
    for (size_t k = 0; k < COUNT(taken); k++)
        assert_string_not_equal(axis->name, taken[k]);
    for (size_t k = 0; k < axis->count; k++) {
        if (axis->words) {
            assert_true(is_plain(axis->words[k]));
            assert_true(strlen(axis->words[k]) < sizeof((iron__param *)0)->word);
        } else if (!(axis->numbers[k] >= axis->least && axis->numbers[k] <= axis->most) ||
                   (axis->is_whole && !iron__number_is_whole(axis->numbers[k]))) {
            fail_msg("%s: %s: %g is not its own", op->name, axis->name, axis->numbers[k]);
        }
    }
}

/* Whatever ops there are: what the arena relies on. */
static void the_axes_of_all_ops_are_in_order(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_come_first_then_facts),
        cmocka_unit_test(numbers_are_written_as_people_do),
        cmocka_unit_test(equal_params_are_the_same_in_any_order),
        cmocka_unit_test(without_a_word_all_values_or_the_first),
        cmocka_unit_test(values_are_chosen_in_the_order_asked_for),
        cmocka_unit_test(what_an_axis_does_not_have_is_refused),
        cmocka_unit_test(params_have_a_name_and_values),
        cmocka_unit_test(the_axes_of_all_ops_are_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
