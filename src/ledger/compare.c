/* SPDX-License-Identifier: MIT */
/*
 * compare.c: the first difference between two runs, and what happened there.
 *
 * Runs with the same number of ranks are compared record by record, others by the bags of whole
 * steps. At the first step that differs, bags and then seals of samples are looked up in the
 * reference: what comes again was repeated, what comes from further on was skipped to, and where
 * the sums of the bags agree again, the samples between are the same in another order.
 */
#include "ledger/ledger_internal.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *iron_ledger_change_name(iron_ledger_change change) {
#define CHANGE_NAME(name, text) text,
    static const char *const names[] = {IRON_LEDGER_CHANGE_MAP(CHANGE_NAME)};
#undef CHANGE_NAME

    return (size_t)change < sizeof names / sizeof names[0] ? names[change] : "unknown";
}

/* The records from..end-1 of a run: one step. */
typedef struct step_view {
    size_t from, end;
    uint64_t step;
    iron_bag bag;
} step_view;

static step_view view_step(const iron_ledgers *l, size_t from) {
    size_t end = iron__ledger_step_end(l->entries, from, l->count);

    return (step_view){from, end, l->entries[from].step,
                       iron__ledger_bag(l, l->entries, from, end)};
}

/* The only world that records of a run have; 0: there are several. */
static uint32_t only_world(const iron_ledgers *l) {
    uint32_t world = 0;

    for (size_t k = 0; k < l->count; k++) {
        uint32_t w = l->generations[l->entries[k].generation].world;

        if (world != 0 && w != world)
            return 0;
        world = w;
    }
    return world;
}

/* How two steps of equal worlds differ. */
typedef struct step_difference {
    bool is_different, has_other_bags; /* of some rank */
    uint32_t rank;                     /* the first that differs */
    size_t a, b;                       /* its first record that differs; `end` of the view: none */
} step_difference;

/* Compares the records of one rank; micro steps that were divided differently as bags. */
static void compare_units(const iron_ledgers *a, size_t at, size_t a_end, const iron_ledgers *b,
                          size_t bt, size_t b_end, step_difference *d) {
    bool has_same_micros = a_end - at == b_end - bt;
    iron_bag x = iron__ledger_bag(a, a->entries, at, a_end),
             y = iron__ledger_bag(b, b->entries, bt, b_end);
    bool is_same_bag = iron__ledger_bags_equal(&x, &y);
    size_t k = 0;

    for (; has_same_micros && k < a_end - at; k++) {
        iron__ledger_step s = iron__ledger_read(a, &a->entries[at + k]),
                          t = iron__ledger_read(b, &b->entries[bt + k]);

        if (s.tokens != t.tokens || s.seal[0] != t.seal[0] || s.seal[1] != t.seal[1] ||
            !iron__ledger_bags_equal(&s.bag, &t.bag))
            break;
    }
    if (has_same_micros ? k == a_end - at : is_same_bag)
        return;
    d->has_other_bags |= !is_same_bag;
    if (d->is_different)
        return;
    d->is_different = true;
    d->rank = iron__ledger_rank(b, &b->entries[bt]);
    d->a = at + (has_same_micros ? k : 0);
    d->b = bt + (has_same_micros ? k : 0);
}

static step_difference compare_ranks(const iron_ledgers *a, const step_view *x,
                                     const iron_ledgers *b, const step_view *y) {
    step_difference d = {.a = x->end, .b = y->end};
    size_t at = x->from, bt = y->from;

    while (at < x->end || bt < y->end) {
        uint32_t rank_a = at < x->end ? iron__ledger_rank(a, &a->entries[at]) : UINT32_MAX;
        uint32_t rank_b = bt < y->end ? iron__ledger_rank(b, &b->entries[bt]) : UINT32_MAX;
        size_t a_end = rank_a <= rank_b ? iron__ledger_unit_end(a->entries, at, x->end) : at;
        size_t b_end = rank_b <= rank_a ? iron__ledger_unit_end(b->entries, bt, y->end) : bt;

        if (rank_a == rank_b) {
            compare_units(a, at, a_end, b, bt, b_end, &d);
        } else { /* a rank that only one run has */
            d.has_other_bags = true;
            if (!d.is_different)
                d = (step_difference){true, true, rank_a < rank_b ? rank_a : rank_b, x->end,
                                      y->end};
        }
        at = a_end;
        bt = b_end;
    }
    return d;
}

/* Searching the reference. */

/* The step of A with this bag, and after it `next` if that is not NULL: the nearest one before
 * `near` if there is one, else after it. False: there is none. */
