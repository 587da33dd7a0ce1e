/* SPDX-License-Identifier: MIT */
/*
 * test_server_request.c: a real server over raw sockets: input and output of routes: bodies with a
 * length and in chunks, kept connections, HEAD, methods, queries, types; responses before and in
 * the middle of a body, read reliably by clients that continue sending; streams; and that every
 * request is dropped once.
 */
#include "server_support.h"

#define HOST  "Host: localhost\r\n"
#define CLOSE "Connection: close\r\n"

static void test_bodies(void **state) {
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){.max_body = 1000});
    expect(&f, "POST /count HTTP/1.1\r\n" HOST CLOSE "Content-Length: 5\r\n\r\nabcde", 200,
           "\"bytes\": 5");
    expect(&f, "POST /count HTTP/1.1\r\n" HOST CLOSE "Content-Length: 0\r\n\r\n", 200,
           "\"bytes\": 0");
    expect(&f, "POST /count HTTP/1.1\r\n" HOST CLOSE "\r\n", 200, "\"bytes\": 0");
    expect(&f,
           "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
           200, "\"bytes\": 13");
    expect(&f, "POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: 4\r\n\r\nabcd", 200,
           "\r\n\r\nabcd");
    expect(&f,
           "POST /echo HTTP/1.1\r\n" HOST CLOSE
           "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 4\r\n\r\nabcd",
           200, "X-Echo: yes");
    expect(&f,
           "POST /echo HTTP/1.1\r\n" HOST "Content-Type: text/plain\r\nContent-Length: "
           "4\r\n\r\nabcd",
           415, "unsupported-type");
    expect(&f,
           "POST /count HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: "
           "4\r\n\r\nabcd",
           415, "unsupported-type");
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab", 400,
           "unexpected-body");
    expect(&f,
           "POST /count HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n"
           "GET /hello/next HTTP/1.1\r\n" HOST "\r\n",
           200, "\"bytes\": 0");
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n", 200,
           "\"hello\": \"a\"");
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST CLOSE "Content-Length: 0\r\n\r\n", 200, NULL);
    expect(&f, "POST /count HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", 413, "too-large");
    fixture_stop(&f);
}

/* A document of the maximum size except for its last byte, with a length or in a chunk. */
static int begin_document(const fixture *f, const char *path, bool is_chunked) {
    size_t bytes = (size_t)1 << 20;
    char *text = grab(bytes);
    int fd = dial(f);

    memset(text, ' ', bytes);
    text[0] = '"';
    assert_true(say(fd, "POST ") && say(fd, path) && say(fd, " HTTP/1.1\r\n" HOST CLOSE));
    assert_true(say(fd, is_chunked ? "Transfer-Encoding: chunked\r\n\r\n100000\r\n"
                                   : "Content-Length: 1048576\r\n\r\n"));
    (void)say_bytes(fd, text, bytes - 1); /* it may be refused before the end */
    free(text);
    return fd;
}

static bool end_document(int fd, bool is_chunked) {
    return say(fd, is_chunked ? "\"\r\n0\r\n\r\n" : "\"");
}

/* Waits until so many of them have received their responses. */
static void wait_answered(const int *fds, unsigned all, unsigned wanted) {
    unsigned answered = 0;

    for (int k = 0; k < 60000 && answered < wanted; k++) {
        nap_ms(5);
        answered = 0;
        for (unsigned j = 0; j < all; j++)
            answered += poll(&(struct pollfd){.fd = fds[j], .events = POLLIN}, 1, 0) > 0;
    }
    assert_true(answered >= wanted);
}

/* Many documents of the maximum size at once: those within the budget are all received, the others
 * are refused; small ones are not affected. */
