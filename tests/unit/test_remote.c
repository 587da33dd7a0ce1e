/* SPDX-License-Identifier: MIT */
/*
 * test_remote.c: remote objects against a server in threads of this test: sizes, ranges, streams,
 * retries, changes, cancelling; names without credentials; libcurl's numbers.
 */
#include "remote_support.h"

#include "core/clock.h"
#include "io/remote_internal.h"

#define OBJECT_BYTES ((size_t)9 * 1024 * 1024 + 12345)

static http_server server;
static unsigned char *object;

static int start(void **state) {
    (void)state;
    object = malloc(OBJECT_BYTES);
    if (!object)
        return -1;
    for (size_t k = 0; k < OBJECT_BYTES; k++)
        object[k] = (unsigned char)((k * 2654435761u) >> 13);
    atomic_store(&iron__remote_backoff_ms, 1);
    server_start(&server, object, OBJECT_BYTES);
    return 0;
}

static int stop(void **state) {
    (void)state;
    server_stop(&server);
    free(object);
    return 0;
}

static iron__remote *open_path(const char *path) {
    iron__remote *remote;
    iron_error err;

    assert_ok(iron__remote_open(server_address(&server, path), &remote, &err), &err);
    return remote;
}

static void check_read(iron__remote *remote, uint64_t at, size_t want) {
    unsigned char *to = malloc(want + 1);
    size_t got, expected = at < OBJECT_BYTES ? OBJECT_BYTES - (size_t)at : 0;
    iron_error err;

    expected = want < expected ? want : expected;
    assert_ok(iron__remote_read(remote, at, to, want, &got, NULL, &err), &err);
    assert_int_equal(got, expected);
    if (expected > 0)
        assert_memory_equal(to, object + at, expected);
    free(to);
}

static void test_ranges(void **state) {
    iron__remote *remote = open_path("ranges"), *again;
    iron_error err;
    unsigned before;

    (void)state;
    assert_int_equal(remote->bytes, OBJECT_BYTES);
    assert_true(remote->has_ranges);
    check_read(remote, 0, OBJECT_BYTES);
    check_read(remote, OBJECT_BYTES - 8, 8);
    check_read(remote, OBJECT_BYTES - 8, 100);
    check_read(remote, OBJECT_BYTES, 100);
    check_read(remote, UINT64_MAX, 100);
    check_read(remote, 12345, 3 * 1024 * 1024);
    for (size_t at = 0; at < OBJECT_BYTES; at += 100001)
        check_read(remote, at, 100001);
    assert_ok(iron__remote_check_unchanged(remote, &err), &err);
    before = atomic_load(&server.requests);
    assert_ok(iron__remote_open(remote->name, &again, &err), &err);
    assert_ptr_equal(again, remote);
    assert_int_equal(atomic_load(&server.requests), before);
}

/* A read that stands alone costs little, wherever it is. */
static void test_single_reads_are_small(void **state) {
    iron__remote *remote = open_path("ranges");
    unsigned long long before = atomic_load(&server.sent);

    (void)state;
    check_read(remote, OBJECT_BYTES - 8, 8);
    check_read(remote, 7 * 1024 * 1024 + 5, 1000);
    check_read(remote, 1024 * 1024, 4096);
    assert_true(atomic_load(&server.sent) - before <= 3 * 256 * 1024);
}

static void test_retries(void **state) {
    static const char *const paths[] = {"busy", "limited", "reset", "drop"};

    (void)state;
    for (size_t k = 0; k < COUNT(paths); k++) {
        iron__remote *remote;

        atomic_store(&server.faults, 2);
        remote = open_path(paths[k]);
        atomic_store(&server.faults, 3);
        check_read(remote, 0, OBJECT_BYTES);
        assert_int_equal(atomic_load(&server.faults), 0);
    }
}

static void check_refused(const char *path, const char *word) {
    iron__remote *remote;
    iron_error err;

    assert_refused(iron__remote_open(server_address(&server, path), &remote, &err), IRON_E_IO,
                   &err);
    assert_null(remote);
    assert_says(&err, word);
    assert_says(&err, "127.0.0.1");
}

