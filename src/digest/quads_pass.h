/* SPDX-License-Identifier: MIT */
/*
 * quads_pass.h: one pass over whole quads of tokens in memory, of any width, by a team of threads:
 * words of the seal, statistics, and the first value that is no token.
 */
#ifndef IRON_DIGEST_QUADS_PASS_H
#define IRON_DIGEST_QUADS_PASS_H

#include "core/team.h"
#include "formats/dtype.h"
#include "ops/tokens/quads.h"

/* Tokens that a task takes: 256 KiB of the usual width, a share of the second-level cache; and
 * tasks between two merges: what the scratch memory has room for. */
#define IRON_PASS_TOKENS ((size_t)65536)
#define IRON_PASS_TASKS  ((size_t)256)

typedef struct iron__quads_sum {
    iron__seal_words words;
    iron__token_stats stats;
    size_t bad; /* index in the view of the first value outside 0 ... 2^32-1; SIZE_MAX: none */
} iron__quads_sum;

/* The quads of `view`, whose count is a multiple of four, from quad `first_quad` of the stream on.
 * `team` may be NULL for one thread; `sums` has room for IRON_PASS_TASKS. When a value is bad the
 * rest of the sum means nothing. */
iron__quads_sum iron__quads_pass(const iron__tokens_view *view, uint64_t first_quad, uint64_t vocab,
                                 iron__team *team, iron__quads_sum *sums);

/* Statistics of a few tokens, one by one. */
void iron__stats_take(iron__token_stats *stats, const uint32_t *tokens, size_t count,
                      uint64_t position, uint64_t vocab);

#endif
