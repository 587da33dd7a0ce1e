/* SPDX-License-Identifier: MIT */
/*
 * stat_piece.c: tokens become statistics.
 *
 * take_token is the definition, one token at a time. stat_look.inc does the same for groups of
 * tokens, 16-bit and 32-bit ones as they are; others are widened a few thousand at a time.
 */
#include "digest/stat_piece.h"

#include <stddef.h>

/* Large enough that summing up a group's vectors is little work, small enough that most groups of
 * text hold no end of a document. */
#define GROUP  128u
#define STRIDE 16u /* of a group, where ends of documents are looked for */

typedef struct group_facts {
    uint32_t min, max, zeros;
    uint32_t same; /* tokens that equal the one before them */
    uint32_t ends;
} group_facts;

/* A piece being made. */
typedef struct look {
    iron__stat_piece *piece;
    iron__stat_range *range; /* the piece's */
    iron__stat_lane *lane;
    const iron__stat_rule *rule;
    bool has_eos;
    uint64_t run_floor; /* runs up to this length do not matter any more */
} look;

/* Of the token `ahead` of those that are in the range. */
static inline uint64_t position_of(const look *l, size_t ahead) {
    return l->range->first + l->range->tokens + ahead;
}

static void note_place(look *l, uint32_t value, size_t ahead) {
    iron__stat_range *r = l->range;

    if (r->place_count < IRON_STAT_PLACES)
        r->places[r->place_count++] = (iron_stat_place){position_of(l, ahead), value};
    r->out_of_vocab++;
}

static inline void lengthen_run(look *l, uint64_t by) {
    iron__stat_range *r = l->range;

    /* the first run is still the only one: it begins where the range does and ends here */
    if (r->head.length == r->tail.position + r->tail.length - r->first)
        r->head.length += by;
    r->tail.length += by;
    if (r->tail.length > r->longest.length) {
        r->longest = r->tail;
        if (r->tail.length > l->run_floor)
            l->run_floor = r->tail.length;
    }
}

static inline void follow_run(look *l, uint32_t value, size_t ahead) {
    iron__stat_range *r = l->range;

    if (value == r->tail.value)
        lengthen_run(l, 1);
    else
        r->tail = (iron__stat_run){1, position_of(l, ahead), value};
}

/* The eos was counted into the tail. */
static inline void end_document(look *l) {
    iron__stat_range *r = l->range;
    uint64_t length = r->document_tail;

    r->document_tail = 0;
    if (r->ends++ == 0)
        r->document_head = length;
    else if (length <= IRON_SHORT_DOCUMENTS)
        l->lane->shorts[length]++;
    else
        l->piece->longs[l->piece->long_count++] = (uint32_t)length;
}

static void begin_runs(look *l, uint32_t value) {
    iron__stat_range *r = l->range;

    r->head = r->tail = r->longest = (iron__stat_run){1, r->first, value};
}

static void take_token(look *l, uint32_t value) {
    iron__stat_range *r = l->range;

    r->min = value < r->min ? value : r->min;
    r->max = value > r->max ? value : r->max;
    r->zeros += value == 0;
    if (value >= l->rule->vocab)
        note_place(l, value, 0);
    else if (l->lane->histogram[0])
        l->lane->histogram[0][value]++;
    if (r->tokens == 0)
        begin_runs(l, value);
    else
        follow_run(l, value, 0);
    if (l->has_eos) {
        r->document_tail++;
        if (value == l->rule->eos)
            end_document(l);
    }
    r->tokens++;
}

#define STAT_TOKEN   uint16_t
#define STAT_NAME(x) x##_u16
#include "digest/stat_look.inc"
#undef STAT_TOKEN
#undef STAT_NAME

#define STAT_TOKEN   uint32_t
#define STAT_NAME(x) x##_u32
#include "digest/stat_look.inc"
#undef STAT_TOKEN
#undef STAT_NAME

void iron__stat_piece_take(iron__stat_piece *piece, iron__stat_lane *lane,
                           const iron__stat_rule *rule, const iron__tokens_view *view,
                           uint64_t position) {
    look l = {piece, &piece->range, lane, rule, rule->eos != IRON_COUNT_UNKNOWN, lane->run_floor};
    uint32_t wide[IRON_WIDEN_TOKENS];

    piece->range = iron__stat_range_at(position);
    piece->long_count = 0;
    for (size_t done = 0; done < view->count;) {
        size_t count = view->count - done;

        /* which of its arguments a call looks at first is open: count changes before */
        if (view->dtype == IRON_DTYPE_U16) {
            take_u16(&l, (const uint16_t *)view->data + done, count);
        } else {
            const uint32_t *tokens = iron__view_tokens(view, done, &count, wide);

            take_u32(&l, tokens, count);
        }
        done += count;
    }
    lane->run_floor = l.run_floor;
}
