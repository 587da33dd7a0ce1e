/* SPDX-License-Identifier: MIT */
/*
 * latency.h: how long things took, as a histogram: a counter for each span of time. Counting is two
 * additions, from any thread; whoever reads sees each counter as it is at that moment.
 */
#ifndef IRON_STORE_LATENCY_H
#define IRON_STORE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

#define IRON_LATENCY_BUCKETS 17u /* the last one has no upper edge */

typedef struct iron__latency {
    atomic_uint_fast64_t buckets[IRON_LATENCY_BUCKETS];
    atomic_uint_fast64_t ns; /* of all together */
} iron__latency;

typedef struct iron__latency_view {
    uint64_t buckets[IRON_LATENCY_BUCKETS];
    uint64_t ns;
} iron__latency_view;

/* Upper edges in microseconds: half a millisecond to a minute. What takes exactly that long is
 * below the edge. */
extern const uint32_t iron__latency_edges_us[IRON_LATENCY_BUCKETS - 1];

void iron__latency_count(iron__latency *latency, uint64_t ns);
/* Adds what was counted to the view. */
void iron__latency_add(const iron__latency *latency, iron__latency_view *view);

#endif
