/* SPDX-License-Identifier: MIT */
/*
 * test_server_access.c: which hosts, origins, token files and tokens are accepted, what a token and
 * a ticket allow, and when wrong tokens must wait. The test controls the clock.
 */
#include "server/access.c"
#include "server/request.c"
#include "support.h"

static iron__listener at_loopback = {.host = "127.0.0.1"}, at_all = {.host = "0.0.0.0"};
static const iron_server loopback = {
    .listeners = &at_loopback, .listener_count = 1, .is_loopback = true};

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
    iron_server public = {.is_tls = true, .listeners = &at_all, .listener_count = 1};

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

static iron_status read_auth_token(const folder *f, const char *text, size_t bytes, mode_t mode,
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

    assert_ok(read_auth_token(f, text, strlen(text), 0600, token, &err), &err);
    assert_string_equal(token, expected);
}

static void refused(const folder *f, const char *text, size_t bytes, mode_t mode,
                    const char *word) {
    char token[IRON_AUTH_TOKEN_SIZE] = "";
    iron_error err;

    assert_refused(read_auth_token(f, text, bytes, mode, token, &err), IRON_E_ARG, &err);
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

/* The tokens of a file with this text. */
static iron_status read_tokens(const char *text, size_t bytes, iron__tokens **tokens,
                               iron_error *err) {
    iron_status status;
    file_name name;
    folder f;

    folder_make(&f);
    name = name_in(&f, "token");
    file_write(name.path, text, bytes);
    assert_int_equal(chmod(name.path, 0600), 0);
    status = iron__tokens_read(name.path, NULL, tokens, err);
    folder_remove(&f);
    return status;
}

static bool admits_bytes(iron__tokens *tokens, iron__request *req, const char *text, size_t bytes) {
    iron_server server = {.options = {.token_file = tokens ? "token" : NULL},
                          .tokens_lock = PTHREAD_MUTEX_INITIALIZER,
                          .tokens = tokens};
    bool is_admitted;

    *req = (iron__request){.server = &server};
    is_admitted = !iron__access_check(req, (iron__text){text, bytes}, NULL).kind;
    req->server = NULL;
    return is_admitted;
}

static bool admits(iron__tokens *tokens, const char *authorization) {
    iron__request req;

    return admits_bytes(tokens, &req, authorization, authorization ? strlen(authorization) : 0);
}

static void test_tokens(void **state) {
    char large[IRON_AUTH_TOKEN_MAX + 20];
    iron__tokens *token;
    iron__request req;
    iron_error err;

    (void)state;
    assert_ok(read_tokens("s3cret\n", 7, &token, &err), &err);
    assert_int_equal(token->weak, 1);
    assert_true(admits(NULL, NULL));
    assert_true(admits(token, "Bearer s3cret"));
    assert_true(admits(token, "bEARER   s3cret"));
    assert_false(admits(token, NULL));
    assert_false(admits(token, ""));
    assert_false(admits(token, "Bearer"));
    assert_false(admits(token, "Bearer "));
    assert_false(admits(token, "Bearer s3cre"));
    assert_false(admits(token, "Bearer s3crets"));
    assert_false(admits(token, "Bearer S3cret"));
    assert_false(admits(token, "Basic s3cret"));
    assert_false(admits(token, "s3cret"));
    assert_false(admits(token, "Bearer s3cret x"));
    snprintf(large, sizeof large, "Bearer s3cret%0*d", (int)IRON_AUTH_TOKEN_MAX, 0);
    assert_false(admits(token, large));
    assert_false(admits_bytes(token, &req, "Bearer s3cret\0", 14));
    iron__tokens_destroy(token);
}

/* May the token use a route with this role for this engine? NULL: the token is unknown. */
static const char *allowed(iron__tokens *tokens, const char *authorization, iron__role role,
                           const char *engine) {
    iron__route route = {.role = role};
    const char *kind = "unknown";
    iron__request req;

    if (admits_bytes(tokens, &req, authorization, strlen(authorization))) {
        req.route = &route;
        req.variable = engine;
        kind = iron__access_allows(&req).kind;
    }
    return kind ? kind : "yes";
}

static void test_roles(void **state) {
    static const char text[] =
        "# who may do what\r\n\n"
        "looks read\r\n"
        "  feeds\tfeed\tteam-*  \n"
        "rules admin\n"
        "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD read a?c\n"
        "#commented admin";
    static const struct {
        const char *token;
        iron__role role;
        const char *engine, *answer;
    } rows[] = {{"Bearer looks", IRON_ROLE_READ, "any", "yes"},
                {"Bearer looks", IRON_ROLE_READ, "", "yes"},
                {"Bearer looks", IRON_ROLE_FEED, "any", "forbidden"},
                {"Bearer feeds", IRON_ROLE_FEED, "team-7", "yes"},
                {"Bearer feeds", IRON_ROLE_FEED, "", "yes"},
                {"Bearer feeds", IRON_ROLE_FEED, "team", "forbidden"},
                {"Bearer feeds", IRON_ROLE_ADMIN, "team-7", "forbidden"},
                {"Bearer rules", IRON_ROLE_ADMIN, "any", "yes"},
                {"Bearer abc", IRON_ROLE_READ, "abc", "yes"},
                {"Bearer abc", IRON_ROLE_READ, "abcd", "forbidden"},
                {"Bearer #commented", IRON_ROLE_READ, "", "unknown"},
                {"Bearer sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
                 IRON_ROLE_READ, "", "unknown"}};
    iron__tokens *tokens;
    iron_error err;

    (void)state;
    assert_ok(read_tokens(text, sizeof text - 1, &tokens, &err), &err);
    assert_int_equal(tokens->count, 4);
    assert_int_equal(tokens->weak, 3);
    for (size_t k = 0; k < COUNT(rows); k++)
        assert_string_equal(allowed(tokens, rows[k].token, rows[k].role, rows[k].engine),
                            rows[k].answer);
    iron__tokens_destroy(tokens);
    assert_ok(read_tokens("#not-a-comment-alone", 20, &tokens, &err), &err);
    assert_string_equal(allowed(tokens, "Bearer #not-a-comment-alone", IRON_ROLE_ADMIN, "e"),
                        "yes");
    iron__tokens_destroy(tokens);
}

static void test_wrong_token_files(void **state) {
    static const struct {
        const char *text, *word;
    } rows[] = {{"", "empty"},
                {"\n\n", "empty"},
                {"# nothing\n# here\n", "empty"},
                {"secret1\nsecret2\n", "line 1: write TOKEN ROLE"},
                {"secret1 read\nsecret2\n", "line 2: write TOKEN ROLE"},
                {"secret1 reads\n", "line 1: the role"},
                {"secret1 read * x\n", "line 1: write TOKEN ROLE"},
                {"caf\xc3\xa9 read\n", "visible ASCII"},
                {"sha256:12 read\n", "64 hexadecimal"},
                {"secret1 read aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
                 "longer than a name"}};
    iron__tokens *tokens;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++) {
        assert_refused(read_tokens(rows[k].text, strlen(rows[k].text), &tokens, &err), IRON_E_ARG,
                       &err);
        assert_says(&err, rows[k].word);
        assert_null(strstr(err.text, "secret"));
        assert_null(tokens);
    }
    assert_refused(read_tokens("a\0b", 3, &tokens, &err), IRON_E_ARG, &err);
}