static void test_refusals(void **state) {
    iron__remote *remote;
    iron_error err;
    unsigned before = atomic_load(&server.requests);

    (void)state;
    check_refused("missing", "was not found (HTTP 404)");
    assert_int_equal(atomic_load(&server.requests), before + 1);
    check_refused("forbidden", "HTTP 403");
    check_refused("private", "user:password@");
    check_refused("loop", "redirects");
    check_refused("escape", "cannot be read");
    atomic_store(&server.faults, 1000);
    check_refused("busy", "HTTP 503");
    check_refused("reset", "Empty reply");
    atomic_store(&server.faults, 0);
    assert_refused(iron__remote_open("http://127.0.0.1:1/x", &remote, &err), IRON_E_IO, &err);
    assert_says(&err, "http://127.0.0.1:1/x cannot be read");
    assert_refused(iron__remote_open(server_address(&server, "endless"), &remote, &err),
                   IRON_E_UNSUPPORTED, &err);
}

static void test_odd_range(void **state) {
    iron__remote *remote = open_path("odd");
    char to[16];
    iron_error err;
    size_t got;

    (void)state;
    assert_refused(iron__remote_read(remote, 5000000, to, 16, &got, NULL, &err), IRON_E_IO, &err);
    assert_says(&err, "range");
}

static void test_redirect(void **state) {
    iron__remote *remote = open_path("redirect");
    unsigned before = atomic_load(&server.requests);

    (void)state;
    check_read(remote, 5000000, 16);
    assert_int_equal(atomic_load(&server.requests), before + 1);
}

static void test_changes(void **state) {
    static const char *const paths[] = {"ranges", "strict"};
    char to[16];
    iron_error err;
    size_t got;

    (void)state;
    for (size_t k = 0; k < COUNT(paths); k++) {
        iron__remote *remote = open_path(paths[k]);

        atomic_fetch_add(&server.version, 1);
        assert_refused(iron__remote_check_unchanged(remote, &err), IRON_E_IO, &err);
        assert_says(&err, "changed while being read");
        remote = open_path(paths[k]);
        atomic_fetch_add(&server.version, 1);
        assert_refused(iron__remote_read(remote, 5000000, to, 16, &got, NULL, &err), IRON_E_IO,
                       &err);
        assert_says(&err, "changed while being read");
    }
}

static iron_status read_stream(iron__remote *remote, size_t *total, iron_error *err) {
    iron__remote_stream *stream;
    unsigned char *to = malloc(OBJECT_BYTES + 1);
    iron_status status;
    int fd;

    *total = 0;
    assert_ok(iron__remote_stream_open(remote, &stream, &fd, err), err);
    for (;;) {
        ssize_t count = read(fd, to + *total, OBJECT_BYTES + 1 - *total);

        assert_true(count >= 0);
        if (count == 0)
            break;
        *total += (size_t)count;
    }
    assert_memory_equal(to, object, *total);
    free(to);
    status = iron__remote_stream_check(stream, err);
    iron__remote_stream_close(stream);
    return status;
}

static void test_streams(void **state) {
    static const char *const paths[] = {"plain", "chunked", "chunked-cut"};
    iron_error err = {0};
    size_t total;

    (void)state;
    for (size_t k = 0; k < COUNT(paths); k++) {
        iron__remote *remote = open_path(paths[k]);

        assert_false(remote->has_ranges);
        assert_true(remote->bytes == (k == 0 ? OBJECT_BYTES : IRON_COUNT_UNKNOWN));
        if (k < 2)
            assert_ok(read_stream(remote, &total, &err), &err);
        else
            assert_refused(read_stream(remote, &total, &err), IRON_E_IO, &err);
        assert_int_equal(total, OBJECT_BYTES);
        assert_ok(iron__remote_check_unchanged(remote, &err), &err);
    }
    assert_says(&err, "broke off");
}

static void test_stream_is_closed_early(void **state) {
    iron__remote_stream *stream;
    iron_error err;
    char to[10];
    int fd;

    (void)state;
    for (int k = 0; k < 2; k++) {
        assert_ok(iron__remote_stream_open(open_path("plain"), &stream, &fd, &err), &err);
        if (k == 1)
            assert_int_equal(read(fd, to, sizeof to), sizeof to);
        iron__remote_stream_close(stream);
    }
    iron__remote_stream_close(NULL);
}

static void *set_later(void *argument) {
    usleep(20000);
    atomic_store((atomic_bool *)argument, true);
    return NULL;
}

static void test_cancel(void **state) {
    iron__remote *remote = open_path("ranges");
    atomic_bool is_stopped = false;
    pthread_t thread;
    iron_error err;
    char to[16];
    size_t got;

    (void)state;
    atomic_store(&server.is_held, true);
    pthread_create(&thread, NULL, set_later, &is_stopped);
    assert_refused(iron__remote_read(remote, 5000000, to, 16, &got, &is_stopped, &err),
                   IRON_E_CANCELLED, &err);
    pthread_join(thread, NULL);
    atomic_store(&server.is_held, false);
    check_read(remote, 5000000, 16);
}

