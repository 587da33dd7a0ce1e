/* SPDX-License-Identifier: MIT */
/*
 * diff.h: the inside of iron_diff, and the map of the files that make one.
 *
 *   diff.c           the calls of the header; which way of comparing a pair of sides allows
 *   diff_sides.c     what each side has: tokens that can be read, words of chunks, or both
 *   diff_bits.c      which chunks differ
 *   diff_text.c      tokens of a side; the first difference of two runs in memory
 *   diff_lockstep.c  two texts compared on all threads
 *   diff_in_order.c  two streams compared as they come, where one cannot be read twice
 *   diff_words.c     two manifests compared chunk by chunk, and the first differing chunk opened
 *   diff_explain.c   what happened: the order in which explanations are tried
 *   diff_shift.c     has content moved by some tokens? with tokens at hand (diff_probe.c: where to)
 *   diff_marks.c     the same from marks of manifests alone
 *   diff_follow.c    the same verified, where one side has tokens and the other a manifest
 *   diff_moves.c     do chunks stand elsewhere, or more often?
 *   diff_finding.c   the sentence
 */
#ifndef IRON_DIGEST_DIFF_H
#define IRON_DIGEST_DIFF_H

#include "digest/diff_lockstep.h"
#include "digest/manifest.h"

struct iron_diff {
    iron_diff_report report;
    iron__diff_bits bits;
    iron__diff_range *ranges; /* positions; from malloc */
};

/* One comparison under way. */
typedef struct iron__diff_run {
    iron_diff *diff;
    iron__diff_crew crew;
    const iron_diff_side *side[2];
    iron_source *source[2];           /* NULL: no tokens at hand */
    iron__diff_text text[2];          /* at == NULL: cannot be read anywhere */
    const iron_manifest *manifest[2]; /* with chunks of the comparison's size, or NULL */
    iron_manifest *made[2];           /* by scanning; ours */
    bool has_same_seal;               /* of two manifests that cannot be compared by chunks */
    char note[160];                   /* what else the sentence must say */
} iron__diff_run;

/* The shorter stream's tokens. */
static inline uint64_t iron__diff_common(const iron_diff_report *report) {
    return report->tokens[0] < report->tokens[1] ? report->tokens[0] : report->tokens[1];
}

static inline uint64_t iron__diff_longer(const iron_diff_report *report) {
    return report->tokens[0] < report->tokens[1] ? report->tokens[1] : report->tokens[0];
}

static inline bool iron__diff_has_texts(const iron__diff_run *run) {
    return run->text[0].at && run->text[1].at;
}

/* Ways of comparing: each fills bits, tokens, first, first_end and, where it can, the values. */
iron_status iron__diff_by_tokens(iron__diff_run *run, iron_error *err);
iron_status iron__diff_in_order(iron__diff_run *run, iron_error *err);
iron_status iron__diff_by_words(iron__diff_run *run, iron_error *err);

/* Position and values of the first difference, from the texts of both. */
iron_status iron__diff_show_first(iron__diff_run *run, uint64_t first, iron_error *err);

#endif
