/* SPDX-License-Identifier: MIT */
/*
 * remote_support.h: a small HTTP server for the tests of remote files, in threads of the test. It
 * serves one object of known bytes under every path; the first part of the path says what goes
 * wrong: /ranges, /plain (no ranges), /chunked, /drop ... (server_answer has them all).
 */
#ifndef TESTS_UNIT_REMOTE_SUPPORT_H
#define TESTS_UNIT_REMOTE_SUPPORT_H

#include "support.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define SERVER_CONNECTIONS 64u

typedef struct http_server {
    int listener;
    unsigned port;
    const unsigned char *object;
    size_t bytes;
    pthread_t acceptor, workers[SERVER_CONNECTIONS];
    int sockets[SERVER_CONNECTIONS];
    unsigned count;
    atomic_uint requests; /* that came */
    atomic_ullong sent;   /* bytes of bodies */
    atomic_uint faults;   /* that are still to happen */
    atomic_uint version;  /* the ETag's number */
    atomic_bool is_held;  /* answers wait */
} http_server;

typedef struct http_worker {
    http_server *server;
    int fd;
} http_worker;

/* Sends all, or as much as the peer takes. */
static inline bool server_send(int fd, const void *data, size_t bytes) {
    const char *at = data;

    while (bytes > 0) {
        ssize_t count = send(fd, at, bytes, MSG_NOSIGNAL);

        if (count <= 0)
            return false;
        at += count;
        bytes -= (size_t)count;
    }
    return true;
}

static inline bool server_is(const char *header, const char *path) {
    return strncmp(header + 5, path, strlen(path)) == 0; /* after "GET /" */
}

/* Counts a fault down; false: none is left. */
static inline bool server_fault(http_server *s) {
    unsigned left = atomic_load(&s->faults);

    while (left > 0)
        if (atomic_compare_exchange_weak(&s->faults, &left, left - 1))
            return true;
    return false;
}

static inline bool server_status(int fd, const char *line, const char *more) {
    char text[512];
    int length =
        snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: 0\r\n%s\r\n", line, more);

    return server_send(fd, text, (size_t)length);
}

