/* SPDX-License-Identifier: MIT */
/*
 * activation.c: what a service manager gives to the process it starts, read from the environment:
 * a listening socket, where it wants to be told how things are, how often. The protocol is
 * systemd's, which others speak too; it is a few variables, and no library is needed for it.
 *
 * LISTEN_PID, LISTEN_FDS    sockets from descriptor 3 on, if the number is that of this process
 * NOTIFY_SOCKET             a datagram socket: a path, or @ and a name of the abstract kind
 * WATCHDOG_USEC, _PID       how often it wants to hear, if the number is that of this process
 *
 * All of them are taken out of the environment: they are for one process, and none that it may
 * start. Variables for another process are passed over, as the protocol has it.
 */
#include <iron/iron_server.h>

#include "core/fail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 3u

static bool read_number(const char *text, uint64_t *number) {
    char *end;

    if (strspn(text, "0123456789") != strlen(text) || !text[0])
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0;
}

/* A number that a variable must be if it is there; `otherwise` if it is not. */
static iron_status number_of(const char *name, uint64_t otherwise, uint64_t *number,
                             iron_error *err) {
    const char *text = getenv(name);

    *number = otherwise;
    IRON_FAIL_IF(text && !read_number(text, number), err, IRON_E_ARG,
                 "the variable %s is '%.40s', which is no number; unset it, or let the service "
                 "manager set it",
                 name, text);
    return IRON_OK;
}

static iron_status take_socket(iron_service *service, iron_error *err) {
    uint64_t process, count;

    IRON_TRY(number_of("LISTEN_PID", 0, &process, err));
    IRON_TRY(number_of("LISTEN_FDS", 0, &count, err));
    if (process != (uint64_t)getpid() || count == 0)
        return IRON_OK;
    IRON_FAIL_IF(count > 1, err, IRON_E_ARG,
                 "%llu sockets were handed over (LISTEN_FDS); a server listens on one: leave one "
                 "ListenStream= in the socket unit",
                 (unsigned long long)count);
    service->listen_fd = FIRST_DESCRIPTOR;
    return IRON_OK;
}

static iron_status take_notify(iron_service *service, iron_error *err) {
    const char *address = getenv("NOTIFY_SOCKET");

    if (!address || !address[0])
        return IRON_OK;
    IRON_FAIL_IF(address[0] != '/' && address[0] != '@', err, IRON_E_ARG,
                 "the variable NOTIFY_SOCKET is '%.80s', which is neither a path nor @ and a name; "
                 "unset it",
                 address);
    IRON_FAIL_IF(strlen(address) >= sizeof((struct sockaddr_un *)NULL)->sun_path, err, IRON_E_ARG,
                 "the variable NOTIFY_SOCKET has %zu bytes, which no socket's name has; unset it",
                 strlen(address));
    snprintf(service->notify, sizeof service->notify, "%s", address);
    return IRON_OK;
}

static iron_status take_watchdog(iron_service *service, iron_error *err) {
    uint64_t process;

    IRON_TRY(number_of("WATCHDOG_PID", (uint64_t)getpid(), &process, err));
    IRON_TRY(number_of("WATCHDOG_USEC", 0, &service->watchdog_us, err));
    if (process != (uint64_t)getpid())
        service->watchdog_us = 0;
    return IRON_OK;
}

static void clear(void) {
    static const char *const names[] = {"LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES",
                                        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        unsetenv(names[k]);
}

iron_status iron_service_take(iron_service *service, iron_error *err) {
    iron_status status;

    *service = (iron_service){.struct_size = sizeof *service};
    status = take_socket(service, err);
    if (status == IRON_OK)
        status = take_notify(service, err);
    if (status == IRON_OK)
        status = take_watchdog(service, err);
    clear();
    return status;
}
