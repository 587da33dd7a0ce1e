/* SPDX-License-Identifier: MIT */
/*
 * test_server_acceptor.c: a real server over raw sockets: malformed requests, as the first of a
 * connection (checked by the acceptor) and as the second (read only by libmicrohttpd); slow
 * headers; too many connections, and connections that libmicrohttpd loses.
 */
#include <microhttpd.h>
#include <stdatomic.h>
#include <unistd.h>

/* libmicrohttpd without memory: it accepts a connection and closes it later without a response. */
static atomic_bool loses;

static enum MHD_Result lossy_add_connection(struct MHD_Daemon *daemon, MHD_socket fd,
                                            const struct sockaddr *address, socklen_t bytes) {
    if (!atomic_load(&loses))
        return MHD_add_connection(daemon, fd, address, bytes);
    close(fd);
    return MHD_YES;
}

#define MHD_add_connection lossy_add_connection
#include "server/connections.c"

#include "server_support.h"

#define HOST "Host: localhost\r\n"
#define GOOD "GET /hello/a HTTP/1.1\r\n" HOST "\r\n"

typedef struct malformed {
    const char *text;
    size_t bytes;
    unsigned status;
    const char *kind;
    bool is_libs; /* as a second request, libmicrohttpd itself refuses it */
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

/* The same after a valid request; the acceptor no longer sees it. */
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

/* Unusual but correct headers are accepted, first and second. */
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

/* A header in small pieces is accepted. */
static void test_slow_headers(void **state) {
    fixture f;
    int fd;
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){.header_seconds = 600});
    fd = dial(&f);
    for (const char *at = GOOD; *at; at++) {
        assert_true(say_bytes(fd, at, 1));
        nap_ms(1);
    }
    answer = hear_one(fd);
    assert_answer(answer, 200, "hello");
    free(answer);
    close(fd);
    fixture_stop(&f);
}

/* The response to an incomplete header, after a valid request or as the first, when its time is
 * over. */
static char *hear_after(const fixture *f, bool is_second, const char *part) {
    int fd = dial(f);
    char *answer;

    if (is_second) {
        assert_true(say(fd, GOOD));
        answer = hear_one(fd);
        assert_answer(answer, 200, "hello");
        free(answer);
    }
    assert_true(say(fd, part));
    nap_ms(6 * TEST_TICK_MS); /* it has arrived */
    answer = hear_later(fd, 100000);
    close(fd);
    return answer;
}

/* A header that stops arriving is not waited for. */
static void test_late_headers(void **state) {
    fixture f;
    char *answer;
    int silent;

    (void)state;
    fixture_start(&f, (iron_server_options){.header_seconds = 600});
    silent = dial(&f);
    for (int k = 0; k < 2; k++) {
        answer = hear_after(&f, k, "GET /hello/a HT");
        assert_answer(answer, 408, "too-slow");
        free(answer);
    }
    answer = hear_all(silent); /* the connection is closed without a response */
    assert_string_equal(answer, "");
    free(answer);
    close(silent);
    fixture_stop(&f);
}

/* A connection without a further request is closed without a response as well. */
static void test_idle(void **state) {
    char *answer;
    fixture f;
    int fd;

    (void)state;
    fixture_start(&f, (iron_server_options){.header_seconds = 600});
    fd = dial(&f);
    assert_true(say(fd, GOOD));
    answer = hear_one(fd);
    assert_answer(answer, 200, "hello");
    free(answer);
    answer = hear_later(fd, 100000);
    assert_string_equal(answer, "");
    free(answer);
    close(fd);
    fixture_stop(&f);
}

/* Waits until the server no longer counts a connection that was closed here. */
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
        nap_ms(1);
    }
    fail_msg("no answer with %u came", status);
}

#define BODY "POST /count HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n"

/* A connection with a request whose body never ends. */
static int hold(const fixture *f, const char *from) {
    unsigned before = atomic_load(&f->server->in_flight);
    int fd = dial_from(f, from);

    assert_true(say(fd, BODY));
    for (int k = 0; k < 30000 && atomic_load(&f->server->in_flight) == before; k++)
        nap_ms(1);
    return fd;
}

