/* SPDX-License-Identifier: MIT */
/*
 * test_server_access.c: which hosts, origins, token files and tokens are accepted, and what a
 * ticket allows. The test controls the tickets' clock.
 */
#include "server/request.c"
#include "support.h"

static const iron_server loopback = {.host = "127.0.0.1", .is_loopback = true};

/* The problem kind for a request with these fields; NULL fields are omitted. */
static const char *kind_of(const iron_server *server, const char *method, const char *host,
                           const char *origin, const char *site) {
    iron__header header = {.method = iron__text_of(method)};

    if (host)
        iron__header_add(&header, iron__text_of("Host"), iron__text_of(host));
    if (origin)
        iron__header_add(&header, iron__text_of("origin"), iron__text_of(origin));
    if (site)
        iron__header_add(&header, iron__text_of("Sec-Fetch-Site"), iron__text_of(site));
    return check_origin(server, &header).kind;
}

static const char *host_kind(const iron_server *server, const char *host) {
    return kind_of(server, "GET", host, NULL, NULL);
}

static void test_loopback_names(void **state) {
    static const char *const ours[] = {"localhost",   "LOCALHOST:1",       "localhost.",
                                       "127.0.0.1",   "127.9.8.7:80",      "[::1]",
                                       "[::1]:65535", "127.0.0.1:8080",    "[0:0:0:0:0:0:0:1]",
                                       "[::0001]:80", "[::ffff:127.0.0.1]"};
    static const char *const others[] = {
        "example.org",  "127.0.0.1.example.org", "localhost.x",   "xlocalhost", "128.0.0.1",
        "[::2]",        "[::ffff:128.0.0.1]",    "[::127.0.0.1]", "2130706433", "0x7f.1",
        "evil.test:80", "127.0.0.1.:8080x"};

    (void)state;
    for (size_t k = 0; k < COUNT(ours); k++)
        assert_null(host_kind(&loopback, ours[k]));
    for (size_t k = 0; k < COUNT(others); k++)
        assert_string_equal(host_kind(&loopback, others[k]), "wrong-host");
    assert_null(host_kind(&loopback, NULL)); /* HTTP/1.0 */
}

static void test_further_names(void **state) {
    static const char *const more[] = {"iron.example", "[fd00::1]"};
    iron_server local = loopback;
    iron_server public = {.is_tls = true, .host = "0.0.0.0"};

    (void)state;
    local.options.hosts = more;
    local.options.host_count = 2;
    assert_null(host_kind(&local, "IRON.example:443"));
    assert_null(host_kind(&local, "[fd00::1]:1"));
    assert_null(host_kind(&local, "localhost"));
    assert_string_equal(host_kind(&local, "other.example"), "wrong-host");
    assert_null(host_kind(&public, "anything.example"));
    public.options.hosts = more;
    public.options.host_count = 2;
    assert_null(host_kind(&public, "iron.example"));
    assert_string_equal(host_kind(&public, "localhost"), "wrong-host");
}

static void test_origins(void **state) {
    static const char *const foreign[] = {"null",
                                          "https://localhost:80",
                                          "http://localhost",
                                          "http://localhost:81",
                                          "http://evil.test:80",
                                          "http://localhost:80/",
                                          "http://localhost:80.evil.test",
                                          ""};

    (void)state;
    assert_null(kind_of(&loopback, "POST", "localhost:80", "http://localhost:80", NULL));
    assert_null(kind_of(&loopback, "POST", "localhost:80", "HTTP://LOCALHOST:80", "same-origin"));
    assert_null(kind_of(&loopback, "POST", "localhost:80", NULL, "none"));
    for (size_t k = 0; k < COUNT(foreign); k++)
        assert_string_equal(kind_of(&loopback, "GET", "localhost:80", foreign[k], NULL),
                            "foreign-origin");
    assert_string_equal(kind_of(&loopback, "GET", NULL, "http://localhost", NULL),
                        "foreign-origin");
    assert_null(kind_of(&loopback, "GET", "localhost", NULL, "cross-site"));
    assert_null(kind_of(&loopback, "HEAD", "localhost", NULL, "same-site"));
    assert_string_equal(kind_of(&loopback, "POST", "localhost", NULL, "cross-site"),
                        "foreign-origin");
    assert_string_equal(kind_of(&loopback, "DELETE", "localhost", NULL, "Same-Site"),
                        "foreign-origin");
}

