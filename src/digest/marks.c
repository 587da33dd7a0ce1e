/* SPDX-License-Identifier: MIT */
/*
 * marks.c: the smallest window, found at the speed of the rest.
 *
 * Tokens are looked at in blocks: one loop without branches makes the words of a block and tells
 * whether a candidate's is among them, and only then they are looked through. A hash is computed
 * for one window in 128.
 */
#include "digest/marks.h"

#include "core/mix.h"

#include <string.h>

#define BLOCK          16u
#define CANDIDATE_BITS 7u

/* k[j] = mix64((j + 1) * IRON_GOLDEN_GAMMA) >> 32; a test computes them again. */
static const uint32_t keys[IRON_MARK_TOKENS] = {
    0xE220A839, 0x6E789E6A, 0x06C45D18, 0xF88BB8A8, 0x1B39896A, 0x53CB9F0C, 0x2C829ABE, 0xC584133A,
    0x3EE57890, 0xF3B8488C, 0x657EECDD, 0xC2D326E0, 0x8621A03F, 0x8E1F7555, 0xB54E0F16, 0x84BB3F97,
};

static inline uint32_t candidate_word(const uint32_t *t) {
    return t[0] * UINT32_C(0x9E3779B1) + t[1] * UINT32_C(0x85EBCA77) + t[2] * UINT32_C(0xC2B2AE3D) +
           t[3] * UINT32_C(0x27D4EB2F) + UINT32_C(0x165667B1);
}

static inline bool is_small(uint32_t word) { return word >> (32 - CANDIDATE_BITS) == 0; }

bool iron__mark_is_candidate(const uint32_t tokens[IRON_MARK_TOKENS]) {
    return is_small(candidate_word(tokens));
}

uint64_t iron__mark_hash(const uint32_t tokens[IRON_MARK_TOKENS]) {
    uint64_t sum = 0;

    for (size_t j = 0; j < IRON_MARK_TOKENS; j += 2) {
        uint32_t x = tokens[j] + keys[j], y = tokens[j + 1] + keys[j + 1];

        sum += (uint64_t)x * y;
    }
    return iron__mix64(sum) >> 1;
}

/* In a long run of one token each window equals the one before: it cannot win. */
static inline bool repeats(const uint32_t *tokens, size_t at) {
    return at > 0 && memcmp(tokens + at, tokens + at - 1, IRON_MARK_TOKENS * sizeof *tokens) == 0;
}

static void take_candidate(const uint32_t *tokens, size_t at, uint64_t offset, iron__chunk *chunk) {
    uint64_t hash;

    if (repeats(tokens, at))
        return;
    hash = iron__mark_hash(tokens + at);
    if (hash < chunk->mark || (hash == chunk->mark && offset + at < chunk->mark_at)) {
        chunk->mark = hash;
        chunk->mark_at = offset + at;
    }
}

/* The words of a block, and whether one of them is a candidate's. */
static inline bool look_at_block(const uint32_t *tokens, uint32_t words[BLOCK]) {
    uint32_t smallest = UINT32_MAX;

    for (size_t k = 0; k < BLOCK; k++) {
        uint32_t word = candidate_word(tokens + k);

        words[k] = word;
        smallest = word < smallest ? word : smallest;
    }
    return is_small(smallest);
}

static void take_wide(const uint32_t *tokens, size_t windows, uint64_t offset, iron__chunk *chunk) {
    uint32_t words[BLOCK];
    size_t at = 0;

    for (; at + BLOCK <= windows; at += BLOCK) {
        if (!look_at_block(tokens + at, words))
            continue;
        for (size_t k = 0; k < BLOCK; k++)
            if (is_small(words[k]))
                take_candidate(tokens, at + k, offset, chunk);
    }
    for (; at < windows; at++)
        if (is_small(candidate_word(tokens + at)))
            take_candidate(tokens, at, offset, chunk);
}

void iron__marks_take(const iron__tokens_view *view, size_t begin, size_t windows, uint64_t offset,
                      uint32_t wide[IRON_WIDEN_TOKENS], iron__chunk *chunk) {
    while (windows > 0) {
        size_t count = windows + IRON_MARK_TOKENS - 1;
        const uint32_t *tokens = iron__view_tokens(view, begin, &count, wide);
        size_t some = count - (IRON_MARK_TOKENS - 1);

        take_wide(tokens, some, offset, chunk);
        begin += some;
        offset += some;
        windows -= some;
    }
}

iron__chunk iron__chunk_empty(void) { return (iron__chunk){.mark = IRON_MARK_NONE}; }

void iron__chunk_add(iron__chunk *chunk, const iron__chunk *piece) {
    chunk->t += piece->t;
    chunk->a += piece->a;
    chunk->b += piece->b;
    if (piece->mark < chunk->mark ||
        (piece->mark == chunk->mark && piece->mark_at < chunk->mark_at)) {
        chunk->mark = piece->mark;
        chunk->mark_at = piece->mark_at;
    }
}
