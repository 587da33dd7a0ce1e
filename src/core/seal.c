/* SPDX-License-Identifier: MIT */
/*
 * seal.c: the reference implementation of the seal: sums over quads (whose words are in seal.h),
 * the carry between pieces, and the text form.
 */
#include "core/seal.h"

#include <inttypes.h>
#include <stdio.h>

void iron__seal_quads(iron__seal_words *words, const uint32_t *tokens, uint64_t first_quad,
                      size_t quads) {
    iron__seal_words sum = {0, 0, 0, 0};

    for (size_t done = 0; done < quads;) {
        uint64_t quad = first_quad + done;
        uint64_t window = iron__seal_window(quad);
        uint64_t left_in_window = (UINT64_C(1) << 32) - (uint32_t)quad;
        size_t run = quads - done < left_in_window ? quads - done : (size_t)left_in_window;

        for (size_t k = 0; k < run; k++)
            iron__seal_add_quad(&sum, tokens + 4 * (done + k), (uint32_t)(quad + k), window);
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

void iron__seal_text(iron__seal_words words, char text[IRON_SEAL_TEXT]) {
    snprintf(text, IRON_SEAL_TEXT, "%016" PRIx64 "%016" PRIx64, iron__seal_fold(0, words),
             iron__seal_fold(1, words));
}