static void test_host_syntax(void **state) {
    static const char *const good[] = {"a", "a.b-c_d:1", "[::1]:8", "1.2.3.4"};
    static const char *const bad[] = {"",       ":1",   "a:",    "a:0",     "a:1x",    "a:123456",
                                      "[::1]x", "[::1", "[x]:1", "a b",     "a@b",     "[]",
                                      "::1",    "a,b",  "a:1:2", "[::1%1]", "\xc3\xa9"};

    (void)state;
    for (size_t k = 0; k < COUNT(good); k++)
        assert_true(iron__host_is_valid(iron__text_of(good[k]), true));
    for (size_t k = 0; k < COUNT(bad); k++)
        if (iron__host_is_valid(iron__text_of(bad[k]), true))
            fail_msg("'%s' is accepted as a host", bad[k]);
    assert_true(iron__host_is_valid(iron__text_of("[::1]"), false));
    assert_false(iron__host_is_valid(iron__text_of("a:1"), false));
}

/* Tokens */

static iron_status read_token(const folder *f, const char *text, size_t bytes, mode_t mode,
                              char token[IRON_AUTH_TOKEN_SIZE], iron_error *err) {
    file_name name = name_in(f, "token");

    unlink(name.path);
    file_write(name.path, text, bytes);
    assert_int_equal(chmod(name.path, mode), 0);
    return iron__auth_token_read(name.path, token, err);
}

static void accepted(const folder *f, const char *text, const char *expected) {
    char token[IRON_AUTH_TOKEN_SIZE] = "";
    iron_error err;

    assert_ok(read_token(f, text, strlen(text), 0600, token, &err), &err);
    assert_string_equal(token, expected);
}

static void refused(const folder *f, const char *text, size_t bytes, mode_t mode,
                    const char *word) {
    char token[IRON_AUTH_TOKEN_SIZE] = "";
    iron_error err;

    assert_refused(read_token(f, text, bytes, mode, token, &err), IRON_E_ARG, &err);
    assert_says(&err, word);
    assert_string_equal(token, "");
}

static void test_token_files(void **state) {
    folder f;
    char token[IRON_AUTH_TOKEN_SIZE] = "";
    iron_error err;
    char large[IRON_AUTH_TOKEN_MAX + 3];

    (void)state;
    folder_make(&f);
    accepted(&f, "s3cret\n", "s3cret");
    accepted(&f, "s3cret", "s3cret");
    accepted(&f, "s3cret\r\n", "s3cret");
    refused(&f, "", 0, 0600, "empty");
    refused(&f, "\n", 1, 0600, "empty");
    refused(&f, "a b\n", 4, 0600, "blank");
    refused(&f, "a\nb\n", 4, 0600, "blank");
    refused(&f, "a\n\n", 3, 0600, "blank");
    refused(&f, "a\0b", 3, 0600, "blank");
    refused(&f, "caf\xc3\xa9", 5, 0600, "ASCII");
    refused(&f, "a\n", 2, 0640, "chmod 600");
    refused(&f, "a\n", 2, 0604, "chmod 600");
    refused(&f, "a\n", 2, 0620, "chmod 600");
    memset(large, 'x', sizeof large);
    refused(&f, large, sizeof large, 0600, "at most");
    refused(&f, large, IRON_AUTH_TOKEN_MAX + 1, 0600, "at most");
    assert_refused(iron__auth_token_read(f.path, token, &err), IRON_E_ARG, &err);
    assert_says(&err, "regular");
    assert_refused(iron__auth_token_read(name_in(&f, "none").path, token, &err), IRON_E_IO, &err);
    folder_remove(&f);
}

static bool admits(const iron_server *server, const char *authorization) {
    return is_authorized(server,
                         authorization ? iron__text_of(authorization) : (iron__text){NULL, 0});
}

static void test_tokens(void **state) {
    static const iron_server none, token = {.token_bytes = 6, .token = "s3cret"};
    char large[IRON_AUTH_TOKEN_MAX + 20];

    (void)state;
    assert_true(admits(&none, NULL));
    assert_true(admits(&token, "Bearer s3cret"));
    assert_true(admits(&token, "bEARER   s3cret"));
    assert_false(admits(&token, NULL));
    assert_false(admits(&token, ""));
    assert_false(admits(&token, "Bearer"));
    assert_false(admits(&token, "Bearer "));
    assert_false(admits(&token, "Bearer s3cre"));
    assert_false(admits(&token, "Bearer s3crets"));
    assert_false(admits(&token, "Bearer S3cret"));
    assert_false(admits(&token, "Basic s3cret"));
    assert_false(admits(&token, "s3cret"));
    assert_false(admits(&token, "Bearer s3cret x"));
    snprintf(large, sizeof large, "Bearer s3cret%0*d", (int)IRON_AUTH_TOKEN_MAX, 0);
    assert_false(admits(&token, large));
    assert_false(is_authorized(&token, (iron__text){"Bearer s3cret\0", 14}));
}

