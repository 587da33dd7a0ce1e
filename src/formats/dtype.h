/* SPDX-License-Identifier: MIT */
/*
 * dtype.h: widths of stored tokens, and the way from each to 32 bits.
 */
#ifndef IRON_FORMATS_DTYPE_H
#define IRON_FORMATS_DTYPE_H

#include <iron/iron.h>

/* 16 KiB of widened tokens: half of the smallest first-level data cache in use. */
#define IRON_WIDEN_TOKENS 4096u

/* Tokens in memory, as they are stored; aligned to their width. */
typedef struct iron__tokens_view {
    iron_dtype dtype;
    const void *data;
    size_t count;
} iron__tokens_view;

/* Index of the first token outside 0 ... 2^32-1, or count: only i32 and i64 can have one. */
size_t iron__view_first_bad(const iron__tokens_view *view);

/* IRON_E_FORMAT with place and value if there is one; the first token has the given position. */
iron_status iron__view_check(const iron__tokens_view *view, uint64_t position, iron_error *err);

/* The token as stored, for messages. */
int64_t iron__view_stored(const iron__tokens_view *view, size_t index);

/* Up to *count tokens from `begin` on, as 32 bits: in place where they are, else widened into
 * `wide`. Sets *count to how many these are. */
const uint32_t *iron__view_tokens(const iron__tokens_view *view, size_t begin, size_t *count,
                                  uint32_t wide[IRON_WIDEN_TOKENS]);

/* What is left after the first `taken` tokens. */
iron__tokens_view iron__view_rest(const iron__tokens_view *view, size_t taken);

#endif
