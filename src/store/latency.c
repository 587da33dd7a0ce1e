/* SPDX-License-Identifier: MIT */
/* latency.c: see latency.h. */
#include "store/latency.h"

const uint32_t iron__latency_edges_us[IRON_LATENCY_BUCKETS - 1] = {
    500,    1000,   2500,    5000,    10000,   25000,    50000,    100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000};

void iron__latency_count(iron__latency *latency, uint64_t ns) {
    uint32_t k = 0;

    while (k + 1 < IRON_LATENCY_BUCKETS && ns > iron__latency_edges_us[k] * UINT64_C(1000))
        k++;
    atomic_fetch_add_explicit(&latency->buckets[k], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&latency->ns, ns, memory_order_relaxed);
}

void iron__latency_add(const iron__latency *latency, iron__latency_view *view) {
    for (uint32_t k = 0; k < IRON_LATENCY_BUCKETS; k++)
        view->buckets[k] += atomic_load_explicit(&latency->buckets[k], memory_order_relaxed);
    view->ns += atomic_load_explicit(&latency->ns, memory_order_relaxed);
}
