/* SPDX-License-Identifier: MIT */
/*
 * diff_moves.h: chunks that stand elsewhere, or more often than before.
 */
#ifndef IRON_DIGEST_DIFF_MOVES_H
#define IRON_DIGEST_DIFF_MOVES_H

#include "digest/manifest.h"

typedef struct iron__moves {
    uint64_t elsewhere; /* chunks of the first that are not in their place, but in another */
    uint64_t missing;   /* chunks of the first that the second lacks, counted with repetition */
    uint64_t excess;    /* chunks of the second beyond what the first has */
    uint64_t foreign;   /* of those, chunks that are nowhere in the first */
    uint64_t from, to;  /* the first example: chunk `from` of the first stands at `to` in the
                           second; UINT64_MAX: there is none */
} iron__moves;

/* Both manifests must have chunks of one size. */
iron_status iron__moves_find(const iron_manifest *a, const iron_manifest *b, iron__moves *moves,
                             iron_error *err);

#endif
