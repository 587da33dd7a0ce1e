/* SPDX-License-Identifier: MIT */
/*
 * server.h: the parts of a running server, and what its files know of each other.
 *
 *     gate.h     accepts, counts, looks at first headers      (its thread)
 *     talk.h     a request on its way through the library     (a thread for each connection)
 *     watch.h    deadlines                                    (its thread)
 *     linger.h   polite ends                                  (its thread)
 *     notify.h   words for the service manager, if there is one (its thread)
 *     log.h      lines on standard error                      (its thread)
 */
#ifndef IRON_SERVER_SERVER_H
#define IRON_SERVER_SERVER_H

#include "server/gate.h"
#include "server/hosts.h"
#include "server/linger.h"
#include "server/listen.h"
#include "server/notify.h"
#include "server/site.h"
#include "server/token.h"
#include "server/watch.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>

struct iron_server {
    iron__site site;
    iron__listen listen;
    iron__hosts hosts;
    iron__token token;
    bool is_tls;
    char *tls_key, *tls_cert, *report;
    iron__gate *gate;
    iron__watch *watch;
    iron__linger *linger;
    iron__notify notify;
    iron__pulse *pulse;
    struct MHD_Daemon *daemon;
    pthread_mutex_t reading;             /* held while a large document is read */
    atomic_uint_fast64_t document_bytes; /* of large documents that are here */
    FILE *nowhere;                       /* for documents that there is no memory for */
    atomic_bool is_cutting;              /* the grace is over: bodies are no longer waited for */
};

/* options.c: copies with defaults in place; refuses with a sentence what cannot be. */
iron_status iron__options_init(iron_server_options *options, const iron_server_options *given,
                               iron_error *err);
/* What its log is to be. */
iron_status iron__options_log(const iron_server_options *options, iron__log_plan *plan,
                              iron_error *err);
void iron__options_deinit(iron_server_options *options);
/* daemon.c: the HTTP library, started with our callbacks. */
iron_status iron__daemon_start(iron_server *server, iron_error *err);
/* For the gate, whose context is the server: a connection that may be served. */
void iron__daemon_hand(void *context, int fd, const struct sockaddr *address, socklen_t bytes);

#endif
