/* SPDX-License-Identifier: MIT */
/*
 * test_compare.c: comparing two runs, with planted differences.
 *
 * Samples are synthetic: a median and a spread that looks like noise. Old reports contain only what
 * the schema promises.
 */
#include "support.h"

#include "arena/compare.c"

#define SAMPLES 30u

/* A row of the new run with its samples, and the same row in an old report. */
typedef struct made_row {
    iron__report_row row;
    iron__samples samples[2]; /* kernel, end to end */
    double ms[2][SAMPLES];
    const char *more_params; /* of the old one, as JSON; NULL: none */
} made_row;

static void make_samples(double *ms, double median, double spread, uint64_t seed) {
    rng r = {seed};

    for (size_t k = 0; k < SAMPLES; k++)
        ms[k] = median * (1 + spread * ((double)(rng_next(&r) >> 11) / 9007199254740992.0 - 0.5));
}

static void make_row(made_row *m, const char *contender, double median, double spread,
                     uint64_t seed) {
    static const iron__scope scopes[] = {IRON_SCOPE_KERNEL, IRON_SCOPE_END_TO_END};

    *m = (made_row){.row = {.op = "atax",
                            .backend = "cpu",
                            .device = "Neoverse \"V1\"",
                            .size = "4096x4096",
                            .dtype = "f32",
                            .is_verified = true}};
    snprintf(m->row.contender, sizeof m->row.contender, "%s", contender);
    for (int k = 0; k < 2; k++) {
        make_samples(m->ms[k], (1 + k) * median, spread, seed + (uint64_t)k);
        m->samples[k] = (iron__samples){.ms = m->ms[k], .count = SAMPLES};
        m->row.scopes[scopes[k]] =
            (iron__report_scope){.is_measured = true, .samples = &m->samples[k]};
    }
}

static void write_samples(FILE *to, const double *ms) {
    fputs("{\"median_ms\": 1, \"samples\": [", to);
    for (size_t k = 0; k < SAMPLES; k++)
        fprintf(to, "%s%.17g", k ? ", " : "", ms[k]);
    fputs("]}", to);
}

static void write_row(FILE *to, const made_row *m) {
    fprintf(to,
            "{\"op\": \"%s\", \"contender\": \"%s\", \"backend\": \"%s\", \"memory\": null, "
            "\"device\": \"Neoverse \\\"V1\\\"\", \"size\": \"%s\", \"dtype\": \"%s\", "
            "\"params\": {\"vocab\": %u%s}, \"status\": \"%s\", \"reason\": \"\", \"scopes\": {",
            m->row.op, m->row.contender, m->row.backend, m->row.size, m->row.dtype, m->row.vocab,
            m->more_params ? m->more_params : "", iron__row_status_name(m->row.status));
    if (m->row.status == IRON_ROW_OK) {
        fputs("\"kernel\": ", to);
        write_samples(to, m->ms[0]);
        if (m->row.scopes[IRON_SCOPE_END_TO_END].is_measured) {
            fputs(", \"end_to_end\": ", to);
            write_samples(to, m->ms[1]);
        }
    }
    fputs("}}", to);
}

/* A folder with an old report of some rows. */
typedef struct old_file {
    folder home;
    file_name old;
} old_file;

static void write_report(old_file *b, const made_row *rows, size_t count) {
    FILE *to;

    folder_make(&b->home);
    b->old = name_in(&b->home, "old.json");
    to = fopen(b->old.path, "w");
    assert_non_null(to);
    fputs("{\"schema\": \"iron.arena/1\", \"iron\": \"0.1.0\", \"host\": {}, \"devices\": [], "
          "\"ceilings\": [],\n\"results\": [",
          to);
    for (size_t k = 0; k < count; k++) {
        fputs(k ? ",\n" : "\n", to);
        write_row(to, &rows[k]);
    }
    fputs("]}\n", to);
    assert_int_equal(fclose(to), 0);
}

static void compare_with(const old_file *b, const made_row *now, size_t count, double threshold,
                         comparison *out) {
    static iron__report_row rows[5]; /* the comparison refers to them */
    iron__report report = {.rows = rows, .row_count = count};
    iron_error err;

    assert_true(count <= COUNT(rows));
    for (size_t k = 0; k < count; k++)
        rows[k] = now[k].row;
    assert_ok(compare_reports(b->old.path, &report, threshold, out, &err), &err);
}