static bool find_step(const iron_ledgers *a, const iron_bag *bag, const iron_bag *next,
                      uint64_t near, uint64_t *found) {
    bool has_found = false;

    for (size_t k = 0; k < a->count;) {
        step_view s = view_step(a, k);

        k = s.end;
        if (!iron__ledger_bags_equal(&s.bag, bag) || s.step == near)
            continue;
        if (next && k < a->count) {
            step_view after = view_step(a, k);

            if (!iron__ledger_bags_equal(&after.bag, next))
                continue;
        }
        if (s.step > near && has_found)
            return true;
        *found = s.step;
        has_found = true;
    }
    return has_found;
}

/* Where the sums of the bags from here on agree: the last step, if it is before `limit`. */
static bool find_agreement(const iron_ledgers *a, size_t at, const iron_ledgers *b, size_t bt,
                           uint64_t limit, uint64_t *last) {
    iron_bag x = {0, 0, 0}, y = {0, 0, 0};

    while (at < a->count && bt < b->count) {
        step_view s = view_step(a, at), t = view_step(b, bt);

        iron_bag_merge(&x, &s.bag);
        iron_bag_merge(&y, &t.bag);
        if (t.step > limit)
            return false;
        *last = t.step;
        if (iron__ledger_bags_equal(&x, &y))
            return true;
        at = s.end;
        bt = t.end;
    }
    return false;
}

static bool are_same_samples(const unsigned char *x, const unsigned char *y) {
    return memcmp(x, y, LEDGER_SAMPLE_BYTES) == 0;
}

/* The step of A that has the sample, followed by the next one where both have one: the nearest
 * before `near`, or there, else after it. */
static bool find_sample(const iron_ledgers *a, const unsigned char *sample, bool has_next,
                        uint64_t near, uint64_t *found) {
    bool has_found = false;

    for (size_t k = 0; k < a->count; k++) {
        uint64_t count;
        const unsigned char *at = iron__ledger_samples(a, &a->entries[k], &count);

        if (a->entries[k].step > near && has_found)
            return true;
        for (uint64_t j = 0; j < count; j++, at += LEDGER_SAMPLE_BYTES)
            if (are_same_samples(at, sample) &&
                (!has_next || j + 1 == count ||
                 are_same_samples(at + LEDGER_SAMPLE_BYTES, sample + LEDGER_SAMPLE_BYTES))) {
                *found = a->entries[k].step;
                has_found = true;
                break;
            }
    }
    return has_found;
}

/* The first sample of the step of B that the step of A has not at that place; NULL: the ledgers
 * have no samples, or there is none. */
static const unsigned char *first_other_sample(const iron_ledgers *a, const step_view *x,
                                               const iron_ledgers *b, const step_view *y,
                                               const step_difference *d, bool *has_next) {
    size_t at = d->is_different ? d->a : x->from, bt = d->is_different ? d->b : y->from;
    uint64_t a_count = 0, b_count = 0, k = 0;
    const unsigned char *s = NULL, *t;

    if (bt >= y->end)
        return NULL;
    if (at < x->end)
        s = iron__ledger_samples(a, &a->entries[at], &a_count);
    t = iron__ledger_samples(b, &b->entries[bt], &b_count);
    while (s && k < a_count && k < b_count &&
           are_same_samples(s + k * LEDGER_SAMPLE_BYTES, t + k * LEDGER_SAMPLE_BYTES))
        k++;
    *has_next = k + 1 < b_count;
    return k < b_count ? t + k * LEDGER_SAMPLE_BYTES : NULL;
}

/* What happened. */

static void __attribute__((format(printf, 4, 5)))
say(iron_ledger_diff *r, iron_ledger_change change, uint64_t step, const char *format, ...) {
    va_list arguments;

    r->change = change;
    r->first_step = step;
    va_start(arguments, format);
    vsnprintf(r->sentence, sizeof r->sentence, format, arguments);
    va_end(arguments);
}

/* B has tokens at a step that A has at another one. */
static void say_place(iron_ledger_diff *r, uint64_t step, uint64_t other) {
    r->other_step = other;
    if (other <= step)
        say(r, IRON_LEDGER_REPEATED, step,
            "at step %" PRIu64 " B repeats what A has at step %" PRIu64, step, other);
    else
        say(r, IRON_LEDGER_SKIPPED, step,
            "at step %" PRIu64 " B goes on with what A has at step %" PRIu64 ": it skipped some",
            step, other);
}

