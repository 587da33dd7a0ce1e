/* SPDX-License-Identifier: MIT */
/*
 * selftest_variants.c: every registry row against the reference, on the shapes that break vector
 * code: empty, odd, just around a group of 16 and a block, unaligned, at positions beyond 2^32 and
 * 2^36; with tokens inside the vocabulary, anywhere in 32 bits, and all ones. The rows of the seal
 * likewise, on whole quads and across the borders of its windows.
 */
#include "engine/selftest.h"
#include "ops/tokens/quads.h"
#include "ops/tokens/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t lengths[] = {0,  1,   3,    4,    15,   16,   17,   31,
                                 64, 255, 4095, 4096, 4097, 4098, 4099, 65537};
static const uint64_t positions[] = {0, 5, (UINT64_C(1) << 32) - 9, (UINT64_C(1) << 36) + 7,
                                     (UINT64_C(1) << 63) + 1};
static const uint32_t vocabs[] = {2,     3,      6,      7,       10,         32000,     50257,
                                  50304, 65536,  100277, 128256,  1048576,    1048577,   16777259,
                                  65535, 151936, 999983, 1048574, 2147483647, 2147483648};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LONG_TOKENS  999983u /* a prime near 10^6 */
#define TOKENS_MAX   (LONG_TOKENS + 1)

enum { KIND_IN_VOCAB, KIND_ANY, KIND_ONES, KIND_COUNT };
static const char *const kind_names[] = {"in vocabulary", "of 32 bits", "all ones"};

static void fill(uint32_t *tokens, int kind, uint32_t vocab) {
    uint64_t limit = kind == KIND_IN_VOCAB ? vocab : UINT64_C(1) << 32;

    iron_generate(vocab, limit, 0, tokens, TOKENS_MAX, NULL);
    for (size_t k = 0; kind == KIND_ONES && k < TOKENS_MAX; k++)
        tokens[k] = UINT32_MAX;
}

/* One run of a row and of the reference; false and a sentence if they differ. */
static bool same(const iron__tokens_variant *row, const iron__tokens_run *run, char *text,
                 size_t size) {
    iron__contribution got = row->reduce(run), want = iron__tokens_scalar(run);

    if (got.count == want.count && got.xors == want.xors && got.sum == want.sum)
        return true;
    snprintf(text, size,
             "%zu tokens at %" PRIu64 ": xor %08x sum %" PRIu64 ", reference %08x %" PRIu64,
             run->count, run->first, got.xors, got.sum, want.xors, want.sum);
    return false;
}

static bool same_on_all_shapes(const iron__tokens_variant *row, const uint32_t *tokens,
                               const iron__divisor *d, bool is_quick, char *text, size_t size) {
    iron__tokens_run lengthy = {tokens + 1, LONG_TOKENS, 3, d};

    for (size_t p = 0; p < COUNT(positions); p++) {
        for (size_t k = 0; k < COUNT(lengths); k++) {
            iron__tokens_run run = {tokens + (k + p) % 4, lengths[k], positions[p], d};

            if (!same(row, &run, text, size))
                return false;
        }
    }
    return is_quick || same(row, &lengthy, text, size);
}

static void test_vocab(iron__selftest *t, uint32_t vocab, uint32_t *tokens) {
    iron__divisor d = iron__divisor_make(vocab);

    for (int kind = 0; kind < KIND_COUNT; kind++) {
        fill(tokens, kind, vocab);
        for (size_t v = 0; v < iron__tokens_variant_count(); v++) {
            const iron__tokens_variant *row = iron__tokens_variant_at(v);
            char what[120], text[160] = "";

            if (!iron__tokens_variant_runs_here(row))
                continue;
            snprintf(what, sizeof what, "shapes, %s, vocab %u, tokens %s", row->name, vocab,
                     kind_names[kind]);
            if (!iron__selftest_wants(t, what))
                continue;
            same_on_all_shapes(row, tokens, &d, t->is_quick, text, sizeof text);
            iron__selftest_tell(t, what, "%s", text);
        }
    }
}

static bool same_stats(iron__token_stats x, iron__token_stats y) {
    return x.min == y.min && x.max == y.max && x.out_of_vocab == y.out_of_vocab &&
           x.first_position == y.first_position && x.first_value == y.first_value;
}

