/* SPDX-License-Identifier: MIT */
/*
 * test_args.c: the parsers of the commands, and the help that is printed from the same table.
 * Input that is not understood is refused with a message that shows it, never skipped, rounded or
 * wrapped.
 */
#include "support.h"

#include "options.h"

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
                                      "1.",
                                      ".5k",
                                      "1.5",
                                      "1.25e1",
                                      "0.0001k",
                                      "0x10",
                                      "1e",
                                      "1e+",
                                      "1e-3",
                                      "1e20",
                                      "1e99999999999999999999",
                                      "k",
                                      "1kk",
                                      "1b",
                                      "1B",
                                      "1iB",
                                      "1 k",
                                      "1E6b",
                                      "1P",
                                      "17592186044416TiB",
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
    good_number("50k", 50000);
    good_number("50K", 50000);
    good_number("7kB", 7000);
    good_number("1e6", 1000000);
    good_number("1E+6", 1000000);
    good_number("0e99", 0);
    good_number("1.0", 1);
    good_number("1.5M", 1500000);
    good_number("1.25e2", 125);
    good_number("12.50e1k", 125000);
    good_number("2GiB", UINT64_C(1) << 31);
    good_number("3Ki", 3072);
    good_number("0.5KiB", 512);
    good_number("1T", UINT64_C(1000000000000));
    good_number("16777215TiB", UINT64_C(16777215) << 40);
    for (size_t k = 0; k < COUNT(bad); k++)
        bad_number(bad[k]);
}

static void good_real(const char *text, double want) {
    double value = NAN;
    iron_error err;

    assert_ok(parse_real("value", text, &value, &err), &err);
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

        assert_refused(parse_real("value", bad[k], &value, &err), IRON_E_ARG, &err);
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
    good_lattice("0,4294967295", (uint32_t[]){0, UINT32_MAX}, 2); /* refused by the library */
    good_lattice("15,7", (uint32_t[]){15, 7}, 2);
    for (size_t k = 0; k < COUNT(bad); k++) {
        uint32_t points[LATTICE_ROOM], count;
        iron_error err;

        assert_refused(parse_lattice(bad[k], points, &count, &err), IRON_E_ARG, &err);
    }
}

/* Too many values are reported as such, without a buffer overflow. */
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

/* A table like that of a subcommand, and the values that a command line sets. */
typedef struct inner {
    uint32_t threads;
    const char *format;
} inner;

typedef struct parsed {
    bool json, seal, nodes_given, json_given, params_given;
    uint64_t nodes, batch;
    const char *mode, *output, *positions;
    double share;
    text_list params;
    inner inner;
    args a;
    iron_status status;
    iron_error err;
} parsed;

#define ARGUMENTS_MAX 12

static const option own_table[] = {
    OPTION("json", OPTION_FLAG, NULL, parsed, json, "as JSON", GIVEN(parsed, json_given)),
    OPTION("seal", OPTION_FLAG, NULL, parsed, seal, "with a seal"),
    OPTION("nodes", OPTION_NUMBER, "N", parsed, nodes, "number of nodes", .standard = "4096",
           GIVEN(parsed, nodes_given)),
    OPTION("batch", OPTION_NUMBER, "B", parsed, batch, "size of a batch", .min = 2),
    OPTION("mode", OPTION_TEXT, "M", parsed, mode, "any mode", .choices = "fast slow"),
    OPTION("positions", OPTION_CHOICE, "P", parsed, positions, "how positions count",
           .choices = "stream batch", .standard = "stream"),
    OPTION("share", OPTION_REAL, "S", parsed, share, "a real number"),
    OPTION("output", OPTION_TEXT, "FILE", parsed, output, "output file", .letter = 'o'),
    OPTION("param", OPTION_LIST, "X=Y", parsed, params, "a parameter", GIVEN(parsed, params_given)),
};
static const option inner_table[] = {
    OPTION("threads", OPTION_NUMBER, "T", inner, threads, "number of threads", .min = 1,
           .max = 1024),
    OPTION("format", OPTION_TEXT, "F", inner, format, "file format"),
};
static const option_group groups[] = {
    {NULL, own_table, COUNT(own_table), 0},
    {"Inner options", inner_table, COUNT(inner_table), offsetof(parsed, inner)},
    {0}};

static void parse(parsed *p, char **argv) {
    int argc = 0;

    *p = (parsed){.nodes = 4096, .batch = 17};
    while (argv[argc])
        argc++;
    p->status = options_parse(groups, p, &p->a, argc, argv, &p->err);
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
    assert_says(&p.err, "64");
}

