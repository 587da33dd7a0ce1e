/* SPDX-License-Identifier: MIT */
/*
 * peer_library.h: one plug-in: loaded, and judged by the contract of iron/iron_peer.h.
 */
#ifndef IRON_ARENA_PEER_LIBRARY_H
#define IRON_ARENA_PEER_LIBRARY_H

#include <iron/iron_peer.h>

#include <stdbool.h>

/* Why this build can load none at all; NULL: it can. */
const char *iron__peer_library_obstacle(void);

/* Its rows, which stay as long as the process, or NULL with the reason. */
const iron_peer_list *iron__peer_library_load(const char *path, char *reason, size_t size);

/* Does it keep to the contract? If not, reason says what is wrong. */
bool iron__peer_list_is_sound(const iron_peer_list *list, char *reason, size_t size);

#endif
