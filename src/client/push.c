/* SPDX-License-Identifier: MIT */
/*
 * push.c: iron_push: sends a file to an engine on a server, piece by piece, so that every token is
 * fed exactly once, also after lost connections and restarts; and iron_push_ledger, at the end.
 *
 * A piece is sent with the position where it belongs (`at`), so the server takes it there or not at
 * all: sending it again can never feed it twice. The engine's position is the truth: it is read at
 * the beginning, and whenever it is not known whether a piece was taken.
 *
 *     send a piece -- taken ------------------------------> the next piece
 *          ^  `- unknown, or try later: pause, read the engine -.
 *          |                                                    v
 *          `-- at the piece's beginning -- where is the engine? -- at its end: check whose tokens
 *                                          |                       it holds --> the next piece
 *                                          `- elsewhere: another client feeds it: give up
 *
 * The parts in order: the address, responses, the request's body, HTTP, the seal of a prefix, what
 * to do after a response, and the push itself. Decisions are functions of a response alone, without
 * network or clock.
 */
#include "core/clock.h"
#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/seal.h"
#include "core/sha256.h"
#include "formats/dtype.h"
#include "formats/source.h"
#include "io/http.h"
#include "ledger/ledger_internal.h"

#include <iron/iron_digest.h>
#include <iron/iron_server.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The address of an engine: http://HOST[:PORT]/v1/engines/NAME[/feed], or of a run:
 * http://HOST[:PORT]/v1/runs/NAME[/steps]
 *
 * No user, no query, no percent signs: an engine's name needs none, and an address that could be
 * decoded twice, or read by the server as another path, cannot be written. Anything else is refused
 * before a request is sent. */

#define URL_BYTES  512u
#define NAME_BYTES 65u
#define ENGINES    "/v1/engines/"
#define RUNS       "/v1/runs/"
#define DIGITS     "0123456789"
#define LETTERS    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

typedef struct engine_url {
    char engine[URL_BYTES]; /* or run; without /feed or /steps */
    char name[NAME_BYTES];
    bool is_loopback; /* this machine, by definition: no proxy is used */
} engine_url;

/* A host is a name, an IPv4 address, or an IPv6 address in brackets; an engine's name as in the
 * server. Letters are listed, since ranges depend on the locale. */
#define URL_PATTERN                                                                                \
    "^([Hh][Tt][Tt][Pp][Ss]?://(\\[[" DIGITS "abcdefABCDEF:.]+]|[" LETTERS DIGITS "._-]+)"         \
    "(:([" DIGITS "]+))?%s([" LETTERS DIGITS "][" LETTERS DIGITS "._-]*))(%s)?$"

enum { PART_ENGINE = 1, PART_HOST, PART_PORT = 4, PART_NAME, PARTS };

static bool split_url(const char *text, const char *folder, const char *last, engine_url *url) {
    regmatch_t at[PARTS];
    regex_t pattern;
    char host[URL_BYTES], all[512];
    unsigned long port = 1;
    bool is_url;

    snprintf(all, sizeof all, URL_PATTERN, folder, last);
    if (regcomp(&pattern, all, REG_EXTENDED) != 0) /* no memory */
        return false;
    is_url = regexec(&pattern, text, PARTS, at, 0) == 0;
    regfree(&pattern);
    if (is_url && at[PART_PORT].rm_so >= 0)
        port = strtoul(text + at[PART_PORT].rm_so, NULL, 10);
    if (!is_url || port < 1 || port > 65535 || at[PART_ENGINE].rm_eo >= (int)URL_BYTES ||
        at[PART_NAME].rm_eo - at[PART_NAME].rm_so >= (int)NAME_BYTES)
        return false;
    memcpy(url->engine, text, (size_t)at[PART_ENGINE].rm_eo);
    memcpy(url->name, text + at[PART_NAME].rm_so,
           (size_t)(at[PART_NAME].rm_eo - at[PART_NAME].rm_so));
    snprintf(host, sizeof host, "%.*s", at[PART_HOST].rm_eo - at[PART_HOST].rm_so,
             text + at[PART_HOST].rm_so);
    url->is_loopback = strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
                       (strncmp(host, "127.", 4) == 0 && !host[strspn(host, DIGITS ".")]);
    return true;
}

static iron_status parse_url(const char *text, engine_url *url, iron_error *err) {
    *url = (engine_url){0};
    IRON_FAIL_IF(!split_url(text, ENGINES, "/feed", url), err, IRON_E_ARG,
                 "'%.100s' is not the address of an engine; it looks like "
                 "http://127.0.0.1:8080/v1/engines/NAME (https:// for a server with TLS)",
                 text);
    return IRON_OK;
}

/* Responses. The server is not trusted: every field is checked, and text for the terminal has no
 * control characters. */

#define RESPONSE_BYTES_MAX ((size_t)1 << 20)   /* no expected response is longer */
#define JSON_WHOLE_MAX     (UINT64_C(1) << 53) /* JSON numbers are exact up to here */
#define READ_ONLY          "urn:iron:problem:read-only"

