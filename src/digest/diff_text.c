/* SPDX-License-Identifier: MIT */
/*
 * diff_text.c: tokens of one side, and where two runs of tokens in memory differ.
 *
 * Tokens of one width are compared as bytes first: memcmp runs at the cache's speed, and only where
 * it finds something is the place looked for. Others are widened a few thousand at a time.
 */
#include "digest/diff_text.h"

#include "core/fail.h"
#include "core/memory.h"

#include <inttypes.h>
#include <string.h>

iron_status iron__diff_text_open(iron_source *source, const char *name, iron__diff_text *text,
                                 iron_error *err) {
    IRON_TRY(iron__source_at_open(source, iron__allocator_default(), &text->at, err));
    text->dtype = iron_source_dtype(source);
    text->tokens = iron__source_at_tokens(text->at);
    text->name = name;
    return IRON_OK;
}

void iron__diff_text_close(iron__diff_text *text) {
    iron__source_at_close(text->at);
    text->at = NULL;
}

bool iron__diff_text_can_be_bad(const iron__diff_text *text) {
    return text->dtype == IRON_DTYPE_I32 || text->dtype == IRON_DTYPE_I64;
}

iron_status iron__diff_check_view(const iron__tokens_view *view, const char *name,
                                  uint64_t position, iron_error *err) {
    size_t bad = iron__view_first_bad(view);

    IRON_FAIL_IF(bad < view->count, err, IRON_E_FORMAT,
                 "%.100s: token at position %" PRIu64 " is %" PRId64
                 "; tokens must be 0 to 4294967295: check --dtype",
                 name, position + bad, iron__view_stored(view, bad));
    return IRON_OK;
}

iron_status iron__diff_text_read(const iron__diff_text *text, uint64_t first, void *to,
                                 size_t count, iron_error *err) {
    const iron__tokens_view view = {text->dtype, to, count};

    if (count == 0)
        return IRON_OK;
    IRON_TRY(iron__source_at_read(text->at, first, to, count, NULL, err));
    return iron__diff_check_view(&view, text->name, first, err);
}

iron_status iron__diff_text_take(const iron__diff_text *text, uint64_t first, uint32_t *to,
                                 size_t count, iron_error *err) {
    uint64_t stored[IRON_WIDEN_TOKENS]; /* of any width */

    for (size_t done = 0; done < count;) {
        size_t some = count - done < IRON_WIDEN_TOKENS ? count - done : IRON_WIDEN_TOKENS;
        const iron__tokens_view view = {text->dtype, stored, some};
        uint32_t wide[IRON_WIDEN_TOKENS];

        IRON_TRY(iron__diff_text_read(text, first + done, stored, some, err));
        memcpy(to + done, iron__view_tokens(&view, 0, &some, wide), some * sizeof *to);
        done += some;
    }
    return IRON_OK;
}

uint32_t iron__view_token(const iron__tokens_view *view, size_t index) {
    return (uint32_t)iron__view_stored(view, index);
}

/* Where bytes that are known to differ do so first. */
static size_t first_other_byte(const char *a, const char *b, size_t bytes) {
    size_t k = 0;

    while (bytes - k > 256 && memcmp(a + k, b + k, 256) == 0)
        k += 256;
    while (a[k] == b[k])
        k++;
    return k;
}

static size_t compare_bytes(const void *a, const void *b, size_t count, size_t width) {
    if (memcmp(a, b, count * width) == 0)
        return count;
    return first_other_byte(a, b, count * width) / width;
}

size_t iron__views_first_difference(const iron__tokens_view *a, const iron__tokens_view *b) {
    size_t width = iron_dtype_bytes(a->dtype);
    uint32_t wide_a[IRON_WIDEN_TOKENS], wide_b[IRON_WIDEN_TOKENS];

    if (width == iron_dtype_bytes(b->dtype))
        return a->count ? compare_bytes(a->data, b->data, a->count, width) : 0;
    for (size_t done = 0; done < a->count;) {
        size_t some = a->count - done < IRON_WIDEN_TOKENS ? a->count - done : IRON_WIDEN_TOKENS;
        const uint32_t *x = iron__view_tokens(a, done, &some, wide_a);
        const uint32_t *y = iron__view_tokens(b, done, &some, wide_b);
        size_t same = compare_bytes(x, y, some, sizeof *x);

        done += same;
        if (same < some)
            return done;
    }
    return a->count;
}
