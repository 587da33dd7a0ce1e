/* SPDX-License-Identifier: MIT */
/*
 * fuzz_target.c: any text as a request target. An accepted target has a route, only parameters that
 * the route declares, each at most once, and values in UTF-8; encoded and parsed again it is the
 * same.
 */
#include "fuzz.h"

#include "server/request.c"

#include "core/json.h"

static const iron__route rows[] = {
    {.method = "GET", .pattern = "/v1/engines", .query = "since"},
    {.method = "POST", .pattern = "/v1/engines"},
    {.method = "GET", .pattern = "/v1/engines/{name}", .query = ""},
    {.method = "POST", .pattern = "/v1/engines/{name}/feed", .query = "dtype at"}};
static const iron__route *const table[] = {&rows[0], &rows[1], &rows[2], &rows[3], NULL};

static const char *query(const iron__target *target, const char *name) {
    iron__request req = {.target = *target};

    return iron__request_query(&req, name);
}

/* Every byte as an escape. */
static char *write_escaped(char *to, const char *text) {
    for (; *text; text++)
        to += sprintf(to, "%%%02x", (unsigned)(unsigned char)*text);
    return to;
}

static void require_same_again(const iron__target *target, const match *m) {
    char *text = malloc((size_t)100000), *at = text;
    const char *brace = strchr(m->route->pattern, '{');
    iron__target again;
    match again_m;

    FUZZ_REQUIRE(text);
    at += sprintf(at, "%.*s", brace ? (int)(brace - m->route->pattern) : 1000, m->route->pattern);
    at = write_escaped(at, target->variable);
    at += sprintf(at, "%s", brace ? strchr(brace, '}') + 1 : "");
    for (uint32_t k = 0; k < target->pair_count; k++) {
        *at++ = k == 0 ? '?' : '&';
        at = write_escaped(at, target->pairs[k].name);
        *at++ = '=';
        at = write_escaped(at, target->pairs[k].value);
    }
    *at = '\0';
    FUZZ_REQUIRE(!target_parse(&again, text).kind);
    FUZZ_REQUIRE(!target_match(&again, table, m->route->method, &again_m).kind);
    FUZZ_REQUIRE(again_m.route == m->route && again.pair_count == target->pair_count);
    FUZZ_REQUIRE(strcmp(again.variable, target->variable) == 0);
    for (uint32_t k = 0; k < target->pair_count; k++)
        FUZZ_REQUIRE(strcmp(query(&again, target->pairs[k].name), target->pairs[k].value) == 0);
    free(again.room);
    free(text);
}

static void require_good(const iron__target *target) {
    FUZZ_REQUIRE(target->pair_count <= IRON_QUERY_MAX);
    FUZZ_REQUIRE(iron__json_is_utf8(target->variable) && !strchr(target->variable, '/'));
    for (uint32_t k = 0; k < target->pair_count; k++) {
        FUZZ_REQUIRE(iron__json_is_utf8(target->pairs[k].name) && target->pairs[k].name[0]);
        FUZZ_REQUIRE(iron__json_is_utf8(target->pairs[k].value));
        FUZZ_REQUIRE(query(target, target->pairs[k].name) == target->pairs[k].value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size < 4096 ? size : 4096};
    const char *method = fuzz_byte(&in) & 1 ? "GET" : "POST";
    char *text = fuzz_text(&in);
    iron__target target;
    match m = {0};
    iron__http_error error = target_parse(&target, text);

    if (!error.kind)
        error = target_match(&target, table, method, &m);
    if (!error.kind && m.route)
        error = check_query(&target, m.route);
    if (error.kind)
        FUZZ_REQUIRE(error.help && error.detail[0]);
    if (!error.kind && m.route) {
        require_good(&target);
        require_same_again(&target, &m);
    }
    free(target.room);
    free(text);
    return 0;
}
