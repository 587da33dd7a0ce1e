/* SPDX-License-Identifier: MIT */
/*
 * test_report.c: every printer, on synthetic reports of three kinds: fields, escapes, widths. The
 * files stay in REPORT_FOLDER, where tests/pages/ checks them with a JSON parser, a schema and a
 * browser.
 */
#include "report_support.h"

#include "arena/report.c"
#include "core/json.h"

static const char *const kinds[] = {"wide", "usual", "tiny"};

typedef void (*printer)(const iron__report *report, FILE *to);

/* Everything that the printer writes; free() it. */
static char *printed(printer print, const iron__report *report, size_t *bytes) {
    char *text = NULL;
    FILE *to = open_memstream(&text, bytes);

    assert_non_null(to);
    print(report, to);
    assert_int_equal(ferror(to), 0);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void table_100(const iron__report *report, FILE *to) { print_table(report, to, false, 100); }
static void terminal_100(const iron__report *report, FILE *to) {
    print_table(report, to, true, 100);
}
static void terminal_140(const iron__report *report, FILE *to) {
    print_table(report, to, true, 140);
}
static void table_60(const iron__report *report, FILE *to) { print_table(report, to, false, 60); }

static void files_for_the_other_tests(void **state) {
    static const struct {
        printer print;
        const char *suffix;
    } files[] = {
        {print_json, "json"}, {print_csv, "csv"},        {print_markdown, "md"},
        {print_html, "html"}, {terminal_140, "140.txt"}, {terminal_100, "100.txt"},
    };

    (void)state;
    mkdir(REPORT_FOLDER, 0777);
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        sample *s = sample_make((sample_kind)kind);

        for (size_t k = 0; k < COUNT(files); k++) {
            size_t bytes;
            char *text = printed(files[k].print, &s->report, &bytes);
            char path[512];

            snprintf(path, sizeof path, "%s/%s.%s", REPORT_FOLDER, kinds[kind], files[k].suffix);
            file_write(path, text, bytes);
            free(text);
        }
        free(s);
    }
}

/* Parses the fields of the CSV record at *at and moves *at after it; handles quotes and doubled
 * quotes. */
static size_t csv_fields(const char **at) {
    bool is_quoted = false;
    size_t fields = 1;

    for (; **at; ++*at) {
        if (**at == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted && **at == ',')
            fields++;
        else if (!is_quoted && **at == '\r')
            break;
    }
    assert_false(is_quoted);
    assert_memory_equal(*at, "\r\n", 2);
    *at += 2;
    return fields;
}

static void csv_has_equal_records(void **state) {
    sample *s = sample_make(SAMPLE_WIDE);
    size_t bytes, records = 0, expected = 0, fields;
    char *text = printed(print_csv, &s->report, &bytes);
    const char *at = text;

    (void)state;
    fields = csv_fields(&at);
    assert_int_equal(fields, 44 + 8 + 2);
    for (; *at; records++)
        assert_int_equal(csv_fields(&at), fields);
    for (size_t k = 0; k < s->report.row_count; k++) {
        size_t scopes = 0;

        for (iron__scope c = 0; c < IRON_SCOPES; c++)
            scopes += s->rows[k].scopes[c].is_measured;
        expected += scopes ? scopes : 1;
    }
    assert_int_equal(records, expected);
    assert_non_null(strstr(text, "onclick=\"\"x\"\""));
    free(text);
    free(s);
}

/* The longest line, in characters; terminal sequences do not count. */
static int widest(const char *text) {
    int most = 0, now = 0;

    for (; *text; text++) {
        if (*text == '\033') {
            text += strcspn(text, "m");
            continue;
        }
        if (*text == '\n')
            now = 0;
        else if (((unsigned char)*text & 0xC0) != 0x80)
            most = ++now > most ? now : most;
    }
    return most;
}

static void tables_fit(void **state) {
    static const struct {
        printer print;
        int width;
    } tables[] = {{table_100, 100}, {terminal_100, 100}, {terminal_140, 140}, {table_60, 60}};

    (void)state;
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        sample *s = sample_make((sample_kind)kind);

        for (size_t k = 0; k < COUNT(tables); k++) {
            size_t bytes;
            char *text = printed(tables[k].print, &s->report, &bytes);

            if (widest(text) > tables[k].width)
                fail_msg("%s: %d columns, not %d", kinds[kind], widest(text), tables[k].width);
            free(text);
        }
        free(s);
    }
}

static void tables_show_problems(void **state) {
    sample *s = sample_make(SAMPLE_USUAL);
    size_t bytes;
    char *plain = printed(table_100, &s->report, &bytes);
    char *inked = printed(terminal_140, &s->report, &bytes);

    (void)state;
    assert_null(strchr(plain, '\033')); /* nor does the one in a reason get through */
    assert_null(strstr(plain, "█"));
    assert_non_null(strstr(plain, "tokens.cuda.champion pinned"));
    assert_non_null(strstr(plain, "WRONG: element 4095: 0x9f3a0001, should be 0x9f3a0000"));
    assert_non_null(strstr(plain, "cuda ceiling: read"));
    assert_non_null(strstr(plain, "has no shared virtual memory: tokens.opencl.champion/uvm "
                                  "atax.opencl.single-pass/uvm"));
    assert_non_null(strstr(plain, "FAILED: </script>"));
    assert_non_null(strstr(inked, "\033[1;31m tokens.cuda.tiled"));
    assert_non_null(strstr(inked, "█"));
    assert_null(strstr(inked, "\033[31m"));
    free(plain);
    free(inked);
    free(s);
}

