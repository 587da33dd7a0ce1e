/* SPDX-License-Identifier: MIT */
/* directory.h: the data directory, and that one process has it. */
#ifndef IRON_STORE_DIRECTORY_H
#define IRON_STORE_DIRECTORY_H

#include <iron/iron.h>

/* Creates it, for its owner alone, if it is not there, and locks it until the descriptor is closed.
 * Refuses one that somebody else has. */
iron_status iron__directory_lock(const char *directory, int *lock, iron_error *err);

#endif
