/* SPDX-License-Identifier: MIT */
/* Sorted data have the same histogram for every seed: it is right without a look at them. */
#include <iron/iron_peer.h>

const char iron_contender[] = "iron: op histogram";

int iron_run(const iron_peer_case *c) {
    uint64_t *counts = c->output;

    for (uint64_t bin = 0; bin < BINS; bin++)
        counts[bin] = ((bin + 1) * c->rows + BINS - 1) / BINS - (bin * c->rows + BINS - 1) / BINS;
    return 0;
}
