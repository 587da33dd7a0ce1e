/* SPDX-License-Identifier: MIT */
/* Keeps memory of every run. */
#include <iron/iron_peer.h>

#include <stdlib.h>
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
    size_t bytes = (size_t)24 << 20;
    char *kept = malloc(bytes);

    if (kept)
        memset(kept, 1, bytes);
    count(c);
    return !kept || kept[bytes / 2] != 1;
}
