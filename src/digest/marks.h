/* SPDX-License-Identifier: MIT */
/*
 * marks.h: the mark of a chunk: its smallest window, by which content is found again elsewhere.
 *
 * This is part of the format "iron.manifest/1"; a change is a new version.
 *
 *   A window is IRON_MARK_TOKENS (16) tokens t0 ... t15 of the stream that follow one another. It
 *   belongs to the chunk in which it begins, and may reach into the next; at the stream's end it
 *   must be whole.
 *   It is a candidate if the top 7 bits of
 *       t0 * 0x9E3779B1 + t1 * 0x85EBCA77 + t2 * 0xC2B2AE3D + t3 * 0x27D4EB2F + 0x165667B1
 *   (32 bits, wrapping) are all 0: about one window in 128, whatever the tokens are like.
 *   Its hash is mix64(s) >> 1 with s = the sum over j = 0 ... 7 of
 *       (t[2j] + k[2j]) * (t[2j+1] + k[2j+1])
 *   (32-bit sums that wrap, 64-bit products, 64-bit wrapping sum); k[j] is the upper half of
 *   mix64((j + 1) * 0x9E3779B97F4A7C15); mix64 is the generator's.
 *   The mark is the smallest hash of the chunk's candidates, and of those that have it the first.
 *   A chunk without a candidate has no mark.
 *
 * So the mark of a chunk does not depend on how it was cut while it was looked at. Four tokens
 * decide whether a window is looked at, so that streams of bytes and streams in which one token is
 * everywhere have their share of candidates too; the test is a loop that compilers vectorise.
 * The constant at its end keeps windows of zeros out, which padding is made of.
 */
#ifndef IRON_DIGEST_MARKS_H
#define IRON_DIGEST_MARKS_H

#include "digest/manifest.h"
#include "formats/dtype.h"

#include <stdbool.h>

/* Hash of the window at `tokens`, candidate or not. */
uint64_t iron__mark_hash(const uint32_t tokens[IRON_MARK_TOKENS]);
bool iron__mark_is_candidate(const uint32_t tokens[IRON_MARK_TOKENS]);

/* Takes the windows that begin at tokens `begin` ... `begin + windows - 1` of the view, which must
 * hold IRON_MARK_TOKENS - 1 more, into the chunk's mark; token `begin` stands at `offset` of it.
 * `wide` is room to work in. */
void iron__marks_take(const iron__tokens_view *view, size_t begin, size_t windows, uint64_t offset,
                      uint32_t wide[IRON_WIDEN_TOKENS], iron__chunk *chunk);

/* A chunk of which nothing was seen; and what two pieces of one chunk come to. */
iron__chunk iron__chunk_empty(void);
void iron__chunk_add(iron__chunk *chunk, const iron__chunk *piece);

#endif
