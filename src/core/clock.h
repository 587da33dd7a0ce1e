/* SPDX-License-Identifier: MIT */
/* clock.h: time that only goes forward, in nanoseconds from an arbitrary start. */
#ifndef IRON_CORE_CLOCK_H
#define IRON_CORE_CLOCK_H

#include <stdint.h>

uint64_t iron__clock_ns(void);

#endif
