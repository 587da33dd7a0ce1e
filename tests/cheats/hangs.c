/* SPDX-License-Identifier: MIT */
/* Never returns. */
#include <iron/iron_peer.h>

#include <unistd.h>

const char iron_contender[] = "iron: op histogram";

int iron_run(const iron_peer_case *c) {
    (void)c;
    for (;;)
        pause();
}