/* The old median, the new one, and the expected verdict for both scopes. */
static void assert_change(double old_ms, double new_ms, double spread, double threshold,
                          change_kind wanted) {
    for (uint64_t seed = 1; seed < 400; seed += 20) {
        comparison c;
        made_row old, now;
        old_file b;

        make_row(&old, "naive", old_ms, spread, seed);
        make_row(&now, "naive", new_ms, spread, seed + 10);
        write_report(&b, &old, 1);
        compare_with(&b, &now, 1, threshold, &c);
        assert_int_equal(c.row_count, 2);
        for (int k = 0; k < 2; k++) {
            if (c.rows[k].change != wanted)
                fail_msg("seed %d: %g ms -> %g ms is '%s', should be '%s'", (int)seed,
                         c.rows[k].old.median, c.rows[k].new.median, change_name(c.rows[k].change),
                         change_name(wanted));
            assert_true(c.rows[k].ratio > new_ms / old_ms * (1 - spread));
            assert_true(c.rows[k].ratio < new_ms / old_ms * (1 + spread));
        }
        assert_int_equal(c.counts[wanted], 2);
        assert_int_equal(c.slower_count, wanted == CHANGE_SLOWER ? 2 : 0);
        comparison_deinit(&c);
        folder_remove(&b.home);
    }
}

static void equal_runs_are_the_same(void **state) {
    (void)state;
    assert_change(10, 10, 0.02, 5, CHANGE_SAME);
    assert_change(0.01, 0.01, 0.02, 5, CHANGE_SAME);
}

static void a_planted_slowdown_is_found(void **state) {
    (void)state;
    assert_change(10, 11, 0.02, 5, CHANGE_SLOWER);
    assert_change(10, 11, 0.02, 15, CHANGE_SAME); /* within a wider threshold */
}

static void a_planted_speedup_is_found(void **state) {
    (void)state;
    assert_change(11, 10, 0.02, 5, CHANGE_FASTER);
    assert_change(20, 5, 0.3, 5, CHANGE_FASTER);
}

/* 3 % more with samples that vary by 20 %: not a slowdown at any threshold. */
static void noise_is_not_a_slowdown(void **state) {
    static const double thresholds[] = {0, 1, 2, 5};

    (void)state;
    for (uint64_t seed = 1; seed < 400; seed += 20)
        for (size_t t = 0; t < COUNT(thresholds); t++) {
            comparison c;
            made_row old, now;
            old_file b;

            make_row(&old, "naive", 10, 0.2, seed);
            make_row(&now, "naive", 10.3, 0.2, seed + 10);
            write_report(&b, &old, 1);
            compare_with(&b, &now, 1, thresholds[t], &c);
            assert_int_equal(c.slower_count, 0);
            assert_int_equal(c.counts[CHANGE_SAME] + c.counts[CHANGE_UNCLEAR], 2);
            comparison_deinit(&c);
            folder_remove(&b.home);
        }
}

/* Beyond the threshold, but the intervals overlap. */
static void wide_spreads_are_unclear(void **state) {
    made_row old, now;
    comparison c;
    old_file b;

    (void)state;
    make_row(&old, "naive", 10, 1.5, 3);
    make_row(&now, "naive", 10, 1.5, 3);
    for (size_t k = 0; k < SAMPLES; k++)
        now.ms[0][k] *= 1.08;
    write_report(&b, &old, 1);
    compare_with(&b, &now, 1, 5, &c);
    assert_int_equal(c.rows[0].change, CHANGE_UNCLEAR);
    assert_int_equal(c.rows[1].change, CHANGE_SAME);
    comparison_deinit(&c);
    folder_remove(&b.home);
}

/* Stable from sample to sample, but drifting by 20 %: a difference of 10 % is not significant. */
static void drift_within_a_run_counts(void **state) {
    made_row old, now;
    comparison c;
    old_file b;

    (void)state;
    for (int has_drift = 0; has_drift < 2; has_drift++) {
        make_row(&old, "naive", 10, 0.005, 3);
        make_row(&now, "naive", 11, 0.005, 13);
        /* the same values in both cases: sorted, or shuffled */
        for (size_t k = 0; k < SAMPLES; k++) {
            size_t step = has_drift ? k : k * 7 % SAMPLES;

            now.ms[0][k] *= 0.9 + 0.2 * (double)step / (SAMPLES - 1);
        }
        write_report(&b, &old, 1);
        compare_with(&b, &now, 1, 5, &c);
        assert_int_equal(c.rows[0].change, has_drift ? CHANGE_UNCLEAR : CHANGE_SLOWER);
        comparison_deinit(&c);
        folder_remove(&b.home);
    }
}

