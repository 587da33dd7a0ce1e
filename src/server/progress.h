/* SPDX-License-Identifier: MIT */
/*
 * progress.h: what a TCP socket itself knows of how it gets on, whoever reads and writes it.
 */
#ifndef IRON_SERVER_PROGRESS_H
#define IRON_SERVER_PROGRESS_H

#include <stdint.h>

typedef struct iron__progress {
    uint64_t acked, received; /* bytes since the connection was made */
    int unsent;               /* bytes written that the peer has not acknowledged */
} iron__progress;

/* Zeros for what is no TCP socket. */
iron__progress iron__progress_of(int fd);

#endif
