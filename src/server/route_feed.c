/* SPDX-License-Identifier: MIT */
/*
 * route_feed.c: POST /v1/engines/{name}/feed. The store does the work (iron__feed_*); here the
 * request is read, and the outcome becomes a response. Nothing of the body is kept here.
 */
#include "server/server_internal.h"

#define KEY_WAIT_NS UINT64_C(30000000000)
#define KEY_STEP_NS 5000000
#define SMALL_BODY  ((uint64_t)64 << 10) /* smaller ones are queued by the store */

typedef struct feed_state {
    struct feed_state *next; /* of the feeds with a key */
    const char *engine;
    char key[IRON_FEED_KEY_MAX + 1];
    bool is_keyed; /* it is in that list */
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

static void respond(iron__request *req, iron__feed_outcome outcome, const iron__feed_answer *fed,
                    const iron_error *err) {
    const feed_state *f = req->own;
    const char *dtype = iron_dtype_name(f->request.dtype);
    bool says_why = err->text[0] != '\0';

    switch (outcome) {
    case IRON_FEED_DONE:
    case IRON_FEED_REPEATED:
        respond_fed(req, fed, outcome == IRON_FEED_REPEATED);
        break;
    case IRON_FEED_POSITION:
        respond_position(req, &f->request, fed->position);
        break;
    case IRON_FEED_BUSY:
    case IRON_FEED_STOPPING:
        iron__response_problem(req, outcome == IRON_FEED_BUSY ? "busy" : "stopping",
                               "Nothing was fed. Send it again a little later.",
                               outcome == IRON_FEED_BUSY
                                   ? "as many large bodies are arriving as the server accepts"
                                   : "the server is stopping");
        break;
    case IRON_FEED_READ_ONLY:
        iron__response_problem(
            req, "read-only",
            "It was not acknowledged. The operator must repair the data directory "
            "and restart the server; then ask for the engine's position: the body "
            "was fed as a whole, or not at all.",
            "%s", says_why ? err->text : "a write has failed");
        break;
    case IRON_FEED_FULL:
        iron__response_problem(req, "disk-full", IRON_FULL_HELP, "%s", err->text);
        break;
    case IRON_FEED_FAILED:
        iron__route_failure(req, err);
        break;
    case IRON_FEED_KEY_REUSED:
        iron__response_problem(req, "key-reused",
                               "Nothing was fed. Use a new Idempotency-Key for each body.",
                               "the key %s was used with other content", f->key);
        break;
    case IRON_FEED_RAGGED:
        iron__response_problem(req, "ragged-body",
                               "Nothing was fed. Send whole tokens, and say how they are stored: "
                               "?dtype= " DTYPES ".",
                               says_why ? "%s" : "the body is not a whole number of %s tokens",
                               says_why ? err->text : dtype);
        break;
    case IRON_FEED_BAD_TOKEN:
        iron__response_problem(req, "bad-token-value",
                               "Nothing was fed. Tokens are 0 to 4294967295; check ?dtype=.",
                               says_why ? "%s" : "a value of the body is not a token (%s)",
                               says_why ? err->text : dtype);
        break;
    case IRON_FEED_GONE:
        iron__response_problem(req, "no-such-engine",
                               "Nothing was fed. The engine no longer exists.",
                               "%s was deleted while this body arrived", req->variable);
    }
}

/* Reads Idempotency-Key: a structured field's string (RFC 8941), whose parameters mean nothing, or
 * visible characters without quotes. */
static bool read_key(iron__text text, char key[IRON_FEED_KEY_MAX + 1]) {
    const char *at = text.at, *end = at + text.bytes;
    bool is_quoted = at < end && *at == '"';
    size_t count = 0;

    for (at += is_quoted; at < end && !(is_quoted && *at == '"'); at++) {
        if (is_quoted && *at == '\\' && ++at < end && *at != '"' && *at != '\\')
            return false;
        if (at == end || *at < (is_quoted ? ' ' : '!') || *at > '~' || count == IRON_FEED_KEY_MAX)
            return false;
        key[count++] = *at;
    }
    key[count] = '\0';
    if (is_quoted && at++ == end)
        return false;
    return count > 0 && (at == end || *at == ';');
}

/* Keys in use
 *
 * A large body is reduced while it arrives, so of two with one key that arrive together the second
 * would find the engine elsewhere at its end. It waits for the first one instead, and then repeats
 * its answer. */

/* False: it takes too long, and the response is given. */
static bool take_key(iron__request *req, feed_state *f) {
    iron_server *server = req->server;
    uint64_t until_ns = server->now_ns() + KEY_WAIT_NS;

    f->engine = req->variable;
    while (!f->is_keyed && server->now_ns() < until_ns && !atomic_load(&server->is_stopping)) {
        const feed_state *other;

        pthread_mutex_lock(&server->keys_lock);
        for (other = server->keyed; other; other = other->next)
            if (strcmp(other->key, f->key) == 0 && strcmp(other->engine, f->engine) == 0)
                break;
        if (!other) {
            f->is_keyed = true;
            f->next = server->keyed;
            server->keyed = f;
        }
        pthread_mutex_unlock(&server->keys_lock);
        if (other)
            nanosleep(&(struct timespec){.tv_nsec = KEY_STEP_NS}, NULL);
    }
    if (!f->is_keyed)
        iron__response_problem(req, "key-in-use",
                               "Nothing was fed by this request. Send it again a little later.",
                               "another request with the key %s is still in progress", f->key);
    return f->is_keyed;
}

static void release_key(iron_server *server, feed_state *f) {
    feed_state **link = &server->keyed;

    if (!f->is_keyed)
        return;
    pthread_mutex_lock(&server->keys_lock);
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    pthread_mutex_unlock(&server->keys_lock);
    f->is_keyed = false;
}

static bool read_request(iron__request *req, feed_state *f) {
    iron__feed_request *request = &f->request;
    const char *dtype = iron__request_query(req, "dtype");
    iron__text type = iron__request_header(req, "Content-Type");
    iron__text key = iron__request_header(req, "Idempotency-Key");

    *request = (iron__feed_request){.dtype = IRON_DTYPE_U32,
                                    .has_at = iron__request_query(req, "at") != NULL,
                                    .expected_bytes = req->expected_bytes,
                                    .key = key.at ? f->key : NULL};
    if (type.at && !iron__text_is_type(type, "application/octet-stream") &&
        !iron__text_is_type(type, "application/x-www-form-urlencoded"))
        iron__response_problem(req, "unsupported-type",
                               "Send the tokens' bytes as application/octet-stream, or without "
                               "Content-Type.",
                               "the body's type is '%.*s'", type.bytes < 80 ? (int)type.bytes : 80,
                               type.at);
    else if (key.at && !read_key(key, f->key))
        iron__response_problem(req, "bad-key",
                               "Send a string of 1 to 255 ASCII characters in quotes.",
                               "the Idempotency-Key is not a string, is empty or too long");
    else if (iron__route_number(req, "at", 0, UINT64_MAX, &request->at) && dtype &&
             iron_dtype_parse(dtype, &request->dtype, NULL) != IRON_OK)
        iron__response_problem(req, "bad-query",
                               "?dtype= says how tokens are stored, little-endian.",
                               "dtype is '%.40s'; it must be " DTYPES, dtype);
    return !req->is_answered;
}

static void feed_begin(iron__request *req) {
    feed_state *f = req->own = calloc(1, sizeof *f);
    iron__feed_answer fed = {0};
    iron_error err = {0};
    iron__feed_outcome outcome;

    if (!f) {
        iron__route_no_memory(req, "a feed");
        return;
    }
    if (!read_request(req, f) || !(f->kept = iron__route_engine(req, req->variable)) ||
        (f->request.key && req->expected_bytes > SMALL_BODY && !take_key(req, f)))
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
    release_key(req->server, f);
}

static void feed_drop(iron__request *req) {
    feed_state *f = req->own;

    if (!f)
        return;
    iron__feed_abandon(f->feed);
    release_key(req->server, f);
    iron__store_engine_release(f->kept);
    free(f);
    req->own = NULL;
}

IRON_ROUTE(feed, "POST", "/v1/engines/{name}/feed", .query = "dtype at", .role = IRON_ROLE_FEED,
           .body = IRON_BODY_STREAM, .begin = feed_begin, .take = feed_take, .end = feed_end,
           .drop = feed_drop);
