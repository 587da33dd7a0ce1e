/* SPDX-License-Identifier: MIT */
/*
 * diff_words.c: two manifests compared chunk by chunk.
 *
 * Which chunks differ the words tell. Where in the first of them, and with which values, only the
 * tokens can tell: that one chunk is read on both sides, if it can be. A file may have changed
 * since its manifest was made; so the chunk's words are made again from what was read, and a file
 * that contradicts its manifest is not believed.
 */
#include "digest/diff_words.h"
#include "core/fail.h"
#include "digest/diff.h"
#include "digest/diff_sides.h"
#include "digest/scan.h"

#include <string.h>

#define BLOCK_TOKENS ((size_t)16384)

static uint64_t chunk_count_tokens(const iron_manifest *m, uint64_t k) {
    return k < m->chunk_count ? iron__manifest_chunk_tokens(m, (size_t)k) : 0;
}

bool iron__chunks_equal(const iron_manifest *a, uint64_t i, const iron_manifest *b, uint64_t j) {
    const iron__chunk *x = &a->chunks[i], *y = &b->chunks[j];

    return chunk_count_tokens(a, i) == chunk_count_tokens(b, j) && x->t == y->t && x->a == y->a &&
           x->b == y->b;
}

/* Adds tokens at positions of a stream of their own; the last quad is padded with zeros. */
static void add_words(iron__seal_words *words, uint32_t *tokens, size_t count, uint64_t first) {
    size_t padded = (count + 3) / 4 * 4;
    const iron__quads_run quads = {tokens, padded / 4, first / 4, 1};

    memset(tokens + count, 0, (padded - count) * sizeof *tokens);
    iron__seal_variant_find("champion")->take(&quads, words, NULL);
}

iron_status iron__diff_words_at(const iron__diff_text *text, uint64_t first, uint64_t count,
                                iron__seal_words *words, iron_error *err) {
    uint32_t *block = iron__allocate(iron__allocator_default(), BLOCK_TOKENS, sizeof *block,
                                     "a block of tokens", err);
    iron_status status = block ? IRON_OK : IRON_E_NOMEM;

    *words = (iron__seal_words){0};
    for (uint64_t done = 0; done < count && status == IRON_OK;) {
        size_t some = count - done < BLOCK_TOKENS ? (size_t)(count - done) : BLOCK_TOKENS;

        status = iron__diff_text_take(text, first + done, block, some, err);
        if (status == IRON_OK)
            add_words(words, block, some, done);
        done += some;
    }
    iron__release(iron__allocator_default(), block);
    words->count = count;
    return status;
}

/* Are the chunk's tokens still those of its words? What was scanned just now need not be asked. */
static iron_status check_text(iron__diff_run *run, int side, uint64_t chunk, iron_error *err) {
    const iron_manifest *m = run->manifest[side];
    const iron__chunk *c = &m->chunks[chunk];
    iron__seal_words words;

    if (!run->text[side].at || m == run->made[side] || chunk >= m->chunk_count)
        return IRON_OK;
    IRON_TRY(iron__diff_words_at(&run->text[side], chunk * m->chunk_tokens,
                                 chunk_count_tokens(m, chunk), &words, err));
    if (words.t != c->t || words.a != c->a || words.b != c->b)
        iron__diff_drop_text(run, side);
    return IRON_OK;
}

/* The first difference is in this chunk, for all that words can tell. */
static iron_status look_into(iron__diff_run *run, uint64_t chunk, iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t begin = chunk * run->diff->bits.chunk_tokens, common = iron__diff_common(r);
    uint64_t end = begin + run->diff->bits.chunk_tokens, same = 0;
    iron__lockstep what = {{&run->text[0], &run->text[1]}, {begin, begin}, 0, NULL};

    end = end < iron__diff_longer(r) ? end : iron__diff_longer(r);
    r->first = begin;
    r->first_end = end;
    for (int side = 0; side < 2; side++)
        IRON_TRY(check_text(run, side, chunk, err));
    if (begin >= common) { /* one has ended exactly here */
        r->first_end = begin + 1;
        for (int side = 0; side < 2; side++) {
            r->has_value[side] = run->text[side].at && begin < r->tokens[side];
            if (r->has_value[side])
                IRON_TRY(iron__diff_text_take(&run->text[side], begin, &r->value[side], 1, err));
        }
        return IRON_OK;
    }
    if (!iron__diff_has_texts(run))
        return IRON_OK;
    what.count = (common < end ? common : end) - begin;
    IRON_TRY(iron__lockstep_run(&what, &run->crew, &same, err));
    if (same == what.count && begin + same < common) /* changed while being read */
        return IRON_OK;
    return iron__diff_show_first(run, begin + same, err);
}

/* The chunks say that the streams are the same, the seals that they are not, or the other way: a
 * manifest was changed. What was scanned just now was not. */
static iron_status refuse_damaged(const iron__diff_run *run, bool are_same, iron_error *err) {
    char seals[2][IRON_SEAL_TEXT];
    int damaged = run->manifest[0] == run->made[0] ? 1 : 0;

    for (int side = 0; side < 2; side++)
        iron__seal_text(run->manifest[side]->words, seals[side]);
    if (run->manifest[0] == run->made[0] || run->manifest[1] == run->made[1])
        IRON_FAIL(err, IRON_E_FORMAT,
                  "%.100s is a damaged manifest: its chunks and its seal %.32s do not belong "
                  "together",
                  iron__diff_name(run, damaged), seals[damaged]);
    IRON_FAIL(err, IRON_E_FORMAT,
              "%.40s or %.40s is a damaged manifest: their chunks are %s, their seals %.32s and "
              "%.32s %s; iron check tells which",
              iron__diff_name(run, 0), iron__diff_name(run, 1), are_same ? "equal" : "not",
              seals[0], seals[1], are_same ? "are not" : "are");
}

static bool has_same_words(const iron__seal_words *x, const iron__seal_words *y) {
    return x->count == y->count && x->t == y->t && x->a == y->a && x->b == y->b;
}

iron_status iron__diff_by_words(iron__diff_run *run, iron_error *err) {
    const iron_manifest *a = run->manifest[0], *b = run->manifest[1];
    iron_diff *d = run->diff;
    uint64_t most, first = UINT64_MAX;

    d->report.tokens[0] = a->tokens;
    d->report.tokens[1] = b->tokens;
    most = a->chunk_count > b->chunk_count ? a->chunk_count : b->chunk_count;
    IRON_TRY(iron__diff_bits_reach(&d->bits, iron__diff_longer(&d->report), err));
    for (uint64_t k = 0; k < most; k++) {
        if (k < a->chunk_count && k < b->chunk_count && iron__chunks_equal(a, k, b, k))
            continue;
        iron__diff_bits_set(&d->bits, k);
        first = k < first ? k : first;
    }
    if ((first >= most) != has_same_words(&a->words, &b->words))
        return refuse_damaged(run, first >= most, err);
    return first < most ? look_into(run, first, err) : IRON_OK;
}
