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
 * and k is the largest for which that is at most 5 %; the interval's coverage is the rest. The sum
 * is exact for every possible count (no normal approximation): its first term is 2^-n, and 2^-1000
 * is still a normal double.
 */
#include "arena/arena_internal.h"

#define OUTSIDE 0.05

/* NaN sorts last, so that this is a total order for any samples. */
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    if (x != x || y != y)
        return (x != x) - (y != y);
    return (x > y) - (x < y);
}

/* The square root, by Newton's method from above: the library links no libm. */
static double root_of(double square) {
    double root = square > 1 ? square : 1;

    for (double next; (next = (root + square / root) / 2) < root;)
        root = next;
    return root;
}

iron__statistics iron__statistics_of(const double *samples, size_t count) {
    double sorted[IRON_SAMPLES_MAX], squares = 0;
    iron__statistics s = {0};
    double term = 1, below;
    size_t rank = 0;

    if (count > IRON_SAMPLES_MAX)
        count = IRON_SAMPLES_MAX;
    if (count == 0)
        return s;
    memcpy(sorted, samples, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], by_value);
    s.count = count;
    s.median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    for (size_t k = 0; k < count; k++)
        s.mean += sorted[k];
    s.mean /= (double)count;
    s.min = sorted[0];
    s.max = sorted[count - 1];
    s.p95 = sorted[(95 * count + 99) / 100 - 1];
    for (size_t k = 0; k < count; k++)
        squares += (sorted[k] - s.mean) * (sorted[k] - s.mean);
    if (count > 1 && s.mean > 0)
        s.noise_percent = 100 * root_of(squares / (double)(count - 1)) / s.mean;
    if (count < IRON_SAMPLES_FOR_INTERVAL)
        return s;
    for (size_t k = 0; k < count; k++)
        term /= 2;
    below = term;
    while (2 * below <= OUTSIDE) {
        s.coverage = 1 - 2 * below;
        rank++; /* of the bounds from either end: 1 means the least and the greatest */
        term *= (double)(count - rank + 1) / (double)rank;
        below += term;
    }
    s.low = sorted[rank - 1];
    s.high = sorted[count - rank];
    return s;
}
