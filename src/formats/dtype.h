/* SPDX-License-Identifier: MIT */
/*
 * dtype.h: views of stored tokens of any dtype, and their conversion to 32 bits.
 */
#ifndef IRON_FORMATS_DTYPE_H
#define IRON_FORMATS_DTYPE_H

#include <iron/iron.h>

#include <stdbool.h>

/* The dtype of an element type code of Megatron and lit-gpt; an error for codes that are not
 * tokens. `name` and `byte` say where the code is, for the message. The two formats number f32 and
 * f64 differently. */
iron_status iron__dtype_from_code(unsigned code, bool is_f64_first, const char *name, unsigned byte,
                                  iron_dtype *dtype, iron_error *err);

/* 16 KiB of widened tokens: half of the smallest L1 data cache in use. */
#define IRON_WIDEN_TOKENS 4096u

/* Tokens in memory in their stored form, aligned to their width. */
typedef struct iron__tokens_view {
    iron_dtype dtype;
    const void *data;
    size_t count;
} iron__tokens_view;

/* Index of the first token outside 0 ... 2^32-1, or count; only i32 and i64 can have one. */
size_t iron__view_first_bad(const iron__tokens_view *view);

/* IRON_E_FORMAT with position and value if there is such a token. `position` is that of the first
 * token, for the message. */
iron_status iron__view_check(const iron__tokens_view *view, uint64_t position, iron_error *err);

/* How many tokens are not below the vocabulary; negative ones are not. */
uint64_t iron__view_count_outside(const iron__tokens_view *view, uint64_t vocab);

/* The token as stored, for messages. */
int64_t iron__view_stored(const iron__tokens_view *view, size_t index);

/* Returns up to *count tokens from `begin` on as 32 bits: in place if possible, otherwise widened
 * into `wide`. Sets *count to the number returned. */
const uint32_t *iron__view_tokens(const iron__tokens_view *view, size_t begin, size_t *count,
                                  uint32_t wide[IRON_WIDEN_TOKENS]);

/* The same for tokens that were not checked: sets *is_bad if one of those returned is outside
 * 0 ... 2^32-1. Checking them a few at a time, on the way, is nearly free. */
const uint32_t *iron__view_check_tokens(const iron__tokens_view *view, size_t begin, size_t *count,
                                        uint32_t wide[IRON_WIDEN_TOKENS], bool *is_bad);

/* The view without its first `taken` tokens. */
iron__tokens_view iron__view_rest(const iron__tokens_view *view, size_t taken);

#endif
