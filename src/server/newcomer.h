/* SPDX-License-Identifier: MIT */
/*
 * newcomer.h: a connection at the gate whose header is not complete, and the gate's inside.
 */
#ifndef IRON_SERVER_NEWCOMER_H
#define IRON_SERVER_NEWCOMER_H

#include "server/audit.h"
#include "server/census.h"
#include "server/gate.h"

#include <pthread.h>

/* A connection whose header is not complete. */
typedef struct iron__newcomer {
    struct iron__newcomer *next, *before;
    int fd;
    struct sockaddr_storage address;
    socklen_t address_bytes;
    uint64_t since_ns, until_ns;
    iron__verdict refusal; /* kind NULL: it may come in */
} iron__newcomer;

struct iron__gate {
    iron__gate_plan plan;
    iron__census *census;
    pthread_t thread;
    bool is_running;
    int epoll, wake;
    iron__newcomer list; /* head of a ring */
    uint32_t refused_count;
    char peeked[IRON_HEADER_BYTES_MAX];
    iron__header header;
};

/* What has arrived so far, and is that all there will be? Lets in, refuses, hangs up, or waits. */
void iron__newcomer_look(iron__gate *gate, iron__newcomer *n, bool is_all);
/* Its time is over. */
void iron__newcomer_late(iron__gate *gate, iron__newcomer *n);
void iron__newcomer_hang_up(iron__gate *gate, iron__newcomer *n);

#endif
