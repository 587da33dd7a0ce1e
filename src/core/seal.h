/* SPDX-License-Identifier: MIT */
/*
 * seal.h: the checksum of a token stream: the same tokens in the same order have the same seal.
 *
 * The words (count, T, A, B) of parts that begin at multiples of four tokens (quads) merge by
 * addition. A stream that arrives in other pieces carries at most three tokens over to the next.
 * The seal detects accidental damage; it does not protect against an adversary.
 */
#ifndef IRON_CORE_SEAL_H
#define IRON_CORE_SEAL_H

#include "core/hash.h"

#include <stddef.h>
#include <stdint.h>

#define IRON_SEAL_TEXT 33 /* 32 hex digits and the terminating zero */

typedef struct iron__seal_words {
    uint64_t count, t, a, b;
} iron__seal_words;

/* The words of all complete quads, and the 0 ... 3 tokens after them. */
typedef struct iron__seal {
    iron__seal_words words;
    uint32_t carry[3];
    uint32_t carried;
} iron__seal;

/* The key W of the window that contains a quad: each window has 2^32 quads. */
static inline uint64_t iron__seal_window(uint64_t quad) {
    return iron__mix64((quad >> 32) + IRON_GOLDEN_GAMMA);
}

static inline uint32_t iron__seal_rotate(uint32_t x, unsigned by) {
    return x << by | x >> (32 - by);
}

/* Adds one quad, whose number is `low_quad` within its window, to T, A and B; not to the count.
 * Inline: where the number is known, its keys are constants. */
static inline void iron__seal_add_quad(iron__seal_words *w, const uint32_t t[4], uint32_t low_quad,
                                       uint64_t window) {
    uint32_t z = low_quad * UINT32_C(0x9E3779B1) + UINT32_C(0x165667B1), k0, k1, k2, k3;

    z = (z ^ (z >> 16)) * UINT32_C(0x7FEB352D);
    z = (z ^ (z >> 15)) * UINT32_C(0x846CA68B);
    z ^= z >> 16;
    k0 = z ^ (uint32_t)window;
    k1 = (z * UINT32_C(0x9E3779B1) + UINT32_C(0x7F4A7C15)) ^ (uint32_t)(window >> 32);
    k2 = iron__seal_rotate(k0, 13);
    k3 = iron__seal_rotate(k1, 19);
    w->a += (uint64_t)(t[0] + k0) * (t[1] + k1) + (uint64_t)(t[2] + k2) * (t[3] + k3);
    w->b += (uint64_t)(t[0] + k2) * (t[2] + k0) + (uint64_t)(t[1] + k3) * (t[3] + k1);
    w->t += (uint64_t)t[0] + t[1] + t[2] + t[3];
}

/* Adds quads first_quad, first_quad + 1, ... of four tokens each to the words. */
void iron__seal_quads(iron__seal_words *words, const uint32_t *tokens, uint64_t first_quad,
                      size_t quads);

static inline iron__seal_words iron__seal_merge(iron__seal_words x, iron__seal_words y) {
    return (iron__seal_words){x.count + y.count, x.t + y.t, x.a + y.a, x.b + y.b};
}

/* Adds the next `count` tokens of the stream. */
void iron__seal_feed(iron__seal *seal, const uint32_t *tokens, size_t count);

/* The words of the stream so far: the carried tokens are included, padded with zeros. */
iron__seal_words iron__seal_total(const iron__seal *seal);
/* H(start). The two halves of the text are H(0) and H(1). */
static inline uint64_t iron__seal_fold(uint64_t start, iron__seal_words w) {
    uint64_t h = iron__mix64((start ^ w.count) + IRON_GOLDEN_GAMMA);

    h = iron__mix64((h ^ w.t) + IRON_GOLDEN_GAMMA);
    h = iron__mix64((h ^ w.a) + IRON_GOLDEN_GAMMA);
    return iron__mix64((h ^ w.b) + IRON_GOLDEN_GAMMA);
}

void iron__seal_text(iron__seal_words words, char text[IRON_SEAL_TEXT]);

#endif
