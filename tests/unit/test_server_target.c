/* SPDX-License-Identifier: MIT */
/*
 * test_server_target.c: paths find their rows, methods and variables; queries are decoded once and
 * strictly; what is unknown, twice or badly encoded is refused.
 */
#include "server/target.h"
#include "support.h"

static const iron__route table[] = {
    {.method = "GET", .pattern = "/", .is_open = true},
    {.method = "GET", .pattern = "/v1/engines", .query = "since limit"},
    {.method = "POST", .pattern = "/v1/engines"},
    {.method = "GET", .pattern = "/v1/engines/{name}"},
    {.method = "DELETE", .pattern = "/v1/engines/{name}"},
    {.method = "POST", .pattern = "/v1/engines/{name}/feed", .query = "dtype at"},
    {.method = NULL}};

static const iron__route *find(const char *text, const char *method, iron__target *target,
                               iron__match *match, const char **kind) {
    iron__verdict verdict = iron__target_init(target, text);

    memset(match, 0, sizeof *match);
    if (!verdict.kind)
        verdict = iron__target_match(target, table, method, match);
    if (!verdict.kind && match->route)
        verdict = iron__target_check_query(target, match->route->query);
    *kind = verdict.kind;
    return verdict.kind ? NULL : match->route;
}

static void found(const char *text, const char *method, int row, const char *variable) {
    iron__target target;
    iron__match match;
    const char *kind;

    if (find(text, method, &target, &match, &kind) != &table[row])
        fail_msg("%s %s did not find row %d: %s", method, text, row, kind ? kind : "no row");
    assert_string_equal(target.variable, variable);
    iron__target_deinit(&target);
}

static void refused(const char *text, const char *kind) {
    iron__target target;
    iron__match match;
    const char *got;

    assert_null(find(text, "GET", &target, &match, &got));
    if (!got || strcmp(got, kind) != 0)
        fail_msg("%s gave %s, expected %s", text, got ? got : "nothing", kind);
    iron__target_deinit(&target);
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
    iron__match match;
    const char *kind;

    (void)state;
    for (size_t k = 0; k < COUNT(paths); k++) {
        assert_null(find(paths[k], "GET", &target, &match, &kind));
        assert_null(kind);
        assert_false(match.is_path_known);
        iron__target_deinit(&target);
    }
}

static void test_methods(void **state) {
    iron__target target;
    iron__match match;
    const char *kind;

    (void)state;
    assert_null(find("/v1/engines/x", "POST", &target, &match, &kind));
    assert_true(match.is_path_known && !match.is_open);
    assert_string_equal(match.allow, "GET, HEAD, DELETE");
    iron__target_deinit(&target);
    assert_null(find("/", "OPTIONS", &target, &match, &kind));
    assert_true(match.is_path_known && match.is_open);
    assert_string_equal(match.allow, "GET, HEAD");
    iron__target_deinit(&target);
}

static void test_queries(void **state) {
    iron__target target;

    (void)state;
    assert_null(iron__target_init(&target, "/?since=1%2b+2&limit=%e2%82%ac=").kind);
    assert_string_equal(iron__target_query(&target, "since"), "1++2");
    assert_string_equal(iron__target_query(&target, "limit"), "\xe2\x82\xac=");
    assert_null(iron__target_query(&target, "other"));
    iron__target_deinit(&target);
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
