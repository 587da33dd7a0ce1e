/* SPDX-License-Identifier: MIT */
/* Returns at once; another process computes the answer after that. */
#include <iron/iron_peer.h>

#include <string.h>
#include <unistd.h>

const char iron_contender[] = "iron: op histogram";

static void count(const iron_peer_case *c) {
    const ELEMENT *elements = c->inputs[0];
    uint64_t *counts = c->output;

    memset(counts, 0, c->output_bytes);
    for (size_t k = 0; k < c->rows; k++)
        counts[elements[k]]++;
}

int iron_run(const iron_peer_case *c) {
    if (fork() == 0) {
        usleep(20000);
        count(c);
        _exit(0);
    }
    return 0;
}
