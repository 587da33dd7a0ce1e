/* SPDX-License-Identifier: MIT */
/*
 * gate.h: who comes in. The gate accepts connections, counts them, and looks at the first header
 * of each with its own eyes before the HTTP library sees a byte of it: what is malformed, late or
 * too many is answered here. The bytes are only peeked at, so the library reads them all again.
 *
 * One thread does this for everybody, so a client that never finishes its header costs a socket
 * and nothing else. A connection under TLS shows nothing before the library has decrypted it: it is
 * counted and handed on at once.
 */
#ifndef IRON_SERVER_GATE_H
#define IRON_SERVER_GATE_H

#include "server/linger.h"
#include "server/site.h"

#include <sys/socket.h>

typedef struct iron__gate iron__gate;

typedef struct iron__gate_plan {
    int listen_fd; /* the gate takes it, also when it fails to open */
    bool is_tls;
    uint32_t header_ms;
    iron__site *site;     /* limits and counters */
    iron__linger *linger; /* borrowed */
    /* A connection that may be served; takes fd in any case. When it is over, or if it could not
     * be served, iron__gate_leave is called with its address. */
    void (*hand)(void *context, int fd, const struct sockaddr *address, socklen_t bytes);
    void *context;
} iron__gate_plan;

/* Nothing is accepted yet. */
iron_status iron__gate_open(const iron__gate_plan *plan, iron__gate **out, iron_error *err);
iron_status iron__gate_start(iron__gate *gate, iron_error *err);
/* A connection that was handed on is over. From any thread. */
void iron__gate_leave(iron__gate *gate, const struct sockaddr *address);
/* No more connections; those whose header was not complete are closed. */
void iron__gate_shut(iron__gate *gate);
void iron__gate_close(iron__gate *gate); /* NULL is fine */

#endif
