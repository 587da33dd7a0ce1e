/* SPDX-License-Identifier: MIT */
/*
 * newcomer.c: what becomes of a connection at the gate; see newcomer.h. Its bytes are peeked at and
 * stay where they are: the HTTP library reads them from the beginning. A newcomer is freed by
 * whatever decides about it.
 */
#include "server/newcomer.h"

#include "server/log_request.h"
#include "server/wire.h"

#include "core/clock.h"

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

/* The refusal is counted and told of; header: NULL if it did not come, or cannot be taken apart. */
static void record(const iron__gate *g, const iron__newcomer *n, const iron__verdict *verdict,
                   const iron__header *header, const iron__request_record *more) {
    iron__site *site = g->plan.site;
    iron__request_record r = *more;

    r.problem = iron__problem_find(verdict->kind);
    r.status = r.problem->status;
    r.detail = verdict->detail;
    r.client = address_of(n);
    r.ns = iron__clock_ns() - n->since_ns;
    if (header) {
        r.method = header->method;
        r.target = header->target;
    }
    iron__site_answered(site, r.status, r.problem);
    iron__site_took(site, NULL, r.ns);
    atomic_fetch_add(&site->bytes_out, r.bytes_out);
    iron__log_request(site->log, &r);
}

/* Answers with a problem; the peer gets time to read it. */
static void refuse(iron__gate *g, iron__newcomer *n, const iron__verdict *verdict,
                   const iron__header *header) {
    char room[IRON_WIRE_PROBLEM_MAX];
    uint64_t id = iron__request_id(g->plan.site);
    size_t bytes = iron__wire_problem(room, verdict, id), head = head_bytes(room, bytes);
    int fd = n->fd;

    if (is_head(g, n))
        bytes = head;
    record(g, n, verdict, header, &(iron__request_record){.id = id, .bytes_out = bytes - head});
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
    const iron__header *header = verdict.kind ? NULL : &g->header;

    if (!verdict.kind)
        verdict = iron__audit_judge(&g->header);
    if (n->refusal.kind) {
        refuse(g, n, &n->refusal, header);
    } else if (verdict.kind) {
        atomic_fetch_add(&g->plan.site->malformed, 1);
        refuse(g, n, &verdict, header);
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
        refuse(g, n, n->refusal.kind ? &n->refusal : &verdict, NULL);
    } else if (is_all) {
        iron__newcomer_hang_up(g, n);
    }
}

void iron__newcomer_late(iron__gate *g, iron__newcomer *n) {
    iron__verdict verdict =
        iron__verdict_make("too-slow", "send the whole header at once",
                           "the header was not complete after %u ms", g->plan.header_ms);

    if (n->refusal.kind) {
        refuse(g, n, &n->refusal, NULL);
        return;
    }
    atomic_fetch_add(&g->plan.site->timed_out, 1);
    if (recv(n->fd, g->peeked, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
        refuse(g, n, &verdict, NULL);
    else
        iron__newcomer_hang_up(g, n); /* it never asked for anything */
}
