/* SPDX-License-Identifier: MIT */
/*
 * stored.h: stored tokens on their way into sums: checked, widened a few thousand at a time, and
 * their quads added to a seal.
 */
#ifndef IRON_FEED_STORED_H
#define IRON_FEED_STORED_H

#include "core/cpu.h"
#include "core/fail.h"
#include "formats/dtype.h"
#include "formats/source.h"
#include "ops/tokens/tokens.h"

#include <inttypes.h>

/* Refuses an unknown dtype, and memory that cannot hold such tokens, which messages call `what`. */
static inline iron_status iron__stored_check_memory(const iron__tokens_view *view, const char *what,
                                                    iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);

    IRON_FAIL_IF(width == 0, err, IRON_E_ARG, "dtype %d is unknown; use an iron_dtype",
                 (int)view->dtype);
    IRON_FAIL_IF(!view->data && view->count > 0, err, IRON_E_ARG,
                 "%zu %s at NULL; give their address", view->count, what);
    IRON_FAIL_IF(view->count > SIZE_MAX / width, err, IRON_E_ARG,
                 "%zu %s of %zu bytes are more than memory can hold; check the count", view->count,
                 what, width);
    IRON_FAIL_IF((uintptr_t)view->data % width != 0, err, IRON_E_ARG,
                 "%s at %p are not aligned to their %zu bytes; copy them", what, view->data, width);
    return IRON_OK;
}

/* Refuses the first value of the view that is not a token. The message names its position, if the
 * view begins at `position`, and, unless the source is NULL, the file and byte: the view's first
 * token is token `index` of the source, which must be seekable. */
static inline iron_status iron__stored_check(const iron_source *source, uint64_t index,
                                             const iron__tokens_view *view, uint64_t position,
                                             iron_error *err) {
    size_t bad = iron__view_first_bad(view), file;
    uint64_t byte;

    if (bad == view->count)
        return IRON_OK;
    if (source && iron__source_locate(source, index + bad, &file, &byte))
        IRON_FAIL(err, IRON_E_FORMAT,
                  "%.100s at byte %" PRIu64 ": token at position %" PRIu64 " is %" PRId64
                  "; tokens must be 0 to 4294967295: check --dtype",
                  iron_source_file(source, file), byte, position + bad,
                  iron__view_stored(view, bad));
    IRON_FAIL(err, IRON_E_FORMAT,
              "token at position %" PRIu64 " is %" PRId64
              "; tokens must be 0 to 4294967295: check --dtype",
              position + bad, iron__view_stored(view, bad));
}

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