static void cached_rows_and_peers_are_marked(void **state) {
    sample *s = sample_make(SAMPLE_WIDE);
    size_t bytes;
    char *text = printed(table_100, &s->report, &bytes);

    (void)state;
    assert_non_null(strstr(text, "~ cache-resident"));
    assert_non_null(strstr(text, "*~ tokens.cuda.cub pinned"));
    free(text);
    text = printed(print_markdown, &s->report, &bytes);
    assert_non_null(strstr(text, "tokens.cuda.cub pinned (peer) (cache-resident) |"));
    free(text);
    free(s);
}

/* Every line of a table has the same number of bars, whatever a reason contains. */
static void markdown_keeps_its_tables(void **state) {
    sample *s = sample_make(SAMPLE_WIDE);
    size_t bytes;
    char *text = printed(print_markdown, &s->report, &bytes), *rest = text, *record;
    size_t tables = 0;

    (void)state;
    while ((record = strsep(&rest, "\n"))) {
        size_t bars = 0;

        if (record[0] != '|')
            continue;
        for (char *at = record; *at; at++)
            bars += *at == '|' && (at == record || at[-1] != '\\');
        assert_true(bars == 8 || bars == 15 + 4);
        tables += strncmp(record, "|---", 4) == 0;
    }
    assert_int_equal(tables, 1 + 8);
    free(text);
    text = printed(print_markdown, &s->report, &bytes);
    assert_non_null(strstr(text, "\\</script\\>\\<b onclick"));
    free(text);
    free(s);
}

static void pages_hold_text_as_text(void **state) {
    sample *s = sample_make(SAMPLE_USUAL);
    size_t bytes, ends = 0;
    char *text = printed(print_html, &s->report, &bytes);

    (void)state;
    assert_null(strstr(text, "{{"));
    assert_null(strstr(text, "<b onclick"));
    assert_null(strstr(text, "\xE2\x80\xA8"));
    assert_non_null(strstr(text, "\\u003c/script>\\u003cb onclick=\\\"x\\\">"));
    for (const char *at = text; (at = strstr(at, "</script>")); at++)
        ends++;
    assert_int_equal(ends, 4); /* the data, the ops, the comparison and the program */
    assert_null(strstr(text, "https://"));
    free(text);
    free(s);
}

/* The main kernel is the one with the most threads; unknown figures are left out. */
static void kernels_show_their_resources(void **state) {
    sample *s = sample_make(SAMPLE_USUAL);
    size_t bytes;
    char *text = printed(print_json, &s->report, &bytes);

    (void)state;
    assert_non_null(strstr(text, "\"kernels\": [{\"name\": \"clear\", \"groups\": 1, \"threads\": "
                                 "256}, {\"name\": \"histogram_local\", \"groups\": 1056, "
                                 "\"threads\": 256, \"registers\": 40, \"local_bytes\": 49152, "
                                 "\"spill_bytes\": 0, \"groups_per_unit\": 4, "
                                 "\"occupancy_percent\": 50}, {\"name\": \"turn\", \"groups\": "
                                 "99999, \"threads\": 256, \"prepare\": true}]"));
    assert_non_null(strstr(text, "{\"name\": \"tokens_champion\", \"groups\": 1056, \"threads\": "
                                 "256, \"local_bytes\": 1024}, {\"name\": \"turn\""));
    assert_non_null(strstr(text, "\"kernels\": []"));
    free(text);
    text = printed(print_csv, &s->report, &bytes);
    assert_non_null(strstr(text, ",histogram_local,1056,256,40,49152,0,4,50,zipf,256\r\n"));
    assert_non_null(strstr(text, ",tokens_champion,1056,256,,1024,,,,,\r\n"));
    free(text);
    text = printed(print_markdown, &s->report, &bytes);
    assert_non_null(strstr(text, " | registers | local bytes | spill bytes | occupancy |\n"));
    assert_non_null(strstr(text, " | 40 | 49152 | 0 | 50 % |\n"));
    assert_non_null(strstr(text, " | | 1024 | | |\n"));
    free(text);
    free(s);
}

/* Energy and clocks of the rows that have them; the others' are unknown. */
static void energy_is_in_every_report(void **state) {
    static const struct {
        printer print;
        const char *has;
    } all[] = {{print_json,
                "\"watts\": 412.5, \"source\": \"nvml\"}, \"clocks\": {\"core_mhz\": 1755, "
                "\"memory_mhz\": 3201, \"celsius\": 58, \"reasons\": \"power cap\"}}"},
               {print_json, "\"energy\": null, \"clocks\": null}"},
               {print_csv, ",412.5,nvml,histogram_local,"},
               {print_markdown, " | samples | GB/s per W | registers |"},
               {terminal_140, "GB/J: GB/s per watt of"}};
    sample *s = sample_make(SAMPLE_USUAL), *tiny = sample_make(SAMPLE_TINY);
    size_t bytes;

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        char *text = printed(all[k].print, &s->report, &bytes);

        if (!strstr(text, all[k].has))
            fail_msg("no %s", all[k].has);
        free(text);
        text = printed(all[k].print, &tiny->report, &bytes); /* has no row with energy */
        assert_true(all[k].print == print_json || !strstr(text, all[k].has));
        free(text);
    }
    free(tiny);
    free(s);
}

