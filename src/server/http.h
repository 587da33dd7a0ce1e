/* SPDX-License-Identifier: MIT */
/*
 * http.h: a request and its response, as the routes see them.
 *
 * A route is one row (IRON_ROUTE), defined at the end of the file that has its functions and listed
 * in routes.c: the single source for dispatch, for the Allow header of a 405, and for
 * scripts/check-openapi. Before a route is called, request.c has checked the header, Host and
 * Origin, the token (unless the row is open) or a ticket (where the row takes one), the path and
 * the method, the names in the query, and Content-Length. Then these functions are called, in this
 * order and all but `take` at most once:
 *
 *     begin   the header is complete, no byte of the body was read: refuse early, or set req->own
 *     take    some bytes of a streamed body
 *     end     the body is complete (a collected one is in req->body): respond
 *     drop    always, when the request is over, however it ended: free req->own
 *
 * A route may respond in begin, take or end; after that only drop is called. Returning from `end`
 * without a response is a bug (500, and a log line). Every connection has its own thread, so routes
 * may block.
 */
#ifndef IRON_SERVER_HTTP_H
#define IRON_SERVER_HTTP_H

#include "core/json.h"
#include "core/sha256.h"
#include "store/store.h"

#include <iron/iron_ledger.h>
#include <iron/iron_server.h>

#include <sys/types.h>

/* Problem types (RFC 9457): one row for each kind of error, the single source for the responses,
 * the OpenAPI document and the table in docs/server.md. The type is "urn:iron:problem:" and the
 * kind. A kind never changes its meaning.
 *
 * kind, status, title */
#define IRON_PROBLEM_MAP(X)                                                                        \
    X("malformed-request", 400, "The request is malformed")                                        \
    X("bad-query", 400, "Invalid query parameter")                                                 \
    X("bad-json", 400, "The body is not the expected JSON")                                        \
    X("bad-configuration", 400, "Invalid engine configuration")                                    \
    X("bad-name", 400, "Invalid engine name")                                                      \
    X("bad-key", 400, "Invalid Idempotency-Key")                                                   \
    X("bad-digest", 400, "The body differs from its digest")                                       \
    X("ragged-body", 400, "The body is not a whole number of tokens")                              \
    X("bad-token-value", 400, "A value in the body is not a token")                                \
    X("bad-ledger", 400, "The body is not a part of a ledger")                                     \
    X("unexpected-body", 400, "No body is expected here")                                          \
    X("unauthorized", 401, "A token is needed")                                                    \
    X("foreign-origin", 403, "The request comes from a page of another site")                      \
    X("forbidden", 403, "The token does not allow this")                                           \
    X("no-such-path", 404, "There is nothing at this path")                                        \
    X("no-such-engine", 404, "There is no engine with this name")                                  \
    X("no-such-run", 404, "There is no run with this name")                                        \
    X("method-not-allowed", 405, "The path does not take this method")                             \
    X("not-acceptable", 406, "No accepted type is available")                                      \
    X("too-slow", 408, "The request took too long")                                                \
    X("position-mismatch", 409, "The engine is at another position")                               \
    X("engine-exists", 409, "An engine with this name exists")                                     \
    X("key-in-use", 409, "A request with this Idempotency-Key is in progress")                     \
    X("too-large", 413, "The body is too large")                                                   \
    X("target-too-long", 414, "The request's target is too long")                                  \
    X("unsupported-type", 415, "The body's type is not supported")                                 \
    X("wrong-host", 421, "The request is for another host")                                        \
    X("key-reused", 422, "The Idempotency-Key was used with other content")                        \
    X("too-many-connections", 429, "Too many connections from this address")                       \
    X("too-many-guesses", 429, "Too many wrong tokens from this address")                          \
    X("header-too-large", 431, "The request's header is too large")                                \
    X("internal", 500, "Internal error")                                                           \
    X("damaged", 500, "Stored data are damaged")                                                   \
    X("backend-unavailable", 501, "The backend is not available here")                             \
    X("busy", 503, "The server is busy")                                                           \
    X("stopping", 503, "The server is stopping")                                                   \
    X("read-only", 503, "The server is read-only")                                                 \
    X("unsupported-version", 505, "The HTTP version is not supported")                             \
    X("too-many-engines", 507, "There is no room for another engine")                              \
    X("run-full", 507, "There is no room for more records of runs")                                \
    X("disk-full", 507, "The disk is full")

