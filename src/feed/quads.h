/* SPDX-License-Identifier: MIT */
/*
 * quads.h: the quads of stored tokens, added to a seal; and the buffer that tokens are widened into
 * on the way, a few thousand at a time.
 */
#ifndef IRON_FEED_QUADS_H
#define IRON_FEED_QUADS_H

#include "core/cpu.h"
#include "formats/dtype.h"
#include "ops/tokens/tokens.h"

/* A small buffer for widened tokens.
 *
 * Vector loops prefetch IRON_PREFETCH_BYTES ahead, also past the end of a run. Past a small buffer
 * on a stack there is often no page, and then each prefetch costs a walk through the page
 * tables: 1.1 ns per token on a Neoverse V1, three times the sums. So there are pages after this
 * buffer, and touch makes sure that they are mapped. */
#define IRON_WIDENED_PAGE 4096u

typedef struct iron__widened {
    uint32_t tokens[IRON_WIDEN_TOKENS];
    volatile unsigned char ahead[IRON_PREFETCH_BYTES];
} iron__widened;

static inline void iron__widened_touch(iron__widened *w) {
    for (size_t k = 0; k < IRON_PREFETCH_BYTES; k += IRON_WIDENED_PAGE)
        w->ahead[k] = 0;
    w->ahead[IRON_PREFETCH_BYTES - 1] = 0;
}

/* Adds `quads` quads of the view, from token `begin` on, as quads first_quad ... of a stream to the
 * words and, unless they are NULL, to the statistics. 16-bit tokens are read as they are stored, if
 * the row can; others are widened into `wide`. *is_bad, unless NULL, is set if a value is not a
 * token. */
static inline void iron__quads_add(const iron__seal_variant *row, const iron__tokens_view *view,
                                   size_t begin, size_t quads, uint64_t first_quad, uint64_t vocab,
                                   uint32_t *wide, iron__seal_words *words,
                                   iron__token_stats *stats, bool *is_bad) {
    if (view->dtype == IRON_DTYPE_U16 && row->take_u16 && quads > 0) {
        iron__quads_run_u16 run = {(const uint16_t *)view->data + begin, quads, first_quad, vocab};

        row->take_u16(&run, words, stats);
        return;
    }
    while (quads > 0) {
        size_t count = 4 * quads;
        const uint32_t *tokens = is_bad ? iron__view_check_tokens(view, begin, &count, wide, is_bad)
                                        : iron__view_tokens(view, begin, &count, wide);
        iron__quads_run run = {tokens, count / 4, first_quad, vocab};

        row->take(&run, words, stats);
        begin += count;
        first_quad += run.quads;
        quads -= run.quads;
    }
}

#endif