static void test_documents(void **state) {
    enum { ALL = 100, ROOM = 64 };
    unsigned taken_count = 0, busy_count = 0;
    fixture f;
    int fds[ALL];
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (int k = 0; k < ALL; k++)
        fds[k] = begin_document(&f, "/echo", k % 2);
    expect(&f, "POST /echo HTTP/1.1\r\n" HOST CLOSE "Content-Length: 4\r\n\r\nabcd", 200, "abcd");
    wait_answered(fds, ALL, ALL - ROOM);
    for (int k = 0; k < ALL; k++)
        (void)end_document(fds[k], k % 2);
    for (int k = 0; k < ALL; k++) {
        answer = hear_all(fds[k]);
        taken_count += status_of(answer) == 200;
        busy_count += status_of(answer) == 503;
        free(answer);
        close(fds[k]);
    }
    assert_int_equal(taken_count + busy_count, ALL);
    assert_int_equal(taken_count, ROOM);
    fds[0] = begin_document(&f, "/echo", false); /* the budget is free again */
    assert_true(end_document(fds[0], false));
    answer = hear_all(fds[0]);
    assert_answer(answer, 200, NULL);
    free(answer);
    close(fds[0]);
    fixture_stop(&f);
}

/* Large documents are parsed one at a time. */
static void test_documents_are_parsed_in_turn(void **state) {
    fixture f;
    int fds[8];

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (size_t k = 0; k < COUNT(fds); k++)
        fds[k] = begin_document(&f, "/parse", false);
    for (size_t k = 0; k < COUNT(fds); k++)
        assert_true(end_document(fds[k], false));
    for (size_t k = 0; k < COUNT(fds); k++) {
        char *answer = hear_all(fds[k]);

        assert_answer(answer, 200, "parsed");
        free(answer);
        close(fds[k]);
    }
    assert_int_equal(atomic_load(&most_readers), 1);
    fixture_stop(&f);
}

/* Only the parsing of large documents is exclusive, not what the route does afterwards. */
static void test_documents_overlap(void **state) {
    fixture f;
    int fds[2];

    (void)state;
    atomic_store(&met, 0);
    fixture_start(&f, (iron_server_options){0});
    for (int k = 0; k < 2; k++)
        fds[k] = begin_document(&f, "/meet", false);
    for (int k = 0; k < 2; k++)
        assert_true(end_document(fds[k], false));
    for (int k = 0; k < 2000 && atomic_load(&met) < 2; k++)
        nap_ms(1);
    assert_int_equal(atomic_load(&met), 2);
    for (int k = 0; k < 2; k++) {
        char *answer = hear_all(fds[k]);

        assert_answer(answer, 200, "parsed");
        free(answer);
        close(fds[k]);
    }
    fixture_stop(&f);
}

static void test_routing(void **state) {
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    expect(&f, "GET /nowhere HTTP/1.1\r\n" HOST CLOSE "\r\n", 404, "no-such-path");
    expect(&f, "POST /hello/a HTTP/1.1\r\n" HOST CLOSE "\r\n", 405, "Allow: GET, HEAD, DELETE\r\n");
    expect(&f, "OPTIONS /open HTTP/1.1\r\n" HOST CLOSE "\r\n", 405, "Allow: GET, HEAD\r\n");
    expect(&f, "DELETE /hello/a HTTP/1.1\r\n" HOST CLOSE "\r\n", 204, "X-Request-Id: ");
    expect(&f, "GET /hello/%C3%A9?q=%26 HTTP/1.1\r\n" HOST CLOSE "\r\n", 200,
           "\"hello\": \"\xc3\xa9\",\n  \"q\": \"&\"");
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST CLOSE "X-Said:  a b \t\r\n\r\n", 200,
           "\"said\": \"a b\"");
    expect(&f, "GET /hello/a?x=1 HTTP/1.1\r\n" HOST CLOSE "\r\n", 400, "no parameter 'x'");
    expect(&f, "GET /hello/a?q=1&q=2 HTTP/1.1\r\n" HOST CLOSE "\r\n", 400, "bad-query");
    expect(&f, "GET /hello/a%2fb HTTP/1.1\r\n" HOST CLOSE "\r\n", 400, "malformed-request");
    expect(&f, "GET /hello/a HTTP/1.1\r\nHost: evil.test\r\n" CLOSE "\r\n", 421, "wrong-host");
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST CLOSE "Origin: null\r\n\r\n", 403,
           "foreign-origin");
    expect(&f, "GET /mute HTTP/1.1\r\n" HOST CLOSE "\r\n", 500, "internal");
    expect(&f, "GET /hello/a HTTP/1.0\r\n\r\n", 200, "\"hello\": \"a\"");
    fixture_stop(&f);
}