/* The step exists in both, and its bags differ. */
static void explain(const iron_ledgers *a, const step_view *x, const iron_ledgers *b,
                    const step_view *y, const step_difference *d, iron_ledger_diff *r) {
    bool has_after = y->end < b->count, has_next = false;
    iron_bag next = has_after ? view_step(b, y->end).bag : (iron_bag){0, 0, 0};
    uint64_t other = 0, last = 0;
    const unsigned char *sample = first_other_sample(a, x, b, y, d, &has_next);
    bool has_place =
        y->bag.samples > 0 && find_step(a, &y->bag, has_after ? &next : NULL, y->step, &other);
    /* a block that is only late comes within a few times the distance that B is ahead */
    uint64_t window = has_place && other > y->step ? 4 * (other - y->step) + 16 : UINT64_MAX;
    uint64_t limit = y->step < UINT64_MAX - window ? y->step + window : UINT64_MAX;

    if (!(has_place && other < y->step) && find_agreement(a, x->from, b, y->from, limit, &last))
        say(r, IRON_LEDGER_REORDERED, y->step,
            "steps %" PRIu64 " to %" PRIu64 " have the same samples in another order", y->step,
            last);
    else if (has_place || (sample && find_sample(a, sample, has_next, y->step, &other)))
        say_place(r, y->step, other);
    else if (r->has_same_world)
        say(r, IRON_LEDGER_CHANGED, y->step, "step %" PRIu64 " has other tokens on rank %" PRIu32,
            y->step, d->rank);
    else
        say(r, IRON_LEDGER_CHANGED, y->step, "step %" PRIu64 " has other tokens", y->step);
}

/* A step number that only one run has, at the place where the other has a later one. */
static void explain_gap(const iron_ledgers *a, const step_view *x, const step_view *y,
                        iron_ledger_diff *r) {
    uint64_t other;

    if (x->step < y->step)
        say(r, IRON_LEDGER_SKIPPED, x->step, "B has no step %" PRIu64 ", it goes on with %" PRIu64,
            x->step, y->step);
    else if (y->bag.samples > 0 && find_step(a, &y->bag, NULL, y->step, &other) && other < y->step)
        say_place(r, y->step, other);
    else
        say(r, IRON_LEDGER_CHANGED, y->step, "B has a step %" PRIu64 ", which A has not", y->step);
}

iron_status iron_ledgers_diff(const iron_ledgers *a, const iron_ledgers *b, iron_ledger_diff *r,
                              iron_error *err) {
    uint32_t world_a, world_b;
    size_t at = 0, bt = 0;

    IRON_TRY(iron__struct_check(r, sizeof *r, "iron_ledger_diff", err));
    world_a = only_world(a);
    world_b = only_world(b);
    *r = (iron_ledger_diff){.struct_size = sizeof *r,
                            .rank = UINT32_MAX,
                            .has_same_world = world_a == world_b && world_a != 0,
                            .steps_a = a->steps,
                            .steps_b = b->steps};
    for (; at < a->count && bt < b->count; r->steps++) {
        step_view x = view_step(a, at), y = view_step(b, bt);
        step_difference d = {.is_different = false};
        bool is_equal;

        if (x.step != y.step) {
            explain_gap(a, &x, &y, r);
            return IRON_OK;
        }
        if (r->has_same_world)
            d = compare_ranks(a, &x, b, &y);
        is_equal = r->has_same_world ? !d.is_different : iron__ledger_bags_equal(&x.bag, &y.bag);
        if (!is_equal) {
            if (r->has_same_world)
                r->rank = d.rank;
            if (!iron__ledger_bags_equal(&x.bag, &y.bag))
                explain(a, &x, b, &y, &d, r);
            else if (d.has_other_bags)
                say(r, IRON_LEDGER_OTHER_RANKS, y.step,
                    "step %" PRIu64 " has the same samples on other ranks, first on rank %" PRIu32,
                    y.step, d.rank);
            else
                say(r, IRON_LEDGER_REORDERED, y.step,
                    "step %" PRIu64 " has the same samples in another order on rank %" PRIu32,
                    y.step, d.rank);
            return IRON_OK;
        }
        at = x.end;
        bt = y.end;
    }
    if (bt < b->count)
        say(r, IRON_LEDGER_LONGER, b->entries[bt].step,
            "B goes on with step %" PRIu64 ", where A has ended; all before is equal",
            b->entries[bt].step);
    else if (at < a->count)
        say(r, IRON_LEDGER_SHORTER, a->entries[at].step,
            "B ends before step %" PRIu64 " of A; all before is equal", a->entries[at].step);
    else
        say(r, IRON_LEDGER_EQUAL, 0, "both runs saw the same tokens at each of %" PRIu64 " steps",
            r->steps);
    return IRON_OK;
}
