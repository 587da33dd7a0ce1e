/* SPDX-License-Identifier: MIT */
/*
 * test_server_timeouts.c: timeouts of connections, with a clock that only the test advances: the
 * rate of a body, a response that is not read, and that the server's own work does not count. On
 * real sockets, without libmicrohttpd.
 */
#include <errno.h>
#include <pthread.h>

/* Simulates a system without free threads. */
static int no_threads(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                      void *context) {
    static int calls;

    (void)attributes;
    return calls++ == 0 ? EAGAIN : pthread_create(thread, NULL, run, context);
}

#define pthread_create no_threads
#include "server/connections.c"

#include "server_support.h"
#undef pthread_create

/* Nothing depends on real time: only the test advances the clock. */
static uint64_t stopped_clock(void) { return SECOND_NS + atomic_load(&skipped_ns); }

typedef struct pair {
    iron_server server;
    iron__connection *connection;
    int ours, theirs;
} pair;

/* Two ends of a TCP connection. */
static void connect_pair(pair *p) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    struct timeval patience = {.tv_sec = 300};
    int listening = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &bytes), 0);
    p->theirs = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(p->theirs, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(p->theirs, (struct sockaddr *)&at, sizeof at), 0);
    p->ours = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
    assert_true(p->ours >= 0);
    close(listening);
}

static void pair_begin(pair *p, uint32_t header_seconds, uint32_t request_seconds) {
    iron_error err;

    memset(p, 0, sizeof *p);
    connect_pair(p);
    p->server.now_ns = stopped_clock;
    p->server.tick_ms = TEST_TICK_MS;
    p->server.options.header_seconds = header_seconds;
    p->server.options.request_seconds = request_seconds;
    p->server.options.min_body_rate = 1000;
    assert_ok(timeouts_start(&p->server, &err), &err);
    assert_ok(iron__connections_accept(&p->server, &err), &err);
    p->connection = connection_open(&p->server, p->ours, &(struct sockaddr){0});
    p->connection->phase = IRON_PHASE_IDLE;
    assert_non_null(p->connection);
}

static void pair_end(pair *p) {
    close(p->theirs);
    connection_close(&p->server, p->connection);
    close(p->ours);
    iron__connections_stop(&p->server);
}

static bool enter(pair *p, iron__phase phase, size_t body_bytes) {
    return iron__connection_enter(&p->server, p->connection, phase, body_bytes);
}

/* Advances the clock and checks the timeouts. */
static void pass(uint64_t milliseconds) {
    skip_ms(milliseconds);
    nap_ms(5 * TEST_TICK_MS);
}

static uint64_t timed_out(pair *p) { return atomic_load(&p->server.timed_out); }

/* The message has the error of the failed call, not an earlier errno. */
static void test_no_threads(void **state) {
    iron_server server = {.now_ns = stopped_clock, .tick_ms = TEST_TICK_MS};
    iron_error err = {0};

    (void)state;
    errno = ENOENT;
    assert_refused(timeouts_start(&server, &err), IRON_E_NOMEM, &err);
    assert_int_equal(err.native, EAGAIN);
    assert_says(&err, strerror(EAGAIN));
}

static void test_rate(void **state) {
    char *heard;
    pair p;

    (void)state;
    pair_begin(&p, 3600, 3600);
    p.connection->request_id = 7;
    assert_true(enter(&p, IRON_PHASE_WORKING, 0));
    assert_true(enter(&p, IRON_PHASE_BODY, 0));
    pass(10000); /* the grace period */
    assert_int_equal(timed_out(&p), 0);
    skip_ms(1);
    heard = hear_all(p.theirs); /* ends when the connection is cut */
    assert_answer(heard, 408, "more slowly");
    assert_non_null(strstr(heard, "/requests/0000000000000007"));
    free(heard);
    assert_false(enter(&p, IRON_PHASE_BODY, 1));
    assert_false(enter(&p, IRON_PHASE_SENDING, 0));
    assert_int_equal(timed_out(&p), 1);
    pair_end(&p);
}

static void test_good_rate(void **state) {
    pair p;

    (void)state;
    pair_begin(&p, 3600, 3600);
    assert_true(enter(&p, IRON_PHASE_WORKING, 0));
    assert_true(enter(&p, IRON_PHASE_BODY, 1000000)); /* enough for 1000 seconds */
    pass(999000);
    assert_true(enter(&p, IRON_PHASE_BODY, 1));
    assert_true(enter(&p, IRON_PHASE_WORKING, 0));
    assert_true(enter(&p, IRON_PHASE_SENDING, 0));
    assert_true(enter(&p, IRON_PHASE_IDLE, 0));
    assert_true(enter(&p, IRON_PHASE_WORKING, 0)); /* the next request starts from zero */
    assert_int_equal(p.connection->waited_ns, 0);
    assert_int_equal(p.connection->body_bytes, 0);
    assert_int_equal(timed_out(&p), 0);
    pair_end(&p);
}

/* The server's own work does not count, for any timeout. */
static void test_working(void **state) {
    pair p;

    (void)state;
    pair_begin(&p, 1, 1);
    assert_true(enter(&p, IRON_PHASE_WORKING, 0));
    pass(100000);
    assert_true(enter(&p, IRON_PHASE_BODY, 0));
    assert_true(enter(&p, IRON_PHASE_WORKING, 0));
    pass(100000);
    assert_true(enter(&p, IRON_PHASE_SENDING, 0));
    assert_int_equal(timed_out(&p), 0);
    pair_end(&p);
}

/* A response is written until the client's buffer is full: then the client must read. */
static void test_stalled_responses(void **state) {
    static char block[1 << 16];
    pair p;

    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        pair_begin(&p, 3600, 3600);
        assert_true(enter(&p, IRON_PHASE_WORKING, 0));
        assert_true(enter(&p, is_stream ? IRON_PHASE_STREAMING : IRON_PHASE_SENDING, 0));
        for (int k = 0; k < 3; k++) { /* everything is received: not stalled */
            assert_true(say(p.ours, "x"));
            pass(20000);
        }
        assert_int_equal(timed_out(&p), 0);
        while (send(p.ours, block, sizeof block, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
            ;
        for (int k = 0; k < 30000 && timed_out(&p) == 0; k++)
            pass(31000);
        assert_int_equal(timed_out(&p), 1);
        assert_false(enter(&p, IRON_PHASE_SENDING, 0));
        pair_end(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_threads), /* first */
        cmocka_unit_test(test_rate),       cmocka_unit_test(test_good_rate),
        cmocka_unit_test(test_working),    cmocka_unit_test(test_stalled_responses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
