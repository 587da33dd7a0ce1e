/* SPDX-License-Identifier: MIT */
/*
 * test_server_header.c: strict headers pass, and everything that libmicrohttpd would tolerate is
 * refused with its kind of problem.
 */
#include "server/header.c"
#include "support.h"

#define LINE "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"

static iron__http_error check(const char *bytes, size_t count, iron__header *header) {
    char *copy =
        grab(count); /* a block of exactly its size, so that a sanitizer detects reads beyond it */
    iron__http_error error;
    size_t end;

    memcpy(copy, bytes, count);
    error = iron__header_parse(copy, count, header, &end);
    if (!error.kind && end != count)
        error = iron__http_error_make("malformed-request", "send one header", "no single header");
    if (!error.kind)
        error = iron__header_check(header);
    free(copy);
    return error;
}

static void expect(const char *bytes, size_t count, const char *kind) {
    iron__header header;
    iron__http_error error = check(bytes, count, &header);

    if (kind ? !error.kind || strcmp(error.kind, kind) != 0 : error.kind != NULL)
        fail_msg("'%.*s' gave %s (%s), expected %s", (int)count, bytes,
                 error.kind ? error.kind : "nothing", error.detail, kind ? kind : "nothing");
    if (error.kind)
        assert_true(error.detail[0] != '\0' && error.help && error.help[0] != '\0');
}

static void fine(const char *text) { expect(text, strlen(text), NULL); }

static void bad(const char *text) { expect(text, strlen(text), "malformed-request"); }

static void test_good_headers(void **state) {
    (void)state;
    fine(LINE HOST "\r\n");
    fine(LINE "Host: 127.0.0.1:80\r\nX: \r\nY:\t b c \t\r\n\r\n");
    fine("GET / HTTP/1.0\r\n\r\n");
    fine(
        "POST /a?b=c%20d HTTP/1.1\r\nhOsT: [::1]:8080\r\nContent-Length: 9223372036854775\r\n\r\n");
    fine("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\nExpect: 100-Continue\r\n\r\n");
    fine(LINE HOST "X-A: caf\xc3\xa9\r\nAccept: a\r\nAccept: b\r\n\r\n");
}

static void test_bodies(void **state) {
    iron__header header;
    const char *length = "POST / HTTP/1.1\r\n" HOST "Content-Length: 0042\r\n\r\n";
    const char *chunked = "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n";

    (void)state;
    assert_null(check(length, strlen(length), &header).kind);
    assert_true(header.body_bytes == 42);
    assert_null(check(chunked, strlen(chunked), &header).kind);
    assert_true(header.body_bytes == IRON_LENGTH_UNKNOWN);
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 8\r\nTransfer-Encoding: chunked\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 8\r\nContent-Length: 8\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 8, 8\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: +8\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x8\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length : 8\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
        "chunked\r\n\r\n");
    bad("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked \r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Content-Length: 8\t\r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue \r\n\r\n");
    fine("POST / HTTP/1.1\r\n" HOST "Content-Length: \t 8\r\nX: a \r\n\r\n");
    bad("POST / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\n\r\n");
}

static void test_lines(void **state) {
    (void)state;
    bad(LINE HOST "X: a\nY: b\r\n\r\n");
    bad(LINE HOST "X: a\rb\r\n\r\n");
    bad("GET / HTTP/1.1\nHost: a\n\n");
    bad("\r\n" LINE HOST "\r\n");
    bad(LINE HOST "X: a\r\n b\r\n\r\n");
    bad(LINE HOST "X: a\r\n\tb\r\n\r\n");
    bad(LINE " Host: a\r\n\r\n");
    bad(LINE HOST "X : a\r\n\r\n");
    bad(LINE HOST ": a\r\n\r\n");
    bad(LINE HOST "X a\r\n\r\n");
    bad(LINE HOST "X\x01: a\r\n\r\n");
    bad(LINE HOST "X: a\x01\r\n\r\n");
    bad(LINE HOST "X: a\x7f\r\n\r\n");
    bad(LINE HOST "X\xc3\xa9: a\r\n\r\n");
    expect(LINE HOST "X: a\0b\r\n\r\n", sizeof(LINE HOST "X: a\0b\r\n\r\n") - 1,
           "malformed-request");
    bad(LINE HOST "\r\nGET");
}

