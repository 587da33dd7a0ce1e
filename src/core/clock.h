/* SPDX-License-Identifier: MIT */
/* clock.h: the monotonic clock and the time of day. */
#ifndef IRON_CORE_CLOCK_H
#define IRON_CORE_CLOCK_H

#include <stdint.h>

/* Monotonic time since an arbitrary start. */
uint64_t iron__clock_ns(void);
/* Time of day: milliseconds since 1970, as accurate as the system clock is set. */
uint64_t iron__now_ms(void);

#endif
