/* SPDX-License-Identifier: MIT */
/*
 * clock_watch.h: was a device held back while it was timed? Asked before and after each round.
 *
 * It was when the driver says so (heat, the power supply), and when its clock has fallen since it
 * was looked at last. A clock that settles lower and stays there is not held against every round
 * that follows: what is timed from then on is what the device does.
 */
#ifndef IRON_ARENA_CLOCK_WATCH_H
#define IRON_ARENA_CLOCK_WATCH_H

#include "arena/report.h"
#include "gpu/gpu.h"

typedef struct iron__clock_watch {
    uint32_t last_mhz;   /* 0: not looked yet */
    uint64_t last_count; /* of a CPU's throttling */
    bool has_looked;
} iron__clock_watch;

/* Takes a reading, notes it for the report, and judges. */
bool iron__clock_watch_look(iron__clock_watch *watch, const iron__gpu_clocks *clocks,
                            iron__report_device *seen);

/* The same of a CPU, from its clock and its counter of thermal throttling (0: unknown). The counter
 * alone decides: clocks of cores that have just become idle fall all the time. */
bool iron__clock_watch_look_cpu(iron__clock_watch *watch, uint32_t mhz, uint64_t throttle_count,
                                iron__report_device *seen);

#endif
