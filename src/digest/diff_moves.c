/* SPDX-License-Identifier: MIT */
/*
 * diff_moves.c: the chunks of two manifests compared as multisets, whatever their order.
 *
 * Both are sorted by their words and gone through side by side, one group of equal chunks after
 * another: how often does each have it, and where?
 */
#include "digest/diff_moves.h"

#include "core/fail.h"
#include "digest/diff_words.h"

#include <errno.h>
#include <stdlib.h>

typedef struct placed_chunk {
    uint64_t tokens, t, a, b, index;
} placed_chunk;

static int by_words(const void *x, const void *y) {
    const placed_chunk *p = x, *q = y;

    if (p->tokens != q->tokens)
        return p->tokens < q->tokens ? -1 : 1;
    if (p->t != q->t)
        return p->t < q->t ? -1 : 1;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

static int by_words_and_place(const void *x, const void *y) {
    const placed_chunk *p = x, *q = y;
    int order = by_words(x, y);

    return order ? order : (p->index > q->index) - (p->index < q->index);
}

static placed_chunk *sorted_chunks(const iron_manifest *m) {
    placed_chunk *chunks = calloc(m->chunk_count + 1, sizeof *chunks);

    if (!chunks)
        return NULL;
    for (size_t k = 0; k < m->chunk_count; k++)
        chunks[k] = (placed_chunk){iron__manifest_chunk_tokens(m, k), m->chunks[k].t,
                                   m->chunks[k].a, m->chunks[k].b, k};
    qsort(chunks, m->chunk_count, sizeof *chunks, by_words_and_place);
    return chunks;
}

/* Equal chunks: so many of each manifest, in the order of their places. */
typedef struct group {
    const placed_chunk *chunks[2];
    size_t count[2];
} group;

static bool stands_in_place(const iron_manifest *a, const iron_manifest *b, uint64_t k) {
    return k < a->chunk_count && k < b->chunk_count && iron__chunks_equal(a, k, b, k);
}

/* Of a group that both have: which of the first's have left their place, and where to. */
static void look_at_group(const group *g, const iron_manifest *a, const iron_manifest *b,
                          iron__moves *moves) {
    uint64_t left = UINT64_MAX, arrived = UINT64_MAX;

    for (size_t k = g->count[0]; k-- > 0;) {
        if (stands_in_place(a, b, g->chunks[0][k].index))
            continue;
        moves->elsewhere++;
        left = g->chunks[0][k].index;
    }
    for (size_t k = g->count[1]; k-- > 0;)
        if (!stands_in_place(a, b, g->chunks[1][k].index))
            arrived = g->chunks[1][k].index;
    if (left == UINT64_MAX) /* all are still there: a copy */
        left = g->chunks[0][0].index;
    if (arrived != UINT64_MAX && left < moves->from) {
        moves->from = left;
        moves->to = arrived;
    }
}

static void count_group(const group *g, const iron_manifest *a, const iron_manifest *b,
                        iron__moves *moves) {
    if (g->count[0] > g->count[1])
        moves->missing += g->count[0] - g->count[1];
    if (g->count[1] > g->count[0])
        moves->excess += g->count[1] - g->count[0];
    if (g->count[0] == 0)
        moves->foreign += g->count[1];
    if (g->count[0] > 0 && g->count[1] > 0)
        look_at_group(g, a, b, moves);
}

static size_t group_length(const placed_chunk *chunks, size_t left, const placed_chunk *like) {
    size_t count = 0;

    while (count < left && by_words(&chunks[count], like) == 0)
        count++;
    return count;
}

static void compare_sorted(const iron_manifest *a, const iron_manifest *b,
                           const placed_chunk *sorted[2], iron__moves *moves) {
    size_t left[2] = {a->chunk_count, b->chunk_count};
    const placed_chunk *next[2] = {sorted[0], sorted[1]};

    while (left[0] > 0 || left[1] > 0) {
        bool takes_a = left[1] == 0 || (left[0] > 0 && by_words(next[0], next[1]) <= 0);
        const placed_chunk *like = takes_a ? next[0] : next[1];
        group g;

        for (int side = 0; side < 2; side++) {
            g.chunks[side] = next[side];
            g.count[side] = group_length(next[side], left[side], like);
            next[side] += g.count[side];
            left[side] -= g.count[side];
        }
        count_group(&g, a, b, moves);
    }
}

iron_status iron__moves_find(const iron_manifest *a, const iron_manifest *b, iron__moves *moves,
                             iron_error *err) {
    placed_chunk *first = sorted_chunks(a), *second = sorted_chunks(b);
    iron_status status = IRON_OK;

    *moves = (iron__moves){.from = UINT64_MAX, .to = UINT64_MAX};
    if (first && second)
        compare_sorted(a, b, (const placed_chunk *[2]){first, second}, moves);
    else
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a list of chunks");
    free(first);
    free(second);
    return status;
}