typedef struct engine_state {
    uint64_t tokens, batches, sum, state;
    uint64_t batch; /* tokens per batch; 0: not in the response */
    uint32_t xors;
    char seal[33];
} engine_state;

typedef struct response {
    unsigned status;        /* HTTP status; 0: no complete response */
    bool is_lost;           /* with status 0: the connection failed; it may come back */
    bool has_engine;        /* a 200 with the engine's state */
    bool is_read_only;      /* a 503 that stays until the server is restarted */
    uint64_t retry_after_s; /* 0: it does not say */
    engine_state engine;
    char reason[200]; /* without an engine: why, in one line */
} response;

/* A text of exactly `digits` digits 0-9a-f, or NULL. */
static const char *get_hex(const iron__json *value, size_t digits) {
    const char *text = iron__json_get_text(value);
    bool is_hex = text && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;

    return is_hex ? text : NULL;
}

static bool read_engine(const iron__json *root, engine_state *e) {
    const iron__json *batch = iron__json_member(root, "batch");
    const char *xors = get_hex(iron__json_member(root, "xor"), 8);
    const char *state = get_hex(iron__json_member(root, "state"), 16);
    const char *seal = get_hex(iron__json_member(root, "seal"), 32);
    const char *sum = iron__json_get_text(iron__json_member(root, "sum")); /* decimal */
    double number = 0;
    bool is_complete =
        iron__json_get_whole(iron__json_member(root, "tokens"), JSON_WHOLE_MAX, &e->tokens) &&
        iron__json_get_whole(iron__json_member(root, "batches"), JSON_WHOLE_MAX, &e->batches) &&
        sum && iron__read_digits(&sum, NULL, 10, &e->sum) && !*sum && xors && state && seal;

    if (is_complete) {
        e->xors = (uint32_t)strtoul(xors, NULL, 16);
        e->state = strtoull(state, NULL, 16);
        memcpy(e->seal, seal, sizeof e->seal);
    }
    /* a batch above what is exact in JSON is longer than any file, too */
    if (!iron__json_get_whole(batch, JSON_WHOLE_MAX, &e->batch))
        e->batch = iron__json_get_number(batch, &number) && number > (double)JSON_WHOLE_MAX
                       ? JSON_WHOLE_MAX
                       : 0;
    return is_complete;
}

/* Reads the body of a response, whatever its bytes are. Of a problem (RFC 9457) it makes "There is
 * no engine of this name (404): ...; ..." as far as the problem has that. */
static void read_response(response *r, unsigned status, const char *body, size_t bytes) {
    const iron__json *root = NULL;
    const char *title, *detail, *help, *type;

    *r = (response){.status = status};
    snprintf(r->reason, sizeof r->reason,
             "it answered %u, and not as iron serve does; check the address", status);
    if (iron__json_parse(body, bytes, iron__allocator_default(), &root, NULL) != IRON_OK)
        return;
    if (status == 200) {
        r->has_engine = read_engine(root, &r->engine);
    } else {
        title = iron__json_get_text(iron__json_member(root, "title"));
        detail = iron__json_get_text(iron__json_member(root, "detail"));
        help = iron__json_get_text(iron__json_member(root, "help"));
        type = iron__json_get_text(iron__json_member(root, "type"));
        r->is_read_only = type && strcmp(type, READ_ONLY) == 0;
        if (title)
            snprintf(r->reason, sizeof r->reason, "%.60s (%u)%s%.90s%s%.90s", title, status,
                     detail ? ": " : "", detail ? detail : "", help ? "; " : "", help ? help : "");
        for (char *at = r->reason; *at; at++)
            if ((unsigned char)*at < 0x20 || *at == 0x7F)
                *at = ' ';
    }
    iron__json_destroy(iron__allocator_default(), root);
}

/* The body of a request: a piece of the file, read again from its beginning when the request is
 * sent again. Tokens are read straight into libcurl's buffer: one copy out of the page cache, one
 * into the socket, no extra thread. Files are read, not mapped: a file that is truncated meanwhile
 * would kill the process instead of failing the push. */

typedef struct push_progress {
    iron_progress call; /* or NULL */
    void *context;
    uint64_t begin, total; /* tokens of the file: where pushing began, and how many from there */
} push_progress;

typedef struct request_body {
    iron__parallel_source *at; /* the whole source */
    size_t width;              /* of a token, at most 8 */
    uint64_t first, tokens;
    uint64_t taken; /* bytes */
    const push_progress *progress;
    iron_status status; /* why the body ended early, with its error */
    iron_error error;
} request_body;

/* IRON_E_CANCELLED if the caller wants to stop. */
static iron_status report_progress(const push_progress *p, uint64_t token, iron_error *err) {
    return iron__progress(p->call, p->context, token - p->begin, p->total, err);
}

