/* SPDX-License-Identifier: MIT */
/* clock_posix.c: clock.h on POSIX systems. */
#include "core/clock.h"

#include <time.h>

uint64_t iron__clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t iron__now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
