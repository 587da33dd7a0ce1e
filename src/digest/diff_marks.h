/* SPDX-License-Identifier: MIT */
/*
 * diff_marks.h: content that has moved by some tokens, as marks of two manifests suggest it.
 */
#ifndef IRON_DIGEST_DIFF_MARKS_H
#define IRON_DIGEST_DIFF_MARKS_H

#include "digest/manifest.h"

#include <stdbool.h>

typedef struct iron__marks_shift {
    bool is_found;
    uint64_t at[2]; /* the first mark that has moved: where it stands in each */
    uint64_t apart; /* the last mark before it that has not, or the first chunk's begin */
    bool has_more;  /* marks further on have moved by something else */
    uint64_t votes; /* marks that have moved by as much */
} iron__marks_shift;

/* Looks at chunks from `chunk` on. */
iron_status iron__marks_shift_find(const iron_manifest *a, const iron_manifest *b, uint64_t chunk,
                                   iron__marks_shift *shift, iron_error *err);

/* Could the beginning of b's chunk be all of a's same chunk, which is shorter? */
bool iron__marks_can_continue(const iron_manifest *a, const iron_manifest *b, uint64_t chunk);

#endif