/* Up to `room` bytes more; 0 at the end, and after a failure: see status. */
static size_t body_take(request_body *b, char *to, size_t room) {
    uint64_t token = b->taken / b->width, left = b->tokens - token;
    size_t skip = (size_t)(b->taken % b->width), count;
    char cut[8];

    if (b->status != IRON_OK || left == 0 || room == 0)
        return 0;
    b->status = report_progress(b->progress, b->first + token, &b->error);
    if (b->status != IRON_OK)
        return 0;
    if (skip == 0 && room >= b->width) { /* whole tokens */
        count = iron__min_size(room / b->width, left);
        b->status = iron__parallel_source_read(b->at, b->first + token, to, count, NULL, &b->error);
        count *= b->width;
    } else { /* part of a token */
        assert(b->width <= sizeof cut);
        count = iron__min_size(b->width - skip, room);
        b->status = iron__parallel_source_read(b->at, b->first + token, cut, 1, NULL, &b->error);
        if (b->status == IRON_OK)
            memcpy(to, cut + skip, count);
    }
    if (b->status != IRON_OK)
        return 0;
    b->taken += count;
    return count;
}

/* HTTP: requests to one engine over one kept-alive connection. Redirects are not followed (the
 * token would be sent to wherever they point), this machine's own addresses are used without a
 * proxy, and "100 Continue" is not waited for. */

#define ASK_SECONDS    30u
#define SILENT_SECONDS 60u /* the server may be syncing */

typedef struct http_client {
    iron__http_connection *connection;
    const engine_url *url;
    const char *ca_file;                           /* or NULL */
    char authorization[IRON_AUTH_TOKEN_SIZE + 32]; /* "": none */
    char *text;                                    /* of the response: RESPONSE_BYTES_MAX */
    size_t bytes;
    request_body *body; /* that is being sent; or NULL, and then these: */
    const unsigned char *piece;
    size_t piece_bytes, piece_sent;
} http_client;

static bool receive(void *context, const iron__http_response *got, const void *data, size_t bytes) {
    http_client *h = context;

    (void)got;
    if (bytes > RESPONSE_BYTES_MAX - h->bytes)
        return false;
    memcpy(h->text + h->bytes, data, bytes);
    h->bytes += bytes;
    return true;
}

static size_t send_body(void *context, char *to, size_t room) {
    http_client *h = context;
    size_t count = iron__min_size(room, h->piece_bytes - h->piece_sent);

    if (h->body)
        return body_take(h->body, to, room);
    memcpy(to, h->piece + h->piece_sent, count);
    h->piece_sent += count;
    return count;
}

static void http_close(http_client *http) {
    iron__http_connection_destroy(http->connection);
    explicit_bzero(http->authorization, sizeof http->authorization);
    free(http->text);
}

/* Both files may be NULL. Sends nothing yet. To be closed whatever this returns. */
static iron_status http_open(http_client *h, const engine_url *url, const char *token_file,
                             const char *ca_file, iron_error *err) {
    char token[IRON_AUTH_TOKEN_SIZE];

    h->url = url;
    h->ca_file = ca_file;
    if (token_file) {
        IRON_TRY(iron__auth_token_read(token_file, token, err));
        snprintf(h->authorization, sizeof h->authorization, "Authorization: Bearer %s", token);
        explicit_bzero(token, sizeof token);
    }
    IRON_TRY(iron__http_load(err));
    h->connection = iron__http_connection_create();
    h->text = malloc(RESPONSE_BYTES_MAX);
    IRON_FAIL_IF(!h->connection || !h->text, err, IRON_E_NOMEM,
                 "cannot start libcurl; is there memory left?");
    return IRON_OK;
}

static void run_request(http_client *h, const iron__http_request *wanted, response *r) {
    iron__http_request request = *wanted;
    iron__http_response got;

    request.lines[request.line_count++] = "Accept: application/json, application/problem+json";
    if (h->authorization[0])
        request.lines[request.line_count++] = h->authorization;
    request.ca_file = h->ca_file;
    request.is_direct = h->url->is_loopback;
    request.wants_errors = true;
    request.body = receive;
    request.context = h;
    h->bytes = h->piece_sent = 0;
    iron__http_run(h->connection, &request, &got);
    if (got.curl_code == IRON_CURLE_OK) {
        read_response(r, got.status, h->text, h->bytes);
        r->retry_after_s = got.retry_after_s != IRON_COUNT_UNKNOWN ? got.retry_after_s : 0;
        return;
    }
    *r = (response){.is_lost = iron__http_is_transient(&got)};
    if (got.curl_code == IRON_CURLE_SEND_FAIL_REWIND)
        snprintf(r->reason, sizeof r->reason, "the connection was lost");
    else if (got.is_stopped)
        snprintf(r->reason, sizeof r->reason,
                 "its response is longer than %zu bytes; is it iron serve?", RESPONSE_BYTES_MAX);
    else
        snprintf(r->reason, sizeof r->reason, "%.190s", got.curl_text);
}

static iron__http_request request_get(const char *url) {
    return (iron__http_request){.url = url, .seconds = ASK_SECONDS};
}

