/* SPDX-License-Identifier: MIT */
/*
 * diff_words.h: words of chunks, for those who compare manifests.
 */
#ifndef IRON_DIGEST_DIFF_WORDS_H
#define IRON_DIGEST_DIFF_WORDS_H

#include "digest/diff_text.h"
#include "digest/manifest.h"

/* The same words of as many tokens? Both chunks must be there. */
bool iron__chunks_equal(const iron_manifest *a, uint64_t i, const iron_manifest *b, uint64_t j);

/* The words of `count` tokens from `first` on as a stream of their own. */
iron_status iron__diff_words_at(const iron__diff_text *text, uint64_t first, uint64_t count,
                                iron__seal_words *words, iron_error *err);

#endif