static void two_samples_decide_nothing(void **state) {
    made_row old, now;
    comparison c;
    old_file b;

    (void)state;
    make_row(&old, "naive", 10, 0.001, 3);
    make_row(&now, "naive", 20, 0.001, 13);
    write_report(&b, &old, 1);
    now.samples[0].count = 2;
    now.samples[1].count = 3;
    compare_with(&b, &now, 1, 5, &c);
    assert_int_equal(c.rows[0].change, CHANGE_UNCLEAR);
    assert_int_equal(c.rows[1].change, CHANGE_SLOWER);
    comparison_deinit(&c);
    folder_remove(&b.home);
}

static char *printed(const comparison *c) {
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    comparison_print(c, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void assert_prints(const comparison *c, const char *words) {
    char *text = printed(c);

    if (!strstr(text, words))
        fail_msg("'%s' does not say '%s'", text, words);
    free(text);
}

static void rows_come_and_go(void **state) {
    made_row old[3], now[3];
    comparison c;
    old_file b;

    (void)state;
    make_row(&old[0], "naive", 10, 0.01, 1);
    make_row(&old[1], "tiled", 5, 0.01, 2);
    make_row(&old[2], "tiled", 5, 0.01, 3);
    old[2].row.vocab = 1000;
    make_row(&now[0], "naive", 10, 0.01, 4);
    now[0].row.scopes[IRON_SCOPE_END_TO_END].is_measured = false;
    make_row(&now[1], "tiled", 5, 0.01, 5);
    now[1].row.vocab = 2000; /* another row */
    make_row(&now[2], "tiled", 5, 0.01, 5);
    write_report(&b, old, 3);
    compare_with(&b, now, 3, 5, &c);
    assert_int_equal(c.counts[CHANGE_SAME], 3);
    assert_int_equal(c.counts[CHANGE_GONE], 2); /* a scope, a row */
    assert_int_equal(c.counts[CHANGE_NEW], 1);
    assert_int_equal(c.slower_count, 0);
    assert_prints(&c, "gone     atax.cpu.naive 4096x4096 f32 on Neoverse \"V1\", end_to_end: was");
    assert_prints(&c, "new      atax.cpu.tiled 4096x4096 f32 vocab 2000 on Neoverse \"V1\"\n");
    assert_prints(&c,
                  "gone     atax.cpu.tiled 4096x4096 f32 vocab 1000 on Neoverse \"V1\": it was ok");
    assert_prints(&c, "old.json: 3 same, 1 new, 2 gone (threshold 5 %)\n");
    comparison_deinit(&c);
    folder_remove(&b.home);
}

/* Each part of the key distinguishes rows. */
static void every_part_of_the_key_counts(void **state) {
    (void)state;
    for (int k = 0; k < 7; k++) {
        made_row old, now;
        comparison c;
        old_file b;

        make_row(&old, "naive", 10, 0.01, 1);
        make_row(&now, "naive", 10, 0.01, 1);
        memcpy(k == 0   ? now.row.op
               : k == 1 ? now.row.contender
               : k == 2 ? now.row.backend
               : k == 3 ? now.row.memory
               : k == 4 ? now.row.device
               : k == 5 ? now.row.size
                        : now.row.dtype,
               "zz", 3);
        write_report(&b, &old, 1);
        compare_with(&b, &now, 1, 5, &c);
        assert_int_equal(c.counts[CHANGE_NEW], 1);
        assert_int_equal(c.counts[CHANGE_GONE], 1);
        assert_int_equal(c.row_count, 2);
        comparison_deinit(&c);
        folder_remove(&b.home);
    }
}

static void fail_row(made_row *m, iron__row_status status, const char *reason) {
    m->row.status = status;
    snprintf(m->row.reason, sizeof m->row.reason, "%s", reason);
    memset(m->row.scopes, 0, sizeof m->row.scopes);
}

/* Runs with one thread and with all, or with other queues, are different rows; a report without
 * these figures matches any. */
static void threads_and_streams_count_if_reported(void **state) {
    static const struct {
        const char *old;
        uint32_t threads, streams;
        bool is_same;
    } cases[] = {{"", 2, 0, true},
                 {", \"threads\": 2", 2, 0, true},
                 {", \"threads\": 1", 2, 0, false},
                 {", \"streams\": 4", 0, 4, true},
                 {", \"streams\": 8", 0, 4, false}};

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        made_row old, now;
        comparison c;
        old_file b;

        make_row(&old, "naive", 10, 0.01, 1);
        make_row(&now, "naive", 10, 0.01, 1);
        old.more_params = cases[k].old;
        now.row.threads = cases[k].threads;
        now.row.streams = cases[k].streams;
        write_report(&b, &old, 1);
        compare_with(&b, &now, 1, 5, &c);
        assert_int_equal(c.counts[CHANGE_GONE], cases[k].is_same ? 0 : 1);
        assert_int_equal(c.counts[CHANGE_NEW], cases[k].is_same ? 0 : 1);
        comparison_deinit(&c);
        folder_remove(&b.home);
    }
}

/* A new row with data zipf and bins 256, against possible old reports. */
static void params_count_whole(void **state) {
    static const struct {
        const char *old;
        bool is_same;
    } cases[] = {{", \"data\": \"zipf\", \"bins\": 256", true},
                 {", \"bins\": 2.56e2, \"data\": \"zipf\", \"more\": null", true},
                 {", \"data\": \"zipf\"", false},
                 {"", false},
                 {", \"data\": \"zipf\", \"bins\": 255", false},
                 {", \"data\": \"flat\", \"bins\": 256", false},
                 {", \"data\": \"zipf\", \"bins\": 256, \"more\": true", false}};

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        made_row old, now;
        comparison c;
        old_file b;

        make_row(&old, "naive", 10, 0.01, 1);
        make_row(&now, "naive", 10, 0.01, 1);
        old.more_params = cases[k].old;
        now.row.params = (iron__params){
            .count = 2,
            .list = {{.name = "data", .word = "zipf"}, {.name = "bins", .number = 256}}};
        write_report(&b, &old, 1);
        compare_with(&b, &now, 1, 5, &c);
        assert_int_equal(c.counts[CHANGE_GONE], cases[k].is_same ? 0 : 1);
        comparison_deinit(&c);
        now.row.params.count = 0; /* and a row without any */
        compare_with(&b, &now, 1, 5, &c);
        assert_int_equal(c.counts[CHANGE_GONE], cases[k].old[0] ? 1 : 0);
        comparison_deinit(&c);
        folder_remove(&b.home);
    }
}