#define IRON_PROBLEM_ONE(kind, status, title) +1 // NOLINT(bugprone-macro-parentheses): a sum
enum { IRON_PROBLEM_COUNT = 0 IRON_PROBLEM_MAP(IRON_PROBLEM_ONE) };

typedef struct iron__http_problem {
    const char *kind;
    unsigned status;
    const char *title;
} iron__http_problem;

extern const iron__http_problem iron__http_problems[]; /* ends with a row whose kind is NULL */
/* NULL for an unknown kind. */
const iron__http_problem *iron__http_problem_find(const char *kind);

/* Borrowed bytes, not terminated. */
typedef struct iron__text {
    const char *at;
    size_t bytes;
} iron__text;

/* Routes */

typedef struct iron__request iron__request;

typedef enum iron__body_kind {
    IRON_BODY_NONE,  /* a body is refused (400) */
    IRON_BODY_JSON,  /* collected, at most IRON_JSON_BODY_MAX bytes */
    IRON_BODY_BYTES, /* the same, of any type */
    IRON_BODY_STREAM /* any length up to the server's limit, passed to `take` as it arrives */
} iron__body_kind;

/* What a token allows; each includes those before it. */
typedef enum iron__role {
    IRON_ROLE_READ, /* everything that changes nothing */
    IRON_ROLE_FEED,
    IRON_ROLE_ADMIN /* to create and delete engines */
} iron__role;

#define IRON_JSON_BODY_MAX ((size_t)1 << 20)
#define IRON_ROUTES_MAX    64u /* routes with a latency histogram of their own; others share one */

typedef struct iron__route {
    const char *method;  /* "GET" (also serves HEAD), "POST", "DELETE" */
    const char *pattern; /* "/v1/engines/{name}/feed": at most one variable */
    const char *query;   /* allowed parameters, separated by blanks: "dtype at"; NULL: none */
    iron__body_kind body;
    iron__role role; /* that its token needs */
    bool is_open;    /* needs no token */
    bool is_probe;   /* answered also when all connections for requests without a token are used */
    bool takes_ticket; /* ?ticket= replaces the token */
    void (*begin)(iron__request *req);
    void (*take)(iron__request *req, const void *bytes, size_t count);
    void (*end)(iron__request *req);
    void (*drop)(iron__request *req);
} iron__route;

extern const iron__route *const iron__routes[]; /* ends with NULL */

/* A row: IRON_ROUTE(name, "GET", "/v1/...", .end = ...). */
#define IRON_ROUTE(name, ...) const iron__route iron__route_##name = {__VA_ARGS__}

/* Where a streamed response comes from: fills up to `room` bytes. May block for about a second; 0
 * means nothing yet, a negative number the end. A stream without an end of its own checks
 * server->is_stopping. One that has an end runs to it, or is broken off when the grace period is
 * over, so that the client can tell. */
typedef ssize_t (*iron__stream_read)(void *context, char *room, size_t bytes);

typedef enum iron__response_kind {
    IRON_RESPONSE_NONE,
    IRON_RESPONSE_EMPTY,
    IRON_RESPONSE_OWNED, /* malloc'ed bytes */
    IRON_RESPONSE_STATIC,
    IRON_RESPONSE_STREAM
} iron__response_kind;

#define IRON_RESPONSE_HEADERS_MAX 12u