static iron__http_request request_post(const char *url, uint64_t bytes) {
    return (iron__http_request){.url = url,
                                .silence_max = SILENT_SECONDS,
                                .send = send_body,
                                .send_bytes = bytes,
                                .lines = {"Expect:", "Content-Type: application/octet-stream"},
                                .line_count = 2};
}

/* The seal of a prefix tells whether an engine holds the beginning of this file, without any of its
 * tokens. A scan takes whole quads with all threads; the rest, at most three tokens, is what a seal
 * carries over anyway. */

/* The seal of the first `tokens` tokens of the source. */
static iron_status seal_prefix(iron_source *source, iron__parallel_source *at, uint64_t tokens,
                               const push_progress *progress, char text[IRON_SEAL_TEXT],
                               iron_error *err) {
    uint64_t stored[3]; /* of any width */
    uint32_t wide[IRON_WIDEN_TOKENS];
    size_t rest = (size_t)(tokens % 4);
    iron__tokens_view view = {iron_source_dtype(source), stored, rest};
    iron__seal seal = {0};
    iron_digest_result r = {.struct_size = sizeof r};
    iron_manifest *manifest = NULL;
    iron_scan_options options;
    iron_status status;

    iron_scan_options_init(&options);
    options.backend = "cpu";
    options.count = tokens - rest;
    options.progress = progress->call;
    options.context = progress->context;
    status = iron_scan(source, &options, &manifest, err);
    if (status == IRON_OK)
        status = iron_manifest_digest(manifest, &r, err);
    iron_manifest_destroy(manifest);
    IRON_TRY(status);
    seal.words = (iron__seal_words){r.words[0], r.words[1], r.words[2], r.words[3]};
    if (rest > 0) {
        IRON_TRY(iron__parallel_source_read(at, tokens - rest, stored, rest, NULL, err));
        IRON_TRY(iron__view_check(&view, tokens - rest, err));
        iron__seal_feed(&seal, iron__view_tokens(&view, 0, &rest, wide), rest);
    }
    iron__seal_text(iron__seal_total(&seal), text);
    return IRON_OK;
}

/* Pieces: the tokens of one request. Batches never span request bodies, so a piece is a whole
 * number of the engine's batches, except for the last: the engine then cuts its batches where
 * `iron feed` of the whole file does, and gets the same state. */

/* Default size of a piece. Losing one costs a tenth of a second; an acknowledgement, which waits
 * for a disk, comes often enough to resume from, and rarely enough not to matter. */
#define PIECE_BYTES ((uint64_t)256 << 20)

typedef struct push_plan {
    uint64_t base;   /* engine position of the file's first token */
    uint64_t tokens; /* of the file */
    uint64_t piece;  /* tokens per request */
} push_plan;

typedef struct file_piece {
    uint64_t at;    /* engine position before it */
    uint64_t first; /* its first token in the file */
    uint64_t tokens;
} file_piece;

/* `wanted` tokens, or PIECE_BYTES for 0, as whole batches: at least one. */
static uint64_t piece_tokens(uint64_t wanted, uint64_t batch, size_t width) {
    uint64_t tokens = wanted ? wanted : PIECE_BYTES / width;

    return tokens < batch ? batch : tokens / batch * batch;
}

/* The piece at the engine's position, which is base ... base + tokens. Empty at the end. */
static file_piece piece_at(const push_plan *plan, uint64_t position) {
    uint64_t first = position - plan->base;
    uint64_t rest = plan->tokens - first;

    return (file_piece){position, first, iron__min(rest, plan->piece)};
}

/* What to do after a response. */

#define FIRST_PAUSE_MS    UINT64_C(200)
#define PAUSE_MAX_MS      UINT64_C(30000)
#define RETRY_AFTER_MAX_S UINT64_C(300)

typedef enum next_step {
    STEP_SEND,    /* send the piece (again) */
    STEP_NEXT,    /* the piece is in the engine */
    STEP_ASK,     /* pause, then read the engine's position */
    STEP_REFUSED, /* for good; the response's reason says why */
    STEP_CONFLICT /* another client feeds this engine */
} next_step;

/* May the same request get another response later? 408: the network was slow. 502 and 504 come
 * from a proxy whose server is away. A read-only server answers 503 until it is restarted. */
static bool is_temporary(const response *r) {
    switch (r->status) {
    case 0:
        return r->is_lost;
    case 408:
    case 429:
    case 502:
    case 504:
        return true;
    case 503:
        return !r->is_read_only;
    default:
        return r->status >= 500 && r->retry_after_s > 0;
    }
}

/* May the piece have been taken? No response, or one from a server that does not know either. */
static bool may_be_taken(const response *r) {
    return r->status == 0 || (r->status >= 500 && r->status != 503);
}

static next_step after_send(const response *r, const file_piece *piece) {
    if (r->status == 200 && r->has_engine)
        return r->engine.tokens == piece->at + piece->tokens ? STEP_NEXT : STEP_CONFLICT;
    /* 409: the position has changed, by a request of ours whose response was lost, or by another
     * client */
    return r->status == 409 || is_temporary(r) ? STEP_ASK : STEP_REFUSED;
}

