/* SPDX-License-Identifier: MIT */
/*
 * test_server_gate.c: a real server over raw sockets: malformed requests, as the first of a
 * connection (which the gate sees) and as the second (which only the HTTP library has read); slow
 * headers; too many connections.
 */
#include "server_support.h"

#define HOST "Host: localhost\r\n"
#define GOOD "GET /hello/a HTTP/1.1\r\n" HOST "\r\n"

typedef struct malformed {
    const char *text;
    size_t bytes;
    unsigned status;
    const char *kind;
    bool is_libs; /* as a second request the library itself refuses it */
} malformed;

#define ROW(text, status, kind)                                                                    \
    { text, sizeof(text) - 1, status, kind, false }
#define LIBS(text, status, kind)                                                                   \
    { text, sizeof(text) - 1, status, kind, true }
#define BAD(text)      ROW(text, 400, "malformed-request")
#define BAD_LIBS(text) LIBS(text, 400, "malformed-request")
#define POST           "POST /count HTTP/1.1\r\n" HOST
#define GET            "GET /hello/a HTTP/1.1\r\n" HOST

static const malformed rows[] = {
    BAD(POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
    BAD(POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
    BAD(POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
    BAD(POST "Content-Length : 2\r\n\r\nab"),
    BAD_LIBS(POST "Content-Length: +2\r\n\r\nab"),
    BAD_LIBS(POST "Content-Length: 2,2\r\n\r\nab"),
    BAD_LIBS(POST "Content-Length: \r\n\r\nab"),
    BAD_LIBS(POST "Content-Length: 2 \r\n\r\nab"),
    BAD(POST "Transfer-Encoding: chunked \r\n\r\n2\r\nab\r\n0\r\n\r\n"),
    BAD(POST "Transfer-Encoding: identity\r\n\r\nab"),
    BAD(POST "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
    BAD(POST "Transfer-Encoding: xchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
    BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    BAD("POST /count HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ROW("GET /hello/a HTTP/1.2\r\n" HOST "\r\n", 505, "unsupported-version"),
    LIBS("GET /hello/a HTTP/2.0\r\n" HOST "\r\n", 505, "unsupported-version"),
    BAD("GET /hello/a HTTP/1.1\r\n\r\n"),
    BAD("GET /hello/a HTTP/1.1\r\n" HOST HOST "\r\n"),
    BAD("GET /hello/a HTTP/1.1\r\nHost: a b\r\n\r\n"),
    BAD(GET ": empty\r\n\r\n"),
    BAD("GET /hello/a HTTP/1.1\r\n X: y\r\n" HOST "\r\n"),
    BAD("GET http://localhost/hello/a HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET x HTTP/1.1\r\n" HOST "\r\n"),
    BAD("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"),
    BAD("get /hello/a HTTP/1.1\r\n" HOST "\r\n"),
    BAD("FROB /hello/a HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET /hello/\x01 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET /hello/\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET /hello/a#b HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET /hello/a b HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET  /hello/a HTTP/1.1\r\n" HOST "\r\n"),
    BAD_LIBS("GET /hello/a HTTP/1.1 \r\n" HOST "\r\n"),
    BAD("GET /hello/a HTTP/1.1\n" HOST "\r\n"),
    BAD("GET /hello/a HTTP/1.1\r\nHost: localhost\n\r\n"),
    BAD("GET /hello/a HTTP/1.1\r\nHost: localhost\r\n\n"),
    BAD(GET "X: a\rb\r\n\r\n"),
    BAD(GET "X: a\0b\r\n\r\n"),
    BAD("GET /hello/a\0b HTTP/1.1\r\n" HOST "\r\n"),
    BAD_LIBS(GET "X\0: b\r\n\r\n"),
    BAD(GET "X: a\r\n  b\r\n\r\n"),
    BAD(GET "X: a\r\n\tb\r\n\r\n"),
    BAD(GET "X: a\x01\r\n\r\n"),
    BAD(GET "X Y: a\r\n\r\n"),
    BAD(GET "Authorization: a\r\nAuthorization: b\r\n\r\n"),
    BAD(GET "Expect: something\r\n\r\n"),
    BAD_LIBS(GET "no colon\r\n\r\n"),
};

static void test_first_requests(void **state) {
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (size_t k = 0; k < COUNT(rows); k++) {
        int fd = dial(&f);
        char *answer;

        assert_true(say_bytes(fd, rows[k].text, rows[k].bytes));
        answer = hear_all(fd);
        if (status_of(answer) != rows[k].status || !strstr(answer, rows[k].kind) ||
            !strstr(answer, "Connection: close") || !strstr(answer, "application/problem+json"))
            fail_msg("row %zu:\n%.*s\ngave:\n%s", k, (int)rows[k].bytes, rows[k].text, answer);
        free(answer);
        close(fd);
    }
    fixture_stop(&f);
}

/* The same after a good request, where the gate no longer looks. */
static void test_second_requests(void **state) {
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (size_t k = 0; k < COUNT(rows); k++) {
        int fd = dial(&f);
        char *first, *answer;

        assert_true(say(fd, GOOD));
        first = hear_one(fd);
        assert_answer(first, 200, "hello");
        assert_true(say_bytes(fd, rows[k].text, rows[k].bytes));
        answer = hear_all(fd);
        if (rows[k].is_libs ? status_of(answer) == 200
                            : status_of(answer) != rows[k].status || !strstr(answer, rows[k].kind))
            fail_msg("row %zu:\n%.*s\ngave:\n%s", k, (int)rows[k].bytes, rows[k].text, answer);
        free(answer);
        free(first);
        close(fd);
    }
    fixture_stop(&f);
}

/* However strangely a good header is written, it is taken, first and second. */
static void test_good_requests(void **state) {
    static const char *const good[] = {
        GOOD,
        "GET /hello/a HTTP/1.1\r\nhOST:localhost\r\nX:\r\nY: \t \r\nZ:  a b\t\r\n\r\n",
        "GET /hello/a HTTP/1.1\r\nHost: localhost \t\r\nX-Said: x \r\n\r\n",
        "GET /hello/a HTTP/1.1\r\nCookie: a=b; c=d\r\n" HOST "X: a:b\r\n\r\n",
        "GET /hello/a?q=1&other=%41 HTTP/1.1\r\n" HOST "X: caf\xc3\xa9\r\n\r\n",
    };
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (size_t k = 0; k < COUNT(good); k++) {
        int fd = dial(&f);

        for (int turn = 0; turn < 3; turn++) {
            char *answer;

            assert_true(say(fd, good[k]));
            answer = hear_one(fd);
            assert_answer(answer, 200, "\"hello\": \"a\"");
            free(answer);
        }
        close(fd);
    }
    fixture_stop(&f);
}

static void test_sizes(void **state) {
    char *text = grab(80000);
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    sprintf(text, GET "X: %0*d\r\n\r\n", 17000, 0);
    expect(&f, text, 431, "header-too-large");
    sprintf(text, "GET /hello/%0*d HTTP/1.1\r\n" HOST "\r\n", 9000, 0);
    expect(&f, text, 414, "target-too-long");
    sprintf(text, "GET /hello/%0*d", 70000, 0);
    expect(&f, text, 414, "target-too-long");
    sprintf(text, GOOD "GET /hello/a HTTP/1.1\r\nConnection: close\r\n" HOST "X: %0*d\r\n\r\n",
            20000, 0);
    expect(&f, text, 200, "header-too-large");
    free(text);
    fixture_stop(&f);
}

/* A header in small pieces is waited for. */
static void test_slow_headers(void **state) {
    fixture f;
    int fd;
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){.header_seconds = 600});
    fd = dial(&f);
    for (const char *at = GOOD; *at; at++) {
        assert_true(say_bytes(fd, at, 1));
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    answer = hear_one(fd);
    assert_answer(answer, 200, "hello");
    free(answer);
    close(fd);
    fixture_stop(&f);
}

/* All that is heard after a part of a header, behind a good request or none, until the end.
 * Nothing, if the time was over before it was said: then it is said again. */
static char *hear_after(const fixture *f, bool is_second, const char *part) {
    for (int k = 0; k < 100; k++) {
        int fd = dial(f);
        char *answer = NULL;

        if (is_second && say(fd, GOOD))
            answer = hear_one(fd);
        if (!is_second || (answer && status_of(answer) == 200)) {
            (void)say(fd, part);
            free(answer);
            answer = hear_all(fd);
        }
        close(fd);
        if (answer && answer[0] && status_of(answer) != 200)
            return answer;
        free(answer);
    }
    return NULL;
}

/* One that stops coming is not. */
static void test_late_headers(void **state) {
    fixture f;
    char *answer;
    int silent;

    (void)state;
    fixture_start(&f, (iron_server_options){.header_seconds = 1});
    silent = dial(&f);
    for (int k = 0; k < 2; k++) {
        answer = hear_after(&f, k, "GET /hello/a HT");
        assert_non_null(answer);
        assert_answer(answer, 408, "too-slow");
        free(answer);
    }
    answer = hear_all(silent); /* the connection is closed without a word */
    assert_string_equal(answer, "");
    free(answer);
    close(silent);
    fixture_stop(&f);
}

/* Nothing follows an answer: the connection is closed without a word as well. */
static void test_idle(void **state) {
    char *answer = NULL;
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){.header_seconds = 1});
    for (int k = 0; k < 100 && !(answer && status_of(answer) == 200); k++) {
        int fd = dial(&f);

        free(answer);
        (void)say(fd, GOOD);
        answer = hear_one(fd); /* or the end, if that was too late */
        if (status_of(answer) == 200) {
            char *rest = hear_all(fd);

            assert_string_equal(rest, "");
            free(rest);
        }
        close(fd);
    }
    assert_answer(answer, 200, "hello");
    free(answer);
    fixture_stop(&f);
}

/* Waits until a connection that was closed here is no longer counted there. */
static void await_answer(const fixture *f, const char *from, unsigned status) {
    for (int k = 0; k < 30000; k++) {
        int fd = dial_from(f, from);
        char *answer;

        assert_true(say(fd, GOOD));
        answer = hear_one(fd);
        close(fd);
        if (status_of(answer) == status) {
            free(answer);
            return;
        }
        free(answer);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("no answer with %u came", status);
}

static void test_too_many(void **state) {
    fixture f;
    int held[6], extra;
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){
                          .max_connections = 6, .max_per_address = 4, .header_seconds = 600});
    for (int k = 0; k < 4; k++) { /* two idle ones after a request, two that never asked */
        held[k] = dial(&f);
        if (k < 2) {
            assert_true(say(held[k], GOOD));
            free(hear_one(held[k]));
        }
    }
    expect(&f, GOOD, 429, "too-many-connections");
    held[4] = dial_from(&f, "127.0.0.2");
    held[5] = dial_from(&f, "127.0.0.3");
    assert_true(say(held[5], GOOD));
    answer = hear_one(held[5]);
    assert_answer(answer, 200, NULL);
    free(answer);
    expect(&f, GOOD, 503, "Retry-After: ");
    extra = dial(&f); /* it says nothing, and is told all the same */
    answer = hear_all(extra);
    assert_answer(answer, 503, "\"urn:iron:problem:busy\"");
    free(answer);
    close(extra);
    close(held[0]);
    close(held[2]);
    await_answer(&f, NULL, 200);
    for (int k = 1; k < 6; k++)
        if (k != 2)
            close(held[k]);
    fixture_stop(&f);
}

/* Far more refused connections than are answered politely: each gets an answer or an end. */
static void test_flood(void **state) {
    fixture f;
    int fds[300], answered = 0;
    int keeper;

    (void)state;
    fixture_start(&f, (iron_server_options){.max_connections = 1, .max_per_address = 1});
    keeper = dial(&f);
    assert_true(say(keeper, GOOD));
    free(hear_one(keeper));
    for (size_t k = 0; k < COUNT(fds); k++)
        fds[k] = dial(&f);
    for (size_t k = 0; k < COUNT(fds); k++) {
        char *answer = hear_all(fds[k]);

        if (answer[0])
            assert_answer(answer, 503, "busy");
        answered += answer[0] != '\0';
        free(answer);
        close(fds[k]);
    }
    assert_true(answered >= 60);
    close(keeper);
    await_answer(&f, NULL, 200);
    fixture_stop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_requests), cmocka_unit_test(test_second_requests),
        cmocka_unit_test(test_good_requests),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_slow_headers),   cmocka_unit_test(test_late_headers),
        cmocka_unit_test(test_idle),           cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_flood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
