/* SPDX-License-Identifier: MIT */
/* site.c: counting; see site.h. */
#include "server/site.h"

#include "server/exchange.h"

uint64_t iron__request_id(iron__site *site) {
    /* Nobody serves a request a nanosecond: what follows the start of one server is before that of
     * the next. */
    return site->started_ns + atomic_fetch_add(&site->requests, 1);
}

void iron__site_answered(iron__site *site, unsigned status, const iron__problem *problem) {
    if (status / 100 < sizeof site->answers / sizeof site->answers[0])
        atomic_fetch_add(&site->answers[status / 100], 1);
    if (problem)
        atomic_fetch_add(&site->rejected[problem - iron__problems], 1);
}

void iron__site_took(iron__site *site, const iron__route *route, uint64_t ns) {
    size_t row = route ? (size_t)(route - iron__routes) : IRON_ROUTES_MAX;

    iron__latency_count(&site->latency[row < IRON_ROUTES_MAX ? row : IRON_ROUTES_MAX], ns);
}
