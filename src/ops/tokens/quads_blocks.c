/* SPDX-License-Identifier: MIT */
/*
 * quads_blocks.c: what all vector rows of quads.h share: a run is cut into parts of one window key,
 * with statistics into blocks that fit a first-level cache; a block with tokens that are not in the
 * vocabulary is read once more. See quads_cpu.h.
 */
#include "ops/tokens/quads_cpu.h"
#include "ops/tokens/tokens.h"

static inline uint32_t token_at(const iron__quads_part *part, size_t k, bool is_u16) {
    return is_u16 ? ((const uint16_t *)part->tokens)[k] : ((const uint32_t *)part->tokens)[k];
}

static bool is_u16(const iron__quads_part *part) {
    return part->quad_bytes == 4 * sizeof(uint16_t);
}

void iron__quads_few(const iron__quads_part *part, iron__quads_sums *sums) {
    uint32_t z = iron__quads_start(part->low_quad);

    for (size_t k = 0; k < 4 * part->quads; k += 4, z += IRON_SEAL_STEP) {
        uint32_t t[4];

        for (size_t j = 0; j < 4; j++)
            t[j] = token_at(part, k + j, is_u16(part));
        iron__quads_add(sums, t, z, part->window);
    }
}

void iron__quads_few_stats(const iron__quads_part *part, iron__quads_sums *sums) {
    iron__quads_few(part, sums);
    for (size_t k = 0; k < 4 * part->quads; k++) {
        uint32_t token = token_at(part, k, is_u16(part));

        iron__quads_extremes(sums, token, token, true);
    }
}

/* Tokens of a block that are not below the vocabulary, which is 2^32 - 1 at most here. There is
 * one, so that the first is found. */
static inline void count_strangers(const iron__quads_part *part, uint32_t vocab, bool narrow,
                                   iron__token_stats *block) {
    uint32_t strangers = 0;
    size_t first = 0;

    for (size_t k = 0; k < 4 * part->quads; k++)
        strangers += token_at(part, k, narrow) >= vocab;
    while (token_at(part, first, narrow) < vocab)
        first++;
    block->out_of_vocab = strangers;
    block->first_position = first;
    block->first_value = token_at(part, first, narrow);
}

/* A block whose first token has that position. */
static void reduce_block(const iron__quads_part *part, const iron__quads_loops *loops,
                         uint64_t position, uint64_t vocab, iron__quads_sums *sums,
                         iron__token_stats *stats) {
    bool is_max_enough = stats->min == 0 && loops->seal_max;
    iron__token_stats block = iron__token_stats_neutral();

    sums->min = UINT32_MAX;
    sums->max = 0;
    (is_max_enough ? loops->seal_max : loops->seal_stats)(part, sums);
    block.min = sums->min;
    block.max = sums->max;
    if (sums->max >= vocab) {
        if (is_u16(part))
            count_strangers(part, (uint32_t)vocab, true, &block);
        else
            count_strangers(part, (uint32_t)vocab, false, &block);
        block.first_position += position;
    }
    *stats = iron__token_stats_merge(*stats, block);
}

/* The part with which that quad of the stream begins, of `left` quads at most. */
static iron__quads_part part_at(uint64_t quad, size_t left, bool is_block) {
    uint64_t in_window = (UINT64_C(1) << 32) - (uint32_t)quad;
    iron__quads_part part = {
        .quads = left, .low_quad = (uint32_t)quad, .window = iron__seal_window(quad)};

    if (part.quads > in_window)
        part.quads = (size_t)in_window;
    if (is_block && part.quads > IRON_QUADS_BLOCK)
        part.quads = IRON_QUADS_BLOCK;
    return part;
}

/* Tokens of either width. */
static void take(const iron__quads_run *run, const void *tokens, size_t quad_bytes,
                 const iron__quads_loops *loops, iron__seal_words *words,
                 iron__token_stats *stats) {
    bool is_long = run->quads > IRON_AHEAD_BYTES / quad_bytes;
    iron__quads_sums sums = {0, 0, 0, 0, 0};

    for (size_t done = 0; done < run->quads;) {
        uint64_t quad = run->first_quad + done;
        iron__quads_part part = part_at(quad, run->quads - done, stats || quad_bytes < 16);

        part.tokens = (const char *)tokens + done * quad_bytes;
        part.quad_bytes = quad_bytes;
        part.ahead = is_long ? IRON_AHEAD_BYTES : 0;
        if (stats)
            reduce_block(&part, loops, 4 * quad, run->vocab, &sums, stats);
        else
            loops->seal(&part, &sums);
        done += part.quads;
    }
    words->count += 4 * (uint64_t)run->quads;
    words->t += sums.t;
    words->a += sums.a;
    words->b += sums.b;
}

void iron__quads_by_parts(const iron__quads_run *run, const iron__quads_loops *loops,
                          iron__seal_words *words, iron__token_stats *stats) {
    take(run, run->tokens, 4 * sizeof(uint32_t), loops, words, stats);
}

void iron__quads_by_parts_u16(const iron__quads_run_u16 *run, const iron__quads_loops *loops,
                              iron__seal_words *words, iron__token_stats *stats) {
    const iron__quads_run shape = {NULL, run->quads, run->first_quad, run->vocab};

    take(&shape, run->tokens, 4 * sizeof(uint16_t), loops, words, stats);
}
