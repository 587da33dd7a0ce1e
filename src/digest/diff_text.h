/* SPDX-License-Identifier: MIT */
/*
 * diff_text.h: one side of a comparison as tokens that any thread can read anywhere, and the
 * comparison of tokens in memory that others are made of.
 */
#ifndef IRON_DIGEST_DIFF_TEXT_H
#define IRON_DIGEST_DIFF_TEXT_H

#include "formats/dtype.h"
#include "formats/source.h"

typedef struct iron__diff_text {
    iron__source_at *at;
    iron_dtype dtype;
    uint64_t tokens;
    const char *name;
} iron__diff_text;

/* Borrows the source, which must be seekable, and takes it from its position on. */
iron_status iron__diff_text_open(iron_source *source, const char *name, iron__diff_text *text,
                                 iron_error *err);
void iron__diff_text_close(iron__diff_text *text);

/* Tokens as stored, `count` of them from `first` on, which must be there. Values that are no
 * tokens are errors with their position. */
iron_status iron__diff_text_read(const iron__diff_text *text, uint64_t first, void *to,
                                 size_t count, iron_error *err);
/* The same as 32 bits. */
iron_status iron__diff_text_take(const iron__diff_text *text, uint64_t first, uint32_t *to,
                                 size_t count, iron_error *err);

/* Can a value be stored that is no token? Then all of the text has to be looked at. */
bool iron__diff_text_can_be_bad(const iron__diff_text *text);
/* `position` is the view's first token's. */
iron_status iron__diff_check_view(const iron__tokens_view *view, const char *name,
                                  uint64_t position, iron_error *err);

/* Index of the first token that differs, or the count, which both views must have in common. */
size_t iron__views_first_difference(const iron__tokens_view *a, const iron__tokens_view *b);
uint32_t iron__view_token(const iron__tokens_view *view, size_t index);

#endif
