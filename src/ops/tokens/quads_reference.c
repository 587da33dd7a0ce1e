/* SPDX-License-Identifier: MIT */
/*
 * quads_reference.c: the reference row of quads.h: the seal as core/seal.c has it, and then one
 * look at each token.
 */
#include "ops/tokens/quads_cpu.h"

static iron__token_stats stats_of(const iron__quads_run *run) {
    iron__token_stats s = iron__token_stats_neutral();

    for (size_t k = 0; k < 4 * run->quads; k++) {
        uint32_t token = run->tokens[k];

        if (token < s.min)
            s.min = token;
        if (token > s.max)
            s.max = token;
        if (token < run->vocab)
            continue;
        if (s.out_of_vocab++ == 0) {
            s.first_position = 4 * run->first_quad + k;
            s.first_value = token;
        }
    }
    return s;
}

void iron__quads_reference(const iron__quads_run *run, iron__seal_words *words,
                           iron__token_stats *stats) {
    iron__seal_quads(words, run->tokens, run->first_quad, run->quads);
    if (stats)
        *stats = iron__token_stats_merge(*stats, stats_of(run));
}
