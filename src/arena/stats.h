/* SPDX-License-Identifier: MIT */
/*
 * stats.h: what many timings of the same thing say.
 *
 * The median stands for the row; its 95 % interval comes from the order of the samples alone (the
 * binomial distribution), so it holds whatever the samples' distribution is. Noise is the spread of
 * the middle: 1.4826 times the median distance from the median, in percent of it, which for a
 * normal distribution is its standard deviation, and which a few outliers do not move.
 */
#ifndef IRON_ARENA_STATS_H
#define IRON_ARENA_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct iron__statistics {
    size_t count;
    double median, mean, min, p95, noise_percent;
    double low, high; /* of the median, 95 %; fewer than six samples: the least and the greatest */
} iron__statistics;

/* Of count samples, which are left as they are. No samples: all zero. count is at most
 * IRON_SAMPLES_MAX. */
#define IRON_SAMPLES_MAX 1000u
iron__statistics iron__statistics_of(const double *samples, size_t count);

/* Is the interval within `fraction` of the median on both sides? Never with fewer than six samples.
 * */
bool iron__statistics_is_within(const iron__statistics *s, double fraction);

#endif
