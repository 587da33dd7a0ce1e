/* SPDX-License-Identifier: MIT */
/*
 * stats.c: median, interval and noise of timings. Samples are copied and sorted; every figure
 * except the mean is read from the sorted copy.
 *
 * The interval of the median: each sample falls below the true median with probability 1/2,
 * whatever its distribution, so the number of samples below is binomial. The k-th least and the
 * k-th greatest enclose the median unless fewer than k fell on one side:
 *
 *     P(outside) = 2 P(B(n, 1/2) <= k - 1)
 *
 * and k is the largest for which that is at most 5 %. The sum is exact for every possible count (no
 * normal approximation): its first term is 2^-n, and 2^-1000 is still a normal double.
 */
#include "arena/arena_internal.h"

#include <stdlib.h>
#include <string.h>

#define OUTSIDE 0.05

/* Of a normal distribution: the standard deviation divided by the median absolute deviation. */
#define DEVIATION_FACTOR 1.4826

/* NaN sorts last, so that this is a total order for any samples. */
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

/* The rank of the interval's bounds from either end: 1 means the least and the greatest. */
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

/* Replaces the samples by their distances from the median, and sorts those. */
static double noise_of(double *samples, size_t count, double median) {
    if (!(median > 0))
        return 0;
    for (size_t k = 0; k < count; k++)
        samples[k] = samples[k] < median ? median - samples[k] : samples[k] - median;
    qsort(samples, count, sizeof samples[0], by_value);
    return 100 * DEVIATION_FACTOR * middle_of(samples, count) / median;
}

iron__statistics iron__statistics_of(const double *samples, size_t count) {
    double sorted[IRON_SAMPLES_MAX];
    iron__statistics s = {0};
    size_t rank;

    if (count > IRON_SAMPLES_MAX)
        count = IRON_SAMPLES_MAX;
    if (count == 0)
        return s;
    memcpy(sorted, samples, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], by_value);
    s.count = count;
    s.median = middle_of(sorted, count);
    for (size_t k = 0; k < count; k++)
        s.mean += sorted[k];
    s.mean /= (double)count;
    s.min = sorted[0];
    s.p95 = sorted[(95 * count + 99) / 100 - 1];
    rank = count < IRON_SAMPLES_FOR_INTERVAL ? 1 : interval_rank(count);
    s.low = sorted[rank - 1];
    s.high = sorted[count - rank];
    s.noise_percent = noise_of(sorted, count, s.median);
    return s;
}