static void test_too_many(void **state) {
    fixture f;
    int held[6], extra;
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){
                          .max_connections = 6, .max_per_address = 4, .header_seconds = 600});
    for (int k = 0; k < 4; k++)
        held[k] = hold(&f, NULL);
    expect(&f, GOOD, 429, "too-many-connections");
    held[4] = hold(&f, "127.0.0.2");
    held[5] = hold(&f, "127.0.0.3");
    extra = dial_from(&f, "127.0.0.4"); /* it sends nothing and still gets a response */
    answer = hear_later(extra, 100);
    assert_answer(answer, 503, "Retry-After: ");
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

/* Far more refused connections than may wait: each gets a response or is closed. */
static void test_flood(void **state) {
    fixture f;
    int fds[300], answered = 0;
    int keeper;

    (void)state;
    fixture_start(&f, (iron_server_options){.max_connections = 1, .max_per_address = 2});
    keeper = hold(&f, NULL);
    for (size_t k = 0; k < COUNT(fds); k++)
        fds[k] = dial(&f);
    for (size_t k = 0; k < COUNT(fds); k++) {
        char *answer = hear_later(fds[k], 100);

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

/* A request is over a little after its client has the response. */
static void await_in_flight(const fixture *f, unsigned count) {
    for (int k = 0; k < 30000 && atomic_load(&f->server->in_flight) > count; k++)
        nap_ms(1);
}

/* Those that wait for a header give way, the oldest first: silent ones, those with half a header,
 * and at last those that wait for the next request. Requests in progress do not. */
static void test_waiting_connections_give_way(void **state) {
    static const char *const sources[] = {NULL, "127.0.0.2"};

    (void)state;
    for (size_t source = 0; source < COUNT(sources); source++) { /* who is full: it, all */
        int idle, silent, half, busy;
        char *answer;
        fixture f;

        fixture_start(&f, (iron_server_options){.max_connections = source ? 4 : 100,
                                                .max_per_address = source ? 100 : 4,
                                                .header_seconds = 600});
        busy = hold(&f, NULL);
        idle = dial(&f);
        assert_true(say(idle, GOOD));
        free(hear_one(idle));
        silent = dial(&f);
        half = dial(&f);
        assert_true(say(half, "GET /he"));
        for (int k = 0; k < 3; k++) {
            int fd = dial_from(&f, sources[source]), more;

            assert_true(say(fd, GOOD));
            more = dial_from(&f, sources[source]);
            answer = hear_one(fd);
            assert_answer(answer, 200, "hello");
            free(answer);
            await_in_flight(&f, 1);
            close(more);
            close(fd);
        }
        answer = hear_all(silent);
        assert_string_equal(answer, "");
        free(answer);
        close(silent);
        close(half);
        close(idle);
        assert_true(say(busy, "123456789"));
        answer = hear_one(busy);
        assert_answer(answer, 200, "bytes");
        free(answer);
        close(busy);
        assert_true(atomic_load(&f.server->dropped_connections) >= 1);
        for (int k = 0; k < 30000 && atomic_load(&f.server->connections) > 0; k++)
            nap_ms(1);
        assert_int_equal(atomic_load(&f.server->connections), 0);
        fixture_stop(&f);
    }
}

/* Connections that are kept open after a response give way too, and are counted once. */
static void test_idle_connections_give_way(void **state) {
    int fds[40];
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){.max_connections = 3, .header_seconds = 600});
    for (size_t k = 0; k < COUNT(fds); k++) {
        char *answer;

        fds[k] = dial(&f);
        assert_true(say(fds[k], GOOD));
        answer = hear_one(fds[k]);
        assert_answer(answer, 200, "hello");
        free(answer);
        await_in_flight(&f, 0);
    }
    for (size_t k = 0; k + 3 < COUNT(fds); k++) {
        char *answer = hear_all(fds[k]);

        assert_string_equal(answer, "");
        free(answer);
    }
    for (size_t k = 0; k < COUNT(fds); k++)
        close(fds[k]);
    for (int k = 0; k < 30000 && atomic_load(&f.server->connections) > 0; k++)
        nap_ms(1);
    assert_int_equal(atomic_load(&f.server->connections), 0);
    fixture_stop(&f);
}

/* Seven of eight connections are for requests without a token. */
static void test_share_of_strangers(void **state) {
    int held[7];
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){.max_connections = 8, .header_seconds = 600});
    for (size_t k = 0; k < COUNT(held); k++)
        held[k] = hold(&f, NULL);
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 503, "busy");
    /* the eighth connection is free a little after its client has seen the end */
    for (int k = 0; k < 30000 && atomic_load(&f.server->connections) > COUNT(held); k++)
        nap_ms(1);
    expect(&f, "GET /probe HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, "hello");
    for (size_t k = 0; k < COUNT(held); k++)
        close(held[k]);
    await_answer(&f, NULL, 200);
    fixture_stop(&f);
}

