/* SPDX-License-Identifier: MIT */
/*
 * test_args.c: the command's parsers. What is not understood is refused with a sentence that shows
 * it, never skipped, rounded or wrapped.
 */
#include "support.h"

#include "args.h"

#include <math.h>

static void good_number(const char *text, uint64_t want) {
    uint64_t value = 99;
    iron_error err;

    assert_ok(parse_number("--x", text, &value, &err), &err);
    assert_true(value == want);
}

static void bad_number(const char *text) {
    uint64_t value;
    iron_error err;

    assert_refused(parse_number("--nodes", text, &value, &err), IRON_E_ARG, &err);
    assert_says(&err, "--nodes");
    assert_says(&err, text);
}

static void numbers(void **state) {
    static const char *const bad[] = {"",
                                      " ",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x10",
                                      "1e3",
                                      "1_0",
                                      "1,0",
                                      "ten",
                                      "12a",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "340282366920938463463374607431768211456"};

    (void)state;
    good_number("0", 0);
    good_number("7", 7);
    good_number("007", 7);
    good_number("4294967296", UINT64_C(1) << 32);
    good_number("18446744073709551615", UINT64_MAX);
    good_number("000000000000000000000000000000000000005", 5);
    for (size_t k = 0; k < COUNT(bad); k++)
        bad_number(bad[k]);
}

static void good_real(const char *text, double want) {
    double value = NAN;
    iron_error err;

    assert_ok(parse_real(text, &value, &err), &err);
    assert_true(value == want && signbit(value) == signbit(want));
}

static void reals(void **state) {
    static const char *const bad[] = {
        "",     " ",     ".",     "-",      "+",        "e5",   "1e",  "1e+",   "--1", "1-",
        "1..2", "1.2.3", "0x1",   "0x1p3",  "inf",      "-inf", "nan", "NaN",   " 1",  "1 ",
        "1,5",  "1f",    "1e400", "-1e400", "infinity", "e",    "-.",  "1e5e5", "+-1"};

    (void)state;
    good_real("0", 0);
    good_real("-0", -0.0);
    good_real("11.5", 11.5);
    good_real("-11.5", -11.5);
    good_real("+3", 3);
    good_real(".5", 0.5);
    good_real("5.", 5);
    good_real("1e3", 1000);
    good_real("-2.5E-1", -0.25);
    good_real("1e308", 1e308);
    good_real("0.1", 0.1);
    for (size_t k = 0; k < COUNT(bad); k++) {
        double value;
        iron_error err;

        assert_refused(parse_real(bad[k], &value, &err), IRON_E_ARG, &err);
        assert_says(&err, bad[k]);
    }
}

static void good_lattice(const char *text, const uint32_t *want, uint32_t want_count) {
    uint32_t points[LATTICE_ROOM], count = 99;
    iron_error err;

    assert_ok(parse_lattice(text, points, &count, &err), &err);
    assert_int_equal(count, want_count);
    assert_memory_equal(points, want, want_count * sizeof *want);
}

static void lattices(void **state) {
    static const char *const bad[] = {"",
                                      ",",
                                      "7,",
                                      ",7",
                                      "7,,8",
                                      "7, 8",
                                      "7;8",
                                      "a",
                                      "7,b",
                                      "7,-8",
                                      "7,8.5",
                                      "4294967296",
                                      "7,18446744073709551616",
                                      "7,99999999999999999999999999999999"};

    (void)state;
    good_lattice("7", (uint32_t[]){7}, 1);
    good_lattice("7,15,23", (uint32_t[]){7, 15, 23}, 3);
    good_lattice("0,4294967295", (uint32_t[]){0, UINT32_MAX}, 2); /* the library's to refuse */
    good_lattice("15,7", (uint32_t[]){15, 7}, 2);
    for (size_t k = 0; k < COUNT(bad); k++) {
        uint32_t points[LATTICE_ROOM], count;
        iron_error err;

        assert_refused(parse_lattice(bad[k], points, &count, &err), IRON_E_ARG, &err);
    }
}

