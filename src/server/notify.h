/* SPDX-License-Identifier: MIT */
/*
 * notify.h: what a service manager is told, and the pulse that tells it.
 *
 * Words go as datagrams to the socket it named ("READY=1", "STATUS=...", "WATCHDOG=1"); without one
 * every function does nothing. What cannot be told is noted once: it is no reason to stop serving.
 *
 * The pulse is a thread that tells when something has changed, and, where the manager wants to hear
 * regularly, that all is well. It says so only if it is: the writer is idle, or has not been at one
 * piece of work for longer than the manager's patience. A disk that no longer answers so becomes a
 * process that the manager ends and starts again.
 */
#ifndef IRON_SERVER_NOTIFY_H
#define IRON_SERVER_NOTIFY_H

#include "server/site.h"

#include <pthread.h>

typedef struct iron__notify {
    int fd;         /* -1: nobody listens */
    iron__log *log; /* borrowed, for what cannot be told */
    char address[112];
    atomic_bool has_failed;
    uint64_t told_ns; /* when the store's opening was told of last */
} iron__notify;

void iron__notify_open(iron__notify *notify, const iron_service *service, iron__log *log);
void iron__notify_close(iron__notify *notify);
/* Lines of NAME=VALUE, one after the other. */
void iron__notify_tell(iron__notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* For the store, whose context is the notify: it is being opened and goes on. Tells once a second,
 * and asks for half a minute more each time. */
void iron__notify_loading(void *context, const iron__store_loading *loading);

typedef struct iron__pulse iron__pulse;

/* Ready now: tells so, and from then on what changes. Borrows all three. */
iron_status iron__pulse_start(iron__notify *notify, iron__site *site, const char *url,
                              uint64_t watchdog_us, iron__pulse **out, iron_error *err);
void iron__pulse_stop(iron__pulse *pulse); /* NULL is fine */

#endif
