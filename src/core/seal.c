/* SPDX-License-Identifier: MIT */
/*
 * seal.c: the reference implementation of the seal: the keys of a quad, its two sums of products,
 * the carry between pieces, and the text form.
 */
#include "core/seal.h"

#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t iron__seal_window(uint64_t quad) { return iron__mix64((quad >> 32) + IRON_GOLDEN_GAMMA); }

static inline uint32_t scramble(uint32_t z) {
    z = z * UINT32_C(0x9E3779B1) + UINT32_C(0x165667B1);
    z = (z ^ (z >> 16)) * UINT32_C(0x7FEB352D);
    z = (z ^ (z >> 15)) * UINT32_C(0x846CA68B);
    return z ^ (z >> 16);
}

static inline uint32_t rotate_left(uint32_t x, unsigned by) { return x << by | x >> (32 - by); }

static inline uint64_t product(uint32_t x, uint32_t y) { return (uint64_t)x * y; }

static inline void add_quad(iron__seal_words *w, const uint32_t t[4], uint32_t low_quad,
                            uint64_t window) {
    uint32_t z = scramble(low_quad);
    uint32_t k0 = z ^ (uint32_t)window;
    uint32_t k1 = (z * UINT32_C(0x9E3779B1) + UINT32_C(0x7F4A7C15)) ^ (uint32_t)(window >> 32);
    uint32_t k2 = rotate_left(k0, 13), k3 = rotate_left(k1, 19);

    w->a += product(t[0] + k0, t[1] + k1) + product(t[2] + k2, t[3] + k3);
    w->b += product(t[0] + k2, t[2] + k0) + product(t[1] + k3, t[3] + k1);
    w->t += (uint64_t)t[0] + t[1] + t[2] + t[3];
}

void iron__seal_quads(iron__seal_words *words, const uint32_t *tokens, uint64_t first_quad,
                      size_t quads) {
    iron__seal_words sum = {0, 0, 0, 0};

    for (size_t done = 0; done < quads;) {
        uint64_t quad = first_quad + done;
        uint64_t window = iron__seal_window(quad);
        uint64_t left_in_window = (UINT64_C(1) << 32) - (uint32_t)quad;
        size_t run = quads - done < left_in_window ? quads - done : (size_t)left_in_window;

        for (size_t k = 0; k < run; k++)
            add_quad(&sum, tokens + 4 * (done + k), (uint32_t)(quad + k), window);
        done += run;
    }
    sum.count = 4 * (uint64_t)quads;
    *words = iron__seal_merge(*words, sum);
}

void iron__seal_feed(iron__seal *seal, const uint32_t *tokens, size_t count) {
    if (seal->carried) {
        uint32_t quad[4];
        uint32_t have = seal->carried;

        for (uint32_t k = 0; k < have; k++)
            quad[k] = seal->carry[k];
        for (; have < 4 && count > 0; count--)
            quad[have++] = *tokens++;
        if (have < 4) {
            for (uint32_t k = seal->carried; k < have; k++)
                seal->carry[k] = quad[k];
            seal->carried = have;
            return;
        }
        iron__seal_quads(&seal->words, quad, seal->words.count / 4, 1);
    }
    iron__seal_quads(&seal->words, tokens, seal->words.count / 4, count / 4);
    seal->carried = (uint32_t)(count % 4);
    for (uint32_t k = 0; k < seal->carried; k++)
        seal->carry[k] = tokens[count - seal->carried + k];
}

iron__seal_words iron__seal_total(const iron__seal *seal) {
    iron__seal_words total = seal->words;

    if (seal->carried) {
        uint32_t quad[4] = {0, 0, 0, 0};

        for (uint32_t k = 0; k < seal->carried; k++)
            quad[k] = seal->carry[k];
        iron__seal_quads(&total, quad, seal->words.count / 4, 1);
        total.count = seal->words.count + seal->carried;
    }
    return total;
}

static uint64_t fold(uint64_t start, iron__seal_words w) {
    uint64_t h = start;

    h = iron__mix64((h ^ w.count) + IRON_GOLDEN_GAMMA);
    h = iron__mix64((h ^ w.t) + IRON_GOLDEN_GAMMA);
    h = iron__mix64((h ^ w.a) + IRON_GOLDEN_GAMMA);
    return iron__mix64((h ^ w.b) + IRON_GOLDEN_GAMMA);
}

void iron__seal_halves(iron__seal_words words, uint64_t *hi, uint64_t *lo) {
    *hi = fold(0, words);
    *lo = fold(1, words);
}

void iron__seal_text(iron__seal_words words, char text[IRON_SEAL_TEXT]) {
    uint64_t hi, lo;

    iron__seal_halves(words, &hi, &lo);
    snprintf(text, IRON_SEAL_TEXT, "%016" PRIx64 "%016" PRIx64, hi, lo);
}