static void test_request_lines(void **state) {
    (void)state;
    bad("GET  / HTTP/1.1\r\n" HOST "\r\n");
    bad("GET / HTTP/1.1 \r\n" HOST "\r\n");
    bad(" GET / HTTP/1.1\r\n" HOST "\r\n");
    bad("GET\t/\tHTTP/1.1\r\n" HOST "\r\n");
    bad("GET /\r\n" HOST "\r\n");
    bad("GET / x\r\n" HOST "\r\n");
    bad("GET / http/1.1\r\n" HOST "\r\n");
    bad("GET http://a/ HTTP/1.1\r\n" HOST "\r\n");
    bad("GET x HTTP/1.1\r\n" HOST "\r\n");
    bad("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    bad("get / HTTP/1.1\r\n" HOST "\r\n");
    bad("BREW / HTTP/1.1\r\n" HOST "\r\n");
    bad("GET /a#b HTTP/1.1\r\n" HOST "\r\n");
    bad("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n");
    bad("GET /\x7f HTTP/1.1\r\n" HOST "\r\n");
    expect("GET / HTTP/1.2\r\n" HOST "\r\n", 27, "unsupported-version");
    expect("GET / HTTP/2.0\r\n" HOST "\r\n", 27, "unsupported-version");
    expect("GET / HTTP/0.9\r\n" HOST "\r\n", 27, "unsupported-version");
}

static void test_hosts_and_repeated_fields(void **state) {
    (void)state;
    bad(LINE "\r\n");
    bad(LINE HOST HOST "\r\n");
    bad(LINE "Host:\r\n\r\n");
    bad(LINE "Host: a b\r\n\r\n");
    bad(LINE "Host: a:b\r\n\r\n");
    bad(LINE "Host: a:70000\r\n\r\n");
    bad(LINE "Host: [::1\r\n\r\n");
    bad(LINE "Host: a/b\r\n\r\n");
    bad(LINE HOST "Authorization: a\r\nauthorization: b\r\n\r\n");
    bad(LINE HOST "Idempotency-Key: a\r\nIdempotency-Key: a\r\n\r\n");
    bad(LINE HOST "Content-Type: a\r\nContent-Type: a\r\n\r\n");
    bad(LINE HOST "Origin: a\r\nOrigin: a\r\n\r\n");
}

/* A header of `count` equal fields of `bytes` each; free() it. */
static char *large(uint32_t count, size_t bytes) {
    char *text = grab(64 + count * (bytes + 8)), *at = text;

    at += sprintf(at, LINE HOST);
    for (uint32_t k = 0; k < count; k++)
        at += sprintf(at, "X: %0*d\r\n", (int)bytes, 0);
    sprintf(at, "\r\n");
    return text;
}

static void test_sizes(void **state) {
    char *text = large(99, 20), *target = grab(IRON_HEADER_BYTES_MAX + 100);

    (void)state;
    fine(text);
    free(text);
    text = large(100, 20);
    expect(text, strlen(text), "header-too-large");
    free(text);
    text = large(2, 9000);
    expect(text, strlen(text), "header-too-large");
    free(text);
    sprintf(target, "GET /%0*d HTTP/1.1\r\n" HOST "\r\n", 8191, 0);
    fine(target);
    sprintf(target, "GET /%0*d HTTP/1.1\r\n" HOST "\r\n", 8192, 0);
    expect(target, strlen(target), "target-too-long");
    sprintf(target, "GET /%0*d", (int)IRON_HEADER_BYTES_MAX, 0);
    expect(target, strlen(target), "target-too-long");
    free(target);
}

/* The end of a header is found as soon as it has arrived, and not before. */
static void test_end_is_found(void **state) {
    const char *text = LINE HOST "A: b\r\n\r\nbody \n\n";
    size_t whole = strlen(LINE HOST "A: b\r\n\r\n"), end;

    (void)state;
    for (size_t have = 0; have <= strlen(text); have++) {
        assert_null(find_end(text, have, &end).kind);
        assert_int_equal(end, have < whole ? 0 : whole);
    }
}

/* The problem of a header with these two digests, "none" or "sha-256". */
static const char *digest_kind(const char *content, const char *repr, unsigned char digest[32]) {
    iron__header header = {.count = 0};
    bool has_digest;
    const char *kind;

    if (content)
        iron__header_add(&header, iron__text_of("content-digest"), iron__text_of(content));
    if (repr)
        iron__header_add(&header, iron__text_of("Repr-Digest"), iron__text_of(repr));
    kind = iron__header_digest(&header, digest, &has_digest).kind;
    return kind ? kind : has_digest ? "sha-256" : "none";
}

/* With the example of RFC 9530: {"hello": "world"} and a line feed. */
static void test_digests(void **state) {
#define RIGHT "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
#define OTHER "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
    static const struct {
        const char *content, *repr, *kind;
    } rows[] = {{NULL, NULL, "none"},
                {"", "", "none"},
                {"sha-512=:AAAA:", "md5=x,unixsum=1", "none"},
                {RIGHT, NULL, "sha-256"},
                {NULL, RIGHT, "sha-256"},
                {RIGHT, RIGHT ", " RIGHT, "sha-256"},
                {"sha-512=:AAAA:,\t" RIGHT ";a;b=c,id-sha-256=:x:", NULL, "sha-256"},
                {RIGHT, OTHER, "bad-digest"},
                {RIGHT "," OTHER, NULL, "bad-digest"},
                {"sha-256", NULL, "none"},
                {"sha-256=", NULL, "bad-digest"},
                {"sha-256=:", NULL, "bad-digest"},
                {"sha-256=::", NULL, "bad-digest"},
                {"sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg:", NULL, "bad-digest"},
                {"sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8Fab-g=:", NULL, "bad-digest"}};
    unsigned char digest[32], expected[32];

    (void)state;
    iron__sha256("{\"hello\": \"world\"}\n", 19, expected);
    for (size_t k = 0; k < COUNT(rows); k++) {
        assert_string_equal(digest_kind(rows[k].content, rows[k].repr, digest), rows[k].kind);
        if (strcmp(rows[k].kind, "sha-256") == 0)
            assert_memory_equal(digest, expected, sizeof digest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_headers),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_request_lines),
        cmocka_unit_test(test_hosts_and_repeated_fields),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_end_is_found),
        cmocka_unit_test(test_digests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
