/* SPDX-License-Identifier: MIT */
/*
 * test_server_routes_metrics.c: the text of /metrics: each family has HELP and TYPE once and before
 * its samples, the histogram is cumulative and agrees with its count, and the figures are those
 * that were given.
 */
#include "support.h"

#include "server/route_metrics.h"

static char *text_of(const iron__metrics *m) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    assert_non_null(to);
    iron__metrics_write(to, m);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void assert_line(const char *text, const char *line) {
    char wanted[200];

    snprintf(wanted, sizeof wanted, "\n%s\n", line);
    if (!strstr(text, wanted))
        fail_msg("there is no line '%s' in:\n%s", line, text);
}

static void test_figures(void **state) {
    static iron__site site;
    static iron__kept_view engines[2];
    iron__metrics m = {.site = &site,
                       .engines = engines,
                       .engine_count = 2,
                       .uptime_seconds = 1.25,
                       .is_read_only = true,
                       .counts = {.feeds = 3,
                                  .tokens = UINT64_MAX,
                                  .commit_ns = 1500000000,
                                  .queued = 4,
                                  .refused = {[IRON_FEED_BUSY] = 6}}};
    char *text;

    (void)state;
    atomic_store(&site.requests, 11);
    atomic_store(&site.answers[4], 2);
    atomic_store(&site.connections, 5);
    snprintf(engines[0].plan.name, sizeof engines[0].plan.name, "a");
    snprintf(engines[1].plan.name, sizeof engines[1].plan.name, "b-1");
    engines[0].tokens = 33;
    engines[1].batches = 9;
    text = text_of(&m);
    assert_line(text, "iron_uptime_seconds 1.250");
    assert_line(text, "iron_read_only 1");
    assert_line(text, "iron_requests_total 11");
    assert_line(text, "iron_answers_total{class=\"4xx\"} 2");
    assert_line(text, "iron_connections 5");
    assert_line(text, "iron_feeds_total 3");
    assert_line(text, "iron_tokens_total 18446744073709551615");
    assert_line(text, "iron_commit_seconds_total 1.5");
    assert_line(text, "iron_commit_queue 4");
    assert_line(text, "iron_feeds_refused_total{reason=\"busy\"} 6");
    assert_line(text, "iron_engines 2");
    assert_line(text, "iron_engine_tokens_total{engine=\"a\"} 33");
    assert_line(text, "iron_engine_batches_total{engine=\"b-1\"} 9");
    free(text);
}

static void test_histogram(void **state) {
    static iron__site site;
    iron__metrics m = {.site = &site};
    char *text;

    (void)state;
    for (size_t k = 0; k < IRON_LATENCY_BUCKETS; k++)
        atomic_store(&site.latency[k], k + 1);
    atomic_store(&site.latency_ns, UINT64_C(2500000000));
    text = text_of(&m);
    assert_line(text, "iron_request_seconds_bucket{le=\"0.001\"} 1");
    assert_line(text, "iron_request_seconds_bucket{le=\"0.002\"} 3");
    assert_line(text, "iron_request_seconds_bucket{le=\"5\"} 66");
    assert_line(text, "iron_request_seconds_bucket{le=\"+Inf\"} 78");
    assert_line(text, "iron_request_seconds_sum 2.5");
    assert_line(text, "iron_request_seconds_count 78");
    free(text);
}

/* The family that a sample's line is of: its name without labels and a histogram's endings. */
static void family_of(const char *line, char *name, size_t size) {
    static const char *const endings[] = {"_bucket", "_sum", "_count"};
    size_t length = strcspn(line, "{ ");

    snprintf(name, size, "%.*s", (int)length, line);
    for (size_t k = 0; k < COUNT(endings); k++) {
        size_t ending = strlen(endings[k]);

        if (length > ending && strcmp(name + length - ending, endings[k]) == 0 &&
            strncmp(name, "iron_request_seconds", 20) == 0)
            name[length - ending] = '\0';
    }
}

static void test_layout(void **state) {
    static iron__site site;
    static iron__kept_view engine;
    iron__metrics m = {.site = &site, .engines = &engine, .engine_count = 1};
    char *text, *rest, current[80] = "", name[80];
    size_t families = 0, samples = 0;

    (void)state;
    snprintf(engine.plan.name, sizeof engine.plan.name, "x");
    text = text_of(&m);
    assert_true(text[strlen(text) - 1] == '\n');
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            family_of(line + 7, current, sizeof current);
            families++;
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_true(strncmp(line + 7, current, strlen(current)) == 0);
        } else {
            family_of(line, name, sizeof name);
            assert_string_equal(name, current);
            assert_true(strncmp(name, "iron_", 5) == 0);
            samples++;
        }
    }
    assert_true(families > 20 && samples > families);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
