/* SPDX-License-Identifier: MIT */
/*
 * diff_finding.h: findings as they are reported: the kind, its numbers and a sentence.
 */
#ifndef IRON_DIGEST_DIFF_FINDING_H
#define IRON_DIGEST_DIFF_FINDING_H

#include "digest/diff_marks.h"
#include "digest/diff_moves.h"
#include "digest/diff_shift.h"

void iron__finding_same(iron__diff_run *run);
/* The shorter one is the beginning of the longer. */
void iron__finding_beginning(iron__diff_run *run, bool is_verified);
void iron__finding_shift(iron__diff_run *run, const iron__shift *shift);
/* is_verified: the words of all chunks behind the first difference were found at the shift. */
void iron__finding_marks(iron__diff_run *run, const iron__marks_shift *shift, bool is_verified);
void iron__finding_reordered(iron__diff_run *run, const iron__moves *moves);
void iron__finding_repeated(iron__diff_run *run, const iron__moves *moves);
/* The tokens inserted are those directly before them once more. */
void iron__finding_repeated_at(iron__diff_run *run, const iron__shift *shift);
void iron__finding_changed(iron__diff_run *run, const iron__moves *moves);
/* A shift that ends again: from at[0] and at[1] on, for `agrees` tokens (0: about there). */
void iron__finding_stretch(iron__diff_run *run, const uint64_t at[2], uint64_t agrees);

#endif
