/* SPDX-License-Identifier: MIT */
/*
 * bench_server_wire.c: connecting to the server, and reading its answers: status, Content-Length,
 * body. A connection cannot be reused after a response without a length, so such a response
 * ends the measurement.
 */
#include "bench_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

int connect_to(uint16_t port) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        die("cannot connect to port %u: %s", port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void answer_begin(answer *a) {
    a->kept = a->head_bytes = 0;
    a->body_bytes = a->received = 0;
    a->status = 0;
}

static const char *header_value(const answer *a, const char *name) {
    size_t length = strlen(name);

    for (const char *line = a->text; (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        if (line >= a->text + a->head_bytes)
            return NULL;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1;
    }
    return NULL;
}

/* The header is complete: what does it say? */
static void read_head(answer *a) {
    static const char version[] = "HTTP/1.1 ";
    const char *length;

    if (strncmp(a->text, version, sizeof version - 1) != 0)
        die("this is no answer: %.60s", a->text);
    a->status = (unsigned)strtoul(a->text + sizeof version - 1, NULL, 10);
    length = header_value(a, "Content-Length");
    if (!length)
        die("an answer with status %u does not say its length", a->status);
    a->body_bytes = strtoull(length, NULL, 10);
}

static void keep(answer *a, const char *bytes, size_t count) {
    size_t room = sizeof a->text - 1 - a->kept;

    if (count > room)
        count = room;
    memcpy(a->text + a->kept, bytes, count);
    a->kept += count;
    a->text[a->kept] = '\0';
}

bool answer_take(answer *a, const char *bytes, size_t count) {
    keep(a, bytes, count);
    a->received += count;
    if (a->head_bytes == 0) {
        const char *end = strstr(a->text, "\r\n\r\n");

        if (!end && a->kept == sizeof a->text - 1)
            die("an answer's header is longer than %zu bytes", sizeof a->text);
        if (!end)
            return false;
        a->head_bytes = (size_t)(end - a->text) + 4;
        read_head(a);
    }
    if (a->received > a->head_bytes + a->body_bytes)
        die("an answer is %zu bytes too long",
            (size_t)(a->received - a->head_bytes - a->body_bytes));
    return a->received == a->head_bytes + a->body_bytes;
}
