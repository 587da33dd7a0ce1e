/* SPDX-License-Identifier: MIT */
/*
 * check.h: the inside of iron_check.
 *
 *   check.c         what was asked, file by file: which are there and look as they did
 *   check_chunks.c  the chunks of the files that are there, read again
 *   check_itself.c  the manifest, by the files that it was right about
 */
#ifndef IRON_DIGEST_CHECK_H
#define IRON_DIGEST_CHECK_H

#include "digest/manifest.h"

#include <stdbool.h>

typedef struct iron__check_entry {
    char *path;        /* where it was found; NULL: nowhere */
    bool is_sound;     /* there, and with as many tokens as it had; else `report` says why not */
    uint64_t right;    /* chunks of it that are as they were */
    uint64_t skipped;  /* chunks that it shares with a file that is not sound, */
    size_t neighbour;  /* such as this one */
    size_t wrong_runs; /* of chunks that differ and follow one another */
    uint64_t first_wrong, end_wrong; /* positions of the first such run */
    uint64_t last_wrong;             /* where the last one ends */
    iron_check_file report;
} iron__check_entry;

struct iron_check {
    const iron_manifest *manifest; /* only while it runs */
    iron_check_options options;
    uint64_t chunk_tokens; /* of a manifest without chunks: one chunk is all of it */
    uint64_t chunks;
    iron__check_entry *entries;
    size_t count;
    uint64_t wrong;         /* chunks that differ */
    uint64_t done;          /* tokens, for progress */
    bool is_damaged;        /* the manifest itself, */
    iron_check_file damage; /* and how */
};

/* Reads the chunks that lie in sound files, and counts for each file what came out. */
iron_status iron__check_chunks(iron_check *check, iron_error *err);

/* All of the stream was read: `found`. If every chunk is as it was, what else the manifest says of
 * the stream must be true too: its seal above all, which people quote. */
void iron__check_itself(iron_check *check, const iron_manifest *found);

#endif
