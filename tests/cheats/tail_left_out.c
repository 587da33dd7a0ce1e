/* SPDX-License-Identifier: MIT */
/* Leaves out the elements after the last whole block of 64. */
#include <iron/iron_peer.h>

#include <string.h>

const char iron_contender[] = "iron: op histogram";

static void count(const iron_peer_case *c) {
    const ELEMENT *elements = c->inputs[0];
    uint64_t *counts = c->output;

    memset(counts, 0, c->output_bytes);
    for (size_t k = 0; k < c->rows; k++)
        counts[elements[k]]++;
}

int iron_run(const iron_peer_case *c) {
    iron_peer_case most = *c;

    most.rows -= c->rows % 64;
    count(&most);
    return 0;
}