static inline bool server_chunks(http_server *s, int fd, bool is_cut) {
    static const char header[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    char line[32];

    if (!server_send(fd, header, sizeof header - 1))
        return false;
    for (size_t at = 0; at < s->bytes; at += 50000) {
        size_t part = s->bytes - at < 50000 ? s->bytes - at : 50000;

        snprintf(line, sizeof line, "%zx\r\n", part);
        if (!server_send(fd, line, strlen(line)) || !server_send(fd, s->object + at, part) ||
            !server_send(fd, "\r\n", 2))
            return false;
    }
    return !is_cut && server_send(fd, "0\r\n\r\n", 5);
}

/* The object or a range of it. */
static inline bool server_object(http_server *s, int fd, const char *request) {
    size_t first = 0, last = s->bytes - 1, bytes, sent;
    const char *range = strstr(request, "Range: bytes=");
    bool is_plain = server_is(request, "plain") || server_is(request, "endless");
    bool is_short = server_is(request, "drop") && server_fault(s);
    char header[512];
    int length;

    if (range && !is_plain) {
        if (sscanf(range, "Range: bytes=%zu-%zu", &first, &last) != 2 || first >= s->bytes)
            return server_status(fd, "416 Range Not Satisfiable", "");
        last = last < s->bytes ? last : s->bytes - 1;
    }
    bytes = last - first + 1;
    if (range && !is_plain)
        length =
            snprintf(header, sizeof header,
                     "HTTP/1.1 206 Partial Content\r\nContent-Length: %zu\r\nContent-Range: bytes "
                     "%zu-%zu/%zu\r\nETag: \"v%u\"\r\n\r\n",
                     bytes, first + (server_is(request, "odd") && first > 0), last, s->bytes,
                     atomic_load(&s->version));
    else if (server_is(request, "endless"))
        length = snprintf(header, sizeof header, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    else
        length = snprintf(header, sizeof header,
                          "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nETag: \"v%u\"\r\n\r\n", bytes,
                          atomic_load(&s->version));
    sent = is_short ? bytes / 3 : bytes;
    atomic_fetch_add(&s->sent, sent);
    return server_send(fd, header, (size_t)length) && server_send(fd, s->object + first, sent) &&
           !is_short && !server_is(request, "endless");
}

/* Answers a request; false: the connection is to be closed. */
static inline bool server_answer(http_server *s, int fd, const char *request) {
    char tag[64], more[300];

    if (server_is(request, "missing"))
        return server_status(fd, "404 Not Found", "");
    if (server_is(request, "forbidden"))
        return server_status(fd, "403 Forbidden", "");
    if (server_is(request, "private") && !strstr(request, "Authorization: Basic dTpwOnc="))
        return server_status(fd, "401 Unauthorized", "");
    if (server_is(request, "busy") && server_fault(s))
        return server_status(fd, "503 Slow Down", "Retry-After: 0\r\n");
    if (server_is(request, "limited") && server_fault(s))
        return server_status(fd, "429 Too Many Requests", "");
    if (server_is(request, "reset") && server_fault(s))
        return false;
    if (server_is(request, "redirect")) {
        snprintf(more, sizeof more, "Location: http://127.0.0.1:%u/ranges/there\r\n", s->port);
        return server_status(fd, "302 Found", more);
    }
    if (server_is(request, "loop"))
        return server_status(fd, "302 Found", "Location: /loop\r\n");
    if (server_is(request, "escape"))
        return server_status(fd, "302 Found", "Location: file:///etc/passwd\r\n");
    if (server_is(request, "chunked"))
        return server_chunks(s, fd, server_is(request, "chunked-cut"));
    snprintf(tag, sizeof tag, "If-Match: \"v%u\"", atomic_load(&s->version));
    if (server_is(request, "strict") && strstr(request, "If-Match") && !strstr(request, tag))
        return server_status(fd, "412 Precondition Failed", "");
    return server_object(s, fd, request);
}

static inline void *server_work(void *argument) {
    http_worker worker = *(http_worker *)argument;
    char header[4096];
    size_t have = 0;

    free(argument);
    for (;;) {
        ssize_t count = recv(worker.fd, header + have, sizeof header - 1 - have, 0);

        if (count <= 0)
            break;
        have += (size_t)count;
        header[have] = '\0';
        if (!strstr(header, "\r\n\r\n"))
            continue;
        atomic_fetch_add(&worker.server->requests, 1);
        while (atomic_load(&worker.server->is_held))
            usleep(1000);
        if (!server_answer(worker.server, worker.fd, header))
            break;
        have = 0;
    }
    shutdown(worker.fd, SHUT_RDWR);
    return NULL;
}

static inline void *server_accept(void *argument) {
    http_server *s = argument;

    for (;;) {
        int fd = accept(s->listener, NULL, NULL);
        http_worker *worker;

        if (fd < 0)
            return NULL;
        if (s->count == SERVER_CONNECTIONS) {
            close(fd);
            continue;
        }
        worker = malloc(sizeof *worker);
        *worker = (http_worker){s, fd};
        s->sockets[s->count] = fd;
        pthread_create(&s->workers[s->count], NULL, server_work, worker);
        s->count++;
    }
}

static inline void server_start(http_server *s, const unsigned char *object, size_t bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    memset(s, 0, sizeof *s);
    s->object = object;
    s->bytes = bytes;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s->listener, 64), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &length), 0);
    s->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s->acceptor, NULL, server_accept, s), 0);
}

static inline void server_stop(http_server *s) {
    atomic_store(&s->is_held, false);
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->acceptor, NULL);
    close(s->listener);
    for (unsigned k = 0; k < s->count; k++) {
        shutdown(s->sockets[k], SHUT_RDWR);
        pthread_join(s->workers[k], NULL);
        close(s->sockets[k]);
    }
}

/* An address that no test has used before: objects are kept. */
static inline const char *server_address(const http_server *s, const char *path) {
    static char text[200];
    static unsigned number;

    snprintf(text, sizeof text, "http://127.0.0.1:%u/%s/%u", s->port, path, number++);
    return text;
}

#endif
