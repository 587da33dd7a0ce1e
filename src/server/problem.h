/* SPDX-License-Identifier: MIT */
/*
 * problem.h: every kind of error that the server has words for: one row each, the single source for
 * the answers, the OpenAPI document and the tables in docs/server.md. A problem's type is
 * "urn:iron:problem:" and the kind; a kind never changes its meaning.
 */
#ifndef IRON_SERVER_PROBLEM_H
#define IRON_SERVER_PROBLEM_H

/* kind, status, title */
#define IRON_PROBLEM_MAP(X)                                                                        \
    X("malformed-request", 400, "The request is malformed")                                        \
    X("bad-query", 400, "A query parameter is not right")                                          \
    X("bad-json", 400, "The body is not the JSON that is expected")                                \
    X("bad-configuration", 400, "No engine can be made of this")                                   \
    X("bad-name", 400, "The name is not one that an engine may have")                              \
    X("bad-key", 400, "The Idempotency-Key is not right")                                          \
    X("ragged-body", 400, "The body is no whole number of tokens")                                 \
    X("bad-token-value", 400, "A value in the body is no token")                                   \
    X("unexpected-body", 400, "No body is expected here")                                          \
    X("unauthorized", 401, "A token is needed")                                                    \
    X("foreign-origin", 403, "The page that asks is not from here")                                \
    X("no-such-path", 404, "There is nothing at this path")                                        \
    X("no-such-engine", 404, "There is no engine of this name")                                    \
    X("method-not-allowed", 405, "The path does not take this method")                             \
    X("not-acceptable", 406, "None of the accepted types is offered")                              \
    X("too-slow", 408, "The request took too long")                                                \
    X("position-mismatch", 409, "The engine is at another position")                               \
    X("engine-exists", 409, "An engine of this name exists")                                       \
    X("too-large", 413, "The body is too large")                                                   \
    X("target-too-long", 414, "The request's target is too long")                                  \
    X("unsupported-type", 415, "The body's type is not taken here")                                \
    X("wrong-host", 421, "The request is for another host")                                        \
    X("key-reused", 422, "The Idempotency-Key was used with other content")                        \
    X("too-many-connections", 429, "Too many connections from this address")                       \
    X("header-too-large", 431, "The request's header is too large")                                \
    X("internal", 500, "Something failed here")                                                    \
    X("damaged", 500, "What is stored is damaged")                                                 \
    X("backend-unavailable", 501, "The backend is not available here")                             \
    X("busy", 503, "The server is busy")                                                           \
    X("stopping", 503, "The server is stopping")                                                   \
    X("read-only", 503, "The server no longer writes")                                             \
    X("unsupported-version", 505, "The HTTP version is not spoken here")                           \
    X("too-many-engines", 507, "There is no room for another engine")

#define IRON_PROBLEM_ONE(kind, status, title) +1 // NOLINT(bugprone-macro-parentheses): they add up
enum { IRON_PROBLEM_COUNT = 0 IRON_PROBLEM_MAP(IRON_PROBLEM_ONE) };

typedef struct iron__problem {
    const char *kind;
    unsigned status;
    const char *title;
} iron__problem;

extern const iron__problem iron__problems[]; /* ends with a row whose kind is NULL */
/* NULL for an unknown kind. */
const iron__problem *iron__problem_find(const char *kind);

#endif
