/* SPDX-License-Identifier: MIT */
/*
 * seal_op.c: the op `seal`: what it is, its sizes and lanes, and its judge, which wants every bit.
 */
#include "ops/seal/seal_op.h"

#include "core/fail.h"
#include "ops/line.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS_MAX    (UINT64_C(1) << 40)
#define VOCAB_USUAL 50257u

static const char why[] =
    "A checksum of a token stream is worth having where it costs nothing beside reading the "
    "tokens. "
    "This one is a sum over quads of tokens: two products of a pair of tokens each, twice, under "
    "keys that depend on the quad's place. Sums may be taken in any order, so all threads and all "
    "lanes of a vector work side by side, and parts of a stream merge; what is left is arithmetic: "
    "the keys of a quad, four multiplications, and a dozen additions.\n"
    "\n"
    "The race asks how near that comes to a bare read. The lanes are what else the same pass "
    "carries: seal alone; with the smallest and largest token and those outside the vocabulary; "
    "and "
    "with the contribution as well, which is all that the product wants of a token.";

static const char traffic[] =
    "Four bytes a token, read once, and some words a run. With the contribution a block of tokens "
    "is "
    "gone through twice while it is in the first-level cache, and comes from memory once.";

static const char unless[] =
    "Where tokens are in a cache already, arithmetic is all there is, and the seal costs several "
    "times what a plain sum does. Against somebody who means harm it does not help at all: a "
    "cryptographic hash does, at a small part of the rate.";

static const char used[] =
    "This is the product's own work: `iron feed --seal` and the digests run the champion's rows "
    "(src/ops/tokens/quads_neon.c, quads_avx2.c, quads_avx512.c; on GPUs quads.k).";

static const char *const lane_words[] = {"seal-stats", "all", "seal"};
static const iron__axis axes[] = {
    {.name = "lanes",
     .about = "seal-stats: words and statistics; all: the contribution too; seal: words alone",
     .words = lane_words,
     .count = sizeof lane_words / sizeof lane_words[0]}};

static const iron__size sizes[] = {{"size", "SMALL", UINT64_C(1) << 20, 1, NULL},
                                   {"size", "STANDARD", UINT64_C(1) << 26, 1, NULL},
                                   {"size", "LARGE", UINT64_C(1) << 31, 1, NULL}};

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? UINT64_C(1) << 28 : UINT64_C(1) << 26;

    (void)element;
    *rows = iron__line_usual(least, ROWS_MAX, sizeof(uint32_t), cache_bytes);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) { return c->rows * sizeof(uint32_t); }

/* A quad's keys take 16, its sums and products 16, T 4; statistics three a token, the contribution
 * five. */
static double operations(const iron__case *c) {
    double each = 9 + (iron__seal_has_stats(c) ? 3 : 0) + (iron__seal_has_contribution(c) ? 5 : 0);

    return each * (double)c->rows;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    IRON_TRY(iron__line_accept(c, ROWS_MAX, err));
    IRON_FAIL_IF(c->vocab < 2 || c->vocab > UINT32_C(1) << 31, err, IRON_E_ARG,
                 "vocab is %" PRIu32 "; it must be 2 to 2147483648", c->vocab);
    IRON_FAIL_IF(c->rows > (UINT64_C(1) << 62) / c->vocab, err, IRON_E_ARG,
                 "%" PRIu64 " tokens of a vocabulary of %" PRIu32 " are too many; use less",
                 c->rows, c->vocab);
    return IRON_OK;
}

/* One word of two answers; false and a sentence where they differ. */
static bool same(const char *name, uint64_t got, uint64_t want, char *text, size_t size) {
    if (got != want)
        snprintf(text, size, "%s is %" PRIu64 ", should be %" PRIu64, name, got, want);
    return got == want;
}

static bool check(const iron__problem *problem, const void *output, char *text, size_t size) {
    const iron__seal_answer *got = output;
    const iron__seal_answer *want = &((const iron__seal_problem *)problem->own)->expected;

    return same("count", got->count, want->count, text, size) &&
           same("T", got->t, want->t, text, size) && same("A", got->a, want->a, text, size) &&
           same("B", got->b, want->b, text, size) && same("min", got->min, want->min, text, size) &&
           same("max", got->max, want->max, text, size) &&
           same("out_of_vocab", got->out_of_vocab, want->out_of_vocab, text, size) &&
           same("the first position out of vocab", got->first_position, want->first_position, text,
                size) &&
           same("the first value out of vocab", got->first_value, want->first_value, text, size) &&
           same("the contribution's xor", got->xors, want->xors, text, size) &&
           same("the contribution's sum", got->sum, want->sum, text, size);
}

/* The CPU's rows first; those of other backends follow. */
static bool contender_at(size_t index, iron__contender *out) {
    size_t on_cpu = iron__seal_cpu_contender_count();

    return index < on_cpu ? iron__seal_cpu_contender_at(index, out)
                          : iron__seal_gpu_contender_at(index - on_cpu, out);
}

const iron__op iron__op_seal = {
    .name = "seal",
    .contract = "the seal's words of a token stream, statistics of its values, its contribution",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .vocab_usual = VOCAB_USUAL,
    .bound = IRON_BOUND_READ,
    .axes = axes,
    .axis_count = sizeof axes / sizeof axes[0],
    .baselines = {"reference", "champion"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__seal_make,
    .unmake = iron__seal_unmake,
    .check = check,
    .contender_at = contender_at,
};
