/* SPDX-License-Identifier: MIT */
/*
 * tokens.h: what one pass over a run of tokens computes on the CPU, and the rows that compute it.
 *
 * tokens   the contribution: count, XOR of p and sum of p mod vocab, with p = token + position
 *          hash, of the tokens at positions first, first + 1, ...
 *          Any count, any 4-byte alignment, any position; exact. Reference: `scalar`, plain %.
 * seal     the words of the seal of whole quads at positions 4 * first_quad, ..., and on request
 *          statistics: the smallest and the largest token, how many are not below the vocabulary,
 *          and the first of those. Any number of quads, any 4-byte alignment; exact. A loop without
 *          statistics is a separate function and pays nothing for them. Reference: core/seal.c.
 *
 * Both read 4 bytes per token and write nothing. A caller that wants both calls one after the other
 * on blocks that fit the first-level cache, so memory is still read once.
 *
 * A row holds everything there is to know about a variant: its name, what the processor needs, the
 * function that reduces one run on one thread, and how the caller distributes that function: over
 * the runs (all_threads), or once per node (per_node), as Part I of the papers did. The command's
 * modes, the selftest, the tests, the races and the docs are made from the rows.
 */
#ifndef IRON_OPS_TOKENS_TOKENS_H
#define IRON_OPS_TOKENS_TOKENS_H

#include "core/contribution.h"
#include "core/cpu.h"
#include "core/divisor.h"
#include "core/seal.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct iron__tokens_run {
    const uint32_t *tokens;
    size_t count;
    uint64_t first; /* position of tokens[0] */
    const iron__divisor *divisor;
    const uint16_t *tokens_u16; /* not NULL: these instead, for rows that read them */
} iron__tokens_run;

typedef iron__contribution (*iron__tokens_reduce)(const iron__tokens_run *run);

typedef struct iron__tokens_variant {
    const char *name; /* "tokens.cpu.vector.neon" */
    const char *mode; /* "vector"; the rows of one mode are listed best first */
    uint32_t needs;   /* iron__cpu_feature bits */
    iron__tokens_reduce reduce;
    bool reads_u16;
    bool all_threads;
    bool per_node;
    const char *idea;
    const char *beats; /* the row it improves on, or NULL */
} iron__tokens_variant;

/* All rows of this build, in the order in which the modes are listed. */
size_t iron__tokens_variant_count(void);
const iron__tokens_variant *iron__tokens_variant_at(size_t index);

static inline bool iron__tokens_variant_runs_here(const iron__tokens_variant *variant) {
    return iron__cpu_has(variant->needs);
}

/* By mode ("vector": the first row of it that runs here) or by full name; NULL: not found. */
const iron__tokens_variant *iron__tokens_variant_find(const char *name);

/* Modes in order, each once; NULL past the last. */
const char *iron__tokens_mode_at(size_t index);

/* The reference. */
iron__contribution iron__tokens_scalar(const iron__tokens_run *run);

typedef struct iron__quads_run {
    const uint32_t *tokens; /* 4 * quads of them */
    size_t quads;
    uint64_t first_quad; /* position of tokens[0] / 4 */
    uint64_t vocab;      /* for statistics; 1 ... 2^32 */
} iron__quads_run;

/* The same for tokens stored in 16 bits. */
typedef struct iron__quads_run_u16 {
    const uint16_t *tokens;
    size_t quads;
    uint64_t first_quad;
    uint64_t vocab;
} iron__quads_run_u16;

/* Adds the run to *words and merges it into *stats; stats may be NULL: then no statistics. */
typedef void (*iron__seal_take)(const iron__quads_run *run, iron__seal_words *words,
                                iron__token_stats *stats);
typedef void (*iron__seal_take_u16)(const iron__quads_run_u16 *run, iron__seal_words *words,
                                    iron__token_stats *stats);

typedef struct iron__seal_variant {
    const char *name; /* "seal.cpu.vector.neon" */
    const char *mode; /* "reference", "vector", "champion"; the rows of one mode best first */
    uint32_t needs;   /* iron__cpu_feature bits */
    iron__seal_take take;
    iron__seal_take_u16 take_u16; /* (optional) NULL: widen the tokens and call `take` */
    bool all_threads;
    const char *idea;
    const char *beats; /* the row it improves on, or NULL */
} iron__seal_variant;

/* All rows of this build; NULL past the last. */
const iron__seal_variant *iron__seal_variant_at(size_t index);
static inline bool iron__seal_variant_runs_here(const iron__seal_variant *variant) {
    return iron__cpu_has(variant->needs);
}
/* By mode (the first row of it that runs here) or by full name; NULL: not found. */
const iron__seal_variant *iron__seal_variant_find(const char *name);

#endif
