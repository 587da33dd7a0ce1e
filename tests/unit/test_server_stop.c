/* SPDX-License-Identifier: MIT */
/*
 * test_server_stop.c: how a server starts and stops: refused options and their messages; requests
 * in flight when it stops; and clients that delay the stop.
 */
#include "server_support.h"

#define HOST "Host: localhost\r\n"

static void refused(iron_server_options options, iron_status status, const char *word) {
    iron_server *server = (iron_server *)&options;
    iron_error err;

    options.struct_size = sizeof options;
    assert_refused(iron_server_start(&options, &server, &err), status, &err);
    assert_says(&err, word);
    assert_null(server);
}

static void test_options(void **state) {
    static const char *const bad_host[] = {"a:80"};
    folder f;
    file_name key, cert, token;
    iron_server *server;
    iron_error err;

    (void)state;
    folder_make(&f);
    key = name_in(&f, "key");
    cert = name_in(&f, "cert");
    token = name_in(&f, "token");
    file_write(key.path, "no key\n", 7);
    file_write(cert.path, "no certificate\n", 15);
    file_write(token.path, "secret\n", 7);
    chmod(key.path, 0644);
    chmod(token.path, 0644);
    refused((iron_server_options){LISTEN("0.0.0.0:0")}, IRON_E_ARG, "needs a token file");
    refused((iron_server_options){LISTEN("[::]:0")}, IRON_E_ARG, "needs a token file");
    refused((iron_server_options){LISTEN("here:0")}, IRON_E_ARG, "invalid address");
    refused((iron_server_options){.token_file = token.path}, IRON_E_ARG, "chmod 600");
    refused((iron_server_options){.tls_cert = cert.path}, IRON_E_ARG, "both");
    refused((iron_server_options){.tls_cert = cert.path, .tls_key = key.path}, IRON_E_ARG,
            "chmod 600");
    chmod(key.path, 0600);
    refused(
        (iron_server_options){LISTEN("127.0.0.1:0"), .tls_cert = cert.path, .tls_key = key.path},
        IRON_E_ARG, "not a certificate and its key");
    refused((iron_server_options){.report = f.path}, IRON_E_ARG, "regular");
    refused((iron_server_options){.report = name_in(&f, "none").path}, IRON_E_IO, "report");
    refused((iron_server_options){.hosts = bad_host, .host_count = 1}, IRON_E_ARG, "a:80");
    refused((iron_server_options){.header_seconds = 2000000}, IRON_E_ARG, "seconds");
    refused((iron_server_options){.max_connections = 100000}, IRON_E_ARG, "connections");
    assert_refused(iron_server_start(&(iron_server_options){0}, &server, &err), IRON_E_ARG, &err);
    assert_refused(iron_server_start(NULL, &server, &err), IRON_E_ARG, &err);
    folder_remove(&f);
}

static void test_second_server_on_a_port(void **state) {
    fixture f;
    char listen[40];

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    assert_int_equal(iron_server_engines(f.server), 3);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", f.port);
    refused((iron_server_options){LISTEN(listen)}, IRON_E_IO, "another port");
    fixture_stop(&f);
    fixture_start(&f, (iron_server_options){LISTEN(listen)}); /* at once again */
    fixture_stop(&f);
    assert_int_equal(iron_server_stop(NULL, NULL), IRON_OK);
}

static void *run_stop(void *context) {
    fixture_stop(context);
    return NULL;
}

static void wait_taken(uint64_t bytes) {
    for (int k = 0; k < 300000 && atomic_load(&taken) < bytes; k++)
        nap_ms(1);
    assert_true(atomic_load(&taken) >= bytes);
}

/* Sends the first three bytes of an upload; returns when the route has them. */
static int begin_upload_of(const fixture *f, unsigned bytes) {
    uint64_t before = atomic_load(&taken);
    char text[120];
    int fd = dial(f);

    snprintf(text, sizeof text, "POST /count HTTP/1.1\r\n" HOST "Content-Length: %u\r\n\r\nabc",
             bytes);
    assert_true(say(fd, text));
    wait_taken(before + 3);
    return fd;
}

static int begin_upload(const fixture *f) { return begin_upload_of(f, 6); }

/* An upload in progress when the server stops may finish, and gets its response. */
static void test_upload_within_grace(void **state) {
    fixture f;
    pthread_t thread;
    iron_server *server;
    int fd, idle, extra;
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){.grace_seconds = 600, .header_seconds = 600});
    idle = dial(&f);
    assert_true(say(idle, "GET /hello/a HTTP/1.1\r\n" HOST "\r\n"));
    free(hear_one(idle));
    fd = begin_upload(&f);
    extra = dial(&f); /* an incomplete header: closed when the acceptor stops */
    server = f.server;
    assert_int_equal(pthread_create(&thread, NULL, run_stop, &f), 0);
    for (int k = 0; k < 30000 && !atomic_load(&server->is_stopping); k++)
        nap_ms(1);
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST "\r\n", 503, "stopping"); /* also new ones */
    assert_true(say(idle, "GET /hello/a HTTP/1.1\r\n" HOST "\r\n"));
    answer = hear_all(idle);
    assert_answer(answer, 503, "stopping");
    free(answer);
    assert_true(say(fd, "def"));
    answer = hear_all(fd);
    assert_answer(answer, 200, "\"bytes\": 6");
    assert_non_null(strstr(answer, "Connection: close"));
    free(answer);
    answer = hear_all(extra);
    assert_string_equal(answer, "");
    free(answer);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(fd);
    close(idle);
    close(extra);
}

