/* SPDX-License-Identifier: MIT */
/* clock.h: time that only goes forward, and the time of the day. */
#ifndef IRON_CORE_CLOCK_H
#define IRON_CORE_CLOCK_H

#include <stdint.h>

/* Only goes forward, from an arbitrary start. */
uint64_t iron__clock_ns(void);
/* Milliseconds since 1970, as far as anybody has set the clock right. */
uint64_t iron__now_ms(void);

#endif
