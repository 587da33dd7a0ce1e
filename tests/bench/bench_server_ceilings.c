/* SPDX-License-Identifier: MIT */
/*
 * bench_server_ceilings.c: the limits of the machine to compare a server with: the latency of the
 * smallest request, the rate of durable 4 KiB writes to the disk of its data, and the bandwidth of
 * a local socket.
 */
#include "bench_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_MS   2
#define SYNC_BYTES 4096u
#define PIPE_BYTES ((size_t)256 << 10)

static void send_all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            die("cannot send: %s", strerror(errno));
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void ask_health(int fd, const char *request, size_t bytes) {
    char got[4096];
    answer a;
    ssize_t count;

    answer_begin(&a);
    send_all(fd, request, bytes);
    do {
        count = recv(fd, got, sizeof got, 0);
        if (count <= 0)
            die("GET /healthz: the connection ended");
    } while (!answer_take(&a, got, (size_t)count));
    if (a.status != 200)
        die("GET /healthz: status %u: %.300s", a.status, a.text + a.head_bytes);
}

static bool input_ended(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;

    return poll(&input, 1, PAUSE_MS) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

void run_health(uint16_t port) {
    char request[128];
    size_t bytes = (size_t)snprintf(request, sizeof request,
                                    "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", port);
    samples s = {NULL, 0, 0};
    int fd = connect_to(port);

    while (!input_ended()) {
        uint64_t started = now_ns();

        ask_health(fd, request, bytes);
        samples_add(&s, now_ns() - started);
    }
    close(fd);
    samples_sort(&s);
    printf("{\"answers\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n", s.count,
           samples_at(&s, 50), samples_at(&s, 99), samples_at(&s, 100));
    free(s.ns);
}

void run_disk(const char *folder, double seconds) {
    static const char block[SYNC_BYTES];
    uint64_t until, started;
    samples s = {NULL, 0, 0};
    char path[4096];
    int fd;

    if (snprintf(path, sizeof path, "%s/syncs", folder) >= (int)sizeof path)
        die("the folder's name is too long");
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die("cannot open %s: %s", path, strerror(errno));
    started = now_ns();
    until = started + (uint64_t)(seconds * 1e9);
    for (uint64_t before = started; before < until;) {
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block || fdatasync(fd) != 0)
            die("cannot write %s: %s", path, strerror(errno));
        samples_add(&s, now_ns() - before);
        before = now_ns();
    }
    seconds = (double)(now_ns() - started) / 1e9;
    samples_sort(&s);
    printf("{\"syncs_per_second\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
           (double)s.count / seconds, samples_at(&s, 50), samples_at(&s, 99));
    close(fd);
    unlink(path);
    free(s.ns);
}

/* The other end: reads everything, then says so with one byte. */
_Noreturn static void read_all(int listener) {
    char *bytes = malloc(PIPE_BYTES);
    int fd = accept(listener, NULL, NULL);
    ssize_t got = 1;

    while (bytes && fd >= 0 && got > 0)
        got = recv(fd, bytes, PIPE_BYTES, 0);
    _exit(fd >= 0 && got == 0 && send(fd, "", 1, MSG_NOSIGNAL) == 1 ? 0 : 1);
}

static int listen_here(uint16_t *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        die("cannot listen: %s", strerror(errno));
    *port = ntohs(at.sin_port);
    return fd;
}

static uint64_t send_file(int fd, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes = malloc(PIPE_BYTES);
    uint64_t total = 0;
    ssize_t got;

    if (file < 0 || !bytes)
        die("cannot open %s: %s", path, strerror(errno));
    while ((got = read(file, bytes, PIPE_BYTES)) > 0) {
        send_all(fd, bytes, (size_t)got);
        total += (uint64_t)got;
    }
    if (got < 0)
        die("cannot read %s: %s", path, strerror(errno));
    close(file);
    free(bytes);
    return total;
}

void run_sockets(const char *path) {
    uint64_t started, bytes;
    uint16_t port;
    int listener = listen_here(&port), fd, status;
    pid_t reader = fork();
    char end;

    if (reader < 0)
        die("fork: %s", strerror(errno));
    if (reader == 0)
        read_all(listener);
    close(listener);
    fd = connect_to(port);
    started = now_ns();
    bytes = send_file(fd, path);
    shutdown(fd, SHUT_WR);
    if (recv(fd, &end, 1, 0) != 1)
        die("the reader ended before everything was read");
    printf("{\"seconds\": %.6f, \"bytes\": %llu}\n", (double)(now_ns() - started) / 1e9,
           (unsigned long long)bytes);
    close(fd);
    if (waitpid(reader, &status, 0) != reader || status != 0)
        die("the reader failed");
}