typedef struct sharing {
    iron__remote *remote;
    atomic_size_t next;
} sharing;

static void *read_pieces(void *argument) {
    sharing *shared = argument;
    size_t piece;

    while ((piece = atomic_fetch_add(&shared->next, 1)) * 300000 < OBJECT_BYTES)
        check_read(shared->remote, piece * 300000, 300000);
    return NULL;
}

static void test_threads(void **state) {
    sharing shared = {.remote = open_path("ranges")};
    pthread_t threads[4];

    (void)state;
    for (size_t k = 0; k < COUNT(threads); k++)
        pthread_create(&threads[k], NULL, read_pieces, &shared);
    for (size_t k = 0; k < COUNT(threads); k++)
        pthread_join(threads[k], NULL);
}

static void test_small_objects(void **state) {
    static const char *const paths[] = {"ranges", "plain", "chunked"};
    http_server small;
    iron__remote *remote;
    char to[100];
    iron_error err;
    size_t got;

    (void)state;
    for (size_t bytes = 0; bytes < 60; bytes += 59) {
        server_start(&small, object, bytes);
        for (size_t k = 0; k < COUNT(paths); k++) {
            if (bytes == 0 && k == 1)
                continue; /* this server cannot */
            assert_ok(iron__remote_open(server_address(&small, paths[k]), &remote, &err), &err);
            assert_int_equal(remote->bytes, bytes);
            assert_true(remote->has_ranges);
            assert_ok(iron__remote_read(remote, 0, to, sizeof to, &got, NULL, &err), &err);
            assert_int_equal(got, bytes);
            assert_memory_equal(to, object, got);
            assert_ok(iron__remote_check_unchanged(remote, &err), &err);
        }
        server_stop(&small);
    }
}

static void check_name(const char *address, const char *expected) {
    char *name = iron__remote_name(address), *again;

    assert_non_null(name);
    assert_string_equal(name, expected);
    again = iron__remote_name(name);
    assert_string_equal(again, name);
    free(name);
    free(again);
}

static void test_names(void **state) {
    (void)state;
    check_name("https://host/a/b.bin", "https://host/a/b.bin");
    check_name("https://u:p@host/a", "https://host/a");
    check_name("https://u:p@ss@host:8/b", "https://host:8/b");
    check_name("https://host/a?download=true&x=1", "https://host/a?download=true&x=1");
    check_name("https://host/c?X-Amz-Credential=1&X-Amz-Signature=2", "https://host/c");
    check_name("https://host/d?sv=2020&SIG=abc#part", "https://host/d");
    check_name("https://host/e?AWSAccessKeyId=1", "https://host/e");
    check_name("https://host/f?x=token", "https://host/f?x=token");
    check_name("https://host/f#token", "https://host/f");
    check_name("https://u:p@host", "https://host");
    check_name("s3://bucket/key?token=1#x", "s3://bucket/key?token=1#x");
    check_name("s3://u:p@bucket/key@1", "s3://bucket/key@1");
    /* two addresses that look alike without their secrets stay two */
    check_name("https://host/g?file=1&sig=1", "https://host/g");
    check_name("https://host/g?file=2&sig=1", "https://host/g#2");
    check_name("https://host/g?file=1&sig=1", "https://host/g");
}

static void test_credentials(void **state) {
    char address[100];
    iron__remote *remote;
    iron_error err;

    (void)state;
    snprintf(address, sizeof address, "http://u:p%%3Aw@127.0.0.1:%u/private/own", server.port);
    assert_ok(iron__remote_open(address, &remote, &err), &err);
    check_read(remote, 5000000, 1000);
    snprintf(address, sizeof address, "http://u:wrong@127.0.0.1:%u/private/x?sig=hidden",
             server.port);
    assert_refused(iron__remote_open(address, &remote, &err), IRON_E_IO, &err);
    assert_null(strstr(err.text, "wrong@"));
    assert_null(strstr(err.text, "hidden"));
    assert_says(&err, "check user and password");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_single_reads_are_small),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_odd_range),
        cmocka_unit_test(test_redirect),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_stream_is_closed_early),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_small_objects),
        cmocka_unit_test(test_credentials),
    };

    unsetenv("http_proxy");
    return cmocka_run_group_tests_name("remote", tests, start, stop);
}