/* A response while it is built (response.c). */
typedef struct iron__response {
    iron__response_kind kind;
    unsigned status;
    const char *type;
    void *bytes;
    size_t count;
    struct {
        const char *name; /* borrowed */
        char *value;
    } headers[IRON_RESPONSE_HEADERS_MAX];
    uint32_t header_count;
    iron__stream_read read;
    void (*done)(void *context);
    void *context;
    iron_json_writer json; /* writes to `text` */
    char *text;
    size_t text_bytes;
    const iron__http_problem *problem; /* that it reports; NULL: success */
} iron__response;

#define IRON_QUERY_MAX 16u

/* A request's target, percent-decoded (request.c). */
typedef struct iron__target {
    char *room, *spare;   /* all strings below are in this one allocation */
    const char *path;     /* as it was sent */
    const char *variable; /* decoded, after a match; "" if the route has none */
    struct {
        const char *name, *value;
    } pairs[IRON_QUERY_MAX];
    uint32_t pair_count;
} iron__target;

struct iron__request {
    /* For routes. */
    iron_server *server;
    const iron__route *route;
    void *own;            /* the route's; NULL at first */
    const char *variable; /* the value of {name} in the path; "" if there is none */
    const char *body;     /* a collected one, in `end`; followed by a NUL that is not counted */
    size_t body_bytes;
    uint64_t expected_bytes; /* Content-Length, UINT64_MAX when chunked, 0 without a body */
    uint64_t id;             /* for logs and problems */
    bool is_answered;
    const char *problem_member; /* of a problem, besides those that all have; NULL: none */
    uint64_t problem_number;    /* its value */

    /* For request.c and response.c. */
    struct MHD_Connection *mhd;
    struct iron__connection *connection;
    const char *target_at; /* where libmicrohttpd has the target */
    const char *body_at;   /* and the beginning of the body; NULL: unknown */
    char *target_text;     /* a copy from before libmicrohttpd changed it */
    iron__target target;
    char method[24];
    uint64_t begun_ns;
    uint64_t taken_bytes;    /* of the body, passed to the route; later, discarded */
    uint64_t received_bytes; /* of the body, all of it */
    uint64_t sent_bytes;     /* of the response's body */
    char *body_buffer;       /* of a collected one */
    size_t body_room;
    bool has_digest; /* the header has the body's SHA-256 */
    unsigned char digest[IRON_SHA256_BYTES];
    iron__sha256_state hash; /* of the body so far */
    bool is_begun;           /* the header is complete */
    bool is_routed;          /* the route was called: it must be told of the end */
    bool is_body_over;       /* all of it was received */
    bool is_discarding;      /* the response waits for the end of a body that is discarded */
    bool is_queued;          /* libmicrohttpd has the response */
    bool is_sent;            /* the response is on its way */
    bool is_stream;          /* the response is a stream, counted when it began */
    bool must_close;         /* the connection ends with this response */
    bool is_guess;           /* its token or ticket is wrong */
    iron__role role;         /* of its token */
    char engines[IRON_ENGINE_NAME_MAX + 1]; /* the pattern of its token; "": all */
    bool is_stranger;                       /* it has no valid token, and counts as such */
    iron__response response;
};

/* A header's value, or a text whose `at` is NULL. Fields that must not be repeated were checked. */
iron__text iron__request_header(const iron__request *req, const char *name);
/* May its token see this engine? */
bool iron__request_sees(const iron__request *req, const char *engine);
/* A query parameter's value, percent-decoded, or NULL. No name occurs twice. */
const char *iron__request_query(const iron__request *req, const char *name);
/* Parses the body and calls `read` with the document, which is freed afterwards. `read` must not
 * block: a document of 1 MiB takes 13 MiB parsed, so large ones are parsed and read one at a time.
 */
iron_status iron__request_read_json(iron__request *req,
                                    iron_status (*read)(const iron__json *root, void *context,
                                                        iron_error *err),
                                    void *context, iron_error *err);

/* Responses: exactly one of these for each request. */