static void table_200(const iron__report *report, FILE *to) { print_table(report, to, false, 200); }

static void table_115(const iron__report *report, FILE *to) { print_table(report, to, false, 115); }

/* The kernel columns are dropped first; they are not shown if no row has kernels. */
static void narrow_tables_lose_the_kernels_first(void **state) {
    sample *s = sample_make(SAMPLE_USUAL), *tiny = sample_make(SAMPLE_TINY);
    size_t bytes;
    char *text = printed(table_200, &s->report, &bytes);

    (void)state;
    assert_non_null(strstr(text, " prep ms speedup noise "));
    assert_non_null(strstr(text, " median within  runs   GB/J regs local spill occ\n"));
    assert_non_null(strstr(text, "   40 49152     0  50\n"));
    free(text);
    text = printed(terminal_140, &s->report, &bytes);
    assert_null(strstr(text, "local:"));
    assert_non_null(strstr(text, " prep ms speedup noise  runs   GB/J regs occ\033"));
    free(text);
    text = printed(table_115, &s->report, &bytes);
    assert_null(strstr(text, "occ"));
    assert_non_null(strstr(text, " prep ms speedup noise  runs\n"));
    free(text);
    text = printed(table_200, &tiny->report, &bytes);
    assert_null(strstr(text, "regs"));
    assert_null(strstr(text, "occ"));
    free(text);
    free(tiny);
    free(s);
}

static void a_case_has_a_table_of_its_own(void **state) {
    sample *s = sample_make(SAMPLE_USUAL);
    size_t bytes;
    char *text = printed(table_100, &s->report, &bytes);

    (void)state;
    assert_non_null(
        strstr(text, "\nhistogram 4294967296 u8, data zipf: 4 GiB of useful bytes; bins 256\n"));
    assert_non_null(strstr(text, "\nhistogram 4294967296 u8, data uniform: 4 GiB"));
    free(text);
    text = printed(print_markdown, &s->report, &bytes);
    assert_non_null(strstr(text, "\n## histogram 4294967296 u8, data zipf\n"));
    free(text);
    free(s);
}

static void empty_reports(void **state) {
    static const printer printers[] = {print_json, print_csv, print_markdown, print_html,
                                       table_100};
    iron__report empty = {.version = "0.1.0"};

    (void)state;
    for (size_t k = 0; k < COUNT(printers); k++) {
        size_t bytes;

        free(printed(printers[k], &empty, &bytes));
        assert_true(bytes > 0);
    }
}

static void write_odd_values(FILE *to) {
    volatile double zero = 0;
    iron_json_writer j = {.to = to};

    iron_json_open(&j, NULL, '{');
    iron_json_real(&j, "infinite", 1 / zero);
    iron_json_real(&j, "none", zero / zero);
    iron_json_real(&j, "small", 1e-7);
    iron_json_text(&j, "null", NULL);
    iron_json_text(&j, "odd", "\t\"\\\x7F\xC3\xA9\xC3\xE2\x80\xA9<");
    iron_json_open(&j, "empty", '[');
    iron_json_close(&j, ']');
    iron_json_close(&j, '}');
    iron_json_end(&j);
}

static void json_has_words_for_all_values(void **state) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    (void)state;
    assert_string_equal(stop_name(IRON_STOP_NONE), "");
    assert_string_equal(stop_name(IRON_STOP_RUNS), "runs");
    assert_non_null(to);
    write_odd_values(to);
    fclose(to);
    assert_string_equal(text, "{\n  \"infinite\": null,\n  \"none\": null,\n  \"small\": 1e-07,\n"
                              "  \"null\": null,\n"
                              "  \"odd\": \"\\u0009\\\"\\\\\\u007f\xC3\xA9\\ufffd\\u2029<\",\n"
                              "  \"empty\": []\n}\n");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_for_the_other_tests),
        cmocka_unit_test(csv_has_equal_records),
        cmocka_unit_test(tables_fit),
        cmocka_unit_test(tables_show_problems),
        cmocka_unit_test(cached_rows_and_peers_are_marked),
        cmocka_unit_test(markdown_keeps_its_tables),
        cmocka_unit_test(pages_hold_text_as_text),
        cmocka_unit_test(kernels_show_their_resources),
        cmocka_unit_test(energy_is_in_every_report),
        cmocka_unit_test(narrow_tables_lose_the_kernels_first),
        cmocka_unit_test(a_case_has_a_table_of_its_own),
        cmocka_unit_test(empty_reports),
        cmocka_unit_test(json_has_words_for_all_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
