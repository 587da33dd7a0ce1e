/* SPDX-License-Identifier: MIT */
/*
 * wire.c: see wire.h.
 */
#include "server/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

void iron__problem_open(iron__json_writer *json, const iron__problem *problem, const char *help,
                        const char *detail, uint64_t id) {
    char text[80];

    iron__json_write_open(json, NULL, '{');
    snprintf(text, sizeof text, "urn:iron:problem:%s", problem->kind);
    iron__json_write_text(json, "type", text);
    iron__json_write_text(json, "title", problem->title);
    iron__json_write_whole(json, "status", problem->status);
    iron__json_write_text(json, "detail", detail);
    if (help)
        iron__json_write_text(json, "help", help);
    snprintf(text, sizeof text, "/requests/%016" PRIx64, id);
    iron__json_write_text(json, "instance", text);
}

const char *iron__problem_retry_after(const char *kind) {
    if (strcmp(kind, "stopping") == 0)
        return "5";
    return strcmp(kind, "busy") == 0 || strcmp(kind, "too-many-connections") == 0 ? "1" : NULL;
}

void iron__wire_head(FILE *to, unsigned status, const char *type, size_t bytes, uint64_t id) {
    time_t now = time(NULL);
    struct tm parts;
    char date[40] = "";

    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    fprintf(to, "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\n", status,
            MHD_get_reason_phrase_for(status), date);
    fprintf(to, "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
    fprintf(to, "X-Request-Id: %016" PRIx64 "\r\nContent-Length: %zu\r\n", id, bytes);
    if (type)
        fprintf(to, "Content-Type: %s\r\n", type);
}

/* The problem as JSON; its bytes, 0 without memory. */
static size_t write_body(char *room, size_t bytes, const iron__problem *problem,
                         const iron__verdict *verdict, uint64_t id) {
    iron__json_writer json = {.to = fmemopen(room, bytes, "w")};
    long count;

    if (!json.to)
        return 0;
    iron__problem_open(&json, problem, verdict->help, verdict->detail, id);
    iron__json_write_close(&json, '}');
    iron__json_write_end(&json);
    count = ftell(json.to);
    return fclose(json.to) == 0 && count > 0 ? (size_t)count : 0;
}

size_t iron__wire_problem(char room[IRON_WIRE_PROBLEM_MAX], const iron__verdict *verdict,
                          uint64_t id) {
    const iron__problem *problem = iron__problem_find(verdict->kind);
    const char *after = iron__problem_retry_after(verdict->kind);
    char body[IRON_WIRE_PROBLEM_MAX / 2];
    size_t bytes = write_body(body, sizeof body, problem, verdict, id);
    FILE *to = bytes ? fmemopen(room, IRON_WIRE_PROBLEM_MAX, "w") : NULL;
    long count;

    if (!to)
        return 0;
    iron__wire_head(to, problem->status, "application/problem+json", bytes, id);
    if (after)
        fprintf(to, "Retry-After: %s\r\n", after);
    fprintf(to, "\r\n%.*s", (int)bytes, body);
    count = ftell(to);
    return fclose(to) == 0 && count > 0 ? (size_t)count : 0;
}

bool iron__wire_send(int fd, const void *bytes, size_t count, int milliseconds) {
    const char *at = bytes;

    while (count > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        ssize_t sent = send(fd, at, count, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent >= 0) {
            at += sent;
            count -= (size_t)sent;
        } else if (errno != EINTR &&
                   (errno != EAGAIN || milliseconds == 0 || poll(&ready, 1, milliseconds) <= 0)) {
            return false;
        }
    }
    return true;
}
