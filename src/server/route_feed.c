/* SPDX-License-Identifier: MIT */
/*
 * route_feed.c: POST /v1/engines/{name}/feed. The body goes to the store as it comes; the answer is
 * given when the store says that it is durable, or why it was refused. Nothing of the body is kept
 * here.
 */
#include "server/route.h"
#include "server/route_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct feeding {
    iron__feed_request request;
    iron__kept *kept;
    iron__feed *feed;
} feeding;

#define KINDS_OF_TOKENS "one of u8, u16, u32, i32, i64"

static void answer_fed(iron__exchange *x, const iron__feed_answer *answer, bool is_repeated) {
    iron__json_writer *j;

    if (is_repeated)
        iron__answer_header(x, "Idempotency-Replayed", "true");
    j = iron__answer_json(x);
    iron__json_write_open(j, NULL, '{');
    iron__write_stand(j, &(iron__stand_text){.tokens = answer->tokens,
                                             .batches = answer->batches,
                                             .sum = answer->sum,
                                             .state = answer->state,
                                             .xors = answer->xors,
                                             .seal = answer->seal});
    iron__json_write_open(j, "fed", '{');
    iron__json_write_whole(j, "tokens", answer->fed_tokens);
    iron__json_write_whole(j, "batches", answer->fed_batches);
    iron__json_write_close(j, '}');
    iron__json_write_bool(j, "repeated", is_repeated);
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 200);
}

static void answer_position(iron__exchange *x, const iron__feed_request *request,
                            uint64_t position) {
    char detail[120], help[200];
    iron__json_writer *j;

    if (request->has_at && request->at != position)
        snprintf(detail, sizeof detail, "at is %" PRIu64 ", but the engine is at %" PRIu64,
                 request->at, position);
    else
        snprintf(detail, sizeof detail,
                 "another feed was faster than this body: the engine is at %" PRIu64, position);
    snprintf(help, sizeof help,
             "Nothing was fed. Send what follows the first %" PRIu64 " tokens of the stream, with "
             "?at=%" PRIu64 "; iron push does so by itself.",
             position, position);
    j = iron__answer_problem_begin(x, "position-mismatch", help, detail);
    iron__json_write_whole(j, "position", position);
    iron__answer_problem_end(x);
}

/* When to try again the core says, by the kind. */
static void answer_later(iron__exchange *x, const char *kind, const char *detail) {
    iron__answer_problem(x, kind, "Nothing was fed. Send it again a little later.", "%s", detail);
}

/* What is wrong with the request itself. */
static void answer_refused(iron__exchange *x, iron__feed_outcome outcome,
                           const iron__feed_request *request, const iron_error *err) {
    const char *dtype = iron_dtype_name(request->dtype);
    bool says_why = err->text[0] != '\0';

    if (outcome == IRON_FEED_KEY_REUSED)
        iron__answer_problem(
            x, "key-reused", "Nothing was fed. Use a new Idempotency-Key for each body.",
            "the key %s was used with other content", request->key ? request->key : "");
    else if (outcome == IRON_FEED_RAGGED)
        iron__answer_problem(x, "ragged-body",
                             "Nothing was fed. Send whole tokens, and say how they are stored: "
                             "?dtype= " KINDS_OF_TOKENS ".",
                             says_why ? "%s" : "the body is no whole number of %s tokens",
                             says_why ? err->text : dtype);
    else if (outcome == IRON_FEED_BAD_TOKEN)
        iron__answer_problem(
            x, "bad-token-value", "Nothing was fed. Tokens are 0 to 4294967295; check ?dtype=.",
            says_why ? "%s" : "a value of the body is no token (%s)", says_why ? err->text : dtype);
    else
        iron__answer_problem(x, "no-such-engine", "Nothing was fed. The engine is no more.",
                             "%s was deleted while this body was on its way", x->variable);
}

