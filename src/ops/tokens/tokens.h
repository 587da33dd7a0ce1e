/* SPDX-License-Identifier: MIT */
/*
 * tokens.h: the op `tokens`: a run of tokens comes down to its contribution.
 *
 * Contract: count, XOR of p and sum of p mod vocab, with p = token + position hash, for the tokens
 * at positions first, first + 1, ... Any count, any 4-byte alignment, any position; exact.
 * Reference: `scalar`, plain %.
 * Traffic: 4 bytes read a token, nothing written.
 *
 * A variant is one row: what it is called, what it needs, the function that reduces one run on one
 * thread, and how the engine spreads that function: over runs (all_threads), or once a node
 * (per_node), which is what Part I of the papers did.
 */
#ifndef IRON_OPS_TOKENS_H
#define IRON_OPS_TOKENS_H

#include "core/contribution.h"
#include "core/divisor.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct iron__tokens_run {
    const uint32_t *tokens;
    size_t count;
    uint64_t first; /* position of tokens[0] */
    const iron__divisor *divisor;
} iron__tokens_run;

typedef iron__contribution (*iron__tokens_reduce)(const iron__tokens_run *run);

typedef struct iron__tokens_variant {
    const char *name; /* "tokens.cpu.vector.neon" */
    const char *mode; /* "vector": rows of one mode stand best first */
    uint32_t needs;   /* iron__cpu_feature bits */
    iron__tokens_reduce reduce;
    bool all_threads;
    bool per_node;
    const char *idea;
    const char *beats; /* the row it improves on, or NULL */
} iron__tokens_variant;

/* All rows of this build, in the order in which the modes are listed. */
size_t iron__tokens_variant_count(void);
const iron__tokens_variant *iron__tokens_variant_at(size_t index);

bool iron__tokens_variant_runs_here(const iron__tokens_variant *variant);

/* By mode ("vector": the first row of it that runs here) or by full name; NULL if there is none. */
const iron__tokens_variant *iron__tokens_variant_find(const char *name);

/* Modes in order, each once; NULL past the last. */
const char *iron__tokens_mode_at(size_t index);

/* One file each. */
iron__contribution iron__tokens_scalar(const iron__tokens_run *run);
iron__contribution iron__tokens_portable(const iron__tokens_run *run);
iron__contribution iron__tokens_neon(const iron__tokens_run *run);
iron__contribution iron__tokens_avx2(const iron__tokens_run *run);
iron__contribution iron__tokens_avx512(const iron__tokens_run *run);
iron__contribution iron__tokens_node(const iron__tokens_run *run);
iron__contribution iron__tokens_hybrid(const iron__tokens_run *run);

/* The same exact arithmetic token by token, without division: for short runs and loose ends. */
iron__contribution iron__tokens_few(const iron__tokens_run *run);

/* Vector loops ask for the line this far ahead, into the second-level cache: the hardware's own
 * prefetchers leave bandwidth unused (figures in cpu_neon.c and cpu_avx512.c). Asking beyond the
 * end of a run is harmless. */
#define IRON_AHEAD_BYTES 32768

static inline void iron__tokens_prefetch(const uint32_t *tokens) {
    __builtin_prefetch((const char *)tokens + IRON_AHEAD_BYTES, 0, 2);
}

/* Reduces the whole groups of a run, aligned to 16 positions, by reduce_groups (never called for
 * none) and the tokens before and after them one by one. */
iron__contribution iron__tokens_by_groups(const iron__tokens_run *run,
                                          iron__tokens_reduce reduce_groups);

#endif
