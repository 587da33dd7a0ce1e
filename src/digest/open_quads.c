/* SPDX-License-Identifier: MIT */
/* open_quads.c: see open_quads.h. */
#include "digest/open_quads.h"

iron__open_quads iron__open_quads_make(const iron_allocator *allocator) {
    return (iron__open_quads){iron__sorted_make(sizeof(iron__open_quad), allocator)};
}

void iron__open_quads_deinit(iron__open_quads *open) { iron__sorted_deinit(&open->quads); }

iron_status iron__open_quads_reserve(iron__open_quads *open, iron_error *err) {
    return iron__sorted_reserve(&open->quads, 2, err);
}

static void unite(iron__open_quad *into, const iron__open_quad *part) {
    for (uint32_t k = 0; k < 4; k++)
        if (part->there & 1u << k)
            into->tokens[k] = part->tokens[k];
    into->there |= part->there;
}

void iron__open_quads_put(iron__open_quads *open, const iron__open_quad *part,
                          iron__seal_words *words) {
    iron__sorted_place place;
    iron__open_quad *at = iron__sorted_upto(&open->quads, part->quad, &place);

    if (!at || at->quad != part->quad) {
        iron__sorted_insert(&open->quads, part);
        return;
    }
    unite(at, part);
    if (at->there != IRON_QUAD_WHOLE)
        return;
    iron__seal_quads(words, at->tokens, at->quad, 1);
    iron__sorted_remove(&open->quads, place);
}

iron_status iron__open_quads_join(const iron__open_quads *a, const iron__open_quads *b,
                                  iron__open_quads *out, iron__seal_words *words, iron_error *err) {
    iron__sorted_place in_a, in_b;
    const iron__open_quad *x = iron__sorted_first(&a->quads, &in_a);
    const iron__open_quad *y = iron__sorted_first(&b->quads, &in_b);
    iron_status status;

    *out = iron__open_quads_make(a->quads.allocator);
    status = iron__sorted_reserve_behind(&out->quads, a->quads.count + b->quads.count, err);
    if (status != IRON_OK) {
        iron__open_quads_deinit(out);
        return status;
    }
    while (x || y) {
        if (x && (!y || x->quad < y->quad)) {
            iron__open_quads_put(out, x, words);
            x = iron__sorted_next(&a->quads, &in_a);
        } else {
            iron__open_quads_put(out, y, words);
            y = iron__sorted_next(&b->quads, &in_b);
        }
    }
    iron__sorted_trim(&out->quads, 2);
    return IRON_OK;
}