static void test_common_headers(void **state) {
    static const char *const lines[] = {"X-Request-Id: ", "Cache-Control: no-store\r\n",
                                        "X-Content-Type-Options: nosniff\r\n",
                                        "Connection: close\r\n", "Content-Length: "};
    static const char *const requests[] = {
        "GET /hello/a HTTP/1.1\r\n" HOST CLOSE "\r\n", "GET /x HTTP/1.1\r\n" HOST CLOSE "\r\n",
        "GET x HTTP/1.1\r\n" HOST CLOSE "\r\n",
        "POST /count HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n!"};
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (size_t k = 0; k < COUNT(requests); k++)
        for (size_t j = 0; j < COUNT(lines); j++)
            expect(&f, requests[k], k == 0 ? 200 : k == 1 ? 404 : 400, lines[j]);
    fixture_stop(&f);
}

static void test_kept_connection(void **state) {
    fixture f;
    int fd;
    char *answer;

    (void)state;
    atomic_store(&drops, 0);
    fixture_start(&f, (iron_server_options){0});
    fd = dial(&f);
    for (int k = 0; k < 100; k++) {
        assert_true(say(fd, k % 3 == 0   ? "GET /hello/a HTTP/1.1\r\n" HOST "\r\n"
                            : k % 3 == 1 ? "POST /count HTTP/1.1\r\n" HOST
                                           "Content-Length: 3\r\n\r\nabc"
                                         : "GET /nowhere HTTP/1.1\r\n" HOST "\r\n"));
        answer = hear_one(fd);
        assert_answer(answer, k % 3 == 2 ? 404 : 200, NULL);
        assert_null(strstr(answer, "Connection: close"));
        free(answer);
    }
    assert_true(say(fd, "GET /hello/a HTTP/1.1\r\n" HOST "\r\nGET /hello/b HTTP/1.1\r\n" HOST CLOSE
                        "\r\n"));
    answer = hear_all(fd);
    assert_answer(answer, 200, "\"hello\": \"b\"");
    free(answer);
    close(fd);
    fixture_stop(&f);
    assert_int_equal(atomic_load(&drops), 34 + 33 + 2);
}

static void test_head(void **state) {
    fixture f;
    int fd;
    char *answer;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    fd = dial(&f);
    assert_true(say(fd, "HEAD /hello/a HTTP/1.1\r\n" HOST CLOSE "\r\n"));
    answer = hear_all(fd);
    assert_answer(answer, 200, "Content-Length: 32\r\n");
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    free(answer);
    close(fd);
    fd = dial(&f); /* refused by the acceptor */
    assert_true(say(fd, "HEAD /hello/a HTTP/1.1\r\n\r\n"));
    answer = hear_all(fd);
    assert_answer(answer, 400, "Content-Length: ");
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    free(answer);
    close(fd);
    fixture_stop(&f);
}

/* RFC 9112 allows blanks after a value; they are not part of it. They are refused where
 * libmicrohttpd would interpret the body differently, also in a later request. */
static void test_blanks_after_values(void **state) {
    static const char blanks[] = "GET /hello/a HTTP/1.1\r\nHost: localhost \t\r\nX: \r\n\r\n"
                                 "GET /hello/b HTTP/1.1\r\nHost: localhost  \r\n"
                                 "Connection: close\r\n\r\n";
    static const char *const framing[] = {
        "POST /count HTTP/1.1\r\n" HOST "Content-Length: 3 \r\n\r\nabc",
        "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n",
        "GET /hello/a HTTP/1.1\r\n" HOST "\r\n"
        "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"};
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    expect(&f, blanks, 200, "\"hello\": \"b\"");
    for (size_t k = 0; k < COUNT(framing); k++)
        expect(&f, framing[k], k < 2 ? 400 : 200, "malformed-request");
    fixture_stop(&f);
}

static void test_stream(void **state) {
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    expect(&f, "GET /stream HTTP/1.1\r\n" HOST CLOSE "\r\n", 200, "data: 4\n\n");
    expect(&f, "GET /stream HTTP/1.0\r\n\r\n", 200, "data: 0\n\n");
    fixture_stop(&f);
}