static next_step after_ask(const response *r, const file_piece *piece) {
    if (r->status != 200 || !r->has_engine)
        return is_temporary(r) ? STEP_ASK : STEP_REFUSED;
    if (r->engine.tokens == piece->at + piece->tokens)
        return STEP_NEXT;
    return r->engine.tokens == piece->at ? STEP_SEND : STEP_CONFLICT;
}

/* Before attempt 1, 2, ...: doubles up to half a minute, less up to a half at random, so that
 * clients that were disconnected together do not return together; at least what the server asked
 * for (up to five minutes). */
static uint64_t pause_ms(uint32_t attempt, uint64_t random, uint64_t retry_after_s) {
    uint64_t asked = 1000 * iron__min(retry_after_s, RETRY_AFTER_MAX_S);
    uint64_t pause = attempt > 8 ? PAUSE_MAX_MS : FIRST_PAUSE_MS << (attempt - 1);

    pause = iron__min(pause, PAUSE_MAX_MS);
    return iron__max(pause - random % (pause / 2), asked);
}

/* The push. */

#define RETRIES        8u
#define PAUSE_SLICE_MS UINT64_C(100) /* cancelling takes effect within this time */

typedef struct push {
    const iron_push_options *options;
    iron_source *source;
    iron__parallel_source *at;
    http_client http;
    engine_url url;
    push_plan plan;
    push_progress progress;
    engine_state engine; /* as last seen */
    uint32_t retries, retried;
    bool may_be_taken; /* the current piece may have been taken without a response */
} push;

static void note(const push *p, const char *sentence) {
    if (p->options->note)
        p->options->note(p->progress.context, sentence);
}

static iron_status refuse(const push *p, const response *r, iron_error *err) {
    IRON_FAIL(err, r->status ? IRON_E_STATE : IRON_E_IO, "%s %s: %s%s",
              p->source ? "engine" : "run", p->url.name, r->reason,
              r->status == 413 && p->source ? "; --piece makes requests smaller" : "");
}

static iron_status give_up(const push *p, const response *r, iron_error *err) {
    IRON_FAIL(err, IRON_E_IO,
              "%s %s: %.140s; tried %u times: push again later, it resumes where it stopped",
              p->source ? "engine" : "run", p->url.name, r->reason, p->retries);
}

/* Waits before attempt 1, 2, ...; the caller may cancel meanwhile. */
static iron_status pause_before(const push *p, uint32_t attempt, const response *why,
                                uint64_t token, iron_error *err) {
    uint64_t pause = pause_ms(attempt, iron__mix64(iron__clock_ns()), why->retry_after_s);
    char sentence[320];

    snprintf(sentence, sizeof sentence, "%s; trying again in %.1f s (%u of %u)", why->reason,
             (double)pause / 1000, attempt, p->retries);
    note(p, sentence);
    while (pause > 0) {
        uint64_t some = iron__min(pause, PAUSE_SLICE_MS);

        IRON_TRY(report_progress(&p->progress, token, err));
        nanosleep(&(struct timespec){.tv_nsec = (long)some * 1000000}, NULL);
        pause -= some;
    }
    return IRON_OK;
}

/* Sends a request until it is answered: with an engine where there is a source, else with 200, or
 * with 404 if it is a question. A server that cannot be reached at the beginning is a wrong address
 * more often than a restart, so for a question that is an error at once; a busy one is waited
 * for. */
static iron_status run_until_answered(push *p, const iron__http_request *request, uint64_t token,
                                      response *r, iron_error *err) {
    for (uint32_t attempt = 1;; attempt++) {
        run_request(&p->http, request, r);
        if (p->source ? r->has_engine && r->engine.batch > 0
                      : r->status == 200 || (r->status == 404 && !request->send))
            return IRON_OK;
        IRON_FAIL_IF(r->is_lost && !request->send, err, IRON_E_IO,
                     "%.100s: %s; is iron serve running there?", p->url.engine, r->reason);
        if (!is_temporary(r))
            return refuse(p, r, err);
        if (attempt > p->retries)
            return give_up(p, r, err);
        IRON_TRY(pause_before(p, attempt, r, token, err));
        p->retried += request->send != NULL;
    }
}

/* The engine must hold the first tokens of the file and nothing else. */
static iron_status check_prefix(const push *p, iron_error *err) {
    uint64_t held = p->engine.tokens;
    char seal[IRON_SEAL_TEXT];

    IRON_FAIL_IF(held > p->plan.tokens, err, IRON_E_STATE,
                 "engine %s holds %" PRIu64 " tokens, and the file has %" PRIu64
                 "; use --append to add it behind them, or another engine",
                 p->url.name, held, p->plan.tokens);
    if (held == 0)
        return IRON_OK;
    IRON_TRY(seal_prefix(p->source, p->at, held, &p->progress, seal, err));
    IRON_FAIL_IF(strcmp(seal, p->engine.seal) != 0, err, IRON_E_STATE,
                 "engine %s holds %" PRIu64 " tokens that are not the beginning of %.40s (seal %s "
                 "against %s); use --append to add it behind them, or another engine",
                 p->url.name, held, iron_source_file(p->source, 0), p->engine.seal, seal);
    return IRON_OK;
}

