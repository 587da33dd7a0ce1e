/* SPDX-License-Identifier: MIT */
/*
 * route.h: the functions behind the table of routes, and what several of them share: finding the
 * engine that a path names, and turning a failure of the store into a problem.
 */
#ifndef IRON_SERVER_ROUTE_H
#define IRON_SERVER_ROUTE_H

#include "server/exchange.h"

/* The functions of the table, by the file route_*.c that they are in. */

void iron__route_list(iron__exchange *x); /* engines */
void iron__route_create(iron__exchange *x);
void iron__route_show(iron__exchange *x);
void iron__route_delete(iron__exchange *x);

void iron__route_feed_begin(iron__exchange *x); /* feed */
void iron__route_feed_take(iron__exchange *x, const void *bytes, size_t count);
void iron__route_feed_end(iron__exchange *x);
void iron__route_feed_drop(iron__exchange *x);

void iron__route_quantize(iron__exchange *x); /* quantize */

void iron__route_state(iron__exchange *x); /* state */
void iron__route_state_drop(iron__exchange *x);

void iron__route_batches(iron__exchange *x); /* batches */
void iron__route_events(iron__exchange *x);  /* events */
void iron__route_live(iron__exchange *x);    /* live */
void iron__route_info(iron__exchange *x);    /* info */
void iron__route_metrics(iron__exchange *x); /* metrics */
void iron__route_ticket(iron__exchange *x);  /* tickets */

void iron__route_health(iron__exchange *x); /* health */
void iron__route_ready(iron__exchange *x);

void iron__route_openapi(iron__exchange *x); /* pages */
void iron__route_report(iron__exchange *x);

void iron__route_dashboard(iron__exchange *x); /* dashboard */
void iron__route_dashboard_script(iron__exchange *x);
void iron__route_dashboard_style(iron__exchange *x);

/* What they share (route_common.c; route_pages.c). */

/* The engine of this name, held; or NULL, and the exchange is answered. */
iron__kept *iron__route_engine(iron__exchange *x, const char *name);
/* A failure of the store or a device that is nobody's mistake: damaged, read-only, stopping, busy
 * (memory), backend-unavailable or internal. */
void iron__route_failure(iron__exchange *x, const iron_error *err);
/* A query parameter as a whole number min ... max; `value` is left alone if it is not given. False:
 * it is none, and the exchange is answered. */
bool iron__route_number(iron__exchange *x, const char *name, uint64_t min, uint64_t max,
                        uint64_t *value);
/* Bytes that are part of the program, with an ETag made of them; 304 if the client has them. */
void iron__route_tagged(iron__exchange *x, const char *type, const void *bytes, size_t count);

#endif
