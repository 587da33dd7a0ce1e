/* SPDX-License-Identifier: MIT */
/*
 * diff_finding.c: the findings' sentences. They say what was seen and no more, and call the two
 * streams "the first" and "the second", since a finding must fit into one line with any names.
 */
#include "digest/diff_finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Adds to the sentence. */
static void say(iron__diff_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(iron__diff_run *run, const char *format, ...) {
    char *text = run->diff->report.text;
    size_t used = strlen(text), room = sizeof run->diff->report.text;
    va_list values;

    va_start(values, format);
    vsnprintf(text + used, room - used, format, values);
    va_end(values);
}

/* Every sentence ends with what else there is to know. */
static void conclude(iron__diff_run *run, iron_diff_kind kind, bool is_verified) {
    run->diff->report.kind = kind;
    run->diff->report.is_verified = is_verified;
    say(run, "%s", run->note);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }
static const char *were(uint64_t count) { return count == 1 ? "was" : "were"; }

void iron__finding_same(iron__diff_run *run) {
    uint64_t tokens = run->diff->report.tokens[0];

    say(run, "the same %" PRIu64 " token%s%s", tokens, plural(tokens),
        run->has_same_seal ? ", as their seals tell" : "");
    conclude(run, IRON_DIFF_SAME, true);
}

void iron__finding_beginning(iron__diff_run *run, bool is_verified) {
    const iron_diff_report *r = &run->diff->report;
    bool is_cut = r->tokens[1] < r->tokens[0];
    uint64_t more = iron__diff_longer(r) - iron__diff_common(r);

    say(run, "the %s is the beginning of the %s, which has %" PRIu64 " token%s more",
        is_cut ? "second" : "first", is_cut ? "first" : "second", more, plural(more));
    if (!is_verified)
        say(run, "; positions %" PRIu64 " to %" PRIu64 " were not seen to agree: no files at hand",
            r->first, iron__diff_common(r) - 1);
    conclude(run, is_cut ? IRON_DIFF_CUT : IRON_DIFF_EXTENDED, is_verified);
}

/* "N tokens were inserted at position P", as a kind and its numbers too. */
static iron_diff_kind note_shift(iron__diff_run *run, const uint64_t at[2], uint64_t place) {
    iron_diff_report *r = &run->diff->report;
    bool is_more = at[1] > at[0];

    r->shift = is_more ? at[1] - at[0] : at[0] - at[1];
    r->shift_at = place;
    return is_more ? IRON_DIFF_INSERTED : IRON_DIFF_DELETED;
}

static const char *done_to(iron_diff_kind kind) {
    return kind == IRON_DIFF_INSERTED ? "inserted" : "deleted";
}

/* What is left where the lengths do not fit the shift. */
static void say_excess(iron__diff_run *run, const iron__shift *shift) {
    uint64_t left[2] = {run->text[0].tokens - shift->at[0], run->text[1].tokens - shift->at[1]};
    uint64_t excess = iron__shift_excess(run, shift);

    if (excess)
        say(run, "; the %s has %" PRIu64 " token%s more at its end",
            left[0] > left[1] ? "first" : "second", excess, plural(excess));
}

void iron__finding_shift(iron__diff_run *run, const iron__shift *shift) {
    iron_diff_kind kind = note_shift(run, shift->at, shift->apart);
    uint64_t shifted = run->diff->report.shift;

    if (iron__shift_changed(shift) == 0)
        say(run, "%" PRIu64 " token%s %s %s at position %" PRIu64, shifted, plural(shifted),
            were(shifted), done_to(kind), shift->apart);
    else
        say(run, "at position %" PRIu64 " %" PRIu64 " tokens were replaced by %" PRIu64 " others",
            shift->apart, shift->at[0] - shift->apart, shift->at[1] - shift->apart);
    if (shift->to_end) {
        say(run, "; the rest agrees");
        say_excess(run, shift);
    } else {
        say(run, "; the next %" PRIu64 " tokens agree, and there are more differences",
            shift->agrees);
    }
    if (shift->has_changes)
        say(run, "; before that tokens changed in place");
    conclude(run, kind, shift->to_end);
}

/* Where the stretch of differing chunks begins in which a mark stands. */
static uint64_t stretch_begin(const iron__diff_run *run, const uint64_t at[2]) {
    const iron__diff_bits *bits = &run->diff->bits;
    uint64_t chunk = (at[0] < at[1] ? at[0] : at[1]) / bits->chunk_tokens;

    while (chunk > 0 && iron__diff_bits_has(bits, chunk - 1))
        chunk--;
    return chunk * bits->chunk_tokens;
}

void iron__finding_marks(iron__diff_run *run, const iron__marks_shift *shift, bool is_verified) {
    uint64_t place = stretch_begin(run, shift->at);
    iron_diff_kind kind = note_shift(run, shift->at, place);
    uint64_t shifted = run->diff->report.shift;

    say(run, "%" PRIu64 " token%s %s%s %s behind position %" PRIu64, shifted, plural(shifted),
        is_verified ? "" : "seemingly ", were(shifted), done_to(kind), place);
    if (is_verified)
        say(run, "; the chunks behind them agree");
    else
        say(run, ", as marks of %" PRIu64 " chunk%s suggest", shift->votes, plural(shift->votes));
    if (shift->has_more)
        say(run, "; there are more shifts behind");
    conclude(run, kind, is_verified);
}

void iron__finding_reordered(iron__diff_run *run, const iron__moves *moves) {
    run->diff->report.moved = moves->elsewhere;
    say(run,
        "the same chunks in another order: %" PRIu64 " moved, the first is chunk %" PRIu64
        ", which stands at %" PRIu64 " in the second",
        moves->elsewhere, moves->from, moves->to);
    conclude(run, IRON_DIFF_REORDERED, true);
}

void iron__finding_repeated(iron__diff_run *run, const iron__moves *moves) {
    run->diff->report.moved = moves->excess;
    say(run,
        "%" PRIu64 " chunk%s of the first stand%s in the second once more: chunk %" PRIu64
        " also at %" PRIu64,
        moves->excess, plural(moves->excess), moves->excess == 1 ? "s" : "", moves->from,
        moves->to);
    if (moves->missing)
        say(run, "; %" PRIu64 " chunk%s of the first %s missing", moves->missing,
            plural(moves->missing), moves->missing == 1 ? "is" : "are");
    conclude(run, IRON_DIFF_REPEATED, true);
}

void iron__finding_repeated_at(iron__diff_run *run, const iron__shift *shift) {
    iron_diff_report *r = &run->diff->report;
    uint64_t more = shift->at[1] - shift->at[0];

    note_shift(run, shift->at, shift->apart);
    r->moved = more / r->chunk_tokens;
    say(run,
        "at position %" PRIu64 " the %" PRIu64 " tokens before it stand once more; the rest agrees",
        shift->apart, more);
    say_excess(run, shift);
    conclude(run, IRON_DIFF_REPEATED, true);
}

void iron__finding_changed(iron__diff_run *run, const iron__moves *moves) {
    const iron_diff_report *r = &run->diff->report;

    say(run, "tokens differ in %" PRIu64 " of %" PRIu64 " chunk%s", r->differing_chunks, r->chunks,
        plural(r->chunks));
    if (moves && moves->elsewhere)
        say(run,
            "; %" PRIu64 " chunk%s of the first stand%s elsewhere in the second (chunk %" PRIu64
            " at %" PRIu64 ")",
            moves->elsewhere, plural(moves->elsewhere), moves->elsewhere == 1 ? "s" : "",
            moves->from, moves->to);
    conclude(run, IRON_DIFF_CHANGED, true);
}

void iron__finding_stretch(iron__diff_run *run, const uint64_t at[2], uint64_t agrees) {
    bool is_more = at[1] > at[0];
    uint64_t by = is_more ? at[1] - at[0] : at[0] - at[1];
    const iron_diff_report *r = &run->diff->report;

    say(run, "tokens differ in %" PRIu64 " of %" PRIu64 " chunk%s; ", r->differing_chunks,
        r->chunks, plural(r->chunks));
    if (agrees)
        say(run, "the first's %" PRIu64 " tokens from position %" PRIu64, agrees, at[0]);
    else
        say(run, "some of the first's tokens from about position %" PRIu64, at[0]);
    say(run, " stand %" PRIu64 " %s in the second", by, is_more ? "later" : "earlier");
    conclude(run, IRON_DIFF_CHANGED, true);
}
