/* SPDX-License-Identifier: MIT */
/*
 * repeats.h: is a body what the first feed with its key was? No second hash is kept: the body is
 * reduced from the position of that feed, with the seal as it was before it, and must come to the
 * same count, xor, sum and seal. Tokens are compared, not bytes: their width does not matter.
 */
#ifndef IRON_STORE_REPEATS_H
#define IRON_STORE_REPEATS_H

#include "store/inside.h"

typedef struct iron__repeat {
    iron__feed_row first; /* without its batches */
    iron_engine *reader;  /* stands where that feed began; has one node, for nobody looks at it */
    iron__standing begun;
} iron__repeat;

/* Reads what was before `first`; `db` is one that the caller may use. IRON_E_NOMEM is a lack of
 * memory, all else the database's. */
iron_status iron__repeat_begin(iron__repeat *repeat, iron__kept *kept, iron__database *db,
                               const iron__feed_row *first, iron_error *err);
iron_status iron__repeat_take(iron__repeat *repeat, const iron__tokens_view *view, iron_error *err);
iron_status iron__repeat_end(iron__repeat *repeat, bool *is_same, iron_error *err);
void iron__repeat_free(iron__repeat *repeat);

/* Are these the same tokens? Both began at one position. */
bool iron__same_content(const iron__feed_row *first, const iron__contribution *fed,
                        const iron__seal *seal);

#endif
