/* SPDX-License-Identifier: MIT */
/*
 * tickets.h: leave to look at one page once. A link cannot send a token, and a token in a link
 * would stay in histories and logs; so whoever has the token asks for a ticket, which does for one
 * request, soon, at the routes whose row says so.
 *
 * There are few at a time: who asks for many makes the oldest worthless, and nobody waits.
 */
#ifndef IRON_SERVER_TICKETS_H
#define IRON_SERVER_TICKETS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IRON_TICKETS_MAX    64u
#define IRON_TICKET_SECONDS 60u
#define IRON_TICKET_BYTES   16u
#define IRON_TICKET_TEXT    (2 * IRON_TICKET_BYTES + 1)

typedef struct iron__ticket {
    unsigned char bytes[IRON_TICKET_BYTES];
    uint64_t ends_ns; /* 0: it is none, or was used */
} iron__ticket;

typedef struct iron__tickets {
    pthread_mutex_t lock;
    iron__ticket all[IRON_TICKETS_MAX];
} iron__tickets;

void iron__tickets_init(iron__tickets *tickets);
void iron__tickets_deinit(iron__tickets *tickets);
/* A new one as hex digits. False: the system has no randomness to give. The clock is
 * iron__clock_ns, or a test's. */
bool iron__tickets_issue(iron__tickets *tickets, uint64_t now_ns, char text[IRON_TICKET_TEXT]);
/* Is it one that is still good? It is not afterwards. */
bool iron__tickets_redeem(iron__tickets *tickets, uint64_t now_ns, const char *text);

#endif