/* Tickets */

#define SECOND UINT64_C(1000000000)
#define START  (UINT64_C(1000) * SECOND)

typedef struct ticket_text {
    char text[TICKET_TEXT];
} ticket_text;

static ticket_text issue(iron__tickets *tickets, uint64_t now_ns) {
    ticket_text ticket;

    assert_true(ticket_issue(tickets, now_ns, ticket.text));
    assert_int_equal(strlen(ticket.text), 32);
    assert_int_equal(strspn(ticket.text, "0123456789abcdef"), 32);
    return ticket;
}

static void test_ticket_is_good_once(void **state) {
    iron__tickets tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};
    ticket_text one, other;

    (void)state;
    one = issue(&tickets, START);
    other = issue(&tickets, START);
    assert_string_not_equal(one.text, other.text);
    assert_true(ticket_redeem(&tickets, START, one.text));
    assert_false(ticket_redeem(&tickets, START, one.text));
    assert_true(ticket_redeem(&tickets, START + SECOND, other.text));
    assert_false(ticket_redeem(&tickets, START + SECOND, other.text));
}

static void test_ticket_is_good_for_a_minute(void **state) {
    iron__tickets tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};
    ticket_text early, late;

    (void)state;
    early = issue(&tickets, START);
    late = issue(&tickets, START);
    assert_true(ticket_redeem(&tickets, START + 60 * SECOND - 1, early.text));
    assert_false(ticket_redeem(&tickets, START + 60 * SECOND, late.text));
    /* an expired ticket does not become valid again */
    assert_false(ticket_redeem(&tickets, START, late.text));
}

static void test_oldest_ticket_is_replaced(void **state) {
    ticket_text all[IRON_TICKETS_MAX + 1];
    iron__tickets tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};

    (void)state;
    for (size_t k = 0; k <= IRON_TICKETS_MAX; k++)
        all[k] = issue(&tickets, START + k);
    assert_false(ticket_redeem(&tickets, START + SECOND, all[0].text));
    for (size_t k = 1; k <= IRON_TICKETS_MAX; k++)
        assert_true(ticket_redeem(&tickets, START + SECOND, all[k].text));
}

/* Used tickets free their slots: an old one stays valid while there are few. */
static void test_used_tickets_make_room(void **state) {
    iron__tickets tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};
    ticket_text old;

    (void)state;
    old = issue(&tickets, START);
    for (uint64_t k = 0; k < UINT64_C(3) * IRON_TICKETS_MAX; k++) {
        ticket_text next = issue(&tickets, START + k);

        assert_true(ticket_redeem(&tickets, START + k, next.text));
    }
    assert_true(ticket_redeem(&tickets, START + SECOND, old.text));
}

static void test_invalid_tickets(void **state) {
    static const char *const invalid[] = {"",
                                          "0",
                                          "00000000000000000000000000000000",
                                          "0000000000000000000000000000000",
                                          "000000000000000000000000000000000",
                                          "gggggggggggggggggggggggggggggggg",
                                          " 0000000000000000000000000000000"};
    iron__tickets tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};
    ticket_text good, changed;

    (void)state;
    for (size_t k = 0; k < COUNT(invalid); k++)
        assert_false(ticket_redeem(&tickets, 0, invalid[k]));
    good = issue(&tickets, START);
    for (size_t k = 0; k < 32; k++) {
        changed = good;
        changed.text[k] = changed.text[k] == '0' ? '1' : '0';
        assert_false(ticket_redeem(&tickets, START, changed.text));
        changed.text[k] = '\0';
        assert_false(ticket_redeem(&tickets, START, changed.text));
    }
    assert_true(ticket_redeem(&tickets, START, good.text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback_names),
        cmocka_unit_test(test_further_names),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_host_syntax),
        cmocka_unit_test(test_token_files),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_ticket_is_good_once),
        cmocka_unit_test(test_ticket_is_good_for_a_minute),
        cmocka_unit_test(test_oldest_ticket_is_replaced),
        cmocka_unit_test(test_used_tickets_make_room),
        cmocka_unit_test(test_invalid_tickets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
