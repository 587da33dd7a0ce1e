/* SPDX-License-Identifier: MIT */
/* coverage.c: see coverage.h. */
#include "digest/coverage.h"

iron__coverage iron__coverage_make(const iron_allocator *allocator) {
    return (iron__coverage){iron__sorted_make(sizeof(iron__stretch), allocator)};
}

void iron__coverage_deinit(iron__coverage *c) { iron__sorted_deinit(&c->stretches); }

iron_status iron__coverage_reserve(iron__coverage *c, iron_error *err) {
    return iron__sorted_reserve(&c->stretches, 1, err);
}

/* The stretch that begins at or before the position, and the one behind it; NULL: none. */
typedef struct neighbours {
    iron__stretch *left, *right;
    iron__sorted_place right_at;
} neighbours;

static neighbours around(const iron__coverage *c, uint64_t position) {
    neighbours n;

    n.left = iron__sorted_upto(&c->stretches, position, &n.right_at);
    n.right = n.left ? iron__sorted_next(&c->stretches, &n.right_at)
                     : iron__sorted_first(&c->stretches, &n.right_at);
    return n;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static bool common(iron__stretch a, iron__stretch b, iron__stretch *both) {
    *both = (iron__stretch){larger(a.first, b.first), smaller(a.end, b.end)};
    return both->first < both->end;
}

bool iron__coverage_overlaps(const iron__coverage *c, iron__stretch piece, iron__stretch *seen) {
    neighbours n = around(c, piece.first);

    return (n.left && common(*n.left, piece, seen)) || (n.right && common(*n.right, piece, seen));
}

void iron__coverage_add(iron__coverage *c, iron__stretch piece) {
    neighbours n = around(c, piece.first);
    bool joins_left = n.left && n.left->end == piece.first;
    bool joins_right = n.right && n.right->first == piece.end;

    if (joins_left && joins_right) {
        n.left->end = n.right->end;
        iron__sorted_remove(&c->stretches, n.right_at);
    } else if (joins_left) {
        n.left->end = piece.end;
    } else if (joins_right) {
        n.right->first = piece.first;
        iron__sorted_rekey(&c->stretches, n.right_at);
    } else {
        iron__sorted_insert(&c->stretches, &piece);
    }
}

bool iron__coverage_meets(const iron__coverage *a, const iron__coverage *b, iron__stretch *both) {
    iron__sorted_place in_a, in_b;
    const iron__stretch *x = iron__sorted_first(&a->stretches, &in_a);
    const iron__stretch *y = iron__sorted_first(&b->stretches, &in_b);

    while (x && y) {
        if (common(*x, *y, both))
            return true;
        if (x->end < y->end)
            x = iron__sorted_next(&a->stretches, &in_a);
        else
            y = iron__sorted_next(&b->stretches, &in_b);
    }
    return false;
}

iron_status iron__coverage_join(const iron__coverage *a, const iron__coverage *b,
                                iron__coverage *out, iron_error *err) {
    iron__sorted_place in_a, in_b;
    const iron__stretch *x = iron__sorted_first(&a->stretches, &in_a);
    const iron__stretch *y = iron__sorted_first(&b->stretches, &in_b);
    iron_status status;

    *out = iron__coverage_make(a->stretches.allocator);
    status =
        iron__sorted_reserve_behind(&out->stretches, a->stretches.count + b->stretches.count, err);
    if (status != IRON_OK) {
        iron__coverage_deinit(out);
        return status;
    }
    while (x || y) {
        if (x && (!y || x->first < y->first)) {
            iron__coverage_add(out, *x);
            x = iron__sorted_next(&a->stretches, &in_a);
        } else {
            iron__coverage_add(out, *y);
            y = iron__sorted_next(&b->stretches, &in_b);
        }
    }
    iron__sorted_trim(&out->stretches, 2);
    return IRON_OK;
}

iron__stretch iron__coverage_gap(const iron__coverage *c) {
    iron__stretch gap = {0, UINT64_MAX};
    iron__sorted_place at;
    const iron__stretch *next = iron__sorted_first(&c->stretches, &at);

    if (next && next->first == 0) {
        gap.first = next->end;
        next = iron__sorted_next(&c->stretches, &at);
    }
    if (next)
        gap.end = next->first;
    return gap;
}

uint64_t iron__coverage_total(const iron__coverage *c) {
    iron__sorted_place at;
    const iron__stretch *s = iron__sorted_first(&c->stretches, &at);
    uint64_t total = 0;

    for (; s; s = iron__sorted_next(&c->stretches, &at))
        total += s->end - s->first;
    return total;
}

uint32_t iron__coverage_quad(const iron__coverage *c, uint64_t quad) {
    uint32_t mask = 0;

    for (uint32_t k = 0; k < 4; k++) {
        uint64_t position = 4 * quad + k;
        iron__stretch seen;

        if (position != UINT64_MAX &&
            iron__coverage_overlaps(c, (iron__stretch){position, position + 1}, &seen))
            mask |= 1u << k;
    }
    return mask;
}
