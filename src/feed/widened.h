/* SPDX-License-Identifier: MIT */
/*
 * widened.h: a small buffer for tokens that are made 32 bits wide a few thousand at a time.
 *
 * Vector loops ask for what lies IRON_AHEAD_BYTES ahead, also behind the end of a run. Behind a
 * small buffer on a stack that is often a page that is not there, and then each request costs a
 * walk through the page tables: 1.1 ns a token on a Neoverse V1, three times the sums. So there are
 * pages behind this one, and touch makes sure of it.
 */
#ifndef IRON_FEED_WIDENED_H
#define IRON_FEED_WIDENED_H

#include "formats/dtype.h"
#include "ops/tokens/tokens.h"

#define IRON_WIDENED_PAGE 4096u

typedef struct iron__widened {
    uint32_t tokens[IRON_WIDEN_TOKENS];
    volatile unsigned char ahead[IRON_AHEAD_BYTES];
} iron__widened;

static inline void iron__widened_touch(iron__widened *w) {
    for (size_t k = 0; k < IRON_AHEAD_BYTES; k += IRON_WIDENED_PAGE)
        w->ahead[k] = 0;
    w->ahead[IRON_AHEAD_BYTES - 1] = 0;
}

#endif
