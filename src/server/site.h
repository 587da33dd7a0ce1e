/* SPDX-License-Identifier: MIT */
/*
 * site.h: what all exchanges share: the store, the options, the log, the counters. Made once when
 * the server starts, destroyed after its last thread has ended.
 */
#ifndef IRON_SERVER_SITE_H
#define IRON_SERVER_SITE_H

#include "server/log.h"
#include "server/problem.h"
#include "server/tickets.h"
#include "store/latency.h"
#include "store/store.h"

#include <iron/iron_server.h>

#include <stdatomic.h>

#define IRON_ROUTES_MAX 64u /* rows whose latency is counted apart; further ones count as none */

typedef struct iron__site {
    iron_server_options options; /* with every default filled in */
    iron__store *store;
    iron__log *log;
    uint64_t started_ns, started_ms; /* by the clock that only goes forward, and since 1970 */
    double process_start;            /* seconds since 1970; 0: not known */
    iron__tickets tickets;
    atomic_bool is_stopping;
    atomic_uint_fast64_t requests;
    atomic_uint_fast64_t answers[6];                   /* by hundreds of the status: [2] is 2xx */
    atomic_uint_fast64_t rejected[IRON_PROBLEM_COUNT]; /* answers that are problems, by row */
    atomic_uint_fast64_t bytes_in, bytes_out;          /* of bodies */
    atomic_uint_fast64_t refused_connections, timed_out, malformed;
    iron__latency latency[IRON_ROUTES_MAX + 1]; /* by row of the table; the last: of none */
    atomic_uint connections;
    atomic_uint in_flight; /* requests whose header has come and whose answer has not gone */
    atomic_uint_fast64_t copied_bytes; /* of nodes on their way to clients (route_state.c) */
    const unsigned char *report;       /* --report, read at start; NULL: none */
    size_t report_bytes;
} iron__site;

struct iron__route;

/* A number that no other request to this server has. Counts the request. */
uint64_t iron__request_id(iron__site *site);
/* Counts an answer that is sent: by its status and, unless NULL, as a problem. */
void iron__site_answered(iron__site *site, unsigned status, const iron__problem *problem);
/* Counts how long a request took; of no route: NULL. */
void iron__site_took(iron__site *site, const struct iron__route *route, uint64_t ns);

#endif