/* Sends a piece from its beginning. If reading it fails there is no response. */
static iron_status send_piece(push *p, const file_piece *piece, response *r, iron_error *err) {
    iron_dtype dtype = iron_source_dtype(p->source);
    request_body body = {.at = p->at,
                         .width = iron_dtype_bytes(dtype),
                         .first = piece->first,
                         .tokens = piece->tokens,
                         .progress = &p->progress};
    char url[URL_BYTES + 64];
    iron__http_request request = request_post(url, body.tokens * body.width);

    snprintf(url, sizeof url, "%s/feed?dtype=%s&at=%" PRIu64, p->url.engine, iron_dtype_name(dtype),
             piece->at);
    p->http.body = &body;
    run_request(&p->http, &request, r);
    if (body.status != IRON_OK && err)
        *err = body.error;
    return body.status;
}

static iron_status push_piece(push *p, iron_error *err) {
    file_piece piece = piece_at(&p->plan, p->engine.tokens);
    iron__http_request question = request_get(p->url.engine);
    response r = {0};
    next_step step = STEP_SEND;
    uint32_t attempt = 0;
    bool was_sent = true;

    p->may_be_taken = false;
    while (step == STEP_SEND || step == STEP_ASK) {
        was_sent = step == STEP_SEND;
        if (was_sent) {
            p->retried += attempt > 0;
            IRON_TRY(send_piece(p, &piece, &r, err));
            p->may_be_taken = p->may_be_taken || may_be_taken(&r);
            step = after_send(&r, &piece);
        } else {
            if (attempt == p->retries)
                return give_up(p, &r, err);
            attempt++;
            IRON_TRY(pause_before(p, attempt, &r, piece.first, err));
            run_request(&p->http, &question, &r);
            step = after_ask(&r, &piece);
        }
    }
    if (step == STEP_REFUSED)
        return refuse(p, &r, err);
    IRON_FAIL_IF(step == STEP_CONFLICT, err, IRON_E_STATE,
                 "engine %s is at token %" PRIu64 " and not at %" PRIu64 " or %" PRIu64
                 ": another client feeds this engine; let one feed it at a time, then push again",
                 p->url.name, r.engine.tokens, piece.at, piece.at + piece.tokens);
    p->engine = r.engine;
    if (was_sent)
        return IRON_OK;
    /* The engine is where the piece ends, but no response said that the piece was taken: another
     * client may have fed as many tokens. With --append no seal tells, but a request that was
     * refused was not taken. */
    if (!p->options->is_append)
        return check_prefix(p, err);
    IRON_FAIL_IF(!p->may_be_taken, err, IRON_E_STATE,
                 "engine %s: another client fed it from token %" PRIu64 " to %" PRIu64
                 ", where this file was to continue; let one feed it at a time",
                 p->url.name, piece.at, p->engine.tokens);
    return IRON_OK;
}

static iron_status run(push *p, iron_error *err) {
    iron__http_request question = request_get(p->url.engine);
    response r;
    uint64_t position;
    char sentence[80];

    IRON_TRY(run_until_answered(p, &question, p->progress.begin, &r, err));
    p->engine = r.engine;
    /* where the file's first token belongs, and where to resume */
    position = p->engine.tokens;
    p->plan.tokens = iron_source_tokens(p->source);
    p->plan.piece = piece_tokens(p->options->piece_tokens, p->engine.batch,
                                 iron_dtype_bytes(iron_source_dtype(p->source)));
    if (p->options->is_append)
        p->plan.base = position;
    else
        IRON_TRY(check_prefix(p, err));
    p->progress.begin = position - p->plan.base;
    p->progress.total = p->plan.tokens - p->progress.begin;
    if (p->progress.begin > 0 && p->progress.total > 0) {
        snprintf(sentence, sizeof sentence, "resuming at token %" PRIu64 " of %" PRIu64,
                 p->progress.begin, p->plan.tokens);
        note(p, sentence);
    }
    while (p->engine.tokens < p->plan.base + p->plan.tokens)
        IRON_TRY(push_piece(p, err));
    return iron__source_check_unchanged(p->source, err);
}