/* An address may be wrong WRONG_FREE times, then once in a period; others are not affected. */
static void test_wrong_tokens_wait(void **state) {
    static iron__guesses guesses;
    uint64_t now = UINT64_C(5000000000000);

    (void)state;
    for (uint64_t k = 0; k < WRONG_FREE; k++)
        assert_false(is_too_early(&guesses, 1, now));
    for (uint64_t k = 0; k < 100; k++)
        assert_true(is_too_early(&guesses, 1, now));
    assert_false(is_too_early(&guesses, 2, now));
    assert_false(is_too_early(&guesses, 1, now + WRONG_PERIOD_NS));
    assert_true(is_too_early(&guesses, 1, now + WRONG_PERIOD_NS));
    assert_false(is_too_early(&guesses, 1, now + 100 * WRONG_PERIOD_NS));
    for (uint64_t key = 3; key < 100000; key++) /* more than there is room for */
        assert_false(is_too_early(&guesses, key, now));
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
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_wrong_token_files),
        cmocka_unit_test(test_wrong_tokens_wait),
        cmocka_unit_test(test_ticket_is_good_once),
        cmocka_unit_test(test_ticket_is_good_for_a_minute),
        cmocka_unit_test(test_oldest_ticket_is_replaced),
        cmocka_unit_test(test_used_tickets_make_room),
        cmocka_unit_test(test_invalid_tickets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
