/* SPDX-License-Identifier: MIT */
/*
 * diff_probe.h: where does the text go on? Two runs of tokens that begin with a difference are
 * searched for a place in each from which on they agree.
 */
#ifndef IRON_DIGEST_DIFF_PROBE_H
#define IRON_DIGEST_DIFF_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IRON_PROBE_TOKENS 256u

typedef struct iron__probe_texts {
    const uint32_t *tokens[2];
    size_t count[2];
} iron__probe_texts;

/* Does the run repeat itself, so that finding it elsewhere says little? */
bool iron__probe_is_periodic(const uint32_t *tokens, size_t count);

/* Do both agree again at one place, after a change of a few tokens in place? */
bool iron__probe_in_place(const iron__probe_texts *texts, size_t *at);

/* Places in both from which at least IRON_PROBE_TOKENS agree: of those found, where most do. */
bool iron__probe_search(const iron__probe_texts *texts, size_t at[2]);

#endif
