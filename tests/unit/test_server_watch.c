/* SPDX-License-Identifier: MIT */
/*
 * test_server_watch.c: deadlines that a whole server has no small values for: a body's rate, and an
 * answer that is not read; and that what the server takes its time for does not count. On real
 * sockets, without the HTTP library.
 */
#include "server/watch.h"
#include "server_support.h"

typedef struct pair {
    iron__site site;
    iron__linger *linger;
    iron__watch *watch;
    iron__watched *watched;
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

static void pair_begin(pair *p, iron__watch_plan plan) {
    iron_error err;

    memset(p, 0, sizeof *p);
    connect_pair(p);
    plan.site = &p->site;
    assert_ok(iron__linger_start(&p->linger, &err), &err);
    plan.linger = p->linger;
    assert_ok(iron__watch_start(&plan, &p->watch, &err), &err);
    p->watched = iron__watch_add(p->watch, p->ours);
    assert_non_null(p->watched);
}

static void pair_end(pair *p) {
    close(p->theirs);
    iron__watch_remove(p->watch, p->watched);
    close(p->ours);
    iron__watch_stop(p->watch);
    iron__linger_stop(p->linger);
}

static const iron__watch_plan patient = {.header_ms = 3600000,
                                         .request_ms = 3600000,
                                         .body_grace_ms = 3600000,
                                         .body_rate = 1000,
                                         .stall_ms = 3600000};

static void nap(unsigned milliseconds) {
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000,
                                 .tv_nsec = (long)(milliseconds % 1000) * 1000000},
              NULL);
}

static void test_rate(void **state) {
    iron__watch_plan plan = patient;
    pair p;
    char *heard;

    (void)state;
    plan.body_grace_ms = 300;
    pair_begin(&p, plan);
    assert_true(iron__watched_work(p.watched, 7));
    assert_true(iron__watched_body(p.watched, 0));
    heard = hear_all(p.theirs); /* ends when it is cut off */
    assert_answer(heard, 408, "more slowly");
    assert_non_null(strstr(heard, "/requests/0000000000000007"));
    free(heard);
    assert_false(iron__watched_body(p.watched, 1));
    assert_false(iron__watched_answer(p.watched));
    assert_int_equal(atomic_load(&p.site.timed_out), 1);
    pair_end(&p);
}

static void test_good_rate(void **state) {
    iron__watch_plan plan = patient;
    pair p;

    (void)state;
    plan.body_grace_ms = 300;
    pair_begin(&p, plan);
    assert_true(iron__watched_work(p.watched, 7));
    assert_true(iron__watched_body(p.watched, 1000000)); /* good for 1000 seconds */
    nap(1200);
    assert_true(iron__watched_body(p.watched, 1));
    assert_true(iron__watched_work(p.watched, 7));
    assert_true(iron__watched_answer(p.watched));
    iron__watched_idle(p.watched);
    assert_true(iron__watched_work(p.watched, 8)); /* what the last one had is forgotten */
    assert_int_equal(atomic_load(&p.site.timed_out), 0);
    pair_end(&p);
}

/* The server's own time counts for nobody. */
static void test_working(void **state) {
    iron__watch_plan plan = {.header_ms = 1500,
                             .request_ms = 1500,
                             .body_grace_ms = 1500,
                             .body_rate = 1000,
                             .stall_ms = 1500};
    pair p;

    (void)state;
    pair_begin(&p, plan);
    assert_true(iron__watched_work(p.watched, 7));
    nap(3000);
    assert_true(iron__watched_body(p.watched, 0));
    assert_true(iron__watched_work(p.watched, 7));
    nap(3000);
    assert_true(iron__watched_answer(p.watched));
    assert_int_equal(atomic_load(&p.site.timed_out), 0);
    pair_end(&p);
}

/* An answer is written until the peer's room is full: then somebody must read. */
static void test_stalled_answers(void **state) {
    iron__watch_plan plan = patient;
    static char block[1 << 16];
    pair p;

    (void)state;
    plan.stall_ms = 700;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        pair_begin(&p, plan);
        assert_true(iron__watched_work(p.watched, 7));
        assert_true((is_stream ? iron__watched_stream : iron__watched_answer)(p.watched));
        for (int k = 0; k < 8; k++) { /* nothing is unread: that is no stall */
            assert_true(say(p.ours, "x"));
            nap(200);
        }
        assert_int_equal(atomic_load(&p.site.timed_out), 0);
        while (send(p.ours, block, sizeof block, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
            ;
        for (int k = 0; k < 30000 && atomic_load(&p.site.timed_out) == 0; k++)
            nap(10);
        assert_int_equal(atomic_load(&p.site.timed_out), 1);
        assert_false(iron__watched_answer(p.watched));
        pair_end(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_good_rate),
        cmocka_unit_test(test_working),
        cmocka_unit_test(test_stalled_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
