/* SPDX-License-Identifier: MIT */
/*
 * notify.c: words for the service manager; see notify.h. A datagram that is lost would leave the
 * manager waiting for good, so sending waits for room; but not for ever, since a manager that hangs
 * must not hang the server.
 */
#include "server/notify.h"

#include "core/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S  10
#define LOADING_NS  UINT64_C(1000000000)
#define EXTENDED_US 30000000

static void note_failure(iron__notify *notify) {
    int number = errno;

    if (!atomic_exchange(&notify->has_failed, true))
        iron__note(notify->log, "cannot tell the service manager at %s: %s", notify->address,
                   strerror(number));
}

void iron__notify_open(iron__notify *notify, const iron_service *service, iron__log *log) {
    const struct timeval patience = {.tv_sec = PATIENCE_S};

    *notify = (iron__notify){.fd = -1, .log = log};
    if (!service || !service->notify[0])
        return;
    snprintf(notify->address, sizeof notify->address, "%s", service->notify);
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd < 0)
        note_failure(notify);
    else
        (void)setsockopt(notify->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

void iron__notify_close(iron__notify *notify) {
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

/* A name of the abstract kind begins with a zero, which is written as @. */
static socklen_t address_of(const iron__notify *notify, struct sockaddr_un *address) {
    size_t bytes = strlen(notify->address);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, notify->address, bytes);
    if (address->sun_path[0] == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
}

void iron__notify_tell(iron__notify *notify, const char *format, ...) {
    struct sockaddr_un address;
    socklen_t address_bytes;
    char text[600];
    va_list values;
    int bytes;

    if (notify->fd < 0)
        return;
    va_start(values, format);
    bytes = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (bytes < 0)
        return;
    if ((size_t)bytes >= sizeof text)
        bytes = sizeof text - 1;
    address_bytes = address_of(notify, &address);
    if (sendto(notify->fd, text, (size_t)bytes, MSG_NOSIGNAL, (struct sockaddr *)&address,
               address_bytes) < 0)
        note_failure(notify);
}

void iron__notify_loading(void *context, const iron__store_loading *loading) {
    iron__notify *notify = context;
    uint64_t now = iron__clock_ns();

    if (notify->fd < 0 || (notify->told_ns && now - notify->told_ns < LOADING_NS))
        return;
    notify->told_ns = now;
    if (!loading->engine)
        iron__notify_tell(notify, "STATUS=inspecting the database\nEXTEND_TIMEOUT_USEC=%d",
                          EXTENDED_US);
    else
        iron__notify_tell(notify,
                          "STATUS=replaying engine %s (%zu of %zu), %" PRIu64
                          " batches so far\nEXTEND_TIMEOUT_USEC=%d",
                          loading->engine, loading->number, loading->engines, loading->batches,
                          EXTENDED_US);
}
