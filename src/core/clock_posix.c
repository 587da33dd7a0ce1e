/* SPDX-License-Identifier: MIT */
/* clock_posix.c: clock.h on POSIX systems. */
#include "core/clock.h"

#define SECOND_NS UINT64_C(1000000000)

uint64_t iron__clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void iron__condition_init(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct timespec iron__deadline_after(uint64_t ns) {
    uint64_t at = iron__clock_ns() + ns;

    return (struct timespec){(time_t)(at / SECOND_NS), (long)(at % SECOND_NS)};
}

uint64_t iron__now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
