/* SPDX-License-Identifier: MIT */
/*
 * selftest_variants.c: every registry row against the reference, on the shapes that break vector
 * code: empty, odd, just around a group of 16 and a block, unaligned, at positions beyond 2^32 and
 * 2^36; with tokens inside the vocabulary, anywhere in 32 bits, and all ones.
 */
#include "engine/selftest.h"
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
                     kind == KIND_IN_VOCAB ? "in vocabulary"
                     : kind == KIND_ANY    ? "of 32 bits"
                                           : "all ones");
            if (!iron__selftest_wants(t, what))
                continue;
            same_on_all_shapes(row, tokens, &d, t->is_quick, text, sizeof text);
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
    free(tokens);
}
