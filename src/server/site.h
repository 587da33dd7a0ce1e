/* SPDX-License-Identifier: MIT */
/*
 * site.h: what all exchanges share: the store, the options, the counters. Made once when the server
 * starts, destroyed after its last thread has ended.
 */
#ifndef IRON_SERVER_SITE_H
#define IRON_SERVER_SITE_H

#include "store/store.h"

#include <iron/iron_server.h>

#include <stdatomic.h>

/* Upper edges of the latency histograms, in milliseconds; one more bucket has no edge. */
#define IRON_LATENCY_EDGES                                                                         \
    { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000 }
#define IRON_LATENCY_BUCKETS 12u

typedef struct iron__site {
    iron_server_options options; /* with every default filled in */
    iron__store *store;
    uint64_t started_ns;
    atomic_bool is_stopping;
    atomic_uint_fast64_t requests;
    atomic_uint_fast64_t answers[6]; /* by hundreds of the status: [2] is 2xx */
    atomic_uint_fast64_t bytes_in;   /* of bodies */
    atomic_uint_fast64_t refused_connections, timed_out, malformed;
    atomic_uint_fast64_t latency[IRON_LATENCY_BUCKETS], latency_ns; /* of whole requests */
    atomic_uint connections;
    atomic_uint_fast64_t copied_bytes; /* of nodes on their way to clients (route_state.c) */
    const unsigned char *report;       /* --report, read at start; NULL: none */
    size_t report_bytes;
} iron__site;

#endif
