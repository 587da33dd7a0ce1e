/* SPDX-License-Identifier: MIT */
/*
 * gate.c: accepting, waiting for headers, letting in or refusing; see gate.h.
 *
 * A connection that waits is in a list and in epoll, edge-triggered: data that is peeked at stays
 * readable, and only what is new may wake the thread. A connection over a limit waits too, for its
 * header or a second, so that its refusal does not meet an unread request; few may, and when there
 * are more the oldest is answered at once.
 */
#include "server/gate.h"

#include "server/log_request.h"
#include "server/newcomer.h"
#include "server/wire.h"

#include "core/clock.h"
#include "core/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define REFUSED_MAX     64u
#define REFUSED_WAIT_NS UINT64_C(1000000000)
#define ACCEPTED_A_TURN 64
#define LOOK_MS         100

static void refuse_all_late(iron__gate *g) {
    uint64_t now = iron__clock_ns();

    for (iron__newcomer *n = g->list.next, *next; n != &g->list; n = next) {
        next = n->next;
        if (now >= n->until_ns)
            iron__newcomer_late(g, n);
    }
}

/* May one more come in? */
static iron__verdict admit(iron__gate *g, const struct sockaddr *address) {
    const iron_server_options *limits = &g->plan.site->options;

    switch (iron__census_enter(g->census, address)) {
    case IRON_CENSUS_FULL:
        return iron__verdict_make("busy", "try again a little later",
                                  "the server has all of its %u connections",
                                  limits->max_connections);
    case IRON_CENSUS_ADDRESS_FULL:
        return iron__verdict_make("too-many-connections", "use connections again, or fewer of them",
                                  "this address has all of its %u connections",
                                  limits->max_per_address);
    default:
        atomic_fetch_add(&g->plan.site->connections, 1);
        return iron__verdict_fine();
    }
}

static void enlist(iron__gate *g, iron__newcomer *n) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = n};
    uint64_t wait = n->refusal.kind ? REFUSED_WAIT_NS : g->plan.header_ms * UINT64_C(1000000);

    n->since_ns = iron__clock_ns();
    n->until_ns = n->since_ns + wait;
    n->before = &g->list;
    n->next = g->list.next;
    n->next->before = n;
    g->list.next = n;
    if (n->refusal.kind)
        g->refused_count++;
    if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, n->fd, &event) != 0)
        iron__newcomer_hang_up(g, n);
}

/* One of those who wait for their refusal is answered now, the one who came first. */
static void refuse_oldest(iron__gate *g) {
    for (iron__newcomer *n = g->list.before; n != &g->list; n = n->before)
        if (n->refusal.kind) {
            iron__newcomer_late(g, n);
            return;
        }
}

static void welcome(iron__gate *g, int fd, const struct sockaddr_storage *address,
                    socklen_t bytes) {
    iron__verdict refusal = admit(g, (const struct sockaddr *)address);
    iron__newcomer *n = NULL;

    if (refusal.kind)
        atomic_fetch_add(&g->plan.site->refused_connections, 1);
    if (g->plan.is_tls && !refusal.kind) {
        g->plan.hand(g->plan.context, fd, (const struct sockaddr *)address, bytes);
        return;
    }
    if (refusal.kind && g->refused_count == REFUSED_MAX)
        refuse_oldest(g);
    if (!refusal.kind || !g->plan.is_tls)
        n = calloc(1, sizeof *n);
    if (n) {
        n->fd = fd;
        n->address = *address;
        n->address_bytes = bytes;
        n->refusal = refusal;
        enlist(g, n);
        return;
    }
    if (!refusal.kind)
        iron__gate_leave(g, (const struct sockaddr *)address);
    else
        iron__log_refused(g->plan.site->log, (const struct sockaddr *)address, refusal.detail);
    close(fd);
}

static void accept_some(iron__gate *g) {
    for (int k = 0; k < ACCEPTED_A_TURN; k++) {
        struct sockaddr_storage address;
        socklen_t bytes = sizeof address;
        int fd = accept4(g->plan.listen_fd, (struct sockaddr *)&address, &bytes,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            welcome(g, fd, &address, bytes);
        } else if (errno != ECONNABORTED && errno != EINTR) {
            if (errno != EAGAIN) /* no descriptors, no memory: others must end first */
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            return;
        }
    }
}

static void *run(void *context) {
    iron__gate *g = context;
    struct epoll_event events[64];
    uint64_t looked_ns = iron__clock_ns();

    for (;;) {
        int timeout = g->list.next != &g->list ? LOOK_MS : -1;
        int ready = epoll_wait(g->epoll, events, 64, timeout);

        for (int k = 0; k < ready; k++) {
            if (events[k].data.ptr == &g->wake)
                return NULL;
            if (events[k].data.ptr == &g->plan.listen_fd)
                continue; /* last: what it brings must not take a pointer that is still to come */
            iron__newcomer_look(g, events[k].data.ptr, events[k].events & EPOLLRDHUP);
        }
        for (int k = 0; k < ready; k++)
            if (events[k].data.ptr == &g->plan.listen_fd)
                accept_some(g);
        if (iron__clock_ns() - looked_ns >= LOOK_MS * UINT64_C(1000000)) {
            looked_ns = iron__clock_ns();
            refuse_all_late(g);
        }
    }
}

void iron__gate_leave(iron__gate *g, const struct sockaddr *address) {
    iron__census_leave(g->census, address);
    atomic_fetch_sub(&g->plan.site->connections, 1);
}

static bool listen_to(iron__gate *g, int fd, void *what) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

    return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

iron_status iron__gate_open(const iron__gate_plan *plan, iron__gate **out, iron_error *err) {
    iron__gate *g = calloc(1, sizeof *g);
    iron_status status;

    *out = NULL;
    if (!g) {
        close(plan->listen_fd);
        IRON_FAIL(err, IRON_E_NOMEM, "out of memory: the gate");
    }
    g->plan = *plan;
    g->list.next = g->list.before = &g->list;
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    status = iron__census_create(plan->site->options.max_connections,
                                 plan->site->options.max_per_address, &g->census, err);
    if (status == IRON_OK && (g->epoll < 0 || g->wake < 0 || !listen_to(g, g->wake, &g->wake) ||
                              !listen_to(g, plan->listen_fd, &g->plan.listen_fd)))
        status = iron__fail(err, IRON_E_IO, errno, "cannot watch the gate: %s", strerror(errno));
    if (status != IRON_OK)
        iron__gate_close(g);
    else
        *out = g;
    return status;
}

iron_status iron__gate_start(iron__gate *g, iron_error *err) {
    int number = pthread_create(&g->thread, NULL, run, g);

    if (number != 0)
        return iron__fail(err, IRON_E_NOMEM, number, "cannot start a thread: %s", strerror(number));
    g->is_running = true;
    return IRON_OK;
}

void iron__gate_shut(iron__gate *g) {
    const uint64_t one = 1;

    if (g->is_running) {
        (void)!write(g->wake, &one, sizeof one);
        pthread_join(g->thread, NULL);
        g->is_running = false;
    }
    while (g->list.next != &g->list)
        iron__newcomer_hang_up(g, g->list.next);
    if (g->plan.listen_fd >= 0)
        close(g->plan.listen_fd);
    g->plan.listen_fd = -1;
}

void iron__gate_close(iron__gate *g) {
    if (!g)
        return;
    iron__gate_shut(g);
    if (g->epoll >= 0)
        close(g->epoll);
    if (g->wake >= 0)
        close(g->wake);
    iron__census_destroy(g->census);
    free(g);
}