static void invalid_params_are_refused(void **state) {
    static const char many[] = ", \"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1, "
                               "\"g\": 1, \"h\": 1, \"i\": 1";
    static const char *const bad[] = {", \"data\": \"\"", ", \"data\": []", ", \"data\": {}", many};
    iron__report now = {0};
    comparison c;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        made_row old;
        old_file b;

        make_row(&old, "naive", 10, 0.01, 1);
        old.more_params = bad[k];
        write_report(&b, &old, 1);
        assert_refused(compare_reports(b.old.path, &now, 5, &c, &err), IRON_E_FORMAT, &err);
        assert_says(&err, "results[0].params");
        folder_remove(&b.home);
    }
}

static void broken_rows_count_as_slower(void **state) {
    made_row old[5], now[5];
    comparison c;
    old_file b;

    (void)state;
    make_row(&old[0], "a", 10, 0.01, 1);
    make_row(&old[1], "b", 10, 0.01, 1);
    make_row(&old[2], "c", 10, 0.01, 1);
    make_row(&old[3], "d", 10, 0.01, 1);
    make_row(&old[4], "e", 10, 0.01, 1);
    fail_row(&old[3], IRON_ROW_FAILED, "");
    write_report(&b, old, 5);
    make_row(&old[3], "d", 10, 0.01, 1);
    memcpy(now, old, sizeof now);
    for (int k = 0; k < 5; k++)
        make_row(&now[k], old[k].row.contender, 10, 0.01, 1);
    fail_row(&now[0], IRON_ROW_WRONG, "kernel: y[3] is 0, should be 1.5");
    fail_row(&now[1], IRON_ROW_FAILED, "out of memory");
    fail_row(&now[2], IRON_ROW_SKIPPED, "no AVX2 here");
    fail_row(&now[4], IRON_ROW_IMPLAUSIBLE, "9000 GB/s");
    compare_with(&b, now, 5, 5, &c);
    assert_int_equal(c.counts[CHANGE_BROKEN], 3);
    assert_int_equal(c.slower_count, 3);
    assert_int_equal(c.counts[CHANGE_GONE], 1);
    assert_int_equal(c.counts[CHANGE_NEW], 1); /* failed then, ok now */
    assert_int_equal(c.row_count, 5);
    assert_prints(&c,
                  "broken   atax.cpu.a 4096x4096 f32 on Neoverse \"V1\": wrong: kernel: y[3] is");
    assert_prints(&c, "implausible: 9000 GB/s");
    assert_prints(&c, "skipped: no AVX2 here");
    comparison_deinit(&c);
    fail_row(&now[3], IRON_ROW_WRONG, "still");
    compare_with(&b, now, 5, 5, &c);
    assert_int_equal(c.row_count, 4); /* ok in neither */
    comparison_deinit(&c);
    folder_remove(&b.home);
}