static void help(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("--help"));
    assert_true(p.status == IRON_OK && p.a.wants_help);
    parse(&p, LINE("file", "-h", "--json"));
    assert_true(p.status == IRON_OK && p.a.wants_help && p.json);
}

/* `given` is set for options of every kind. */
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
    refuse_line("-o=file", LINE("-o=file"));
    refuse_line("-ofile", LINE("-ofile"));
    refuse_line("--nodes", LINE("--nodes", "five"));
    refuse_line("--nodes", LINE("--nodes="));
    refuse_line("--nodes", LINE("--nodes", "-5"));
    refuse_line("--batch", LINE("--batch", "--json"));
    refuse_line("18446744073709551616", LINE("--batch", "18446744073709551616"));
}

static void numbers_have_ranges(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("--threads", "1024", "--format", "npy"));
    assert_values(&p, LINE(NULL));
    assert_int_equal(p.inner.threads, 1024);
    assert_string_equal(p.inner.format, "npy");
    refuse_line("--threads is 0; it must be 1 to 1024", LINE("--threads", "0"));
    refuse_line("--threads is 1025; it must be 1 to 1024", LINE("--threads=1025"));
    refuse_line("--threads is 4294967297", LINE("--threads=4294967297")); /* not wrapped to 1 */
    refuse_line("--batch is 1; it must be at least 2", LINE("--batch", "1"));
}

static void choices_are_checked(void **state) {
    static const char *const bad[] = {"", "Stream", "batches", "0", " stream", "stream batch"};
    parsed p;

    (void)state;
    parse(&p, LINE("--positions", "stream"));
    assert_string_equal(p.positions, "stream");
    parse(&p, LINE("--positions=batch"));
    assert_string_equal(p.positions, "batch");
    for (size_t k = 0; k < COUNT(bad); k++) {
        char value[32];

        snprintf(value, sizeof value, "%s", bad[k]);
        refuse_line(bad[k], LINE("--positions", value));
        refuse_line("stream, batch", LINE("--positions", value));
    }
    parse(&p, LINE("--mode", "other")); /* only a suggestion */
    assert_string_equal(p.mode, "other");
}

static void real_options(void **state) {
    parsed p;

    (void)state;
    parse(&p, LINE("--share", "-2.5e-1"));
    assert_values(&p, LINE(NULL));
    assert_true(p.share == -0.25);
    refuse_line("--share", LINE("--share", "half"));
}

static void assert_describes(const option *o, const char *term, const char *text) {
    char found[200];

    option_term(o, found, sizeof found);
    assert_string_equal(found, term);
    option_text(o, found, sizeof found);
    assert_string_equal(found, text);
}

static void help_is_made_from_the_table(void **state) {
    const command c = {.name = "demo",
                       .synopsis = "FILE [OPTIONS]",
                       .description = "Does things.",
                       .groups = {groups[0], groups[1]},
                       .exit_status = "0: success.",
                       .examples = "iron demo a\niron demo b"};
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    (void)state;
    assert_describes(&own_table[0], "--json", "as JSON");
    assert_describes(&own_table[2], "--nodes N", "number of nodes (default: 4096)");
    assert_describes(&own_table[4], "--mode M", "any mode (fast, slow)");
    assert_describes(&own_table[5], "--positions P",
                     "how positions count (stream, batch; default: stream)");
    assert_describes(&own_table[7], "-o, --output FILE", "output file");
    assert_describes(&inner_table[0], "--threads T", "number of threads (1 to 1024)");
    assert_non_null(to);
    command_help(to, "iron", &c);
    fclose(to);
    assert_ptr_equal(strstr(text, "usage: iron demo FILE [OPTIONS]\n\nDoes things.\n\nOptions:\n"),
                     text);
    assert_non_null(strstr(text, "\n\nInner options:\n  --threads T           number of threads"));
    assert_non_null(strstr(text, "\n\nExit status: 0: success.\n\nExamples:\n  iron demo a\n"));
    assert_string_equal(text + bytes - strlen("  iron demo b\n"), "  iron demo b\n");
    free(text);
}

static void long_lines_are_wrapped(void **state) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    (void)state;
    assert_non_null(to);
    print_wrapped(to, "one two three four\nfive verylongword", 4, 2, 12);
    fclose(to);
    assert_string_equal(text, "one two\n  three four\n  five\n  verylongword\n");
    free(text);
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
        cmocka_unit_test(numbers_have_ranges),
        cmocka_unit_test(choices_are_checked),
        cmocka_unit_test(real_options),
        cmocka_unit_test(help_is_made_from_the_table),
        cmocka_unit_test(long_lines_are_wrapped),
        cmocka_unit_test(usage_fills_the_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
