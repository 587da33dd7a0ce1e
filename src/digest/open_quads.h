/* SPDX-License-Identifier: MIT */
/*
 * open_quads.h: quads of which not all four tokens have come yet.
 *
 * The seal works on the four tokens at positions 4q ... 4q+3. A piece that begins or ends inside a
 * quad leaves up to three tokens on either side; they wait here, sorted by quad, until the others
 * have come. There are at most two for every stretch of positions seen (coverage.h).
 */
#ifndef IRON_DIGEST_OPEN_QUADS_H
#define IRON_DIGEST_OPEN_QUADS_H

#include "core/seal.h"
#include "digest/sorted.h"

#define IRON_QUAD_WHOLE 15u

typedef struct iron__open_quad {
    uint64_t quad;
    uint32_t tokens[4]; /* 0 where none has come */
    uint32_t there;     /* bit k: the token at 4 * quad + k has come; never 0, never all */
} iron__open_quad;

typedef struct iron__open_quads {
    iron__sorted quads; /* of iron__open_quad */
} iron__open_quads;

iron__open_quads iron__open_quads_make(const iron_allocator *allocator);
void iron__open_quads_deinit(iron__open_quads *open);

/* Room for the two edges of a piece; what is in it does not change. */
iron_status iron__open_quads_reserve(iron__open_quads *open, iron_error *err);

/* Adds tokens to a quad, none of which was there; needs room. A quad that becomes whole by it
 * leaves, and is added to the words. */
void iron__open_quads_put(iron__open_quads *open, const iron__open_quad *part,
                          iron__seal_words *words);

/* All of a and b, which have no token in common, into *out, which is made; what becomes whole is
 * added to the words. On failure *out holds nothing, and the words are as they were. */
iron_status iron__open_quads_join(const iron__open_quads *a, const iron__open_quads *b,
                                  iron__open_quads *out, iron__seal_words *words, iron_error *err);

#endif
