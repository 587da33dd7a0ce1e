/* SPDX-License-Identifier: MIT */
/*
 * diff_sides.c: what each side has, and so how they are compared.
 *
 *     words of both, chunks of one size             the words tell which chunks differ
 *     words of one, tokens of the other             the tokens are scanned first
 *     else tokens of both                           token by token
 *     else, unless the seals are equal              refused, with what to do
 *
 * Words go before tokens: they were made of all tokens already. A caller who wants chunks of a size
 * that no manifest has gets a comparison of tokens.
 */
#include "digest/diff_sides.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>

const char *iron__diff_name(const iron__diff_run *run, int side) {
    const char *name = run->side[side]->name;

    if (name)
        return name;
    return side ? "the second stream" : "the first stream";
}

static const iron_manifest *given(const iron__diff_run *run, int side) {
    return run->side[side]->manifest;
}

static iron_status check_side(const iron__diff_run *run, int side, iron_error *err) {
    const iron_manifest *m = given(run, side);

    IRON_FAIL_IF(!m && !run->side[side]->source, err, IRON_E_ARG,
                 "%.100s has neither a manifest nor files", iron__diff_name(run, side));
    if (!m)
        return IRON_OK;
    IRON_FAIL_IF(m->parts > 0 || m->first > 0 || m->tokens != m->stream_tokens, err, IRON_E_FORMAT,
                 "%.100s is the manifest of part %" PRIu32 " of %" PRIu32
                 "; join all parts first, with iron merge",
                 iron__diff_name(run, side), m->part, m->parts);
    return IRON_OK;
}

void iron__diff_drop_text(iron__diff_run *run, int side) {
    size_t length = 0;

    while (run->note[length])
        length++;
    iron__diff_text_close(&run->text[side]);
    run->source[side] = NULL;
    snprintf(run->note + length, sizeof run->note - length,
             "; the files of %.60s are no longer what its manifest says",
             iron__diff_name(run, side));
}

static iron_status open_text(iron__diff_run *run, int side, iron_error *err) {
    const iron_manifest *m = given(run, side);

    run->source[side] = run->side[side]->source;
    if (!run->source[side] || !iron__source_is_seekable(run->source[side]))
        return IRON_OK;
    IRON_TRY(
        iron__diff_text_open(run->source[side], iron__diff_name(run, side), &run->text[side], err));
    if (m && m->tokens != run->text[side].tokens)
        iron__diff_drop_text(run, side);
    return IRON_OK;
}

static iron_status scan(iron__diff_run *run, int side, uint64_t chunk_tokens, iron_error *err) {
    iron_scan_options o;

    iron_scan_options_init(&o);
    o.threads = iron__team_threads(run->crew.team);
    o.backend = "cpu";
    o.chunk_tokens = chunk_tokens;
    o.progress = run->crew.progress;
    o.context = run->crew.context;
    return iron_scan(run->source[side], &o, &run->made[side], err);
}

iron_status iron__diff_words_of(iron__diff_run *run, int side, const iron_manifest **out,
                                iron_error *err) {
    if (run->manifest[side])
        *out = run->manifest[side];
    else if (!run->made[side])
        IRON_TRY(scan(run, side, run->diff->bits.chunk_tokens, err));
    if (!run->manifest[side])
        *out = run->made[side];
    return IRON_OK;
}

/* The chunks' size that the comparison goes by: what the caller wants, else that of a manifest
 * whose tokens nobody can cut otherwise, else of any. */
static uint64_t choose_chunks(const iron__diff_run *run, uint64_t wanted) {
    for (int side = 0; side < 2 && !wanted; side++)
        if (!run->source[side])
            wanted = given(run, side)->chunk_tokens;
    for (int side = 0; side < 2 && !wanted; side++)
        if (given(run, side))
            wanted = given(run, side)->chunk_tokens;
    return wanted ? wanted : IRON_CHUNK_TOKENS;
}

static bool has_words(const iron__diff_run *run, int side) {
    return given(run, side) && given(run, side)->chunk_tokens == run->diff->bits.chunk_tokens;
}

static bool have_same_seal(const iron__diff_run *run) {
    const iron_manifest *a = given(run, 0), *b = given(run, 1);

    return a && b && a->words.count == b->words.count && a->words.t == b->words.t &&
           a->words.a == b->words.a && a->words.b == b->words.b;
}

static iron_status refuse(const iron__diff_run *run, int side, iron_error *err) {
    const iron_manifest *m = given(run, side);

    if (m->chunk_tokens == 0)
        IRON_FAIL(err, IRON_E_FORMAT,
                  "the manifest %.100s has no chunks to compare, and its files are not at hand; "
                  "make it with --chunk %" PRIu64 "%s",
                  iron__diff_name(run, side), run->diff->bits.chunk_tokens, run->note);
    IRON_FAIL(err, IRON_E_FORMAT,
              "the manifest %.100s has chunks of %" PRIu64 " tokens, not %" PRIu64
              ", and its files are not at hand; make both with one --chunk%s",
              iron__diff_name(run, side), m->chunk_tokens, run->diff->bits.chunk_tokens, run->note);
}

/* Words of both, if at least one has them and the other can be had. */
static iron_status choose_way(iron__diff_run *run, iron_error *err) {
    bool words[2] = {has_words(run, 0), has_words(run, 1)};

    run->has_same_seal = have_same_seal(run) && !(words[0] && words[1]);
    if (run->has_same_seal)
        return IRON_OK;
    for (int side = 0; side < 2; side++)
        if (!words[side] && !run->source[side])
            return refuse(run, side, err);
    for (int side = 0; side < 2 && (words[0] || words[1]); side++) {
        if (words[side])
            run->manifest[side] = given(run, side);
        else
            IRON_TRY(iron__diff_words_of(run, side, &run->manifest[side], err));
    }
    return IRON_OK;
}

iron_status iron__diff_sides_open(iron__diff_run *run, uint64_t chunk_tokens, iron_error *err) {
    for (int side = 0; side < 2; side++)
        IRON_TRY(check_side(run, side, err));
    IRON_FAIL_IF(run->side[0]->source && run->side[0]->source == run->side[1]->source, err,
                 IRON_E_ARG, "both sides are the same source; open it twice");
    for (int side = 0; side < 2; side++)
        IRON_TRY(open_text(run, side, err));
    run->diff->bits.chunk_tokens = choose_chunks(run, chunk_tokens);
    return choose_way(run, err);
}

void iron__diff_sides_close(iron__diff_run *run) {
    for (int side = 0; side < 2; side++) {
        iron__diff_text_close(&run->text[side]);
        iron_manifest_destroy(run->made[side]);
    }
}