iron_status iron_push(const iron_push_options *options, iron_source *source, iron_progress progress,
                      void *context, iron_push_result *result, iron_error *err) {
    push p = {.options = options, .source = source, .progress = {.call = progress}};
    const engine_state *e = &p.engine;
    iron_status status;

    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_push_options", err));
    IRON_FAIL_IF(!options->url, err, IRON_E_ARG, "iron_push_options.url is NULL; give an address");
    IRON_TRY(iron__struct_check(result, sizeof *result, "iron_push_result", err));
    IRON_FAIL_IF(!iron__source_is_seekable(source), err, IRON_E_ARG,
                 "a push needs regular files, which can be sent again; save it to a file, or "
                 "send it with curl");
    IRON_TRY(parse_url(options->url, &p.url, err));
    p.progress.context = context;
    p.retries = options->retries ? options->retries : RETRIES;
    iron__source_seek(source, 0);
    status = http_open(&p.http, &p.url, options->token_file, options->ca_file, err);
    if (status == IRON_OK)
        status = iron__parallel_source_open(source, iron__allocator_default(), &p.at, err);
    if (status == IRON_OK)
        status = run(&p, err);
    /* also after a failure: what was acknowledged is in the engine */
    *result = (iron_push_result){.struct_size = sizeof *result,
                                 .retried = p.retried,
                                 .resumed_at = p.progress.begin,
                                 .tokens = e->tokens,
                                 .batches = e->batches,
                                 .sum = e->sum,
                                 .state = e->state,
                                 .xor_total = e->xors};
    if (p.progress.total > 0)
        result->pushed = e->tokens - p.plan.base - p.progress.begin;
    memcpy(result->seal, e->seal, sizeof result->seal);
    memcpy(result->engine, p.url.name, sizeof result->engine);
    iron__parallel_source_close(p.at);
    http_close(&p.http);
    return status;
}

/* Ledgers. A ledger is sent in pieces of whole frames. The server does not store a frame again that
 * it has, so a piece whose response was lost is simply sent again; and each piece begins with the
 * last frame of the one before, which tells the server their order whatever the times in them. If
 * the server's newest frame of this rank is in the ledger, after as many others as it has, the push
 * goes on there. */

#define LEDGER_PIECE_BYTES ((size_t)1 << 20) /* what the server takes, with the header */

typedef struct ledger_push {
    push base;
    const char *path;
    int fd;
    uint64_t file_bytes, at; /* at: where the next piece begins */
    unsigned char *piece;
    size_t bytes, records; /* of the piece: whole frames, with the header; without it */
    size_t last;           /* where its last frame begins */
    iron_push_ledger_result *result;
} ledger_push;

/* Reads the frames from l->at on that fit into a piece. */
static iron_status read_piece(ledger_push *l, iron_error *err) {
    ssize_t got = pread(l->fd, l->piece + LEDGER_HEADER_BYTES,
                        LEDGER_PIECE_BYTES - LEDGER_HEADER_BYTES, (off_t)l->at);
    size_t end = LEDGER_HEADER_BYTES + (got > 0 ? (size_t)got : 0), frame;

    if (got < 0)
        return iron__fail_path(err, "read", l->path, errno);
    l->bytes = l->last = LEDGER_HEADER_BYTES;
    for (l->records = 0; (frame = iron__ledger_frame(l->piece + l->bytes, end - l->bytes)) > 0;
         l->records++) {
        l->last = l->bytes;
        l->bytes += frame;
    }
    IRON_FAIL_IF(l->records == 0 && end == LEDGER_PIECE_BYTES &&
                     iron__ledger_u32(l->piece + LEDGER_HEADER_BYTES) == LEDGER_STEP &&
                     iron__ledger_u32(l->piece + LEDGER_HEADER_BYTES + 4) >
                         LEDGER_PIECE_BYTES - LEDGER_HEADER_BYTES - LEDGER_FRAME_BYTES,
                 err, IRON_E_UNSUPPORTED,
                 "%.120s: the record at byte %" PRIu64
                 " is longer than a server takes; record micro steps, or without samples",
                 l->path, l->at);
    return IRON_OK;
}

/* Where the server's newest frame is in the ledger; else its beginning. */
static iron_status find_resume(ledger_push *l, const iron__json *root, iron_error *err) {
    const iron__json *rank = iron__json_at(iron__json_member(root, "by_rank"), 0);
    const char *last = get_hex(iron__json_member(rank, "last"), 32);
    uint64_t records = 0, seen = 1; /* the header */

    if (!last ||
        !iron__json_get_whole(iron__json_member(rank, "records"), JSON_WHOLE_MAX, &records))
        return IRON_OK;
    while (seen < records) {
        unsigned char digest[IRON_SHA256_BYTES];
        char text[33];

        IRON_TRY(read_piece(l, err));
        if (l->records == 0)
            break;
        if (seen + l->records < records) {
            seen += l->records;
            l->at += l->bytes - LEDGER_HEADER_BYTES;
            continue;
        }
        l->last = LEDGER_HEADER_BYTES;
        while (++seen < records)
            l->last += iron__ledger_frame(l->piece + l->last, l->bytes - l->last);
        iron__sha256(l->piece + l->last, iron__ledger_frame(l->piece + l->last, l->bytes - l->last),
                     digest);
        for (size_t k = 0; k < 16; k++)
            snprintf(text + 2 * k, 3, "%02x", digest[k]);
        l->at += l->last - LEDGER_HEADER_BYTES;
        if (strcmp(text, last) == 0) {
            l->result->resumed_at = l->at;
            return IRON_OK;
        }
        break;
    }
    l->at = LEDGER_HEADER_BYTES;
    return IRON_OK;
}

