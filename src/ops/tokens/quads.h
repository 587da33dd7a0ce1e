/* SPDX-License-Identifier: MIT */
/*
 * quads.h: the other lanes of a pass over tokens: the seal, and statistics of values.
 *
 * Contract: of whole quads of tokens at positions 4 * first_quad, ...: the words of the seal, and
 * if asked for the smallest and largest token, how many are not below the vocabulary, and the first
 * of those. Any number of quads, any 4-byte alignment; exact. What is not asked for costs nothing:
 * it is another function. Reference: core/seal.c.
 * Traffic: 4 bytes read a token, nothing written.
 *
 * On the CPU the contribution of the same tokens is a call of its own (tokens.h) over a block that
 * is in the first-level cache then: memory is still read once.
 */
#ifndef IRON_OPS_TOKENS_QUADS_H
#define IRON_OPS_TOKENS_QUADS_H

#include "core/seal.h"
#include "core/token_stats.h"

#include <stdbool.h>

typedef struct iron__quads_run {
    const uint32_t *tokens; /* 4 * quads of them */
    size_t quads;
    uint64_t first_quad; /* position of tokens[0], over 4 */
    uint64_t vocab;      /* for statistics; 1 ... 2^32 */
} iron__quads_run;

/* The same, of tokens of 16 bits, as they are stored. */
typedef struct iron__quads_run_u16 {
    const uint16_t *tokens;
    size_t quads;
    uint64_t first_quad;
    uint64_t vocab;
} iron__quads_run_u16;

/* Adds the run to *words and merges it into *stats, which may be NULL: then no statistics. */
typedef void (*iron__seal_take)(const iron__quads_run *run, iron__seal_words *words,
                                iron__token_stats *stats);
typedef void (*iron__seal_take_u16)(const iron__quads_run_u16 *run, iron__seal_words *words,
                                    iron__token_stats *stats);

typedef struct iron__seal_variant {
    const char *name; /* "seal.cpu.vector.neon" */
    const char *mode; /* "reference", "vector", "champion": rows of one mode stand best first */
    uint32_t needs;   /* iron__cpu_feature bits */
    iron__seal_take take;
    iron__seal_take_u16 take_u16; /* (optional: widen them first, for `take`) */
    bool all_threads;
    const char *idea;
    const char *beats; /* the row it improves on, or NULL */
} iron__seal_variant;

/* All rows of this build; NULL past the last. */
const iron__seal_variant *iron__seal_variant_at(size_t index);
bool iron__seal_variant_runs_here(const iron__seal_variant *variant);
/* By mode (the first row of it that runs here) or by full name; NULL if there is none. */
const iron__seal_variant *iron__seal_variant_find(const char *name);

#endif
