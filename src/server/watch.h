/* SPDX-License-Identifier: MIT */
/*
 * watch.h: deadlines. Every connection that the HTTP library has is watched by one thread, which
 * looks four times a second who keeps the server waiting:
 *
 *     a header that does not arrive, also on a connection that is kept open for the next request;
 *     a body that comes more slowly than the smallest rate;
 *     a whole request that takes its client too long;
 *     an answer that is not read.
 *
 * Only what a client lets the server wait counts: while the server works (waits for the disk, for a
 * device) no clock runs. Whoever is too slow gets a 408 if no answer has begun and the connection
 * is not under TLS, and is cut off.
 */
#ifndef IRON_SERVER_WATCH_H
#define IRON_SERVER_WATCH_H

#include "server/linger.h"
#include "server/site.h"

typedef struct iron__watch iron__watch;
typedef struct iron__watched iron__watched; /* a connection */

typedef struct iron__watch_plan {
    iron__site *site;     /* counters */
    iron__linger *linger; /* borrowed */
    bool is_tls;
    uint32_t header_ms;
    uint32_t request_ms;
    uint32_t body_grace_ms; /* after which the rate is looked at */
    uint64_t body_rate;     /* bytes a second */
    uint32_t stall_ms;      /* for an answer of which nothing more is read */
} iron__watch_plan;

iron_status iron__watch_start(const iron__watch_plan *plan, iron__watch **out, iron_error *err);
/* All connections are gone. NULL is fine. */
void iron__watch_stop(iron__watch *watch);

/* A connection, from its beginning to before its descriptor is closed. NULL without memory. */
iron__watched *iron__watch_add(iron__watch *watch, int fd);
void iron__watch_remove(iron__watch *watch, iron__watched *w);

/* What a connection's thread does next. All are false if the connection was cut off: then nothing
 * must be written to it any more. */
bool iron__watched_work(iron__watched *w, uint64_t id);  /* the server's turn; which request */
bool iron__watched_body(iron__watched *w, size_t bytes); /* waits for more; so many have come */
bool iron__watched_answer(iron__watched *w);             /* sends an answer */
bool iron__watched_stream(iron__watched *w);             /* sends one that may last */
void iron__watched_idle(iron__watched *w);               /* waits for the next request */
/* Why it was cut off, and whether the client was told (408); NULL: it was not. */
const char *iron__watched_cut(iron__watched *w, bool *is_told);
int iron__watched_socket(const iron__watched *w);

#endif