static void nothing_on_either_side(void **state) {
    comparison c;
    old_file b;

    (void)state;
    write_report(&b, NULL, 0);
    compare_with(&b, NULL, 0, 5, &c);
    assert_int_equal(c.row_count, 0);
    assert_prints(&c, "nothing to compare (threshold 5 %)");
    comparison_deinit(&c);
    folder_remove(&b.home);
}

/* The message of a slowdown. */
static void a_slowdown_is_one_line(void **state) {
    made_row old, now;
    comparison c;
    old_file b;
    char *text;

    (void)state;
    make_row(&old, "naive", 10, 0, 1);
    make_row(&now, "naive", 11.25, 0, 1);
    now.row.scopes[IRON_SCOPE_END_TO_END].is_measured = false;
    old.row.scopes[IRON_SCOPE_END_TO_END].is_measured = false;
    write_report(&b, &old, 1);
    compare_with(&b, &now, 1, 5, &c);
    text = printed(&c);
    assert_string_equal(strchr(text, 'a'),
                        strstr(text,
                               "atax.cpu.naive 4096x4096 f32 on Neoverse \"V1\", kernel: 10 ms "
                               "of 30 -> 11.25 ms of 30, +12.5 %\nagainst "));
    assert_memory_equal(text, "slower   ", 9);
    free(text);
    comparison_deinit(&c);
    folder_remove(&b.home);
}

typedef struct bad_file {
    const char *text, *says;
} bad_file;

static void bad_files_are_named(void **state) {
#define ROW_START                                                                                  \
    "{\"schema\": \"iron.arena/1\", \"results\": [{\"op\": \"atax\", \"backend\": \"cpu\", "
#define NAMED ROW_START "\"contender\": \"x\", "
    static const bad_file bad[] = {
        {"", "old.json, line 1, column 1: expected a value; name a file that iron arena"},
        {"{\n\"schema\": 1\n\"a\": 2}", "old.json, line 3, column 1: expected ',' or '}'"},
        {"[]", "old.json has no schema"},
        {"{\"schema\": 1}", "old.json has no schema"},
        {"{\"schema\": \"iron.arena/2\", \"results\": []}", "the schema 'iron.arena/2'"},
        {"{\"schema\": \"\\u001b[2J\", \"results\": []}", "the schema '?[2J'"},
        {"{\"schema\": \"iron.arena/1\"}", "results must be an array"},
        {"{\"schema\": \"iron.arena/1\", \"results\": {}}", "results must be an array"},
        {"{\"schema\": \"iron.arena/1\", \"results\": [1]}", "results[0].op is missing"},
        {ROW_START "\"status\": \"ok\"}]}", "results[0].contender is missing"},
        {ROW_START "\"contender\": \"\"}]}", "results[0].contender is missing"},
        {NAMED "\"memory\": 3}]}", "results[0].memory"},
        {NAMED "\"status\": \"fine\"}]}", "results[0].status"},
        {NAMED "\"size\": \"1\"}]}", "results[0].status"},
        {NAMED "\"status\": \"ok\", \"params\": {\"vocab\": -1}}]}", "results[0].params.vocab"},
        {NAMED "\"status\": \"ok\", \"params\": {\"nodes\": \"x\"}}]}", "results[0].params.nodes"},
        {NAMED "\"status\": \"ok\", \"scopes\": {\"kernel\": {\"samples\": [1, \"2\"]}}}]}",
         "results[0].scopes"},
        {NAMED "\"status\": \"ok\", \"scopes\": {\"kernel\": {\"samples\": [-1]}}}]}",
         "results[0].scopes"},
        {NAMED "\"status\": \"ok\", \"scopes\": {\"end_to_end\": {\"samples\": 7}}}]}",
         "results[0].scopes"},
    };
    iron__report now = {0};
    comparison c;
    iron_error err;
    folder home;
    file_name old;

    (void)state;
    folder_make(&home);
    old = name_in(&home, "old.json");
    for (size_t k = 0; k < COUNT(bad); k++) {
        file_write(old.path, bad[k].text, strlen(bad[k].text));
        assert_refused(compare_reports(old.path, &now, 5, &c, &err), IRON_E_FORMAT, &err);
        assert_says(&err, bad[k].says);
        assert_null(strchr(err.text, '\n'));
        assert_null(c.rows);
    }
    folder_remove(&home);
}

