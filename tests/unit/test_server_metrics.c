/* SPDX-License-Identifier: MIT */
/*
 * test_server_metrics.c: the text of /metrics: each family has HELP and TYPE once and before its
 * samples, histograms are cumulative and match their count, and the figures are the given ones.
 */
#include "support.h"

#include "server/response.c"
#include "server/route_metrics.c"

static char *text_of(const metrics *m) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    assert_non_null(to);
    write_metrics(to, m);
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
    static iron_server server;
    static iron__store_engine_view engines[2];
    metrics m = {.server = &server,
                 .engines = engines,
                 .engine_count = 2,
                 .uptime_seconds = 1.25,
                 .is_read_only = true,
                 .log_lines = 13,
                 .log_dropped = 14,
                 .disk = {.database = 15, .log = 16, .size = 17, .free = 18},
                 .counts = {.feeds = 3,
                            .tokens = UINT64_MAX,
                            .commit_latency = {.buckets = {[1] = 2, [16] = 1}, .ns = 1500000000},
                            .last_commit_ms = 1500,
                            .queued = 4,
                            .refused = {[IRON_FEED_BUSY] = 6}}};
    char *text;

    (void)state;
    atomic_store(&server.requests, 11);
    atomic_store(&server.responses[4], 2);
    atomic_store(&server.connections, 5);
    atomic_store(&server.in_flight, 2);
    server.options.max_connections = 20;
    count_response(&server, 503, iron__http_problem_find("busy"));
    count_response(&server, 200, NULL);
    snprintf(engines[0].plan.name, sizeof engines[0].plan.name, "a");
    snprintf(engines[1].plan.name, sizeof engines[1].plan.name, "b-1");
    engines[0].tokens = 33;
    engines[1].batches = 9;
    text = text_of(&m);
    assert_line(text, "iron_uptime_seconds 1.250");
    assert_line(text, "iron_read_only 1");
    assert_line(text, "iron_requests_total 11");
    assert_line(text, "iron_answers_total{class=\"4xx\"} 2");
    assert_line(text, "iron_answers_total{class=\"5xx\"} 1");
    assert_line(text, "iron_answers_total{class=\"2xx\"} 1");
    assert_line(text, "iron_rejected_total{reason=\"busy\"} 1");
    assert_line(text, "iron_rejected_total{reason=\"stopping\"} 0");
    assert_line(text, "iron_requests_in_flight 2");
    assert_line(text, "iron_connections_limit 20");
    assert_line(text, "iron_log_lines_total 13");
    assert_line(text, "iron_log_dropped_total 14");
    assert_line(text, "iron_database_bytes 15");
    assert_line(text, "iron_database_log_bytes 16");
    assert_line(text, "iron_data_size_bytes 17");
    assert_line(text, "iron_data_free_bytes 18");
    assert_null(strstr(text, "process_start_time_seconds"));
    assert_line(text, "iron_connections 5");
    assert_line(text, "iron_feeds_total 3");
    assert_line(text, "iron_tokens_total 18446744073709551615");
    assert_line(text, "iron_commit_seconds_bucket{le=\"0.0005\"} 0");
    assert_line(text, "iron_commit_seconds_bucket{le=\"60\"} 2");
    assert_line(text, "iron_commit_seconds_bucket{le=\"+Inf\"} 3");
    assert_line(text, "iron_commit_seconds_sum 1.500000000");
    assert_line(text, "iron_commit_seconds_count 3");
    assert_line(text, "iron_last_commit_timestamp_seconds 1.500");
    assert_line(text, "iron_commit_queue 4");
    assert_line(text, "iron_feeds_refused_total{reason=\"busy\"} 6");
    assert_line(text, "iron_engines 2");
    assert_line(text, "iron_engine_tokens_total{engine=\"a\"} 33");
    assert_line(text, "iron_engine_batches_total{engine=\"b-1\"} 9");
    free(text);
}

/* A value at an edge belongs to the bucket below it; all methods of a path are one route; requests
 * without a route are counted as "none". */
