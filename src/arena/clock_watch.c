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
