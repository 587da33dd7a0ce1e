/* SPDX-License-Identifier: MIT */
/*
 * newcomer.c: what becomes of a connection at the gate; see newcomer.h. Its bytes are peeked at and
 * stay where they are: the HTTP library reads them from the beginning. A newcomer is freed by
 * whatever decides about it.
 */
#include "server/newcomer.h"

#include "server/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static const struct sockaddr *address_of(const iron__newcomer *n) {
    return (const struct sockaddr *)&n->address;
}

/* Takes a newcomer out of everything but its descriptor. */
static void forget(iron__gate *g, iron__newcomer *n, bool is_leaving) {
    epoll_ctl(g->epoll, EPOLL_CTL_DEL, n->fd, NULL);
    n->before->next = n->next;
    n->next->before = n->before;
    if (n->refusal.kind)
        g->refused_count--;
    else if (is_leaving)
        iron__gate_leave(g, address_of(n));
    free(n);
}

void iron__newcomer_hang_up(iron__gate *g, iron__newcomer *n) {
    int fd = n->fd;

    forget(g, n, true);
    close(fd);
}

/* Does it ask for a header alone? */
static bool is_head(iron__gate *g, const iron__newcomer *n) {
    static const char head[] = "HEAD ";
    ssize_t got = recv(n->fd, g->peeked, sizeof head - 1, MSG_PEEK | MSG_DONTWAIT);

    return got == sizeof head - 1 && memcmp(g->peeked, head, sizeof head - 1) == 0;
}

/* Of an answer, up to and with its empty line. */
static size_t head_bytes(const char *answer, size_t bytes) {
    const char *end = memmem(answer, bytes, "\r\n\r\n", 4);

    return end ? (size_t)(end - answer) + 4 : bytes;
}

/* Answers with a problem; the peer gets time to read it. */
static void refuse(iron__gate *g, iron__newcomer *n, const iron__verdict *verdict) {
    char room[IRON_WIRE_PROBLEM_MAX];
    size_t bytes = iron__wire_problem(room, verdict, iron__request_id(g->plan.site));
    int fd = n->fd;

    iron__site_count(g->plan.site, iron__problem_find(verdict->kind)->status);
    if (is_head(g, n))
        bytes = head_bytes(room, bytes);
    (void)iron__wire_send(fd, room, bytes, 0);
    shutdown(fd, SHUT_WR);
    forget(g, n, true);
    iron__linger_take(g->plan.linger, fd);
}

static void let_in(iron__gate *g, iron__newcomer *n) {
    struct sockaddr_storage address = n->address;
    socklen_t bytes = n->address_bytes;
    int fd = n->fd;

    forget(g, n, false);
    g->plan.hand(g->plan.context, fd, (const struct sockaddr *)&address, bytes);
}

/* The header is here as a whole: is it one that can be served? */
static void decide(iron__gate *g, iron__newcomer *n, size_t bytes) {
    iron__verdict verdict = iron__audit_split(g->peeked, bytes, &g->header);

    if (!verdict.kind)
        verdict = iron__audit_judge(&g->header);
    if (n->refusal.kind) {
        refuse(g, n, &n->refusal);
    } else if (verdict.kind) {
        atomic_fetch_add(&g->plan.site->malformed, 1);
        refuse(g, n, &verdict);
    } else {
        let_in(g, n);
    }
}

void iron__newcomer_look(iron__gate *g, iron__newcomer *n, bool is_all) {
    ssize_t got = recv(n->fd, g->peeked, sizeof g->peeked, MSG_PEEK | MSG_DONTWAIT);
    iron__verdict verdict;
    size_t end;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        iron__newcomer_hang_up(g, n);
        return;
    }
    verdict = iron__audit_extent(g->peeked, (size_t)got, &end);
    if (end > 0) {
        decide(g, n, end);
    } else if (verdict.kind) {
        if (!n->refusal.kind)
            atomic_fetch_add(&g->plan.site->malformed, 1);
        refuse(g, n, n->refusal.kind ? &n->refusal : &verdict);
    } else if (is_all) {
        iron__newcomer_hang_up(g, n);
    }
}

void iron__newcomer_late(iron__gate *g, iron__newcomer *n) {
    iron__verdict verdict =
        iron__verdict_make("too-slow", "send the whole header at once",
                           "the header was not complete after %u ms", g->plan.header_ms);

    if (n->refusal.kind) {
        refuse(g, n, &n->refusal);
        return;
    }
    atomic_fetch_add(&g->plan.site->timed_out, 1);
    if (recv(n->fd, g->peeked, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
        refuse(g, n, &verdict);
    else
        iron__newcomer_hang_up(g, n); /* it never asked for anything */
}