static bool same_seal(const iron__seal_variant *row, const iron__quads_run *run, char *text,
                      size_t size) {
    const iron__seal_variant *reference = iron__seal_variant_find("reference");
    iron__token_stats got_stats = iron__token_stats_neutral(), want_stats = got_stats;
    iron__seal_words got = {0, 0, 0, 0}, want = got, alone = got;

    row->take(run, &got, &got_stats);
    row->take(run, &alone, NULL);
    reference->take(run, &want, &want_stats);
    if (got.count == want.count && got.t == want.t && got.a == want.a && got.b == want.b &&
        alone.count == want.count && alone.t == want.t && alone.a == want.a && alone.b == want.b &&
        same_stats(got_stats, want_stats))
        return true;
    snprintf(text, size,
             "%zu quads at quad %" PRIu64 ": T %016" PRIx64 " A %016" PRIx64 " B %016" PRIx64
             ", reference %016" PRIx64 " %016" PRIx64 " %016" PRIx64 "%s",
             run->quads, run->first_quad, got.t, got.a, got.b, want.t, want.a, want.b,
             same_stats(got_stats, want_stats) ? "" : "; statistics differ");
    return false;
}

/* A row's own way from 16 bits against its way from 32. */
static bool same_narrow(const iron__seal_variant *row, const uint16_t *tokens,
                        const iron__quads_run *wide, char *text, size_t size) {
    iron__quads_run_u16 run = {tokens, wide->quads, wide->first_quad, wide->vocab};
    iron__token_stats got_stats = iron__token_stats_neutral(), want_stats = got_stats;
    iron__seal_words got = {0, 0, 0, 0}, want = got;

    row->take_u16(&run, &got, &got_stats);
    row->take(wide, &want, &want_stats);
    if (got.count == want.count && got.t == want.t && got.a == want.a && got.b == want.b &&
        same_stats(got_stats, want_stats))
        return true;
    snprintf(text, size, "%zu quads at quad %" PRIu64 ": tokens of 16 bits differ from those of 32",
             wide->quads, wide->first_quad);
    return false;
}

static bool same_narrow_on_all_shapes(const iron__seal_variant *row, const uint32_t *tokens,
                                      char *text, size_t size) {
    uint16_t narrow[4 * 300 + 3];

    for (size_t k = 0; k < COUNT(narrow); k++)
        narrow[k] = (uint16_t)tokens[k];
    for (size_t quads = 0; quads <= 300; quads += quads < 20 ? 1 : 7) {
        iron__quads_run run = {tokens + quads % 4, quads, (UINT64_C(1) << 32) - quads / 2, 40000};

        if (!same_narrow(row, narrow + quads % 4, &run, text, size))
            return false;
    }
    return true;
}

/* Half of each run lies before a border of windows. */
static bool same_seal_on_all_shapes(const iron__seal_variant *row, const uint32_t *tokens,
                                    uint32_t vocab, bool is_quick, char *text, size_t size) {
    iron__quads_run lengthy = {tokens + 1, LONG_TOKENS / 4, 3, vocab};

    for (uint64_t border = 0; border < 3; border++) {
        for (size_t k = 0; k < COUNT(lengths); k++) {
            size_t quads = lengths[k] < 4096 ? lengths[k] : lengths[k] / 4;
            iron__quads_run run = {tokens + (k + border) % 4, quads,
                                   border ? (border << 32) - quads / 2 : k, vocab};

            if (!same_seal(row, &run, text, size))
                return false;
        }
    }
    return is_quick || same_seal(row, &lengthy, text, size);
}

static void test_seals(iron__selftest *t, uint32_t *tokens) {
    const iron__seal_variant *row;

    for (int kind = 0; kind < KIND_COUNT; kind++) {
        fill(tokens, kind, 50257);
        for (size_t k = 0; (row = iron__seal_variant_at(k)); k++) {
            char what[120], text[200] = "";

            if (!iron__seal_variant_runs_here(row))
                continue;
            snprintf(what, sizeof what, "shapes, %s, tokens %s", row->name, kind_names[kind]);
            if (!iron__selftest_wants(t, what))
                continue;
            /* Beside a vocabulary that all of the first kind are in, one that many are not. */
            if (same_seal_on_all_shapes(row, tokens, 50257, t->is_quick, text, sizeof text) &&
                same_seal_on_all_shapes(row, tokens, 40000, t->is_quick, text, sizeof text) &&
                row->take_u16 && kind == KIND_IN_VOCAB)
                same_narrow_on_all_shapes(row, tokens, text, sizeof text);
            iron__selftest_tell(t, what, "%s", text);
        }
    }
}

void iron__selftest_variants(iron__selftest *t) {
    uint32_t *tokens = malloc(TOKENS_MAX * sizeof *tokens);

    if (!tokens) {
        iron__selftest_fail(t, &iron__selftest_no_memory);
        return;
    }
    for (size_t k = 0; k < COUNT(vocabs); k++)
        test_vocab(t, vocabs[k], tokens);
    test_seals(t, tokens);
    free(tokens);
}
