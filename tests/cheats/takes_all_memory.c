/* SPDX-License-Identifier: MIT */
/* Wants a terabyte of memory, and says that it failed. */
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
    char *memory = malloc((size_t)1 << 40);

    if (!memory)
        return 1;
    count(c);
    free(memory);
    return 0;
}
