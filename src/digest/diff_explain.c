/* SPDX-License-Identifier: MIT */
/*
 * diff_explain.c: the order in which explanations are tried, the surest and cheapest first.
 *
 *     1. one is a beginning of the other      known from the comparison
 *     2. one chunk of many, the same length   nothing to explain, unless it is the last: what is
 *                                             inserted there drives as much out at the end
 *     3. a shift that reaches to the end      lengths and probes; a look at the tokens
 *     4. the same chunks in another order     the words of all chunks: another pass if there are
 *        or more often                        no manifests
 *     5. any other shift                      as probes found it, or marks
 *
 * Without tokens of both only words and marks can tell, and what marks tell is a suggestion.
 */
#include "digest/diff_explain.h"

#include "core/fail.h"
#include "digest/diff_finding.h"
#include "digest/diff_follow.h"
#include "digest/diff_sides.h"
#include "digest/diff_words.h"

#include <stdio.h>

/* Could the shorter be the beginning of the longer, for all that words can tell? Its last chunk is
 * shorter than the other's: that can be compared where the other's tokens are at hand. */
static iron_status check_last_chunk(iron__diff_run *run, bool *is_beginning, bool *is_verified,
                                    iron_error *err) {
    const iron_diff_report *r = &run->diff->report;
    int shorter = r->tokens[0] < r->tokens[1] ? 0 : 1;
    const iron_manifest *a = run->manifest[shorter], *b = run->manifest[!shorter];
    uint64_t chunk = r->first / run->diff->bits.chunk_tokens;
    iron__seal_words words;

    if (!run->text[!shorter].at) {
        *is_verified = false;
        *is_beginning = iron__marks_can_continue(a, b, chunk);
        return IRON_OK;
    }
    IRON_TRY(
        iron__diff_words_at(&run->text[!shorter], r->first, a->tokens - r->first, &words, err));
    *is_verified = *is_beginning = words.t == a->chunks[chunk].t && words.a == a->chunks[chunk].a &&
                                   words.b == a->chunks[chunk].b;
    return IRON_OK;
}

static iron_status find_beginning(iron__diff_run *run, bool *is_beginning, bool *is_verified,
                                  iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t common = iron__diff_common(r);
    int longer = r->tokens[0] < r->tokens[1];

    *is_verified = true;
    *is_beginning = r->tokens[0] != r->tokens[1] && r->first == common;
    if (*is_beginning || r->first >= common || r->first_end <= common)
        return IRON_OK;
    IRON_TRY(check_last_chunk(run, is_beginning, is_verified, err));
    if (!*is_beginning || !*is_verified)
        return IRON_OK;
    r->first = common; /* now it is known exactly */
    r->first_end = common + 1;
    r->has_value[longer] = 1;
    return iron__diff_text_take(&run->text[longer], common, &r->value[longer], 1, err);
}

/* Do both stand at the same places again at their ends? */
static bool is_in_place_again(const iron__diff_run *run) {
    const iron_diff_report *r = &run->diff->report;

    return r->tokens[0] == r->tokens[1] && !iron__diff_bits_has(&run->diff->bits, r->chunks - 1);
}

static void tell_shift(iron__diff_run *run, const iron__shift *shift) {
    if (!shift->to_end && is_in_place_again(run))
        iron__finding_stretch(run, shift->at, shift->agrees);
    else
        iron__finding_shift(run, shift);
}

/* Nothing but an insertion or a deletion, all of it seen? */
static bool is_pure(const iron__diff_run *run, const iron__shift *shift) {
    return iron__shift_is_convincing(run, shift) && shift->to_end && !shift->has_changes &&
           iron__shift_changed(shift) == 0;
}

/* Are the inserted tokens those directly before them once more? */
static iron_status check_repeat(iron__diff_run *run, const iron__shift *shift, bool *is_repeat,
                                iron_error *err) {
    uint64_t more = shift->at[1] - shift->at[0], same;
    iron__lockstep what = {
        {&run->text[0], &run->text[1]}, {shift->apart - more, shift->apart}, more, NULL};

    *is_repeat = false;
    if (shift->at[1] < shift->at[0] || more > shift->apart)
        return IRON_OK;
    IRON_TRY(iron__lockstep_run(&what, &run->crew, &same, err));
    *is_repeat = same == more;
    return IRON_OK;
}

static bool is_large_insertion(const iron__diff_run *run, const iron__shift *shift) {
    return shift->at[1] > shift->at[0] &&
           shift->at[1] - shift->at[0] >= run->diff->bits.chunk_tokens;
}

/* A pure shift is told at once, but for one that may be a repetition of chunks. */
static iron_status explain_by_tokens(iron__diff_run *run, iron__shift *shift, bool *is_done,
                                     iron_error *err) {
    *shift = (iron__shift){.apart = run->diff->report.first};
    *is_done = false;
    IRON_TRY(iron__shift_by_lengths(run, shift, err));
    if (!shift->is_found)
        IRON_TRY(iron__shift_by_probes(run, shift, err));
    if (!is_pure(run, shift))
        return IRON_OK;
    if (is_large_insertion(run, shift)) {
        IRON_TRY(check_repeat(run, shift, is_done, err));
        if (*is_done)
            iron__finding_repeated_at(run, shift);
        return IRON_OK;
    }
    *is_done = true;
    iron__finding_shift(run, shift);
    return IRON_OK;
}

