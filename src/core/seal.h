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
uint64_t iron__seal_window(uint64_t quad);

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
/* H(0) and H(1): the two halves of the text as numbers. */
void iron__seal_halves(iron__seal_words words, uint64_t *hi, uint64_t *lo);
void iron__seal_text(iron__seal_words words, char text[IRON_SEAL_TEXT]);

#endif
