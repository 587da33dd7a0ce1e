/* SPDX-License-Identifier: MIT */
/* clock_watch.c: see clock_watch.h. */
#include "arena/clock_watch.h"

#include <stdio.h>

/* Boost clocks move by a step or two all the time; a twentieth is more than that. */
#define FALL 0.95

static void note(iron__report_device *seen, const iron__gpu_clocks *clocks) {
    if (clocks->core_mhz && (!seen->clock_min || clocks->core_mhz < seen->clock_min))
        seen->clock_min = clocks->core_mhz;
    if (clocks->core_mhz > seen->clock_max)
        seen->clock_max = clocks->core_mhz;
    seen->memory_clock = clocks->memory_mhz;
    if (clocks->is_throttled)
        snprintf(seen->throttle, sizeof seen->throttle, "%s", clocks->reasons);
}

bool iron__clock_watch_look(iron__clock_watch *watch, const iron__gpu_clocks *clocks,
                            iron__report_device *seen) {
    uint32_t before = watch->last_mhz;

    note(seen, clocks);
    watch->last_mhz = clocks->core_mhz;
    return clocks->is_throttled || (double)clocks->core_mhz < FALL * before;
}

bool iron__clock_watch_look_cpu(iron__clock_watch *watch, uint32_t mhz, uint64_t throttle_count,
                                iron__report_device *seen) {
    iron__gpu_clocks clocks = {.core_mhz = mhz, .reasons = "heat"};

    clocks.is_throttled = watch->has_looked && throttle_count > watch->last_count;
    watch->has_looked = true;
    watch->last_count = throttle_count;
    note(seen, &clocks);
    return clocks.is_throttled;
}
