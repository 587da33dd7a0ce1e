/* SPDX-License-Identifier: MIT */
/* stat_range.c: see stat_range.h. How ranges join; stat_piece.c tells how tokens join them. */
#include "digest/stat_range.h"

iron__stat_range iron__stat_range_at(uint64_t first) {
    return (iron__stat_range){.first = first, .min = UINT32_MAX};
}

static void append_places(iron__stat_range *a, const iron__stat_range *b) {
    for (uint32_t k = 0; k < b->place_count && a->place_count < IRON_STAT_PLACES; k++)
        a->places[a->place_count++] = b->places[k];
}

/* Of equal ones the first stays: what is offered later stands later in the stream. */
static void offer_run(iron__stat_run *longest, iron__stat_run run) {
    if (run.length > longest->length)
        *longest = run;
}

static void append_runs(iron__stat_range *a, const iron__stat_range *b) {
    iron__stat_run joined = a->tail;

    if (a->tail.value == b->head.value) {
        joined.length += b->head.length;
        offer_run(&a->longest, joined);
        if (a->head.length == a->tokens)
            a->head = joined;
        a->tail = b->head.length == b->tokens ? joined : b->tail;
    } else {
        a->tail = b->tail;
    }
    offer_run(&a->longest, b->longest);
}

static uint64_t append_documents(iron__stat_range *a, const iron__stat_range *b) {
    uint64_t joined = a->document_tail + b->document_head;
    bool is_head = a->ends == 0;

    if (b->ends == 0) {
        a->document_tail += b->document_tail;
        return 0;
    }
    a->ends += b->ends;
    a->document_tail = b->document_tail;
    if (is_head)
        a->document_head = joined;
    return is_head ? 0 : joined;
}

uint64_t iron__stat_range_append(iron__stat_range *a, const iron__stat_range *b) {
    uint64_t joined;

    if (b->tokens == 0)
        return 0;
    if (a->tokens == 0) {
        *a = *b;
        return 0;
    }
    append_runs(a, b);
    append_places(a, b);
    joined = append_documents(a, b);
    a->tokens += b->tokens;
    a->zeros += b->zeros;
    a->out_of_vocab += b->out_of_vocab;
    a->min = a->min < b->min ? a->min : b->min;
    a->max = a->max > b->max ? a->max : b->max;
    return joined;
}

static bool are_places_sound(const iron__stat_range *r, uint64_t vocab) {
    uint64_t kept = r->out_of_vocab < IRON_STAT_PLACES ? r->out_of_vocab : IRON_STAT_PLACES;
    uint64_t next = r->first;

    if (r->place_count != kept || (r->out_of_vocab > 0) != (r->max >= vocab))
        return false;
    for (uint32_t k = 0; k < r->place_count; k++) {
        const iron_stat_place *p = &r->places[k];

        if (p->position < next || p->position - r->first >= r->tokens || p->value < vocab ||
            p->value > r->max)
            return false;
        next = p->position + 1;
    }
    return true;
}

static bool is_run_sound(const iron__stat_range *r, const iron__stat_run *run) {
    return run->length > 0 && run->length <= r->tokens && run->position >= r->first &&
           run->position - r->first <= r->tokens - run->length && run->value >= r->min &&
           run->value <= r->max;
}

static bool are_runs_sound(const iron__stat_range *r) {
    const iron__stat_run *runs[] = {&r->head, &r->tail, &r->longest};

    for (size_t k = 0; k < sizeof runs / sizeof runs[0]; k++)
        if (!is_run_sound(r, runs[k]) || runs[k]->length > r->longest.length)
            return false;
    return r->head.position == r->first &&
           r->tail.position - r->first == r->tokens - r->tail.length;
}

static bool are_documents_sound(const iron__stat_range *r, bool has_eos) {
    if (!has_eos)
        return r->ends == 0 && r->document_head == 0 && r->document_tail == 0;
    if (r->ends == 0)
        return r->document_head == 0 && r->document_tail == r->tokens;
    /* documents inside have a token each, at least */
    return r->document_head > 0 && r->document_head <= r->tokens &&
           r->document_tail <= r->tokens - r->document_head &&
           r->ends - 1 <= r->tokens - r->document_head - r->document_tail;
}

bool iron__stat_range_is_sound(const iron__stat_range *r, uint64_t vocab, bool has_eos) {
    bool has_zeros = r->zeros > 0;

    if (r->tokens == 0)
        return r->zeros == 0 && r->out_of_vocab == 0 && r->min == UINT32_MAX && r->max == 0 &&
               r->place_count == 0 && r->head.length == 0 && r->tail.length == 0 &&
               r->longest.length == 0 && r->ends == 0 && r->document_head == 0 &&
               r->document_tail == 0;
    return r->tokens <= UINT64_MAX - r->first && r->min <= r->max && r->zeros <= r->tokens &&
           has_zeros == (r->min == 0) && r->out_of_vocab <= r->tokens &&
           are_places_sound(r, vocab) && are_runs_sound(r) && are_documents_sound(r, has_eos);
}
