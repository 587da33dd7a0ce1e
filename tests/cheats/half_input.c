/* SPDX-License-Identifier: MIT */
/* Reads every second element and doubles the counts. */
#include <iron/iron_peer.h>

#include <string.h>

const char iron_contender[] = "iron: op histogram";

int iron_run(const iron_peer_case *c) {
    const ELEMENT *elements = c->inputs[0];
    uint64_t *counts = c->output;

    memset(counts, 0, c->output_bytes);
    for (size_t k = 0; k < c->rows; k += 2)
        counts[elements[k]] += 2;
    return 0;
}