/* Asks what the run has of this rank. */
static iron_status ask_run(ledger_push *l, iron_error *err) {
    char url[URL_BYTES + 32];
    iron__http_request request = request_get(url);
    const iron__json *root = NULL;
    iron_status status = IRON_OK;
    push *p = &l->base;
    response r;

    snprintf(url, sizeof url, "%s?rank=%" PRIu32, p->url.engine, l->result->rank);
    IRON_TRY(run_until_answered(p, &request, 0, &r, err));
    if (r.status == 200 && iron__json_parse(p->http.text, p->http.bytes, iron__allocator_default(),
                                            &root, NULL) == IRON_OK) {
        status = find_resume(l, root, err);
        iron__json_destroy(iron__allocator_default(), root);
    }
    return status;
}

static iron_status post_piece(ledger_push *l, iron_error *err) {
    push *p = &l->base;
    const iron__json *root = NULL;
    uint64_t added = 0;
    char url[URL_BYTES + 32];
    iron__http_request request = request_post(url, l->bytes);
    response r;

    snprintf(url, sizeof url, "%s/steps", p->url.engine);
    p->http.piece = l->piece;
    p->http.piece_bytes = l->bytes;
    IRON_TRY(run_until_answered(p, &request, l->at, &r, err));
    if (iron__json_parse(p->http.text, p->http.bytes, iron__allocator_default(), &root, NULL) ==
        IRON_OK)
        iron__json_get_whole(iron__json_member(root, "added"), JSON_WHOLE_MAX, &added);
    iron__json_destroy(iron__allocator_default(), root);
    l->result->added += added;
    return IRON_OK;
}

static iron_status push_pieces(ledger_push *l, iron_error *err) {
    bool is_sent, has_overlap; /* the piece begins with a frame that the server has */

    l->at = LEDGER_HEADER_BYTES;
    IRON_TRY(ask_run(l, err));
    is_sent = has_overlap = l->result->resumed_at > 0;
    l->base.progress.total = l->file_bytes;
    for (;;) {
        IRON_TRY(report_progress(&l->base.progress, l->at, err));
        IRON_TRY(read_piece(l, err));
        if (has_overlap && l->records <= 1) { /* nothing more fits behind it, or is there */
            l->at += l->bytes - LEDGER_HEADER_BYTES;
            has_overlap = false;
            IRON_TRY(read_piece(l, err));
        }
        if (l->records == 0 && is_sent)
            break;
        IRON_TRY(post_piece(l, err));
        is_sent = true;
        l->result->sent += l->records - has_overlap;
        has_overlap = l->records > 0;
        l->at += l->last - LEDGER_HEADER_BYTES;
    }
    if (l->file_bytes > l->at)
        l->result->torn = l->file_bytes - l->at;
    return IRON_OK;
}

static iron_status open_ledger(ledger_push *l, iron_error *err) {
    struct stat about;

    l->piece = malloc(LEDGER_PIECE_BYTES);
    l->fd =
        open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (!l->piece)
        return iron__no_memory(err, l->path);
    if (l->fd < 0 || fstat(l->fd, &about) != 0)
        return iron__fail_path(err, "open", l->path, errno);
    IRON_FAIL_IF(!S_ISREG(about.st_mode) ||
                     pread(l->fd, l->piece, LEDGER_HEADER_BYTES, 0) != LEDGER_HEADER_BYTES ||
                     !iron__ledger_header_is_valid(l->piece),
                 err, IRON_E_FORMAT,
                 "%.120s is not a ledger; runs take those that the Recorder of iron_tokens writes",
                 l->path);
    l->file_bytes = (uint64_t)about.st_size;
    l->result->rank = iron__ledger_u32(l->piece + 16);
    return IRON_OK;
}

iron_status iron_push_ledger(const iron_push_options *options, const char *path,
                             iron_progress progress, void *context, iron_push_ledger_result *result,
                             iron_error *err) {
    ledger_push l = {.base = {.options = options, .progress = {.call = progress}},
                     .path = path,
                     .fd = -1,
                     .result = result};
    push *p = &l.base;
    iron_status status;

    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_push_options", err));
    IRON_TRY(iron__struct_check(result, sizeof *result, "iron_push_ledger_result", err));
    *result = (iron_push_ledger_result){.struct_size = sizeof *result};
    IRON_FAIL_IF(!options->url || !split_url(options->url, RUNS, "/steps", &p->url), err,
                 IRON_E_ARG,
                 "'%.100s' is not the address of a run; a ledger goes to one like "
                 "http://127.0.0.1:8080/v1/runs/NAME",
                 options->url ? options->url : "");
    memcpy(result->run, p->url.name, sizeof result->run);
    p->progress.context = context;
    p->retries = options->retries ? options->retries : RETRIES;
    status = open_ledger(&l, err);
    if (status == IRON_OK)
        status = http_open(&p->http, &p->url, options->token_file, options->ca_file, err);
    if (status == IRON_OK)
        status = push_pieces(&l, err);
    result->retried = p->retried;
    http_close(&p->http);
    if (l.fd >= 0)
        close(l.fd);
    free(l.piece);
    return status;
}
