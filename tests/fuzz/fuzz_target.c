/* SPDX-License-Identifier: MIT */
/*
 * fuzz_target.c: any text as a target. What passes has a row, names that the row knows, each once,
 * and texts that are UTF-8; encoding them again and reading that gives the same.
 */
#include "fuzz.h"

#include "server/target.h"

#include "core/json_write.h"

static const iron__route table[] = {
    {.method = "GET", .pattern = "/v1/engines", .query = "since"},
    {.method = "POST", .pattern = "/v1/engines"},
    {.method = "GET", .pattern = "/v1/engines/{name}", .query = ""},
    {.method = "POST", .pattern = "/v1/engines/{name}/feed", .query = "dtype at"},
    {.method = NULL}};

/* Every byte as an escape. */
static char *write_escaped(char *to, const char *text) {
    for (; *text; text++)
        to += sprintf(to, "%%%02x", (unsigned)(unsigned char)*text);
    return to;
}

static void require_same_again(const iron__target *target, const iron__match *match) {
    char *text = malloc((size_t)100000), *at = text;
    const char *brace = strchr(match->route->pattern, '{');
    iron__target again;
    iron__match rematch;

    FUZZ_REQUIRE(text);
    at += sprintf(at, "%.*s", brace ? (int)(brace - match->route->pattern) : 1000,
                  match->route->pattern);
    at = write_escaped(at, target->variable);
    at += sprintf(at, "%s", brace ? strchr(brace, '}') + 1 : "");
    for (uint32_t k = 0; k < target->pair_count; k++) {
        *at++ = k == 0 ? '?' : '&';
        at = write_escaped(at, target->pairs[k].name);
        *at++ = '=';
        at = write_escaped(at, target->pairs[k].value);
    }
    *at = '\0';
    FUZZ_REQUIRE(!iron__target_init(&again, text).kind);
    FUZZ_REQUIRE(!iron__target_match(&again, table, match->route->method, &rematch).kind);
    FUZZ_REQUIRE(rematch.route == match->route && again.pair_count == target->pair_count);
    FUZZ_REQUIRE(strcmp(again.variable, target->variable) == 0);
    for (uint32_t k = 0; k < target->pair_count; k++)
        FUZZ_REQUIRE(
            strcmp(iron__target_query(&again, target->pairs[k].name), target->pairs[k].value) == 0);
    iron__target_deinit(&again);
    free(text);
}

static void require_good(const iron__target *target) {
    FUZZ_REQUIRE(target->pair_count <= IRON_QUERY_MAX);
    FUZZ_REQUIRE(iron__json_is_text(target->variable) && !strchr(target->variable, '/'));
    for (uint32_t k = 0; k < target->pair_count; k++) {
        FUZZ_REQUIRE(iron__json_is_text(target->pairs[k].name) && target->pairs[k].name[0]);
        FUZZ_REQUIRE(iron__json_is_text(target->pairs[k].value));
        FUZZ_REQUIRE(iron__target_query(target, target->pairs[k].name) == target->pairs[k].value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size < 4096 ? size : 4096};
    const char *method = fuzz_byte(&in) & 1 ? "GET" : "POST";
    char *text = fuzz_text(&in);
    iron__target target;
    iron__match match = {0};
    iron__verdict verdict = iron__target_init(&target, text);

    if (!verdict.kind)
        verdict = iron__target_match(&target, table, method, &match);
    if (!verdict.kind && match.route)
        verdict = iron__target_check_query(&target, match.route->query);
    if (verdict.kind)
        FUZZ_REQUIRE(verdict.help && verdict.detail[0]);
    if (!verdict.kind && match.route) {
        require_good(&target);
        require_same_again(&target, &match);
    }
    iron__target_deinit(&target);
    free(text);
    return 0;
}
