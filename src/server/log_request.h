/* SPDX-License-Identifier: MIT */
/*
 * log_request.h: a request that has ended, as a line of the log: who asked for what, what came of
 * it, and how long it took. Told in JSON alone. Of a target only the path is told: what stands
 * after it may be secret.
 */
#ifndef IRON_SERVER_LOG_REQUEST_H
#define IRON_SERVER_LOG_REQUEST_H

#include "server/audit.h"
#include "server/exchange.h"
#include "server/log.h"
#include "server/problem.h"

#include <sys/socket.h>

/* NULL and a text whose `at` is NULL: not known, and left out. */
typedef struct iron__request_record {
    uint64_t id;
    iron__text method, target;
    const iron__route *route; /* NULL: none was reached */
    unsigned status;          /* 0: no answer was sent */
    const char *engine;       /* "": the request names none */
    const struct sockaddr *client;
    uint64_t bytes_in, bytes_out; /* of bodies */
    uint64_t ns;
    const iron__problem *problem;
    const char *detail; /* what is wrong, where no route has said it */
} iron__request_record;

void iron__log_request(iron__log *log, const iron__request_record *record);
/* A connection that was closed without an answer: nobody could have read it. */
void iron__log_refused(iron__log *log, const struct sockaddr *client, const char *why);

#endif
