/* SPDX-License-Identifier: MIT */
/*
 * wire.h: answers that the server writes to a socket itself, where the HTTP library has not read
 * the request (gate.h), would not send them in the middle of a body (deliver.h), or is not asked
 * any more (watch.h). They all end their connection. And the parts that every problem has.
 */
#ifndef IRON_SERVER_WIRE_H
#define IRON_SERVER_WIRE_H

#include "server/audit.h"
#include "server/problem.h"
#include "server/site.h"

#include "core/json_write.h"

#define IRON_WIRE_PROBLEM_MAX 2048u

/* The first members of a problem; whoever opened closes with '}'. help may be NULL. */
void iron__problem_open(iron__json_writer *json, const iron__problem *problem, const char *help,
                        const char *detail, uint64_t id);
/* What Retry-After says with this kind, or NULL. */
const char *iron__problem_retry_after(const char *kind);

/* Status line and fields of an answer of `bytes`, without the empty line. */
void iron__wire_head(FILE *to, unsigned status, const char *type, size_t bytes, uint64_t id);
/* A whole answer with a problem; returns its bytes, 0 if it could not be made. */
size_t iron__wire_problem(char room[IRON_WIRE_PROBLEM_MAX], const iron__verdict *verdict,
                          uint64_t id);
/* Writes all of it, waiting at most that long for the peer; 0: not at all. */
bool iron__wire_send(int fd, const void *bytes, size_t count, int milliseconds);

#endif