static void write_secret(const folder *f, file_name *name) {
    *name = name_in(f, "token");
    file_write(name->path, "s3cret\n", 7);
    assert_int_equal(chmod(name->path, 0600), 0);
}

static void test_token(void **state) {
    fixture f;
    file_name name;

    (void)state;
    folder_make(&f.folder);
    write_secret(&f.folder, &name);
    fixture_start(&f, (iron_server_options){.token_file = name.path});
    expect(&f, "GET /open HTTP/1.1\r\n" HOST CLOSE "\r\n", 200, NULL);
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST CLOSE "\r\n", 401, "WWW-Authenticate: Bearer");
    expect(&f, "GET /nowhere HTTP/1.1\r\n" HOST CLOSE "\r\n", 401, "unauthorized");
    expect(&f, "PUT /hello/a HTTP/1.1\r\n" HOST CLOSE "\r\n", 401, "unauthorized");
    expect(&f, "GET /hello/a HTTP/1.1\r\n" HOST CLOSE "Authorization: Bearer s3cret\r\n\r\n", 200,
           NULL);
    expect(&f, "GET /nowhere HTTP/1.1\r\n" HOST CLOSE "Authorization: Bearer s3cret\r\n\r\n", 404,
           NULL);
    /* Nothing of the body has arrived; the response does not wait for it. */
    expect(&f, "POST /count HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n", 401, "unauthorized");
    expect(&f,
           "POST /count HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n",
           401, "unauthorized");
    fixture_stop(&f);
    folder_remove(&f.folder);
}

/* A client that sends a large body before it reads still gets its response. */
static void test_early_responses_are_read(void **state) {
    const size_t bytes = (size_t)64 << 20;
    char *body = grab(bytes), header[200];
    fixture f;
    file_name name;

    (void)state;
    memset(body, 'a', bytes);
    folder_make(&f.folder);
    write_secret(&f.folder, &name);
    fixture_start(&f, (iron_server_options){.token_file = name.path});
    snprintf(header, sizeof header, "POST /count HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
             bytes);
    for (int k = 0; k < 50; k++) {
        int fd = dial(&f);
        char *answer;

        assert_true(say(fd, header));
        (void)say_bytes(fd, body, bytes); /* all of it, or until the server stops reading */
        answer = hear_all(fd);
        assert_answer(answer, 401, "unauthorized");
        free(answer);
        close(fd);
    }
    fixture_stop(&f);
    folder_remove(&f.folder);
    free(body);
}

/* The route responds in the middle of a body that continues. */
static void test_responses_amid_bodies_are_read(void **state) {
    const size_t bytes = (size_t)8 << 20;
    char *body = grab(bytes);
    fixture f;

    (void)state;
    memset(body, 'a', bytes);
    memset(body + bytes / 4, '!', bytes / 4);
    fixture_start(&f, (iron_server_options){0});
    for (int k = 0; k < 20; k++) {
        int fd = dial(&f);
        char *answer;

        assert_true(say(fd, "POST /count HTTP/1.1\r\n" HOST "Content-Length: 8388608\r\n\r\n"));
        (void)say_bytes(fd, body, bytes);
        answer = hear_all(fd);
        assert_answer(answer, 400, "bad-token-value");
        free(answer);
        close(fd);
    }
    fixture_stop(&f);
    free(body);
}

