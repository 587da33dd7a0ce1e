/* SPDX-License-Identifier: MIT */
/*
 * test_server_log.c: log lines: their contents, that they are complete with many writers, that a
 * reader that does not read costs only lines, and how a request is logged.
 */
#include "support.h"

#include "server/log.c"

#include <fcntl.h>

typedef struct piped {
    int in, out;
    iron__log *log;
} piped;

static void piped_open(piped *p, iron__log_options options) {
    int ends[2];
    iron_error err;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    p->out = ends[0];
    p->in = options.fd = ends[1];
    assert_ok(iron__log_open(&options, &p->log, &err), &err);
}

/* Closes the log and returns what it wrote. */
static char *piped_close(piped *p) {
    char *text = grab(1 << 20);
    size_t used = 0;
    ssize_t got;

    iron__log_close(p->log);
    close(p->in);
    while ((got = read(p->out, text + used, (1 << 20) - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(p->out);
    return text;
}

static uint64_t dropped_of(const iron__log *log) { return atomic_load(&log->dropped); }

static void test_text(void **state) {
    piped p;
    char *text;

    (void)state;
    piped_open(&p, (iron__log_options){.level = IRON_LOG_INFO});
    iron__note(p.log, "%d and \"%s\"", 7, "two\nlines");
    iron__log_event(p.log, IRON_LOG_INFO, "ready", NULL, "serving");
    iron__log_event(p.log, IRON_LOG_DEBUG, "more", NULL, "left out");
    iron__log_request(p.log, &(iron__request_record){.status = 500});
    text = piped_close(&p);
    assert_string_equal(text, "iron: 7 and \"two?lines\"\niron: serving\n");
    free(text);
}

/* A line begins with its time; returns what follows. */
static const char *after_time(const char *line) {
    static const char form[] = "{\"time\": \"0000-00-00T00:00:00.000Z\", ";

    for (size_t k = 0; form[k]; k++)
        if (form[k] == '0' ? line[k] < '0' || line[k] > '9' : line[k] != form[k])
            fail_msg("no time at '%s'", line);
    return line + sizeof form - 1;
}

static void test_json(void **state) {
    piped p;
    char *text, *second;

    (void)state;
    piped_open(&p, (iron__log_options){.is_json = true, .level = IRON_LOG_WARNING});
    iron__note(p.log, "a \"b\" \\ \n \x01 \xff \xc3\xa9 %s", "\xe2\x80\xa8");
    iron__log_event(p.log, IRON_LOG_INFO, "ready", NULL, "left out");
    iron__log_event(p.log, IRON_LOG_ERROR, "failed", NULL, "%s", "it");
    text = piped_close(&p);
    second = strchr(text, '\n') + 1;
    assert_string_equal(after_time(second),
                        "\"level\": \"error\", \"event\": \"failed\", \"message\": \"it\"}\n");
    *second = '\0';
    assert_string_equal(after_time(text),
                        "\"level\": \"warning\", \"event\": \"note\", \"message\": \"a \\\"b\\\" "
                        "\\\\ \\u000a \\u0001 \\ufffd \xc3\xa9 \\u2028\"}\n");
    free(text);
}

/* With members, JSON has these instead of the sentence; text logs need a sentence. */
static void test_members(void **state) {
    const iron__log_member members[] = {
        {.name = "url", .text = "http://x"}, {.name = "engines", .number = 3}, {0}};

    (void)state;
    for (int is_json = 0; is_json < 2; is_json++) {
        piped p;
        char *text;

        piped_open(&p, (iron__log_options){.is_json = is_json, .level = IRON_LOG_INFO});
        iron__log_event(p.log, IRON_LOG_INFO, "ready", members, "serving %s", "http://x");
        if (!is_json)
            iron__log_event(p.log, IRON_LOG_INFO, "start", members, NULL);
        text = piped_close(&p);
        assert_string_equal(is_json ? after_time(text) : text,
                            is_json ? "\"level\": \"info\", \"event\": \"ready\", \"url\": "
                                      "\"http://x\", \"engines\": 3}\n"
                                    : "iron: serving http://x\n");
        free(text);
    }
}

static const iron__route route = {.method = "POST", .pattern = "/v1/engines/{name}/feed"};
static const iron__route health = {.method = "GET", .pattern = "/healthz"};

static void test_request(void **state) {
    struct sockaddr_in client = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0A000102)};
    iron__request_record r = {.id = 0xABC,
                              .method = iron__text_of("POST"),
                              .target = iron__text_of("/v1/engines/e/feed?token=secret"),
                              .route = &route,
                              .status = 409,
                              .engine = "e",
                              .client = (struct sockaddr *)&client,
                              .bytes_in = 12,
                              .bytes_out = 34,
                              .ns = 1500000,
                              .problem = iron__http_problem_find("position-mismatch")};
    piped p;
    char *text;

    (void)state;
    piped_open(&p, (iron__log_options){.is_json = true, .level = IRON_LOG_INFO});
    iron__log_request(p.log, &r);
    text = piped_close(&p);
    assert_string_equal(
        after_time(text),
        "\"level\": \"warning\", \"event\": \"request\", \"request_id\": \"0000000000000abc\", "
        "\"method\": \"POST\", \"path\": \"/v1/engines/e/feed\", \"route\": "
        "\"/v1/engines/{name}/feed\", \"status\": 409, \"engine\": \"e\", \"client\": "
        "\"10.0.1.2\", \"bytes_in\": 12, \"bytes_out\": 34, \"seconds\": 0.0015, \"problem\": "
        "\"position-mismatch\"}\n");
    free(text);
}

/* Unknown members are left out; monitoring requests are left out unless they fail. */
static void test_request_with_unknown_members(void **state) {
    piped p;
    char *text, *second;

    (void)state;
    piped_open(&p, (iron__log_options){.is_json = true, .level = IRON_LOG_INFO});
    iron__log_request(p.log, &(iron__request_record){.route = &health, .status = 200});
    iron__log_request(p.log, &(iron__request_record){.route = &health, .status = 503});
    iron__log_request(p.log, &(iron__request_record){.detail = "why", .status = 500});
    text = piped_close(&p);
    second = strchr(text, '\n') + 1;
    assert_string_equal(after_time(second),
                        "\"level\": \"error\", \"event\": \"request\", \"request_id\": "
                        "\"0000000000000000\", \"route\": \"none\", \"status\": 500, \"bytes_in\": "
                        "0, \"bytes_out\": 0, \"seconds\": 0, \"detail\": \"why\"}\n");
    *second = '\0';
    assert_string_equal(after_time(text),
                        "\"level\": \"warning\", \"event\": \"request\", \"request_id\": "
                        "\"0000000000000000\", \"route\": \"/healthz\", \"status\": 503, "
                        "\"bytes_in\": 0, \"bytes_out\": 0, \"seconds\": 0}\n");
    free(text);
}

/* The longest texts that a client can send, fully escaped, still fit into one write to a pipe. */
static void test_longest_request(void **state) {
    static char worst[8001];
    piped p;
    char *text;

    (void)state;
    memset(worst, 1, sizeof worst - 1);
    piped_open(&p, (iron__log_options){.is_json = true, .level = IRON_LOG_INFO});
    iron__log_request(p.log, &(iron__request_record){.id = UINT64_MAX,
                                                     .method = iron__text_of(worst),
                                                     .target = iron__text_of(worst),
                                                     .route = &route,
                                                     .status = 200,
                                                     .engine = worst,
                                                     .bytes_in = UINT64_MAX,
                                                     .bytes_out = UINT64_MAX,
                                                     .ns = UINT64_MAX,
                                                     .problem = iron__http_problem_find("internal"),
                                                     .detail = "nothing"});
    text = piped_close(&p);
    assert_true(strlen(text) > 2000 && strlen(text) <= WRITE_MAX);
    assert_non_null(strstr(text, "\\u0001...\", \"route\""));
    free(text);
}

#define WRITERS 8
#define EACH    100 /* all lines fit into a pipe, which is read at the end */

static void *write_many(void *context) {
    static atomic_uint next;
    unsigned who = atomic_fetch_add(&next, 1);

    for (unsigned k = 0; k < EACH; k++)
        iron__note(context, "writer %u line %u", who, k);
    return NULL;
}

/* Every line is complete, and the lines of each writer are in order. */
static void test_many_writers(void **state) {
    pthread_t threads[WRITERS];
    unsigned next[WRITERS] = {0}, who, number, lines = 0;
    piped p;
    char *text, *rest = NULL;

    (void)state;
    piped_open(&p, (iron__log_options){.level = IRON_LOG_INFO});
    for (size_t k = 0; k < WRITERS; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, write_many, p.log), 0);
    for (size_t k = 0; k < WRITERS; k++)
        pthread_join(threads[k], NULL);
    text = piped_close(&p);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        assert_int_equal(sscanf(line, "iron: writer %u line %u", &who, &number), 2);
        assert_true(who < WRITERS);
        assert_int_equal(number, next[who]++);
        lines++;
    }
    assert_int_equal(lines, WRITERS * EACH);
    free(text);
}

