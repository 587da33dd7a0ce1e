/* SPDX-License-Identifier: MIT */
/*
 * diff_marks.c: a shift read off two manifests.
 *
 * A mark is the same wherever its text stands. Marks that occur once in each manifest are paired;
 * the difference of a pair's positions is a vote for a shift. One vote may be a coincidence (a
 * sentence that both have in different places), several in a row for one shift are not: a shift is
 * believed if among the next eight pairs at least half, and at least two, agree. A single pair is
 * believed where the streams' lengths say the same. And there must be as many votes as there are
 * chunks between the last place where both agreed and the first vote: two other texts that end
 * alike have not been shifted.
 */
#include "digest/diff_marks.h"

#include "core/fail.h"

#include <errno.h>
#include <stdlib.h>

#define NEXT_PAIRS 8u

typedef struct placed_mark {
    uint64_t mark, position;
} placed_mark;

typedef struct pair {
    uint64_t at[2];
} pair;

typedef struct pairing {
    placed_mark *marks[2];
    size_t count[2];
    pair *pairs;
    size_t pair_count;
} pairing;

static int by_mark(const void *x, const void *y) {
    const placed_mark *a = x, *b = y;

    return (a->mark > b->mark) - (a->mark < b->mark);
}

static int by_place(const void *x, const void *y) {
    const pair *a = x, *b = y;

    return (a->at[0] > b->at[0]) - (a->at[0] < b->at[0]);
}

static void drop_repeated(placed_mark *marks, size_t *count) {
    size_t kept = 0;

    for (size_t k = 0; k < *count;) {
        size_t next = k + 1;

        while (next < *count && marks[next].mark == marks[k].mark)
            next++;
        if (next == k + 1)
            marks[kept++] = marks[k];
        k = next;
    }
    *count = kept;
}

/* The manifest's marks from a chunk on that occur once, sorted. */
static iron_status list_marks(const iron_manifest *m, uint64_t chunk, placed_mark **marks,
                              size_t *count, iron_error *err) {
    *count = 0;
    *marks = calloc(m->chunk_count + 1, sizeof **marks);
    if (!*marks)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %zu marks", m->chunk_count);
    for (uint64_t k = chunk; k < m->chunk_count; k++)
        if (m->chunks[k].mark != IRON_MARK_NONE)
            (*marks)[(*count)++] =
                (placed_mark){m->chunks[k].mark, k * m->chunk_tokens + m->chunks[k].mark_at};
    qsort(*marks, *count, sizeof **marks, by_mark);
    drop_repeated(*marks, count);
    return IRON_OK;
}

static iron_status pair_up(pairing *p, iron_error *err) {
    size_t i = 0, j = 0;

    p->pairs = calloc(p->count[0] + 1, sizeof *p->pairs);
    if (!p->pairs)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %zu marks", p->count[0]);
    while (i < p->count[0] && j < p->count[1]) {
        placed_mark x = p->marks[0][i], y = p->marks[1][j];

        if (x.mark == y.mark)
            p->pairs[p->pair_count++] = (pair){{x.position, y.position}};
        i += x.mark <= y.mark;
        j += y.mark <= x.mark;
    }
    qsort(p->pairs, p->pair_count, sizeof *p->pairs, by_place);
    return IRON_OK;
}

/* Differences modulo 2^64 are as good as signed ones to be compared. */
static uint64_t moved_by(const pair *p) { return p->at[1] - p->at[0]; }

/* Do pairs from k on vote for what pair k says? */
static bool is_believed(const pairing *p, size_t k, uint64_t length_says) {
    size_t votes = 0, seen = 0;

    for (; seen < NEXT_PAIRS && k + seen < p->pair_count; seen++)
        votes += moved_by(&p->pairs[k + seen]) == moved_by(&p->pairs[k]);
    return 2 * votes >= seen && (votes >= 2 || moved_by(&p->pairs[k]) == length_says);
}

/* `apart`: up to there nothing has moved. */
static void vote(const pairing *p, uint64_t length_says, uint64_t apart, iron__marks_shift *shift) {
    uint64_t moved = 0;

    for (size_t k = 0; k < p->pair_count; k++) {
        uint64_t says = moved_by(&p->pairs[k]);

        if (!shift->is_found && says == 0)
            apart = p->pairs[k].at[0];
        if (shift->is_found && says == moved)
            shift->votes++;
        if (says == moved || !is_believed(p, k, length_says))
            continue;
        if (shift->is_found) {
            shift->has_more = true;
        } else {
            shift->is_found = true;
            shift->votes = 1;
            shift->apart = apart;
            shift->at[0] = p->pairs[k].at[0];
            shift->at[1] = p->pairs[k].at[1];
            moved = says;
        }
    }
}

/* Chunks between where they part and the first vote, not counting what was inserted. */
static uint64_t chunks_between(const iron__marks_shift *shift, uint64_t chunk_tokens) {
    uint64_t at = shift->at[0] < shift->at[1] ? shift->at[0] : shift->at[1];

    return at > shift->apart ? (at - shift->apart) / chunk_tokens : 0;
}

iron_status iron__marks_shift_find(const iron_manifest *a, const iron_manifest *b, uint64_t chunk,
                                   iron__marks_shift *shift, iron_error *err) {
    pairing p = {0};
    iron_status status = list_marks(a, chunk, &p.marks[0], &p.count[0], err);

    *shift = (iron__marks_shift){0};
    if (status == IRON_OK)
        status = list_marks(b, chunk, &p.marks[1], &p.count[1], err);
    if (status == IRON_OK)
        status = pair_up(&p, err);
    if (status == IRON_OK)
        vote(&p, b->tokens - a->tokens, chunk * a->chunk_tokens, shift);
    if (shift->is_found && shift->votes < chunks_between(shift, a->chunk_tokens))
        shift->is_found = false;
    free(p.marks[0]);
    free(p.marks[1]);
    free(p.pairs);
    return status;
}

bool iron__marks_can_continue(const iron_manifest *a, const iron_manifest *b, uint64_t chunk) {
    const iron__chunk *x = &a->chunks[chunk], *y = &b->chunks[chunk];
    uint64_t tokens = iron__manifest_chunk_tokens(a, (size_t)chunk);

    if (y->mark == x->mark)
        return x->mark == IRON_MARK_NONE || y->mark_at == x->mark_at;
    /* b's smallest window is none of a's: then it reaches past a's end */
    return y->mark < x->mark && y->mark_at + IRON_MARK_TOKENS > tokens;
}