static void test_chunks_beyond_limits(void **state) {
    char chunk[1100];
    fixture f;
    int fd;
    char *answer;

    (void)state;
    snprintf(chunk, sizeof chunk, "400\r\n%01024d\r\n", 0);
    fixture_start(&f, (iron_server_options){.max_body = 100000});
    fd = dial(&f);
    assert_true(say(fd, "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"));
    for (int k = 0; k < 500; k++)
        if (!say(fd, chunk))
            break;
    answer = hear_all(fd);
    assert_answer(answer, 413, "too-large");
    free(answer);
    close(fd);
    fixture_stop(&f);
    fixture_start(&f, (iron_server_options){0});
    expect(&f, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", 413, "too-large");
    fd = dial(&f);
    assert_true(say(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"));
    for (int k = 0; k < 2000; k++)
        if (!say(fd, chunk))
            break;
    answer = hear_all(fd);
    assert_answer(answer, 413, "too-large");
    free(answer);
    close(fd);
    fixture_stop(&f);
}

/* Chunks that cannot be read, or should not be, get a problem and not libmicrohttpd's page. */
static void test_malformed_chunks(void **state) {
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
#define CHUNKS(text) {text, sizeof text - 1}
        CHUNKS("4;a=\0b\r\nabcd\r\n0\r\n\r\n"),         CHUNKS("4;a=\rb\r\nabcd\r\n0\r\n\r\n"),
        CHUNKS("4;\x7f\r\nabcd\r\n0\r\n\r\n"),          CHUNKS("4\nabcd\r\n0\r\n\r\n"),
        CHUNKS("4\r\nabcd\r\n2;\r\r\nab\r\n0\r\n\r\n"), CHUNKS("zz\r\nabcd\r\n0\r\n\r\n"),
        CHUNKS("fffffffffffffffff\r\nabcd\r\n"),        CHUNKS("4\r\nabcde\r\n0\r\n\r\n"),
#undef CHUNKS
    };
    static const char head[] = "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n";
    size_t large = 200000;
    char *text = grab(large + 1000);
    fixture f;

    (void)state;
    fixture_start(&f, (iron_server_options){0});
    for (size_t k = 0; k < COUNT(rows); k++) {
        memcpy(text, head, sizeof head - 1);
        memcpy(text + sizeof head - 1, rows[k].text, rows[k].bytes);
        expect_bytes(&f, text, sizeof head - 1 + rows[k].bytes, 400, "urn:iron:problem:malformed");
    }
    for (int k = 0; k < 2; k++) { /* lines longer than libmicrohttpd's buffer */
        int fd = dial(&f);
        char *answer;

        memset(text, k ? '0' : 'x', large);
        memcpy(text, k ? "0" : "4;", k ? 1 : 2);
        assert_true(say(fd, head));
        (void)say_bytes(fd, text, large);
        answer = hear_all(fd);
        assert_answer(answer, 400, "urn:iron:problem:malformed");
        free(answer);
        close(fd);
    }
    expect(&f,
           "POST /count HTTP/1.1\r\n" HOST
           "Transfer-Encoding: chunked\r\n\r\n4;a=\"b c\"\t;d\r\nabcd\r\n0\r\n\r\n",
           200, "\"bytes\": 4");
    for (int k = 0; k < 30000 && atomic_load(&f.server->in_flight) > 0; k++)
        nap_ms(1); /* a request ends after its response was sent */
    assert_int_equal(atomic_load(&f.server->in_flight), 0);
    fixture_stop(&f);
    free(text);
}

/* Truncated bodies: no request ends, all are dropped. */
static void test_truncated_bodies(void **state) {
    fixture f;
    int fd;

    (void)state;
    atomic_store(&drops, 0);
    fixture_start(&f, (iron_server_options){.grace_seconds = 1});
    for (int k = 0; k < 10; k++) {
        fd = dial(&f);
        assert_true(say(fd, k % 2 ? "POST /count HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc"
                                  : "POST /count HTTP/1.1\r\n" HOST
                                    "Transfer-Encoding: chunked\r\n\r\n5\r\nab"));
        close(fd);
    }
    for (int k = 0; k < 30000 && atomic_load(&drops) < 10; k++)
        nap_ms(1);
    fixture_stop(&f);
    assert_int_equal(atomic_load(&drops), 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_documents_are_parsed_in_turn),
        cmocka_unit_test(test_documents_overlap),
        cmocka_unit_test(test_routing),
        cmocka_unit_test(test_common_headers),
        cmocka_unit_test(test_kept_connection),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_blanks_after_values),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_early_responses_are_read),
        cmocka_unit_test(test_responses_amid_bodies_are_read),
        cmocka_unit_test(test_chunks_beyond_limits),
        cmocka_unit_test(test_malformed_chunks),
        cmocka_unit_test(test_truncated_bodies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