/* Without a reader, the pipe and the queue fill up; then lines are dropped and counted. */
static void test_slow_reader(void **state) {
    iron__log_options options = {.level = IRON_LOG_INFO, .room = 10000, .close_ms = 50};
    piped p;
    char *text, *at;
    unsigned kept = 0;

    (void)state;
    piped_open(&p, options);
    for (unsigned k = 0; k < 20000; k++)
        iron__note(p.log, "a line of thirty-two bytes: %4u", k % 10000);
    assert_true(dropped_of(p.log) > 0);
    text = piped_close(&p);
    for (at = text; (at = strchr(at, '\n')); at++)
        kept++;
    assert_true(kept > 0 && kept < 20000);
    free(text);
}

/* When the reader continues, the log reports the number of dropped lines. */
static void test_dropped_lines_are_reported(void **state) {
    iron__log_options options = {.level = IRON_LOG_INFO, .room = 10000};
    size_t room = 1 << 20, used = 0;
    char *text = grab(room);
    ssize_t got = 1;
    piped p;

    (void)state;
    piped_open(&p, options);
    for (unsigned k = 0; k < 20000; k++)
        iron__note(p.log, "a line of thirty-two bytes: %4u", k % 10000);
    assert_true(dropped_of(p.log) > 0);
    for (text[0] = '\0'; got > 0 && !strstr(text, " lines of this log were dropped");) {
        got = read(p.out, text + used, room - 1 - used);
        used += got > 0 ? (size_t)got : 0;
        text[used] = '\0';
    }
    assert_true(got > 0);
    free(text);
    free(piped_close(&p));
}

/* A log whose reader has closed neither blocks nor ends the process. */
static void test_closed_reader(void **state) {
    iron_error err;
    iron__log_options options = {.level = IRON_LOG_INFO};
    iron__log *log;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    options.fd = ends[1];
    assert_ok(iron__log_open(&options, &log, &err), &err);
    for (unsigned k = 0; k < 100; k++)
        iron__note(log, "unread");
    while (dropped_of(log) < 100)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(atomic_load(&log->lines), 0);
    iron__log_close(log);
    close(ends[1]);
}

static void test_no_log(void **state) {
    (void)state;
    iron__note(NULL, "nothing");
    iron__log_event(NULL, IRON_LOG_ERROR, "x", NULL, "nothing");
    iron__log_request(NULL, &(iron__request_record){.status = 500});
    iron__log_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_request_with_unknown_members),
        cmocka_unit_test(test_longest_request),
        cmocka_unit_test(test_many_writers),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_dropped_lines_are_reported),
        cmocka_unit_test(test_closed_reader),
        cmocka_unit_test(test_no_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
