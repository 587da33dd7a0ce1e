/* SPDX-License-Identifier: MIT */
/* progress.c: see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BAR      30
#define INTERVAL 0.1

double seconds_now(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

progress progress_start(uint64_t unit_bytes) {
    double now = seconds_now();

    return (progress){isatty(STDERR_FILENO) == 1, unit_bytes, now, now - INTERVAL};
}

static void tell_bar(double share) {
    char bar[BAR + 1];

    for (int k = 0; k < BAR; k++)
        bar[k] = k < (int)(share * BAR) ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr, "[%s] %3.0f %%", bar, 100 * share);
}

int progress_tell(void *context, uint64_t done, uint64_t total) {
    progress *p = context;
    double now, spent;

    if (!p->is_shown)
        return 0;
    now = seconds_now();
    if (now - p->last < INTERVAL)
        return 0;
    p->last = now;
    spent = now - p->started;
    fputs("\r\033[K", stderr);
    if (total != UINT64_MAX && total > 0)
        tell_bar((double)done / (double)total);
    if (p->unit_bytes)
        fprintf(stderr, "  %.2f GB  %.2f GB/s", (double)done * (double)p->unit_bytes * 1e-9,
                (double)done * (double)p->unit_bytes * 1e-9 / (spent > 0 ? spent : 1));
    if (total == UINT64_MAX && !p->unit_bytes)
        fprintf(stderr, "%" PRIu64 " done", done);
    if (total != UINT64_MAX && done > 0)
        fprintf(stderr, "  %.0f s left", spent * (double)(total - done) / (double)done);
    fflush(stderr);
    return 0;
}

void progress_clear(progress *p) {
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    p->is_shown = false;
}