/* Connections that libmicrohttpd loses are no longer counted, whether their descriptor is reused or
 * not. */
static void test_lost_connections(void **state) {
    fixture f;
    int fds[2];

    (void)state;
    fixture_start(&f, (iron_server_options){.max_connections = 2, .header_seconds = 600});
    atomic_store(&loses, true);
    for (int k = 0; k < 2; k++) {
        char *answer;

        fds[k] = dial(&f);
        assert_true(say(fds[k], GOOD));
        answer = hear_all(fds[k]);
        assert_string_equal(answer, "");
        free(answer);
        close(fds[k]);
    }
    atomic_store(&loses, false);
    await_answer(&f, NULL, 200);
    for (int k = 0; k < 30000 && atomic_load(&f.server->connections) > 0; k++)
        nap_ms(1);
    assert_int_equal(atomic_load(&f.server->connections), 0);
    fixture_stop(&f);
}

static struct sockaddr_in6 v6(const char *text) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};

    assert_int_equal(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
    return a;
}

static void test_limits(void **state) {
    limits l;
    union {
        struct sockaddr_in in;
        struct sockaddr_in6 in6; /* as large as any address: gcc looks at both branches */
    } four = {.in = {.sin_family = AF_INET}};
    struct sockaddr_in6 mapped = v6("::ffff:10.0.0.1"), six = v6("2001:db8::1"),
                        near = v6("2001:db8::ffff"), far = v6("2001:db8:0:1::1");

    (void)state;
    inet_pton(AF_INET, "10.0.0.1", &four.in.sin_addr);
    l = (limits){.all_max = 5, .address_max = 2, .entries = grab(5 * sizeof(limit_entry))};
    assert_int_equal(limits_add(&l, address_key((void *)&four)), LIMIT_OK);
    assert_int_equal(limits_add(&l, address_key((void *)&mapped)), LIMIT_OK);
    assert_int_equal(limits_add(&l, address_key((void *)&four)), LIMIT_ADDRESS);
    assert_int_equal(limits_add(&l, address_key((void *)&six)), LIMIT_OK);
    assert_int_equal(limits_add(&l, address_key((void *)&near)), LIMIT_OK);
    assert_int_equal(limits_add(&l, address_key((void *)&six)), LIMIT_ADDRESS);
    assert_int_equal(limits_add(&l, address_key((void *)&far)), LIMIT_OK);
    assert_int_equal(limits_add(&l, address_key((void *)&far)), LIMIT_ALL);
    limits_remove(&l, address_key((void *)&mapped));
    assert_int_equal(limits_add(&l, address_key((void *)&four)), LIMIT_OK);
    limits_remove(&l, address_key((void *)&six));
    limits_remove(&l, address_key((void *)&six));
    assert_int_equal(l.all, 3);
    free(l.entries);
}

/* Many addresses come and go; the table loses none. */
static void test_limits_at_random(void **state) {
    limits l;
    rng r = {77};
    uint8_t count[300] = {0};
    uint32_t all = 0;

    (void)state;
    l = (limits){.all_max = 200, .address_max = 3, .entries = grab(200 * sizeof(limit_entry))};
    for (int k = 0; k < 100000; k++) {
        uint32_t who = (uint32_t)rng_below(&r, 300);
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(who * 7919u)};

        if (rng_next(&r) >> 63) {
            limit_result expected = count[who] >= 3 ? LIMIT_ADDRESS
                                    : all == 200    ? LIMIT_ALL
                                                    : LIMIT_OK;

            assert_int_equal(limits_add(&l, address_key((void *)&a)), expected);
            if (expected == LIMIT_OK) {
                count[who]++;
                all++;
            }
        } else if (count[who] > 0) {
            limits_remove(&l, address_key((void *)&a));
            count[who]--;
            all--;
        }
        assert_int_equal(l.all, all);
    }
    free(l.entries);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_requests),
        cmocka_unit_test(test_second_requests),
        cmocka_unit_test(test_good_requests),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_slow_headers),
        cmocka_unit_test(test_late_headers),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_lost_connections),
        cmocka_unit_test(test_waiting_connections_give_way),
        cmocka_unit_test(test_idle_connections_give_way),
        cmocka_unit_test(test_share_of_strangers),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_at_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
