/* SPDX-License-Identifier: MIT */
/*
 * diff_in_order.c: two streams compared as they come. For pipes, which cannot be read twice or in
 * many places: one pass, by one thread, in bounded memory (but for a bit a chunk).
 */
#include "core/fail.h"
#include "digest/diff.h"
#include "digest/diff_sides.h"

#include <inttypes.h>

#define PIECE_TOKENS ((size_t)65536)

/* One side as it passes by. */
typedef struct passing {
    iron_source *source;
    const char *name;
    void *data;
    iron__tokens_view view; /* what was read last */
} passing;

static iron_status passing_open(passing *p, const iron__diff_run *run, int side, iron_error *err) {
    p->source = run->source[side];
    p->name = iron__diff_name(run, side);
    p->data = iron__allocate(iron__allocator_default(), PIECE_TOKENS, sizeof(uint64_t),
                             "a piece of a stream", err);
    return p->data ? IRON_OK : IRON_E_NOMEM;
}

static iron_status passing_read(passing *p, uint64_t position, iron_error *err) {
    p->view = (iron__tokens_view){iron_source_dtype(p->source), p->data, 0};
    IRON_TRY(iron_source_read(p->source, p->data, PIECE_TOKENS, &p->view.count, err));
    return iron__diff_check_view(&p->view, p->name, position, err);
}

/* Reads a stream that goes on alone to its end: it must be counted. */
static iron_status count_rest(iron__diff_run *run, passing *p, uint64_t *tokens, iron_error *err) {
    do {
        IRON_TRY(passing_read(p, *tokens, err));
        *tokens += p->view.count;
        IRON_TRY(iron__diff_tell(&run->crew, *tokens, IRON_COUNT_UNKNOWN, err));
    } while (p->view.count > 0);
    return IRON_OK;
}

static void note_first(iron_diff_report *r, const passing p[2], uint64_t position, size_t index) {
    if (r->first != IRON_COUNT_UNKNOWN)
        return;
    r->first = position + index;
    r->first_end = r->first + 1;
    for (int side = 0; side < 2; side++) {
        r->has_value[side] = index < p[side].view.count;
        if (r->has_value[side])
            r->value[side] = iron__view_token(&p[side].view, index);
    }
}

/* The tokens that both have in this piece, chunk by chunk. */
static void compare_common(iron__diff_run *run, const passing p[2], uint64_t position,
                           size_t common) {
    uint64_t chunk_tokens = run->diff->bits.chunk_tokens;

    for (size_t done = 0; done < common;) {
        uint64_t to_border = chunk_tokens - (position + done) % chunk_tokens;
        size_t some = to_border < common - done ? (size_t)to_border : common - done, same;
        iron__tokens_view a = iron__view_rest(&p[0].view, done);
        iron__tokens_view b = iron__view_rest(&p[1].view, done);

        a.count = b.count = some;
        same = iron__views_first_difference(&a, &b);
        if (same < some) {
            iron__diff_bits_set(&run->diff->bits, (position + done) / chunk_tokens);
            note_first(&run->diff->report, p, position, done + same);
        }
        done += some;
    }
}

static iron_status compare(iron__diff_run *run, passing p[2], iron_error *err) {
    iron_diff *d = run->diff;
    uint64_t position = 0;

    for (;;) {
        size_t common;

        IRON_TRY(passing_read(&p[0], position, err));
        IRON_TRY(passing_read(&p[1], position, err));
        common = p[0].view.count < p[1].view.count ? p[0].view.count : p[1].view.count;
        IRON_TRY(iron__diff_bits_reach(&d->bits, position + common, err));
        compare_common(run, p, position, common);
        if (p[0].view.count != p[1].view.count || common == 0) { /* reads are short at ends only */
            if (p[0].view.count != p[1].view.count)
                note_first(&d->report, p, position, common);
            break;
        }
        position += common;
        IRON_TRY(iron__diff_tell(&run->crew, position, IRON_COUNT_UNKNOWN, err));
    }
    for (int side = 0; side < 2; side++) {
        d->report.tokens[side] = position + p[side].view.count;
        if (p[side].view.count == PIECE_TOKENS)
            IRON_TRY(count_rest(run, &p[side], &d->report.tokens[side], err));
    }
    IRON_TRY(iron__diff_bits_reach(&d->bits, iron__diff_longer(&d->report), err));
    iron__diff_bits_set_tokens(&d->bits, iron__diff_common(&d->report),
                               iron__diff_longer(&d->report));
    return IRON_OK;
}

iron_status iron__diff_in_order(iron__diff_run *run, iron_error *err) {
    passing p[2] = {{0}};
    iron_status status = passing_open(&p[0], run, 0, err);

    if (status == IRON_OK)
        status = passing_open(&p[1], run, 1, err);
    if (status == IRON_OK)
        status = compare(run, p, err);
    for (int side = 0; side < 2; side++)
        iron__release(iron__allocator_default(), p[side].data);
    return status;
}