static bool tell_moves(iron__diff_run *run, const iron__moves *moves) {
    if (moves->excess == 0 && moves->missing == 0)
        iron__finding_reordered(run, moves);
    else if (moves->excess > 0 && moves->foreign == 0)
        iron__finding_repeated(run, moves);
    else
        return false;
    return true;
}

/* A shift that marks suggest, made sure of by the tokens. */
static iron_status settle_marks(iron__diff_run *run, const iron_manifest *const words[2],
                                iron__shift *shift, iron_error *err) {
    uint64_t chunk = shift->apart / run->diff->bits.chunk_tokens;
    iron__marks_shift marks;

    IRON_TRY(iron__marks_shift_find(words[0], words[1], chunk, &marks, err));
    shift->is_found = false;
    if (!marks.is_found || marks.at[0] < shift->apart || marks.at[1] < shift->apart)
        return IRON_OK;
    return iron__shift_settle(run, marks.at, shift, err);
}

static iron_status explain_files(iron__diff_run *run, iron_error *err) {
    const iron_manifest *words[2];
    iron__shift shift;
    iron__moves moves;
    bool is_done;

    IRON_TRY(explain_by_tokens(run, &shift, &is_done, err));
    if (is_done)
        return IRON_OK;
    for (int side = 0; side < 2; side++)
        IRON_TRY(iron__diff_words_of(run, side, &words[side], err));
    IRON_TRY(iron__moves_find(words[0], words[1], &moves, err));
    if (tell_moves(run, &moves))
        return IRON_OK;
    if (!iron__shift_is_convincing(run, &shift))
        IRON_TRY(settle_marks(run, words, &shift, err));
    if (iron__shift_is_convincing(run, &shift))
        tell_shift(run, &shift);
    else
        iron__finding_changed(run, &moves);
    return IRON_OK;
}

/* Verifies a shift of marks where one side's tokens are at hand: the other's chunks behind the one
 * that holds the mark must all be found there. */
static iron_status follow_marks(iron__diff_run *run, const iron__marks_shift *marks,
                                bool *is_verified, iron_error *err) {
    int known = run->text[0].at ? 1 : 0;
    uint64_t chunk = marks->at[known] / run->diff->bits.chunk_tokens + 1;

    *is_verified = false;
    if (marks->has_more || !run->text[!known].at)
        return IRON_OK;
    return iron__diff_follow(run, known, chunk, marks->at[!known] - marks->at[known], is_verified,
                             err);
}

static iron_status explain_words(iron__diff_run *run, iron_error *err) {
    const iron_manifest *a = run->manifest[0], *b = run->manifest[1];
    uint64_t chunk = run->diff->report.first / run->diff->bits.chunk_tokens;
    iron__marks_shift marks;
    iron__moves moves;
    bool is_verified;

    IRON_TRY(iron__moves_find(a, b, &moves, err));
    if (tell_moves(run, &moves))
        return IRON_OK;
    IRON_TRY(iron__marks_shift_find(a, b, chunk, &marks, err));
    if (!marks.is_found) {
        iron__finding_changed(run, &moves);
    } else if (is_in_place_again(run)) {
        iron__finding_stretch(run, marks.at, 0);
    } else {
        IRON_TRY(follow_marks(run, &marks, &is_verified, err));
        iron__finding_marks(run, &marks, is_verified);
    }
    return IRON_OK;
}

/* One chunk differs, and is the last. */
static iron_status explain_last_chunk(iron__diff_run *run, iron_error *err) {
    iron__shift shift;
    bool is_done;

    IRON_TRY(explain_by_tokens(run, &shift, &is_done, err));
    if (is_done)
        return IRON_OK;
    if (iron__shift_is_convincing(run, &shift))
        iron__finding_shift(run, &shift);
    else
        iron__finding_changed(run, NULL);
    return IRON_OK;
}

static iron_status explain_difference(iron__diff_run *run, iron_error *err) {
    const iron_diff_report *r = &run->diff->report;
    bool is_small = r->differing_chunks == 1 && r->tokens[0] == r->tokens[1];

    if (!is_small && iron__diff_has_texts(run))
        return explain_files(run, err);
    if (!is_small && run->manifest[0] && run->manifest[1])
        return explain_words(run, err);
    if (iron__diff_has_texts(run) && !is_in_place_again(run))
        return explain_last_chunk(run, err);
    if (!is_small)
        snprintf(run->note, sizeof run->note,
                 "; whether tokens moved can be told of files, not of a pipe");
    iron__finding_changed(run, NULL);
    return IRON_OK;
}

iron_status iron__diff_explain(iron__diff_run *run, iron_error *err) {
    bool is_beginning, is_verified;

    if (run->diff->report.differing_chunks == 0) {
        iron__finding_same(run);
        return IRON_OK;
    }
    IRON_TRY(find_beginning(run, &is_beginning, &is_verified, err));
    if (!is_beginning)
        return explain_difference(run, err);
    iron__finding_beginning(run, is_verified);
    return IRON_OK;
}
