/* SPDX-License-Identifier: MIT */
/*
 * peers.h: the other libraries' rows of a race, from plug-ins (iron/iron_peer.h), and those
 * plug-ins that could not be used, with the reason.
 *
 * Folders, in this order: the one of the running program; <libdir>/iron/peers of the installation
 * that the program belongs to; the one that was configured. A name that was seen in an earlier
 * folder is not looked at again, so a build uses its own plug-ins. IRON_PEERS names the only
 * folder; IRON_PEERS=none: no peers, and nothing is loaded.
 *
 * A plug-in that keeps to the contract stays loaded as long as the process, also after the list was
 * closed: the libraries behind it leave threads and exit handlers that must not lose their code.
 */
#ifndef IRON_ARENA_PEERS_H
#define IRON_ARENA_PEERS_H

#include <iron/iron.h>
#include <iron/iron_peer.h>

#include <stdbool.h>

typedef struct iron__peers iron__peers;

/* Borrowed from the list. */
typedef struct iron__peer_entry {
    const iron_peer *row;
    const char *library, *version; /* "OpenBLAS", "0.3.21" */
    const char *path;              /* of the plug-in */
} iron__peer_entry;

typedef struct iron__peer_absence {
    const char *path; /* of the plug-in or the folder; "": of all */
    const char *reason;
} iron__peer_absence;

/* Loads what there is. A plug-in that cannot be used is no error; IRON_E_NOMEM is. */
iron_status iron__peers_open(iron__peers **out, iron_error *err);
void iron__peers_close(iron__peers *peers);

/* Rows of all plug-ins, by the plug-in's file name. at: false past the last. */
size_t iron__peers_count(const iron__peers *peers);
bool iron__peers_at(const iron__peers *peers, size_t index, iron__peer_entry *out);
bool iron__peers_absent_at(const iron__peers *peers, size_t index, iron__peer_absence *out);

#endif