/* Adds a header field, whose name must stay; before the response is given. */
void iron__response_header(iron__request *req, const char *name, const char *value);
/* A JSON object: write its members with the writer, then finish. */
iron_json_writer *iron__response_json(iron__request *req);
void iron__response_json_end(iron__request *req, unsigned status);
/* Takes malloc'ed bytes (IRON_RESPONSE_OWNED), or borrows some that live as long as the server
 * (IRON_RESPONSE_STATIC). */
void iron__response_bytes(iron__request *req, iron__response_kind kind, unsigned status,
                          const char *type, const void *bytes, size_t count);
void iron__response_empty(iron__request *req, unsigned status);
/* `done` frees the context. */
void iron__response_stream(iron__request *req, unsigned status, const char *type,
                           iron__stream_read read, void (*done)(void *context), void *context);
/* An error (RFC 9457): {type, title, status, detail, help, instance} as application/problem+json.
 * `kind` is one of IRON_PROBLEM_MAP and decides status, title and type; `help` says what to do;
 * detail says what happened, with the value. req->problem_member is added if it is set. */
void iron__response_problem(iron__request *req, const char *kind, const char *help,
                            const char *detail, ...) __attribute__((format(printf, 4, 5)));

/* Helpers of several routes (routes.c) */

/* The engine with this name, retained; or NULL, and the response is given. */
iron__store_engine *iron__route_engine(iron__request *req, const char *name);
/* The run that the path names; false: the response is given (route_runs.c). */
bool iron__route_run(iron__request *req, iron__run_view *view);
#define IRON_FULL_HELP                                                                             \
    "Nothing was changed. Delete engines that are not needed, or free space on the disk of the "   \
    "data directory; the server accepts feeds again by itself."

#define IRON_NAME_HELP                                                                             \
    "A name has 1 to 64 letters, digits, '.', '_' and '-' and begins with a letter or a digit."

/* Responds to a failure of the store or a device: damaged, read-only, disk-full, stopping, busy,
 * backend-unavailable or internal. */
void iron__route_failure(iron__request *req, const iron_error *err);
/* The same for "out of memory for WHAT". */
void iron__route_no_memory(iron__request *req, const char *what);
/* A query parameter as a whole number min ... max; `value` is unchanged if it is not given. False:
 * it is invalid, and the response is given. */
bool iron__route_number(iron__request *req, const char *name, uint64_t min, uint64_t max,
                        uint64_t *value);

/* "2026-03-01T12:00:07.250Z" from milliseconds since 1970; years up to 9999 (log.c). */
#define IRON_TIME_TEXT 25u
void iron__time_text(uint64_t milliseconds, char text[IRON_TIME_TEXT]);

/* The quality that Accept (NULL: anything) gives a type, in thousandths; 0: not acceptable. The
 * most specific range that matches decides (RFC 9110, 12.5.1); ranges that cannot be parsed match
 * nothing. Also for Accept-Encoding: a coding ("gzip") is a type without a slash, matched by itself
 * and by "*". */
unsigned iron__accept_weight(const char *accept, const char *type);

/* That time as text. */
void iron__write_time(iron_json_writer *j, const char *name, uint64_t milliseconds);
void iron__write_number_or_null(iron_json_writer *j, const char *name, bool has_it, uint64_t value);
/* A finding in a run, as an object. */
void iron__write_finding(iron_json_writer *j, const iron_ledger_finding *finding);
/* The members xor and sum, as text: many JSON readers use doubles for numbers. */
void iron__write_sums(iron_json_writer *j, uint32_t xors, uint64_t sum);
/* All members of an engine, inside an object that the caller opens and closes. */
void iron__write_engine(iron_json_writer *j, const iron__store_engine_view *view);
/* The views of all engines that the request's token may see, by name, malloc'ed. NULL: no memory.
 */
iron__store_engine_view *iron__route_views(const iron__request *req, size_t *count);

#endif
