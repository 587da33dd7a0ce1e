/* SPDX-License-Identifier: MIT */
/*
 * bench_server.c: one measurement of a running server, or of its machine, printed as a line of
 * JSON. scripts/bench-server starts servers, creates engines, and prints a table of all
 * measurements.
 *
 * Every answer is checked; a wrong one ends the program with status 2.
 */
#include "bench_server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: bench-server load PORT PREFIX ENGINES CONNECTIONS BYTES SECONDS REQUESTS\n"
    "       bench-server health PORT\n"
    "       bench-server disk FOLDER SECONDS\n"
    "       bench-server sockets FILE\n\n"
    "load     POSTs bodies of BYTES to engines PREFIX0 ... on keep-alive connections, until "
    "SECONDS\n"
    "         are over or each connection has sent REQUESTS; 0: no limit, but not both\n"
    "health   GET /healthz every two milliseconds until standard input ends\n"
    "disk     appends 4 KiB and calls fdatasync, as often as possible\n"
    "sockets  sends the file through a local socket to a process that only reads\n";

uint64_t now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void die(const char *format, ...) {
    va_list values;

    fputs("bench-server: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(2);
}

void samples_add(samples *s, uint64_t ns) {
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 4096;
        uint64_t *larger = realloc(s->ns, room * sizeof *larger);

        if (!larger)
            die("no memory for %zu samples", room);
        s->ns = larger;
        s->room = room;
    }
    s->ns[s->count++] = ns;
}

static int compare_ns(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void samples_sort(samples *s) {
    if (s->count == 0)
        die("nothing was measured");
    qsort(s->ns, s->count, sizeof s->ns[0], compare_ns);
}

double samples_at(const samples *s, double percent) {
    size_t rank = (size_t)((double)(s->count - 1) * percent / 100 + 0.5);

    return (double)s->ns[rank] / 1e6;
}

static uint64_t number(const char *text, uint64_t least, uint64_t most) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*end || end == text || text[0] == '-' || value < least || value > most)
        die("'%s' is no number from %llu to %llu", text, (unsigned long long)least,
            (unsigned long long)most);
    return value;
}

static uint16_t port_of(const char *text) { return (uint16_t)number(text, 1, 65535); }

static double seconds_of(const char *text) {
    char *end;
    double value = strtod(text, &end);

    if (*end || end == text || !(value >= 0 && value <= 86400))
        die("'%s' are no seconds from 0 to 86400", text);
    return value;
}

static void load_command(char **words) {
    load_plan plan = {.port = port_of(words[0]),
                      .prefix = words[1],
                      .engines = number(words[2], 1, 100000),
                      .connections = number(words[3], 1, 100000),
                      .body_bytes = number(words[4], 4, UINT64_MAX / 2),
                      .seconds = seconds_of(words[5]),
                      .requests = number(words[6], 0, UINT64_MAX / 2)};

    if (plan.seconds == 0 && plan.requests == 0)
        die("SECONDS and REQUESTS are both 0; it would never end");
    run_load(&plan);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "load") == 0 && argc == 9)
        load_command(argv + 2);
    else if (strcmp(what, "health") == 0 && argc == 3)
        run_health(port_of(argv[2]));
    else if (strcmp(what, "disk") == 0 && argc == 4)
        run_disk(argv[2], seconds_of(argv[3]));
    else if (strcmp(what, "sockets") == 0 && argc == 3)
        run_sockets(argv[2]);
    else {
        fputs(usage, stderr);
        return 2;
    }
    if (fflush(stdout) != 0)
        die("cannot write the result");
    return 0;
}
