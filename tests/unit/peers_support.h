/* SPDX-License-Identifier: MIT */
/*
 * peers_support.h: for tests of peers: a folder with plug-ins, and the list of them.
 */
#ifndef TESTS_UNIT_PEERS_SUPPORT_H
#define TESTS_UNIT_PEERS_SUPPORT_H

#include "support.h"

#include "arena/arena.c"

#define PEERS "IRON_PEERS"

static inline iron__peers open_in(const char *path) {
    iron__peers peers;
    iron_error err;

    setenv(PEERS, path, 1);
    assert_ok(peers_open(&peers, &err), &err);
    unsetenv(PEERS);
    return peers;
}

/* A plug-in of the build, under another name in the folder. */
static inline void put(const folder *f, const char *name, const char *library) {
    assert_int_equal(symlink(library, name_in(f, name).path), 0);
}

#endif