static void test_histogram(void **state) {
    static iron_server server;
    metrics m = {.server = &server};
    const iron__route *list = iron__routes[0], *create = iron__routes[1];
    char *text;

    (void)state;
    assert_string_equal(list->pattern, create->pattern);
    iron__count_latency(&server, list, 500000);
    iron__count_latency(&server, list, 500001);
    iron__count_latency(&server, create, UINT64_C(60000000000));
    iron__count_latency(&server, create, UINT64_C(60000000001));
    iron__count_latency(&server, NULL, 2500000);
    text = text_of(&m);
    assert_line(text, "iron_request_seconds_bucket{route=\"/v1/engines\",le=\"0.0005\"} 1");
    assert_line(text, "iron_request_seconds_bucket{route=\"/v1/engines\",le=\"0.001\"} 2");
    assert_line(text, "iron_request_seconds_bucket{route=\"/v1/engines\",le=\"30\"} 2");
    assert_line(text, "iron_request_seconds_bucket{route=\"/v1/engines\",le=\"60\"} 3");
    assert_line(text, "iron_request_seconds_bucket{route=\"/v1/engines\",le=\"+Inf\"} 4");
    assert_line(text, "iron_request_seconds_sum{route=\"/v1/engines\"} 120.001000002");
    assert_line(text, "iron_request_seconds_count{route=\"/v1/engines\"} 4");
    assert_line(text, "iron_request_seconds_bucket{route=\"none\",le=\"0.001\"} 0");
    assert_line(text, "iron_request_seconds_bucket{route=\"none\",le=\"0.0025\"} 1");
    assert_line(text, "iron_request_seconds_count{route=\"none\"} 1");
    assert_line(text, "iron_request_seconds_count{route=\"/metrics\"} 0");
    free(text);
}

/* No engine can have such a name, but escaping must not depend on that. */
static void test_labels(void **state) {
    static iron_server server;
    static iron__store_engine_view engine;
    metrics m = {.server = &server, .engines = &engine, .engine_count = 1};
    char *text;

    (void)state;
    snprintf(engine.plan.name, sizeof engine.plan.name, "a\"b\\c\nd");
    engine.feeds = 4;
    text = text_of(&m);
    assert_line(text, "iron_engine_feeds_total{engine=\"a\\\"b\\\\c\\nd\"} 4");
    free(text);
}

static double value_of(const char *text, const char *name) {
    char start[80];
    const char *line;

    snprintf(start, sizeof start, "\n%s ", name);
    line = strstr(text, start);
    assert_non_null(line);
    return atof(line + strlen(start));
}

static void test_process(void **state) {
    static iron_server server;
    metrics m = {.server = &server};
    double open_fds, resident;
    char *text;

    (void)state;
    for (volatile unsigned k = 0; k < 20000000; k++) /* at least a millisecond of CPU time */
        continue;
    text = text_of(&m);
    open_fds = value_of(text, "process_open_fds");
    resident = value_of(text, "process_resident_memory_bytes");
    assert_true(open_fds >= 3 && open_fds <= value_of(text, "process_max_fds"));
    assert_true(resident > 4096 && resident < value_of(text, "process_virtual_memory_bytes"));
    assert_true(value_of(text, "process_cpu_seconds_total") > 0);
    free(text);
}

/* The family of a sample's line: its name without labels and histogram suffixes. */
static void family_of(const char *line, char *name, size_t size) {
    static const char *const endings[] = {"_bucket", "_sum", "_count"};
    size_t length = strcspn(line, "{ ");

    snprintf(name, size, "%.*s", (int)length, line);
    for (size_t k = 0; k < COUNT(endings); k++) {
        size_t ending = strlen(endings[k]);

        if (length > ending && strcmp(name + length - ending, endings[k]) == 0 &&
            strstr(name, "_seconds"))
            name[length - ending] = '\0';
    }
}

static void test_layout(void **state) {
    static iron_server server;
    static iron__store_engine_view engine;
    metrics m = {.server = &server, .engines = &engine, .engine_count = 1};
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
            assert_true(strncmp(name, "iron_", 5) == 0 || strncmp(name, "process_", 8) == 0);
            samples++;
        }
    }
    assert_true(families > 20 && samples > families);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures), cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_labels),  cmocka_unit_test(test_process),
        cmocka_unit_test(test_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