/* Advances the server's clock until the stop is over. */
static void join_stop(pthread_t thread) {
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        skip_ms(50);
        nap_ms(TEST_TICK_MS);
    }
}

/* After the grace period, a client that continues sending is refused, and a silent one is
 * closed. */
static void test_upload_beyond_grace(void **state) {
    fixture f;
    pthread_t thread;
    int fd, silent;
    char *answer;
    bool is_sent = true;

    (void)state;
    fixture_start(&f, (iron_server_options){.grace_seconds = 1});
    silent = begin_upload(&f);
    fd = begin_upload_of(&f, 1000000);
    assert_int_equal(pthread_create(&thread, NULL, run_stop, &f), 0);
    for (int k = 0; k < 60000 && is_sent; k++) {
        struct pollfd heard = {.fd = fd, .events = POLLIN};

        if (poll(&heard, 1, (int)TEST_TICK_MS) > 0)
            break;
        skip_ms(50);
        is_sent = say(fd, "abc");
    }
    answer = hear_all(fd);
    assert_answer(answer, 503, "stopping");
    free(answer);
    join_stop(thread);
    answer = hear_all(silent);
    assert_string_equal(answer, "");
    free(answer);
    close(fd);
    close(silent);
}

static bool ends_properly(const char *answer) {
    size_t bytes = strlen(answer);

    return bytes >= 5 && strcmp(answer + bytes - 5, "0\r\n\r\n") == 0;
}

/* An endless stream ends with the server and does not use up the grace period. */
static void test_stream_ends(void **state) {
    fixture f;
    int fd;
    char *answer;
    uint64_t before;

    (void)state;
    fixture_start(&f, (iron_server_options){.grace_seconds = 600});
    fd = dial(&f);
    assert_true(say(fd, "GET /stream?n=1000000 HTTP/1.1\r\n" HOST "\r\n"));
    answer = hear_one(fd);
    assert_answer(answer, 200, NULL);
    free(answer);
    before = iron__clock_ns();
    fixture_stop(&f);
    assert_true(iron__clock_ns() - before < UINT64_C(300000000000));
    answer = hear_all(fd);
    assert_true(ends_properly(answer));
    free(answer);
    close(fd);
}

/* The rest of a stream of so many ticks, requested before the server stopped. */
static char *hear_ticks(unsigned ticks, uint32_t grace_seconds) {
    char request[80], *head, *rest;
    pthread_t thread;
    fixture f;
    int fd;

    snprintf(request, sizeof request, "GET /run-down?n=%u HTTP/1.1\r\n" HOST "\r\n", ticks);
    fixture_start(&f, (iron_server_options){.grace_seconds = grace_seconds});
    fd = dial(&f);
    assert_true(say(fd, request));
    head = hear_one(fd);
    assert_answer(head, 200, NULL);
    free(head);
    assert_int_equal(pthread_create(&thread, NULL, run_stop, &f), 0);
    if (grace_seconds == 1)
        join_stop(thread);
    else
        pthread_join(thread, NULL);
    rest = hear_all(fd);
    close(fd);
    return rest;
}

/* A finite stream runs to its end within the grace period; a cut one does not look complete. */
static void test_stream_is_complete_or_cut(void **state) {
    char *rest = hear_ticks(10, 600);

    (void)state;
    assert_non_null(strstr(rest, "data: 0\n"));
    assert_true(ends_properly(rest));
    free(rest);
    rest = hear_ticks(1000000, 1);
    assert_non_null(strstr(rest, "data: "));
    assert_false(ends_properly(rest));
    free(rest);
}

/* Slow clients time out; the server's own work does not count. */
static void test_timeouts(void **state) {
    fixture f;
    int fd;
    char *answer;
    uint64_t before;

    (void)state;
    fixture_start(&f, (iron_server_options){.request_seconds = 2, .header_seconds = 600});
    expect(&f, "GET /slow HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, "worked");
    fd = begin_upload(&f);
    answer = hear_later(fd, 500);
    assert_answer(answer, 408, "too-slow");
    free(answer);
    close(fd);
    fd = begin_upload(&f); /* never silent, but too slow */
    before = atomic_load(&taken);
    assert_true(say(fd, "d"));
    wait_taken(before + 1);
    skip_ms(1500);
    assert_true(say(fd, "d"));
    answer = hear_later(fd, 500);
    assert_answer(answer, 408, "too-slow");
    free(answer);
    close(fd);
    fd = dial(&f);
    assert_true(say(fd, "GET /stream?n=6 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    skip_ms(3000);
    answer = hear_all(fd); /* a stream may take longer than a request while it is read */
    assert_answer(answer, 200, "data: 0\n");
    free(answer);
    close(fd);
    fixture_stop(&f);
}

static void test_process_start(void **state) {
    double now = clock_seconds(CLOCK_REALTIME), start = read_process_start();

    (void)state;
    assert_true(start > now - 3600 && start < now + 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_second_server_on_a_port),
        cmocka_unit_test(test_upload_within_grace),
        cmocka_unit_test(test_upload_beyond_grace),
        cmocka_unit_test(test_stream_ends),
        cmocka_unit_test(test_stream_is_complete_or_cut),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_process_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