static void missing_and_too_large_files(void **state) {
    iron__report now = {0};
    comparison c;
    iron_error err;
    folder home;
    file_name old;

    (void)state;
    folder_make(&home);
    old = name_in(&home, "old.json");
    assert_refused(compare_reports(old.path, &now, 5, &c, &err), IRON_E_IO, &err);
    assert_says(&err, "No such file");
    assert_refused(compare_reports(home.path, &now, 5, &c, &err), IRON_E_ARG, &err);
    assert_says(&err, "not a regular file");
    file_write(old.path, "1", 1);
    assert_int_equal(truncate(old.path, ((off_t)256 << 20) + 1), 0); /* missing value: no output */
    assert_refused(compare_reports(old.path, &now, 5, &c, &err), IRON_E_ARG, &err);
    assert_says(&err, "268435457 bytes");
    assert_refused(compare_reports(old.path, &now, -1, &c, &err), IRON_E_ARG, &err);
    assert_refused(compare_reports(old.path, &now, (double)__builtin_nan(""), &c, &err), IRON_E_ARG,
                   &err);
    folder_remove(&home);
}

static void too_many_samples_are_refused(void **state) {
    made_row old;
    iron__report now = {0};
    comparison c;
    iron_error err;
    old_file b;
    size_t length;
    char *text, *at;
    FILE *to;

    (void)state;
    make_row(&old, "naive", 10, 0.01, 1);
    write_report(&b, &old, 1);
    text = file_read(b.old.path, &length);
    at = strstr(text, "\"samples\": [") + 12;
    for (int count = 970; count <= 971; count++) { /* and the 30 present ones */
        to = fopen(b.old.path, "w");
        assert_non_null(to);
        fwrite(text, 1, (size_t)(at - text), to);
        for (int k = 0; k < count; k++)
            fputs("10,", to);
        fputs(at, to);
        assert_int_equal(fclose(to), 0);
        if (count == 970) {
            assert_ok(compare_reports(b.old.path, &now, 5, &c, &err), &err);
            comparison_deinit(&c);
        } else {
            assert_refused(compare_reports(b.old.path, &now, 5, &c, &err), IRON_E_FORMAT, &err);
        }
    }
    free(text);
    folder_remove(&b.home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_are_the_same),
        cmocka_unit_test(a_planted_slowdown_is_found),
        cmocka_unit_test(a_planted_speedup_is_found),
        cmocka_unit_test(noise_is_not_a_slowdown),
        cmocka_unit_test(wide_spreads_are_unclear),
        cmocka_unit_test(drift_within_a_run_counts),
        cmocka_unit_test(two_samples_decide_nothing),
        cmocka_unit_test(rows_come_and_go),
        cmocka_unit_test(every_part_of_the_key_counts),
        cmocka_unit_test(threads_and_streams_count_if_reported),
        cmocka_unit_test(params_count_whole),
        cmocka_unit_test(invalid_params_are_refused),
        cmocka_unit_test(broken_rows_count_as_slower),
        cmocka_unit_test(nothing_on_either_side),
        cmocka_unit_test(a_slowdown_is_one_line),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(missing_and_too_large_files),
        cmocka_unit_test(too_many_samples_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
