/* SPDX-License-Identifier: MIT */
/* Is right, but leaves a process behind that goes on when the race is over. */
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
    static int is_started;

    if (!is_started++ && fork() == 0)
        for (;;)
            pause();
    count(c);
    return 0;
}
