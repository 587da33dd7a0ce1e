/* SPDX-License-Identifier: MIT */
/*
 * route_metrics.h: the figures of a server in Prometheus' text format 0.0.4. Pure: the caller has
 * gathered them.
 */
#ifndef IRON_SERVER_ROUTE_METRICS_H
#define IRON_SERVER_ROUTE_METRICS_H

#include "server/process.h"
#include "server/site.h"

#include <stdio.h>

typedef struct iron__metrics {
    const iron__site *site; /* counters and options; store and log are not asked */
    iron__store_counts counts;
    iron__store_disk disk;
    iron__process process;
    uint64_t log_lines, log_dropped;
    bool is_read_only;
    double uptime_seconds;
    const iron__kept_view *engines;
    size_t engine_count;
} iron__metrics;

void iron__metrics_write(FILE *to, const iron__metrics *m);

#endif
