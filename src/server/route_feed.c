/* SPDX-License-Identifier: MIT */
/*
 * route_feed.c: POST /v1/engines/{name}/feed. The store does the work (iron__feed_*); here the
 * request is read, and the outcome becomes a response. Nothing of the body is kept here.
 */
#include "server/server_internal.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct feed_state {
    iron__feed_request request;
    iron__store_engine *kept;
    iron__feed *feed;
} feed_state;

#define DTYPES "one of u8, u16, u32, i32, i64"

static void respond_fed(iron__request *req, const iron__feed_answer *fed, bool is_repeated) {
    iron_json_writer *j;

    if (is_repeated)
        iron__response_header(req, "Idempotency-Replayed", "true");
    j = iron__response_json(req);
    iron_json_number(j, "tokens", fed->tokens);
    iron_json_number(j, "batches", fed->batches);
    iron__write_sums(j, fed->xors, fed->sum);
    iron_json_hex(j, "state", fed->state, 16);
    iron_json_text(j, "seal", fed->seal);
    iron_json_open(j, "fed", '{');
    iron_json_number(j, "tokens", fed->fed_tokens);
    iron_json_number(j, "batches", fed->fed_batches);
    iron_json_close(j, '}');
    iron_json_bool(j, "repeated", is_repeated);
    iron__response_json_end(req, 200);
}

static void respond_position(iron__request *req, const iron__feed_request *request,
                             uint64_t position) {
    char detail[120], help[200];

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
    req->problem_member = "position";
    req->problem_number = position;
    iron__response_problem(req, "position-mismatch", help, "%s", detail);
}

/* The kind decides Retry-After. */
static void respond_later(iron__request *req, const char *kind, const char *detail) {
    iron__response_problem(req, kind, "Nothing was fed. Send it again a little later.", "%s",
                           detail);
}

/* The request itself is wrong. */
static void respond_refused(iron__request *req, iron__feed_outcome outcome,
                            const iron__feed_request *request, const iron_error *err) {
    const char *dtype = iron_dtype_name(request->dtype);
    bool says_why = err->text[0] != '\0';

    if (outcome == IRON_FEED_KEY_REUSED)
        iron__response_problem(
            req, "key-reused", "Nothing was fed. Use a new Idempotency-Key for each body.",
            "the key %s was used with other content", request->key ? request->key : "");
    else if (outcome == IRON_FEED_RAGGED)
        iron__response_problem(req, "ragged-body",
                               "Nothing was fed. Send whole tokens, and say how they are stored: "
                               "?dtype= " DTYPES ".",
                               says_why ? "%s" : "the body is not a whole number of %s tokens",
                               says_why ? err->text : dtype);
    else if (outcome == IRON_FEED_BAD_TOKEN)
        iron__response_problem(req, "bad-token-value",
                               "Nothing was fed. Tokens are 0 to 4294967295; check ?dtype=.",
                               says_why ? "%s" : "a value of the body is not a token (%s)",
                               says_why ? err->text : dtype);
    else
        iron__response_problem(req, "no-such-engine",
                               "Nothing was fed. The engine no longer exists.",
                               "%s was deleted while this body arrived", req->variable);
}

static void respond(iron__request *req, iron__feed_outcome outcome, const iron__feed_answer *fed,
                    const iron_error *err) {
    const feed_state *f = req->own;

    switch (outcome) {
    case IRON_FEED_DONE:
        respond_fed(req, fed, false);
        break;
    case IRON_FEED_REPEATED:
        respond_fed(req, fed, true);
        break;
    case IRON_FEED_POSITION:
        respond_position(req, &f->request, fed->position);
        break;
    case IRON_FEED_BUSY:
        respond_later(req, "busy", "as many large bodies are arriving as the server accepts");
        break;
    case IRON_FEED_STOPPING:
        respond_later(req, "stopping", "the server is stopping");
        break;
    case IRON_FEED_READ_ONLY:
        iron__response_problem(
            req, "read-only",
            "It was not acknowledged. The operator must repair the data directory "
            "and restart the server; then ask for the engine's position: the body "
            "was fed as a whole, or not at all.",
            "%s", err->text[0] ? err->text : "a write has failed");
        break;
    case IRON_FEED_FAILED:
        iron__route_failure(req, err);
        break;
    default:
        respond_refused(req, outcome, &f->request, err);
    }
}

