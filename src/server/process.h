/* SPDX-License-Identifier: MIT */
/* process.h: what the system says of this process. */
#ifndef IRON_SERVER_PROCESS_H
#define IRON_SERVER_PROCESS_H

#include <stdint.h>

/* 0: the system does not tell. */
typedef struct iron__process {
    double cpu_seconds;
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_fds, max_fds;
} iron__process;

void iron__process_look(iron__process *process);
/* When it was started, in seconds since 1970; 0 if the system does not tell. Asked once: the answer
 * would change with every correction of the clock. */
double iron__process_start(void);

#endif