/* Too many must show as too many, and not run over the end. */
static void long_lattices(void **state) {
    for (uint32_t n = 60; n < 200; n++) {
        uint32_t points[LATTICE_ROOM + 1], count;
        char text[2000] = "";
        size_t used = 0;
        iron_error err;

        points[LATTICE_ROOM] = 0xABCD;
        for (uint32_t k = 1; k <= n; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", k > 1 ? "," : "", k);
        assert_ok(parse_lattice(text, points, &count, &err), &err);
        assert_int_equal(count, n < LATTICE_ROOM ? n : LATTICE_ROOM);
        for (uint32_t k = 0; k < count; k++)
            assert_int_equal(points[k], k + 1);
        assert_int_equal(points[LATTICE_ROOM], 0xABCD);
    }
    (void)state;
}

static void positions(void **state) {
    static const char *const bad[] = {"", "Stream", "batches", "0", " stream"};
    iron_positions p = IRON_POSITIONS_BATCH;
    iron_error err;

    (void)state;
    assert_ok(parse_positions("stream", &p, &err), &err);
    assert_int_equal(p, IRON_POSITIONS_STREAM);
    assert_ok(parse_positions("batch", &p, &err), &err);
    assert_int_equal(p, IRON_POSITIONS_BATCH);
    for (size_t k = 0; k < COUNT(bad); k++) {
        assert_refused(parse_positions(bad[k], &p, &err), IRON_E_ARG, &err);
        assert_says(&err, bad[k]);
    }
}

/* A table like a subcommand's, and what a command line leaves in it. */
typedef struct parsed {
    bool json, seal, nodes_given, json_given, params_given;
    uint64_t nodes, batch;
    const char *mode, *output;
    text_list params;
    args a;
    iron_status status;
    iron_error err;
} parsed;

#define ARGUMENTS_MAX 12

static void parse(parsed *p, char **argv) {
    const option options[] = {{"json", OPTION_FLAG, &p->json, &p->json_given},
                              {"seal", OPTION_FLAG, &p->seal, NULL},
                              {"nodes", OPTION_NUMBER, &p->nodes, &p->nodes_given},
                              {"batch", OPTION_NUMBER, &p->batch, NULL},
                              {"mode", OPTION_TEXT, &p->mode, NULL},
                              {"output", OPTION_TEXT, &p->output, NULL},
                              {"param", OPTION_LIST, &p->params, &p->params_given}};
    int argc = 0;

    *p = (parsed){.nodes = 4096, .batch = 17};
    p->a = (args){.options = options, .option_count = COUNT(options)};
    while (argv[argc])
        argc++;
    p->status = args_parse(&p->a, argc, argv, &p->err);
    p->a.options = NULL;
}

/* argv is rearranged, so every line is an array of its own. */
#define LINE(...)                                                                                  \
    (char *[ARGUMENTS_MAX]) { __VA_ARGS__ }

static void assert_values(const parsed *p, char **want) {
    size_t count = 0;

    if (p->status != IRON_OK)
        fail_msg("%s", p->err.text);
    for (; want[count]; count++) {
        assert_true(count < p->a.value_count);
        assert_string_equal(p->a.values[count], want[count]);
    }
    assert_int_equal(p->a.value_count, count);
}

static void nothing_at_all(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE(NULL));
    assert_values(&p, LINE(NULL));
    assert_true(!p.json && !p.seal && !p.a.wants_help && !p.nodes_given && !p.mode);
    assert_true(p.nodes == 4096 && p.batch == 17);
}

static void values_and_options_mix(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("a", "--nodes", "12", "b", "--json", "--mode=node", "-", "--batch=5", "c"));
    assert_values(&p, LINE("a", "b", "-", "c"));
    assert_true(p.json && !p.seal && p.nodes_given && p.nodes == 12 && p.batch == 5);
    assert_string_equal(p.mode, "node");
    parse(&p, LINE("--mode", "", "", "--output="));
    assert_values(&p, LINE(""));
    assert_string_equal(p.mode, "");
    assert_string_equal(p.output, "");
}

static void short_output(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("-o", "file", "x"));
    assert_values(&p, LINE("x"));
    assert_string_equal(p.output, "file");
    parse(&p, LINE("-o", "-"));
    assert_values(&p, LINE(NULL));
    assert_string_equal(p.output, "-");
    parse(&p, LINE("--output", "-o"));
    assert_values(&p, LINE(NULL));
    assert_string_equal(p.output, "-o");
}

