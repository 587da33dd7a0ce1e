/* SPDX-License-Identifier: MIT */
/*
 * bench_server_load.c: feeds on many connections at once, from one thread with epoll. A connection
 * sends a request, waits for its answer, checks it, and sends the next, until its share is done or
 * the time is over; it always waits for the last answer. Connection k feeds engine k modulo the
 * number of engines.
 *
 * All bodies repeat one small pattern, so that sending them reads little memory.
 */
#include "bench_server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATTERN_BYTES ((size_t)256 << 10)
#define EVENTS        64

typedef struct lane {
    int fd;
    size_t engine;
    char head[320];
    size_t head_bytes;
    uint64_t sent; /* of head and body */
    uint64_t started, requests;
    bool waits_to_send;
    answer answer;
} lane;

typedef struct load {
    const load_plan *plan;
    int epoll;
    unsigned char *pattern;
    lane *lanes;
    uint64_t active; /* connections with more to do */
    uint64_t begun, until;
    uint64_t *acknowledged; /* bytes, of each engine */
    samples samples;
} load;

static void *zeroed(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes);

    if (!memory)
        die("no memory for %zu times %zu bytes", count, bytes);
    return memory;
}

static void watch(const load *w, lane *l, int operation, bool sending) {
    struct epoll_event event = {.events = sending ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = l};

    if (epoll_ctl(w->epoll, operation, l->fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
    l->waits_to_send = sending;
}

/* What is left of the request: of the header, and of the body as far as the pattern goes. */
static size_t pieces_left(const load *w, const lane *l, struct iovec pieces[2]) {
    uint64_t body_sent = l->sent > l->head_bytes ? l->sent - l->head_bytes : 0;
    uint64_t body_left = w->plan->body_bytes - body_sent;
    size_t at = (size_t)(body_sent % PATTERN_BYTES), used = 0;

    if (l->sent < l->head_bytes)
        pieces[used++] = (struct iovec){(void *)(l->head + l->sent), l->head_bytes - l->sent};
    if (body_left > 0)
        pieces[used++] =
            (struct iovec){w->pattern + at,
                           body_left < PATTERN_BYTES - at ? (size_t)body_left : PATTERN_BYTES - at};
    return used;
}

/* Sends as much as goes without waiting. */
static void send_on(const load *w, lane *l) {
    struct iovec pieces[2];
    struct msghdr message = {.msg_iov = pieces};

    while ((message.msg_iovlen = pieces_left(w, l, pieces)) > 0) {
        ssize_t sent = sendmsg(l->fd, &message, MSG_NOSIGNAL);

        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0 && errno != EINTR && errno != EPIPE && errno != ECONNRESET)
            die("cannot send: %s", strerror(errno));
        if (sent < 0 && errno != EINTR)
            break; /* an answer may still be there and say why */
        l->sent += sent > 0 ? (uint64_t)sent : 0;
    }
    if ((message.msg_iovlen > 0) != l->waits_to_send)
        watch(w, l, EPOLL_CTL_MOD, message.msg_iovlen > 0);
}

static void begin_request(load *w, lane *l) {
    l->sent = 0;
    l->started = now_ns();
    answer_begin(&l->answer);
    send_on(w, l);
}

static void finish(load *w, lane *l) {
    close(l->fd);
    w->active--;
}

static void check_answer(load *w, const lane *l) {
    if (l->answer.status != 200)
        die("engine %s%zu: status %u: %.300s", w->plan->prefix, l->engine, l->answer.status,
            l->answer.text + l->answer.head_bytes);
    if (l->sent != l->head_bytes + w->plan->body_bytes)
        die("engine %s%zu: answered before the body was sent", w->plan->prefix, l->engine);
}

static void end_request(load *w, lane *l) {
    uint64_t now = now_ns();

    check_answer(w, l);
    samples_add(&w->samples, now - l->started);
    w->acknowledged[l->engine] += w->plan->body_bytes;
    l->requests++;
    if ((w->until && now >= w->until) || (w->plan->requests && l->requests == w->plan->requests))
        finish(w, l);
    else
        begin_request(w, l);
}

static void receive(load *w, lane *l) {
    char bytes[4096];
    ssize_t got = recv(l->fd, bytes, sizeof bytes, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        die("engine %s%zu: the connection ended %" PRIu64 " bytes into a request: %s",
            w->plan->prefix, l->engine, l->sent, got < 0 ? strerror(errno) : "closed");
    if (answer_take(&l->answer, bytes, (size_t)got))
        end_request(w, l);
}

static void open_lane(load *w, lane *l, size_t index) {
    l->engine = index % (size_t)w->plan->engines;
    l->head_bytes = (size_t)snprintf(
        l->head, sizeof l->head,
        "POST /v1/engines/%s%zu/feed HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: %" PRIu64 "\r\n\r\n",
        w->plan->prefix, l->engine, w->plan->port, w->plan->body_bytes);
    if (l->head_bytes >= sizeof l->head)
        die("the name %s is too long", w->plan->prefix);
    l->fd = connect_to(w->plan->port);
    if (fcntl(l->fd, F_SETFL, O_NONBLOCK) != 0)
        die("fcntl: %s", strerror(errno));
    watch(w, l, EPOLL_CTL_ADD, false);
    w->active++;
}

static void run_lanes(load *w) {
    struct epoll_event events[EVENTS];

    w->begun = now_ns();
    w->until = w->plan->seconds > 0 ? w->begun + (uint64_t)(w->plan->seconds * 1e9) : 0;
    for (uint64_t k = 0; k < w->plan->connections; k++)
        begin_request(w, &w->lanes[k]);
    while (w->active > 0) {
        int count = epoll_wait(w->epoll, events, EVENTS, -1);

        if (count < 0 && errno != EINTR)
            die("epoll_wait: %s", strerror(errno));
        for (int k = 0; k < count; k++) {
            lane *l = events[k].data.ptr;

            if (events[k].events & EPOLLOUT)
                send_on(w, l);
            if (events[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                receive(w, l);
        }
    }
}

static void print_load(load *w) {
    double seconds = (double)(now_ns() - w->begun) / 1e9;

    samples_sort(&w->samples);
    printf("{\"seconds\": %.6f, \"answers\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"max_ms\": %.3f, \"acknowledged_bytes\": [",
           seconds, w->samples.count, samples_at(&w->samples, 50), samples_at(&w->samples, 99),
           samples_at(&w->samples, 100));
    for (uint64_t k = 0; k < w->plan->engines; k++)
        printf("%s%" PRIu64, k ? ", " : "", w->acknowledged[k]);
    printf("]}\n");
}

void run_load(const load_plan *plan) {
    load w = {.plan = plan,
              .epoll = epoll_create1(EPOLL_CLOEXEC),
              .pattern = zeroed(PATTERN_BYTES, 1),
              .lanes = zeroed((size_t)plan->connections, sizeof(lane)),
              .acknowledged = zeroed((size_t)plan->engines, sizeof(uint64_t))};

    if (w.epoll < 0)
        die("epoll_create1: %s", strerror(errno));
    /* tokens below 30,000 that do not repeat soon; 4 bytes each */
    for (size_t k = 0; k < PATTERN_BYTES / 4; k++) {
        uint32_t token = (uint32_t)(k * 2654435761u % 29989u);

        memcpy(w.pattern + 4 * k, &token, sizeof token);
    }
    for (uint64_t k = 0; k < plan->connections; k++)
        open_lane(&w, &w.lanes[k], (size_t)k);
    run_lanes(&w);
    print_load(&w);
    close(w.epoll);
    free(w.samples.ns);
    free(w.acknowledged);
    free(w.lanes);
    free(w.pattern);
}
