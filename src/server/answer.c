/* SPDX-License-Identifier: MIT */
/*
 * answer.c: how an answer is put together; see exchange.h. Nothing is sent here (deliver.c): an
 * answer that is given too early for the library waits in the talk.
 */
#include "server/talk.h"
#include "server/wire.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char no_memory[] = "{\n  \"type\": \"urn:iron:problem:internal\",\n"
                                "  \"title\": \"Something failed here\",\n  \"status\": 500,\n"
                                "  \"detail\": \"there is no memory left\",\n"
                                "  \"help\": \"Try again a little later.\"\n}\n";

static iron__answer *answer_of(iron__exchange *x) { return &iron__talk_of(x)->answer; }

/* Takes the first answer; a second one is a route's mistake, which nobody but the log hears of. */
static bool give(iron__exchange *x, iron__answer_kind kind, unsigned status, const char *type) {
    iron__answer *answer = answer_of(x);

    if (x->is_answered) {
        iron__note(x->site->log, "request %016llx: a second answer was dropped",
                   (unsigned long long)x->id);
        return false;
    }
    x->is_answered = true;
    answer->kind = kind;
    answer->status = status;
    answer->type = type;
    return true;
}

void iron__answer_header(iron__exchange *x, const char *name, const char *value) {
    iron__answer *answer = answer_of(x);
    char *a = strdup(name), *b = strdup(value);

    if (!a || !b || answer->header_count == IRON_ANSWER_HEADERS_MAX) {
        iron__note(x->site->log, "request %016llx: no room for the header %s",
                   (unsigned long long)x->id, name);
        free(a);
        free(b);
        return;
    }
    answer->headers[answer->header_count].name = a;
    answer->headers[answer->header_count++].value = b;
}

void iron__answer_bytes(iron__exchange *x, unsigned status, const char *type, void *bytes,
                        size_t count) {
    if (!give(x, IRON_ANSWER_OWNED, status, type)) {
        free(bytes);
        return;
    }
    answer_of(x)->bytes = bytes;
    answer_of(x)->count = count;
}

void iron__answer_fixed(iron__exchange *x, unsigned status, const char *type, const void *bytes,
                        size_t count) {
    if (!give(x, IRON_ANSWER_FIXED, status, type))
        return;
    answer_of(x)->bytes = (void *)(uintptr_t)bytes; /* is only read */
    answer_of(x)->count = count;
}

void iron__answer_empty(iron__exchange *x, unsigned status) {
    (void)give(x, IRON_ANSWER_EMPTY, status, NULL);
}

void iron__answer_stream(iron__exchange *x, unsigned status, const char *type,
                         iron__stream_read read, void (*done)(void *context), void *context) {
    if (!give(x, IRON_ANSWER_STREAM, status, type)) {
        done(context);
        return;
    }
    answer_of(x)->read = read;
    answer_of(x)->done = done;
    answer_of(x)->context = context;
}

iron__json_writer *iron__answer_json(iron__exchange *x) {
    iron__answer *answer = answer_of(x);
    FILE *to = open_memstream(&answer->text, &answer->text_bytes);

    /* Without memory the document goes nowhere, and its end is a 500. */
    answer->json = (iron__json_writer){.to = to ? to : iron__talk_of(x)->server->nowhere};
    return &answer->json;
}

/* Closes the document and gives it as the answer; problem: NULL if it is none. */
static void finish(iron__exchange *x, unsigned status, const char *type,
                   const iron__problem *problem) {
    iron__answer *answer = answer_of(x);
    bool is_whole = answer->json.to != iron__talk_of(x)->server->nowhere;

    iron__json_write_end(&answer->json);
    if (is_whole) {
        is_whole = !ferror(answer->json.to);
        is_whole = fclose(answer->json.to) == 0 && is_whole;
    }
    answer->json.to = NULL;
    if (!x->is_answered)
        answer->told = is_whole ? problem : iron__problem_find("internal");
    if (!is_whole) {
        free(answer->text);
        answer->text = NULL;
        iron__answer_fixed(x, 500, "application/problem+json", no_memory, sizeof no_memory - 1);
        return;
    }
    iron__answer_bytes(x, status, type, answer->text, answer->text_bytes);
    answer->text = NULL;
}

void iron__answer_json_end(iron__exchange *x, unsigned status) {
    finish(x, status, "application/json", NULL);
}

iron__json_writer *iron__answer_problem_begin(iron__exchange *x, const char *kind, const char *help,
                                              const char *detail) {
    iron__answer *answer = answer_of(x);
    const char *after = iron__problem_retry_after(kind);

    answer->problem = iron__problem_find(kind);
    if (!answer->problem)
        answer->problem = iron__problem_find("internal");
    if (after)
        iron__answer_header(x, "Retry-After", after);
    if (answer->problem->status == 401)
        iron__answer_header(x, "WWW-Authenticate", "Bearer");
    iron__problem_open(iron__answer_json(x), answer->problem, help, detail, x->id);
    return &answer->json;
}

void iron__answer_problem_end(iron__exchange *x) {
    const iron__problem *problem = answer_of(x)->problem;

    iron__json_write_close(&answer_of(x)->json, '}');
    finish(x, problem->status, "application/problem+json", problem);
}

void iron__answer_problem(iron__exchange *x, const char *kind, const char *help, const char *detail,
                          ...) {
    char text[400];
    va_list values;

    va_start(values, detail);
    vsnprintf(text, sizeof text, detail, values);
    va_end(values);
    (void)iron__answer_problem_begin(x, kind, help, text);
    iron__answer_problem_end(x);
}

void iron__answer_verdict(iron__exchange *x, const iron__verdict *verdict) {
    iron__answer_problem(x, verdict->kind, verdict->help, "%s", verdict->detail);
}

void iron__answer_free(iron__answer *answer) {
    if (answer->kind == IRON_ANSWER_OWNED)
        free(answer->bytes);
    if (answer->kind == IRON_ANSWER_STREAM)
        answer->done(answer->context);
    for (uint32_t k = 0; k < answer->header_count; k++) {
        free(answer->headers[k].name);
        free(answer->headers[k].value);
    }
    answer->kind = IRON_ANSWER_NONE;
    answer->header_count = 0;
}