static bool check_type(iron__request *req) {
    const char *type = iron__request_header(req, "Content-Type");

    if (!type || iron__text_is_type(iron__text_of(type), "application/octet-stream") ||
        iron__text_is_type(iron__text_of(type), "application/x-www-form-urlencoded"))
        return true;
    iron__response_problem(req, "unsupported-type",
                           "Send the tokens' bytes as application/octet-stream, or without "
                           "Content-Type.",
                           "the body's type is '%.80s'", type);
    return false;
}

static bool check_key(iron__request *req, const char *key) {
    size_t length = 0;

    while (key && key[length] > ' ' && key[length] <= '~' && length <= IRON_FEED_KEY_MAX)
        length++;
    if (!key || (length > 0 && length <= IRON_FEED_KEY_MAX && key[length] == '\0'))
        return true;
    iron__response_problem(req, "bad-key", "Use 1 to 255 visible ASCII characters, without blanks.",
                           "the Idempotency-Key has a character that is not visible ASCII, or its "
                           "length of %zu is not 1 to %u",
                           strlen(key), IRON_FEED_KEY_MAX);
    return false;
}

static bool read_request(iron__request *req, iron__feed_request *request) {
    const char *dtype = iron__request_query(req, "dtype");

    *request = (iron__feed_request){.dtype = IRON_DTYPE_U32,
                                    .has_at = iron__request_query(req, "at") != NULL,
                                    .key = iron__request_header(req, "Idempotency-Key"),
                                    .expected_bytes = req->expected_bytes};
    if (!check_type(req) || !check_key(req, request->key) ||
        !iron__route_number(req, "at", 0, UINT64_MAX, &request->at))
        return false;
    if (!dtype || iron_dtype_parse(dtype, &request->dtype, NULL) == IRON_OK)
        return true;
    iron__response_problem(req, "bad-query", "?dtype= says how tokens are stored, little-endian.",
                           "dtype is '%.40s'; it must be " DTYPES, dtype);
    return false;
}

static void feed_begin(iron__request *req) {
    feed_state *f = req->own = calloc(1, sizeof *f);
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed_outcome outcome;

    if (!f) {
        iron__route_failure(req, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a feed"});
        return;
    }
    if (!read_request(req, &f->request) || !(f->kept = iron__route_engine(req, req->variable)))
        return;
    outcome = iron__feed_begin(f->kept, &f->request, &f->feed, &fed, &err);
    if (outcome != IRON_FEED_DONE)
        respond(req, outcome, &fed, &err);
}

static void feed_take(iron__request *req, const void *bytes, size_t count) {
    feed_state *f = req->own;
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed_outcome outcome = iron__feed_take(f->feed, bytes, count, &fed, &err);

    if (outcome == IRON_FEED_DONE)
        return;
    respond(req, outcome, &fed, &err);
    iron__feed_abandon(f->feed); /* its place is free for others while the rest is discarded */
    f->feed = NULL;
}

static void feed_end(iron__request *req) {
    feed_state *f = req->own;
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed *feed = f->feed;

    f->feed = NULL; /* iron__feed_end takes it */
    respond(req, iron__feed_end(feed, &fed, &err), &fed, &err);
}

static void feed_drop(iron__request *req) {
    feed_state *f = req->own;

    if (!f)
        return;
    iron__feed_abandon(f->feed);
    iron__store_engine_release(f->kept);
    free(f);
    req->own = NULL;
}

const iron__route iron__route_feed = {.method = "POST",
                                      .pattern = "/v1/engines/{name}/feed",
                                      .query = "dtype at",
                                      .role = IRON_ROLE_FEED,
                                      .body = IRON_BODY_STREAM,
                                      .begin = feed_begin,
                                      .take = feed_take,
                                      .end = feed_end,
                                      .drop = feed_drop};
