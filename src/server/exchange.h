/* SPDX-License-Identifier: MIT */
/*
 * exchange.h: one request and its answer, as the routes see them. What is behind it, the HTTP
 * library, its threads, deadlines and limits, is not their business.
 *
 * A route is one row of a table (routes.c), the single source for dispatch, for 405's Allow, and
 * for the test that compares the table with the OpenAPI document. Before a route is called the
 * request has passed: the header audit, Host and Origin, the token (unless the row is open) or a
 * ticket (where the row takes one), the method, the names of its query, and the limit on its body
 * by Content-Length. Then, in this order, each function at most once but for `take`:
 *
 *     begin   the header is here and no byte of the body was read: refuse early, or set x->own
 *     take    some bytes of a streamed body
 *     end     the body is complete (collected in x->body for IRON_BODY_JSON): answer
 *     drop    always, when the exchange is over, however it ended: free x->own
 *
 * An answer may be given in begin, take or end; after it only drop is called. A route that returns
 * from `end` without an answer is a programmer's error (500, and the log says so). Each exchange
 * has a thread of its own: routes may wait.
 */
#ifndef IRON_SERVER_EXCHANGE_H
#define IRON_SERVER_EXCHANGE_H

#include "core/json_write.h"
#include "server/site.h"

#include <sys/types.h>

typedef struct iron__exchange iron__exchange;

typedef enum iron__body_kind {
    IRON_BODY_NONE,  /* a body is refused (400) */
    IRON_BODY_JSON,  /* collected, at most IRON_JSON_BODY_MAX (document.c) */
    IRON_BODY_STREAM /* any length up to the server's limit, given to `take` as it comes */
} iron__body_kind;

#define IRON_JSON_BODY_MAX ((size_t)1 << 20)

typedef struct iron__route {
    const char *method;  /* "GET" (HEAD is answered from it), "POST", "DELETE" */
    const char *pattern; /* "/v1/engines/{name}/feed": one variable at most */
    const char *query;   /* names that may be given, with blanks between: "dtype at"; NULL: none */
    iron__body_kind body;
    bool is_open;      /* needs no token */
    bool takes_ticket; /* ?ticket= does instead of the token (tickets.h) */
    void (*begin)(iron__exchange *x);
    void (*take)(iron__exchange *x, const void *bytes, size_t count);
    void (*end)(iron__exchange *x);
    void (*drop)(iron__exchange *x);
} iron__route;

/* The table, which ends with a row whose method is NULL. */
extern const iron__route iron__routes[];

struct iron__exchange {
    iron__site *site;
    const iron__route *route;
    void *own;            /* the route's; NULL at first */
    const char *variable; /* what stands for {name} in the path; "" if there is none */
    const char *body;     /* IRON_BODY_JSON, in `end`; ends with a zero that is not counted */
    size_t body_bytes;
    uint64_t expected_bytes; /* Content-Length, or UINT64_MAX when chunked; 0 without a body */
    uint64_t id;             /* of the request, for logs and problems */
    bool is_answered;
};

/* A header's value, or NULL. Headers that may stand once were checked to do so. */
const char *iron__exchange_header(const iron__exchange *x, const char *name);
/* A query parameter's value, percent-decoded, or NULL. Each name stands once at most. */
const char *iron__exchange_query(const iron__exchange *x, const char *name);

/* Answers. Exactly one of these per exchange. */

/* A header for the answer, before it is given. */
void iron__answer_header(iron__exchange *x, const char *name, const char *value);
/* JSON: write the document with the writer, then finish. */
iron__json_writer *iron__answer_json(iron__exchange *x);
void iron__answer_json_end(iron__exchange *x, unsigned status);
/* Bytes that were malloc'ed; takes them. */
void iron__answer_bytes(iron__exchange *x, unsigned status, const char *type, void *bytes,
                        size_t count);
/* Bytes that are part of the program. */
void iron__answer_fixed(iron__exchange *x, unsigned status, const char *type, const void *bytes,
                        size_t count);
void iron__answer_empty(iron__exchange *x, unsigned status);
/* Bytes as they come: `read` fills up to `room` and may wait (not longer than a second or so; 0
 * means nothing yet), and gives a negative number at the end. `done` frees the context. A stream
 * without an end of its own looks at site->is_stopping; one that has an end comes to it, or is
 * broken off when the grace is over, so that its reader can tell. */
typedef ssize_t (*iron__stream_read)(void *context, char *room, size_t bytes);
void iron__answer_stream(iron__exchange *x, unsigned status, const char *type,
                         iron__stream_read read, void (*done)(void *context), void *context);

/* An error, RFC 9457: {type, title, status, detail, help, instance} as application/problem+json.
 * `kind` is a word of iron__problems (problem.h) and decides status, title and type; `help` says
 * what to do; detail says what happened and which value. Members may be added between begin and
 * end. */
void iron__answer_problem(iron__exchange *x, const char *kind, const char *help, const char *detail,
                          ...) __attribute__((format(printf, 4, 5)));
iron__json_writer *iron__answer_problem_begin(iron__exchange *x, const char *kind, const char *help,
                                              const char *detail);
void iron__answer_problem_end(iron__exchange *x);

#endif