static void answer(iron__exchange *x, iron__feed_outcome outcome, const iron__feed_answer *fed,
                   const iron_error *err) {
    const feeding *f = x->own;

    switch (outcome) {
    case IRON_FEED_DONE:
        answer_fed(x, fed, false);
        break;
    case IRON_FEED_REPEATED:
        answer_fed(x, fed, true);
        break;
    case IRON_FEED_POSITION:
        answer_position(x, &f->request, fed->position);
        break;
    case IRON_FEED_BUSY:
        answer_later(x, "busy", "as many large bodies are on their way as the server takes");
        break;
    case IRON_FEED_STOPPING:
        answer_later(x, "stopping", "the server is being stopped");
        break;
    case IRON_FEED_READ_ONLY:
        iron__answer_problem(x, "read-only",
                             "It was not acknowledged. The operator must see to the data directory "
                             "and start the server again; then ask for the engine's position: the "
                             "body is there as a whole, or not at all.",
                             "%s", err->text[0] ? err->text : "a write has failed");
        break;
    case IRON_FEED_FAILED:
        iron__route_failure(x, err);
        break;
    default:
        answer_refused(x, outcome, &f->request, err);
    }
}

static bool type_is_taken(iron__exchange *x) {
    const char *type = iron__exchange_header(x, "Content-Type");
    size_t length = type ? strcspn(type, "; \t") : 0;

    if (!type || (length == 24 && strncasecmp(type, "application/octet-stream", 24) == 0) ||
        (length == 33 && strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0))
        return true;
    iron__answer_problem(x, "unsupported-type",
                         "Send the tokens' bytes as application/octet-stream, or without "
                         "Content-Type.",
                         "the body's type is '%.80s'", type);
    return false;
}

static bool key_is_good(iron__exchange *x, const char *key) {
    size_t length = 0;

    while (key && key[length] > ' ' && key[length] <= '~' && length <= IRON_FEED_KEY_MAX)
        length++;
    if (!key || (length > 0 && length <= IRON_FEED_KEY_MAX && key[length] == '\0'))
        return true;
    iron__answer_problem(x, "bad-key", "Use 1 to 255 visible ASCII characters, without blanks.",
                         "the Idempotency-Key has a character that is not visible ASCII, or its "
                         "length of %zu is not 1 to %u",
                         strlen(key), IRON_FEED_KEY_MAX);
    return false;
}

static bool read_request(iron__exchange *x, iron__feed_request *request) {
    const char *dtype = iron__exchange_query(x, "dtype");

    *request = (iron__feed_request){.dtype = IRON_DTYPE_U32,
                                    .has_at = iron__exchange_query(x, "at") != NULL,
                                    .key = iron__exchange_header(x, "Idempotency-Key"),
                                    .expected_bytes = x->expected_bytes};
    if (!type_is_taken(x) || !key_is_good(x, request->key) ||
        !iron__route_number(x, "at", 0, UINT64_MAX, &request->at))
        return false;
    if (!dtype || iron_dtype_parse(dtype, &request->dtype, NULL) == IRON_OK)
        return true;
    iron__answer_problem(x, "bad-query", "?dtype= says how tokens are stored, little-endian.",
                         "dtype is '%.40s'; it must be " KINDS_OF_TOKENS, dtype);
    return false;
}

void iron__route_feed_begin(iron__exchange *x) {
    feeding *f = x->own = calloc(1, sizeof *f);
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed_outcome outcome;

    if (!f) {
        iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a feed"});
        return;
    }
    if (!read_request(x, &f->request) || !(f->kept = iron__route_engine(x, x->variable)))
        return;
    outcome = iron__feed_begin(f->kept, &f->request, &f->feed, &fed, &err);
    if (outcome != IRON_FEED_DONE)
        answer(x, outcome, &fed, &err);
}

void iron__route_feed_take(iron__exchange *x, const void *bytes, size_t count) {
    feeding *f = x->own;
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed_outcome outcome = iron__feed_take(f->feed, bytes, count, &fed, &err);

    if (outcome == IRON_FEED_DONE)
        return;
    answer(x, outcome, &fed, &err);
    iron__feed_abandon(f->feed); /* its place is for others while the rest is swallowed */
    f->feed = NULL;
}

void iron__route_feed_end(iron__exchange *x) {
    feeding *f = x->own;
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed *feed = f->feed;

    f->feed = NULL; /* taken */
    answer(x, iron__feed_end(feed, &fed, &err), &fed, &err);
}

void iron__route_feed_drop(iron__exchange *x) {
    feeding *f = x->own;

    if (!f)
        return;
    iron__feed_abandon(f->feed);
    iron__kept_release(f->kept);
    free(f);
    x->own = NULL;
}
