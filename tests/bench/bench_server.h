/* SPDX-License-Identifier: MIT */
/*
 * bench_server.h: shared by the parts of bench-server: time, samples, connections, answers. The
 * program measures a server over sockets and uses little CPU time, because the server is on the
 * same machine.
 *
 *   bench_server.c           the program: which measurement
 *   bench_server_load.c      many connections at once, in one thread with epoll
 *   bench_server_wire.c      connecting, and reading an answer
 *   bench_server_ceilings.c  limits of the machine: health, the disk, plain sockets
 */
#ifndef TESTS_BENCH_BENCH_SERVER_H
#define TESTS_BENCH_BENCH_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t now_ns(void);

/* Says why and ends the program with status 2: no measurement is better than a wrong one. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Times in nanoseconds. */
typedef struct samples {
    uint64_t *ns;
    size_t count, room;
} samples;

void samples_add(samples *s, uint64_t ns);
void samples_sort(samples *s);
/* In milliseconds, of sorted samples; percent 0 ... 100. */
double samples_at(const samples *s, double percent);

/* To 127.0.0.1, without delay for small pieces. */
int connect_to(uint16_t port);

/* An answer as it comes in. Its header and the beginning of its body are kept. */
typedef struct answer {
    char text[4096];
    size_t kept, head_bytes; /* head_bytes 0: the header is not complete yet */
    uint64_t body_bytes, received;
    unsigned status;
} answer;

void answer_begin(answer *a);
/* Takes what was received; true when the answer is complete. */
bool answer_take(answer *a, const char *bytes, size_t count);

/* Requests without an end on many connections; see bench_server.c for the numbers. */
typedef struct load_plan {
    uint16_t port;
    const char *prefix; /* of the engines' names */
    uint64_t engines, connections, body_bytes;
    double seconds;    /* 0: no limit */
    uint64_t requests; /* of each connection; 0: no limit */
} load_plan;

void run_load(const load_plan *plan);

/* GET /healthz every few milliseconds until standard input ends. */
void run_health(uint16_t port);
/* 4 KiB appended and made durable, again and again. */
void run_disk(const char *folder, double seconds);
/* A file through a socket to a process that only reads. */
void run_sockets(const char *path);

#endif
