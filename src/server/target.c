/* SPDX-License-Identifier: MIT */
/*
 * target.c: see target.h. What is decoded is decoded once, in place, and must be UTF-8 without
 * zeros; `+` is itself, as in paths. Literal parts of a path are compared as they were sent: there
 * is one way to write each of them.
 */
#include "server/target.h"

#include "core/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_QUERY "see /openapi.json for the parameters of this path"
#define HELP_CODE  "percent-encode with two hexadecimal digits, UTF-8, and no zero byte"

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place; false for a bad escape, a zero byte, or what is no UTF-8 then. */
static bool decode(char *text) {
    char *to = text;

    for (const char *from = text; *from; from++) {
        char c = *from;

        if (c == '%') {
            int high = digit(from[1]), low = high < 0 ? -1 : digit(from[2]);

            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high * 16 + low);
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return iron__json_is_text(text);
}

static iron__verdict bad_query(const char *detail) {
    return iron__verdict_make("bad-query", HELP_QUERY, "%s", detail);
}

const char *iron__target_query(const iron__target *target, const char *name) {
    for (uint32_t k = 0; k < target->pair_count; k++)
        if (strcmp(target->pairs[k].name, name) == 0)
            return target->pairs[k].value;
    return NULL;
}

static iron__verdict take_pair(iron__target *target, char *pair) {
    char *equals = strchr(pair, '=');

    if (!equals || equals == pair)
        return bad_query("a parameter is not written name=value");
    *equals = '\0';
    if (!decode(pair) || !decode(equals + 1))
        return iron__verdict_make("bad-query", HELP_CODE, "a parameter is not encoded right");
    if (iron__target_query(target, pair))
        return iron__verdict_make("bad-query", "give each parameter once",
                                  "the parameter '%.60s' stands twice", pair);
    if (target->pair_count == IRON_QUERY_MAX)
        return bad_query("there are too many parameters");
    target->pairs[target->pair_count++] = (iron__query_pair){pair, equals + 1};
    return iron__verdict_fine();
}

static iron__verdict take_query(iron__target *target, char *query) {
    iron__verdict verdict = iron__verdict_fine();

    while (query && !verdict.kind) {
        char *next = strchr(query, '&');

        if (next)
            *next++ = '\0';
        verdict = take_pair(target, query);
        query = next;
    }
    return verdict;
}

iron__verdict iron__target_init(iron__target *target, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *query;

    memset(target, 0, sizeof *target);
    target->variable = "";
    target->path = "";
    target->room = malloc(2 * bytes); /* the second half is the spare one */
    if (!target->room)
        return iron__verdict_make("internal", "try again later", "there is no memory left");
    memcpy(target->room, text, bytes);
    target->path = target->room;
    target->spare = target->room + bytes;
    query = strchr(target->room, '?');
    if (!query)
        return iron__verdict_fine();
    *query++ = '\0';
    return *query ? take_query(target, query) : iron__verdict_fine();
}

void iron__target_deinit(iron__target *target) {
    free(target->room);
    memset(target, 0, sizeof *target);
}

/* Does the path have the pattern's form? Then *variable is what stands for {...}, as sent. */
static bool has_form(const char *path, const char *pattern, iron__text *variable) {
    *variable = (iron__text){NULL, 0};
    while (*pattern) {
        if (*pattern == '{') {
            *variable = (iron__text){path, strcspn(path, "/")};
            path += variable->bytes;
            pattern = strchr(pattern, '}') + 1;
            if (variable->bytes == 0)
                return false;
        } else if (*path++ != *pattern++) {
            return false;
        }
    }
    return *path == '\0';
}

/* The method that a row answers to; HEAD is GET without its body. */
static bool takes(const iron__route *route, const char *method) {
    return strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

static void note_method(iron__match *match, const iron__route *route) {
    size_t used = strlen(match->allow);

    snprintf(match->allow + used, sizeof match->allow - used, "%s%s%s", used ? ", " : "",
             route->method, strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
}

/* What stands for {...} may hold an escaped anything but a slash: `a%2Fb` would be another path. */
static iron__verdict take_variable(iron__target *target, iron__text variable) {
    if (!variable.at)
        return iron__verdict_fine();
    memcpy(target->spare, variable.at, variable.bytes);
    target->spare[variable.bytes] = '\0';
    if (!decode(target->spare) || strchr(target->spare, '/'))
        return iron__verdict_make("malformed-request", HELP_CODE, "the path is not encoded right");
    target->variable = target->spare;
    return iron__verdict_fine();
}

iron__verdict iron__target_match(iron__target *target, const iron__route *table, const char *method,
                                 iron__match *match) {
    iron__text variable, found = {NULL, 0};

    memset(match, 0, sizeof *match);
    for (const iron__route *route = table; route->method; route++) {
        if (!has_form(target->path, route->pattern, &variable))
            continue;
        if (!match->is_path_known)
            match->is_open = route->is_open;
        match->is_path_known = true;
        note_method(match, route);
        if (!match->route && takes(route, method)) {
            match->route = route;
            found = variable;
        }
    }
    return match->route ? take_variable(target, found) : iron__verdict_fine();
}

/* Is `name` one of the words? */
static bool is_word(const char *words, const char *name) {
    size_t bytes = strlen(name);

    while (words && *words) {
        size_t word = strcspn(words, " ");

        if (word == bytes && memcmp(words, name, bytes) == 0)
            return true;
        words += word;
        words += strspn(words, " ");
    }
    return false;
}

iron__verdict iron__target_check_query(const iron__target *target, const char *names) {
    for (uint32_t k = 0; k < target->pair_count; k++)
        if (!is_word(names, target->pairs[k].name))
            return iron__verdict_make("bad-query", HELP_QUERY, "there is no parameter '%.60s' here",
                                      target->pairs[k].name);
    return iron__verdict_fine();
}
