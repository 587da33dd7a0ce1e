/* SPDX-License-Identifier: MIT */
/*
 * test_server_target.c: paths find their routes, methods and variables; queries are decoded once
 * and strictly; unknown, repeated and badly encoded parameters are refused.
 */
#include "server/request.c"
#include "support.h"

static const iron__route rows[] = {
    {.method = "GET", .pattern = "/", .is_open = true},
    {.method = "GET", .pattern = "/v1/engines", .query = "since limit"},
    {.method = "POST", .pattern = "/v1/engines"},
    {.method = "GET", .pattern = "/v1/engines/{name}"},
    {.method = "DELETE", .pattern = "/v1/engines/{name}"},
    {.method = "POST", .pattern = "/v1/engines/{name}/feed", .query = "dtype at"}};
static const iron__route *const table[] = {&rows[0], &rows[1], &rows[2], &rows[3],
                                           &rows[4], &rows[5], NULL};

static const iron__route *find(const char *text, const char *method, iron__target *target, match *m,
                               const char **kind) {
    iron__http_error error = target_parse(target, text);

    memset(m, 0, sizeof *m);
    if (!error.kind)
        error = target_match(target, table, method, m);
    if (!error.kind && m->route)
        error = check_query(target, m->route);
    *kind = error.kind;
    return error.kind ? NULL : m->route;
}

static void found(const char *text, const char *method, int row, const char *variable) {
    iron__target target;
    match m;
    const char *kind;

    if (find(text, method, &target, &m, &kind) != &rows[row])
        fail_msg("%s %s did not find row %d: %s", method, text, row, kind ? kind : "no row");
    assert_string_equal(target.variable, variable);
    free(target.room);
}

static void refused(const char *text, const char *kind) {
    iron__target target;
    match m;
    const char *got;

    assert_null(find(text, "GET", &target, &m, &got));
    if (!got || strcmp(got, kind) != 0)
        fail_msg("%s gave %s, expected %s", text, got ? got : "nothing", kind);
    free(target.room);
}

static void test_matches(void **state) {
    (void)state;
    found("/", "GET", 0, "");
    found("/", "HEAD", 0, "");
    found("/v1/engines", "GET", 1, "");
    found("/v1/engines", "POST", 2, "");
    found("/v1/engines/x", "GET", 3, "x");
    found("/v1/engines/x", "HEAD", 3, "x");
    found("/v1/engines/x%20%C3%A9", "DELETE", 4, "x \xc3\xa9");
    found("/v1/engines/x/feed?at=1&dtype=u16", "POST", 5, "x");
    found("/v1/engines?", "GET", 1, "");
}

static void test_misses(void **state) {
    static const char *const paths[] = {
        "/v1", "/v1/engines/",  "/v1/engines//feed", "/v1/engines/x/", "/v1/engines/x/feed/",
        "//",  "/v1/%65ngines", "/V1/engines"};
    iron__target target;
    match m;
    const char *kind;

    (void)state;
    for (size_t k = 0; k < COUNT(paths); k++) {
        assert_null(find(paths[k], "GET", &target, &m, &kind));
        assert_null(kind);
        assert_false(m.is_path_known);
        free(target.room);
    }
}

static void test_methods(void **state) {
    iron__target target;
    match m;
    const char *kind;

    (void)state;
    assert_null(find("/v1/engines/x", "POST", &target, &m, &kind));
    assert_true(m.is_path_known && !m.is_open);
    assert_string_equal(m.allow, "GET, HEAD, DELETE");
    free(target.room);
    assert_null(find("/", "OPTIONS", &target, &m, &kind));
    assert_true(m.is_path_known && m.is_open);
    assert_string_equal(m.allow, "GET, HEAD");
    free(target.room);
}

static void test_queries(void **state) {
    iron__request req = {0};
    iron__target *target = &req.target;

    (void)state;
    assert_null(target_parse(target, "/?since=1%2b+2&limit=%e2%82%ac=").kind);
    assert_string_equal(iron__request_query(&req, "since"), "1++2");
    assert_string_equal(iron__request_query(&req, "limit"), "\xe2\x82\xac=");
    assert_null(iron__request_query(&req, "other"));
    free(target->room);
    refused("/v1/engines?other=1", "bad-query");
    refused("/v1/engines?since=1&since=1", "bad-query");
    refused("/v1/engines?since=1&sinc%65=2", "bad-query");
    refused("/v1/engines?since", "bad-query");
    refused("/v1/engines?=1", "bad-query");
    refused("/v1/engines?since=1&", "bad-query");
    refused("/v1/engines?&", "bad-query");
    refused("/?a=1", "bad-query");
    refused("/v1/engines?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1&l=1&m=1&n=1&o=1&p=1&q=1",
            "bad-query");
}

static void test_escapes(void **state) {
    (void)state;
    refused("/v1/engines?since=%", "bad-query");
    refused("/v1/engines?since=%4", "bad-query");
    refused("/v1/engines?since=%4g", "bad-query");
    refused("/v1/engines?since=%00", "bad-query");
    refused("/v1/engines?since=%ff", "bad-query");
    refused("/v1/engines?since=%c0%80", "bad-query");
    refused("/v1/engines/a%2Fb", "malformed-request");
    refused("/v1/engines/%00", "malformed-request");
    refused("/v1/engines/%zz", "malformed-request");
    refused("/v1/engines/%", "malformed-request");
    refused("/v1/engines/%ed%a0%80", "malformed-request");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches), cmocka_unit_test(test_misses),
        cmocka_unit_test(test_methods), cmocka_unit_test(test_queries),
        cmocka_unit_test(test_escapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
