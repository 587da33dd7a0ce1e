/* SPDX-License-Identifier: MIT */
/*
 * stats.c: see stats.h. Samples are copied and sorted; everything is read off the sorted row.
 *
 * The interval of the median: each sample falls below the true median with probability 1/2,
 * whatever it is a sample of, so the number of those below is binomial. The k-th least and the k-th
 * greatest enclose the median unless fewer than k fell on one side:
 *
 *     P(outside) = 2 P(B(n, 1/2) <= k - 1)
 *
 * and k is the largest for which that is at most 5 %. The sum is exact for every count there can be
 * (no normal approximation): its first term is 2^-n, and 2^-1000 is still an ordinary double.
 */
#include "arena/stats.h"

#include <stdlib.h>
#include <string.h>

/* With five samples even the least and the greatest enclose the median too seldom (94 %). */
#define SAMPLES_FOR_INTERVAL 6u
#define OUTSIDE              0.05

/* For a normal distribution: standard deviation by median distance from the median. */
#define DEVIATION_BY_DISTANCE 1.4826

/* What is no number goes last, so that the order is one, whatever the samples are. */
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    if (x != x || y != y)
        return (x != x) - (y != y);
    return (x > y) - (x < y);
}

static double middle_of(const double *sorted, size_t count) {
    double upper = sorted[count / 2];

    return count % 2 ? upper : (sorted[count / 2 - 1] + upper) / 2;
}

static double mean_of(const double *samples, size_t count) {
    double sum = 0;

    for (size_t k = 0; k < count; k++)
        sum += samples[k];
    return sum / (double)count;
}

/* How many from either end the interval's bounds are: 1 means the least and the greatest. */
static size_t interval_rank(size_t count) {
    double term = 1, below;
    size_t rank = 0;

    for (size_t k = 0; k < count; k++)
        term /= 2;
    below = term;
    while (2 * below <= OUTSIDE) {
        rank++;
        term *= (double)(count - rank + 1) / (double)rank;
        below += term;
    }
    return rank;
}

static void find_interval(const double *sorted, size_t count, iron__statistics *s) {
    size_t rank = count < SAMPLES_FOR_INTERVAL ? 1 : interval_rank(count);

    s->low = sorted[rank - 1];
    s->high = sorted[count - rank];
}

/* Turns the samples into their distances from the median, and sorts those. */
static double noise_of(double *samples, size_t count, double median) {
    if (!(median > 0))
        return 0;
    for (size_t k = 0; k < count; k++)
        samples[k] = samples[k] < median ? median - samples[k] : samples[k] - median;
    qsort(samples, count, sizeof samples[0], by_value);
    return 100 * DEVIATION_BY_DISTANCE * middle_of(samples, count) / median;
}

iron__statistics iron__statistics_of(const double *samples, size_t count) {
    double sorted[IRON_SAMPLES_MAX];
    iron__statistics s = {0};

    if (count > IRON_SAMPLES_MAX)
        count = IRON_SAMPLES_MAX;
    if (count == 0)
        return s;
    memcpy(sorted, samples, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], by_value);
    s.count = count;
    s.median = middle_of(sorted, count);
    s.mean = mean_of(sorted, count);
    s.min = sorted[0];
    s.p95 = sorted[(95 * count + 99) / 100 - 1];
    find_interval(sorted, count, &s);
    s.noise_percent = noise_of(sorted, count, s.median);
    return s;
}

bool iron__statistics_is_within(const iron__statistics *s, double fraction) {
    double room = fraction * s->median;

    return s->count >= SAMPLES_FOR_INTERVAL && s->high - s->median <= room &&
           s->median - s->low <= room;
}
