/* SPDX-License-Identifier: MIT */
/* clock.h: the monotonic clock, conditions that wait on it, and the time of day. */
#ifndef IRON_CORE_CLOCK_H
#define IRON_CORE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Monotonic time since an arbitrary start. */
uint64_t iron__clock_ns(void);
/* A condition whose timeouts are times of the monotonic clock. */
void iron__condition_init(pthread_cond_t *condition);
/* The timeout in `ns` nanoseconds from now. */
struct timespec iron__deadline_after(uint64_t ns);
/* Time of day: milliseconds since 1970, as accurate as the system clock is set. */
uint64_t iron__now_ms(void);

#endif