static void negative_numbers_are_values(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("-11.5", "-.5", "-0", "--json", "-7"));
    assert_values(&p, LINE("-11.5", "-.5", "-0", "-7"));
    assert_true(p.json);
}

static void two_dashes_end_the_options(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("a", "--", "--json", "-x", "--", "--help"));
    assert_values(&p, LINE("a", "--json", "-x", "--", "--help"));
    assert_true(!p.json && !p.a.wants_help);
}

static void the_last_of_several_counts(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("--nodes", "1", "--nodes=2", "--mode", "a", "--mode", "b"));
    assert_values(&p, LINE(NULL));
    assert_int_equal(p.nodes, 2);
    assert_string_equal(p.mode, "b");
}

static void a_list_keeps_all(void **state) {
    char name[] = "--param", value[] = "x=1", *many[2 * LIST_ROOM + 3] = {NULL};
    parsed p;

    (void)state;
    parse(&p, LINE("a", "--json"));
    assert_int_equal(p.params.count, 0);
    assert_false(p.params_given);
    parse(&p, LINE("--param", "x=1", "a", "--param=y=2,3", "--param", "x=1"));
    assert_values(&p, LINE("a"));
    assert_true(p.params_given);
    assert_int_equal(p.params.count, 3);
    assert_string_equal(p.params.texts[0], "x=1");
    assert_string_equal(p.params.texts[1], "y=2,3");
    assert_string_equal(p.params.texts[2], "x=1");
    for (size_t k = 0; k <= LIST_ROOM; k++) {
        many[2 * k] = name;
        many[2 * k + 1] = value;
    }
    parse(&p, many);
    assert_int_equal(p.status, IRON_E_ARG);
    assert_says(&p.err, "--param");
    assert_says(&p.err, "16");
}

static void help(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("--help"));
    assert_true(p.status == IRON_OK && p.a.wants_help);
    parse(&p, LINE("file", "-h", "--json"));
    assert_true(p.status == IRON_OK && p.a.wants_help && p.json);
}

/* args.h: given is "set when the option was there", of whatever kind. */
static void given_is_set_for_flags_too(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("--json"));
    assert_values(&p, LINE(NULL));
    assert_true(p.json);
    assert_true(p.json_given);
}

static void refuse_line(const char *word, char **argv) {
    parsed p;

    parse(&p, argv);
    assert_int_equal(p.status, IRON_E_ARG);
    assert_int_equal(p.err.status, IRON_E_ARG);
    assert_says(&p.err, word);
}

static void bad_lines(void **state) {
    (void)state;
    refuse_line("--nods", LINE("--nods", "5"));
    refuse_line("--node", LINE("--node=5")); /* no abbreviations */
    refuse_line("--nodesx", LINE("--nodesx=5"));
    refuse_line("-x", LINE("-x"));
    refuse_line("-json", LINE("-json"));
    refuse_line("-n", LINE("-n5"));
    refuse_line("--=5", LINE("--=5"));
    refuse_line("---json", LINE("---json"));
    refuse_line("--json", LINE("--json=yes"));
    refuse_line("--json", LINE("--json="));
    refuse_line("--nodes", LINE("a", "--nodes"));
    refuse_line("-o", LINE("-o"));
    refuse_line("--nodes", LINE("--nodes", "five"));
    refuse_line("--nodes", LINE("--nodes="));
    refuse_line("--nodes", LINE("--nodes", "-5"));
    refuse_line("--batch", LINE("--batch", "--json"));
    refuse_line("18446744073709551616", LINE("--batch", "18446744073709551616"));
}

static void usage_fills_the_error(void **state) {
    iron_error err = {.native = 5};

    (void)state;
    assert_int_equal(usage(&err, "no %s of %d", "kind", 3), IRON_E_ARG);
    assert_int_equal(err.status, IRON_E_ARG);
    assert_int_equal(err.native, 0);
    assert_string_equal(err.text, "no kind of 3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(reals),
        cmocka_unit_test(lattices),
        cmocka_unit_test(long_lattices),
        cmocka_unit_test(positions),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(values_and_options_mix),
        cmocka_unit_test(short_output),
        cmocka_unit_test(negative_numbers_are_values),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(the_last_of_several_counts),
        cmocka_unit_test(a_list_keeps_all),
        cmocka_unit_test(help),
        cmocka_unit_test(given_is_set_for_flags_too),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(usage_fills_the_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
