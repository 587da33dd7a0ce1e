/* SPDX-License-Identifier: MIT */
/*
 * diff_sides.h: what the two sides of a comparison have, and what the comparison can be made of.
 */
#ifndef IRON_DIGEST_DIFF_SIDES_H
#define IRON_DIGEST_DIFF_SIDES_H

#include "digest/diff.h"

/* Checks the sides, opens their tokens, and sees to it that there are either tokens of both or
 * words of chunks of one size of both (has_same_seal: or neither, since the seals say enough).
 * chunk_tokens: 0, or what the caller wants. */
iron_status iron__diff_sides_open(iron__diff_run *run, uint64_t chunk_tokens, iron_error *err);
void iron__diff_sides_close(iron__diff_run *run);

const char *iron__diff_name(const iron__diff_run *run, int side);

/* Words and marks of a side's chunks: its manifest's, or from another pass over its tokens. */
iron_status iron__diff_words_of(iron__diff_run *run, int side, const iron_manifest **out,
                                iron_error *err);

/* The side's tokens are not what its manifest says: they are no longer used, and that is told. */
void iron__diff_drop_text(iron__diff_run *run, int side);

#endif
