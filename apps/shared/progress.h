/* SPDX-License-Identifier: MIT */
/*
 * progress.h: a line on a terminal's standard error that tells how far long work is: a bar, the
 * rate and the time left. Elsewhere it is silent.
 */
#ifndef APPS_SHARED_PROGRESS_H
#define APPS_SHARED_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool is_shown;
    uint64_t unit_bytes; /* bytes of one unit of work, for the rate; 0: no rate */
    double started, last;
} progress;

double seconds_now(void);
progress progress_start(uint64_t unit_bytes);
/* An iron_progress: context is a progress. */
int progress_tell(void *context, uint64_t done, uint64_t total);
void progress_clear(progress *p);

#endif
