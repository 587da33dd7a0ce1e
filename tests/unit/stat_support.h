/* SPDX-License-Identifier: MIT */
/*
 * stat_support.h: shared by the tests of statistics: a model that follows the definition, streams
 * that test boundaries, and comparing reports field by field.
 */
#ifndef TESTS_UNIT_STAT_SUPPORT_H
#define TESTS_UNIT_STAT_SUPPORT_H

#include "support.h"

#include <iron/iron_digest.h>

#include <math.h>

typedef struct stat_case {
    const uint32_t *tokens;
    size_t count;
    uint64_t first; /* position of the first token */
    uint64_t vocab, eos;
    bool has_histogram;
} stat_case;

static inline int compare_lengths(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static inline void model_documents(const stat_case *c, iron_stat_report *r) {
    uint64_t *lengths = grab((c->count + 1) * sizeof *lengths), open = 0;
    size_t n = 0;

    for (size_t k = 0; k < c->count; k++) {
        open++;
        if (c->tokens[k] == c->eos) {
            r->empty_documents += open == 1;
            lengths[n++] = open;
            open = 0;
        }
    }
    r->is_last_open = open > 0;
    if (open > 0)
        lengths[n++] = open;
    r->documents = n;
    if (n > 0) {
        qsort(lengths, n, sizeof *lengths, compare_lengths);
        r->document_min = lengths[0];
        r->document_max = lengths[n - 1];
        r->document_mean = (double)c->count / (double)n;
        r->document_median = lengths[(n + 1) / 2 - 1];
        r->document_p95 = lengths[(95 * n + 99) / 100 - 1];
    }
    free(lengths);
}

static inline void model_histogram(const stat_case *c, iron_stat_report *r) {
    uint64_t *counts = calloc(c->vocab, sizeof *counts);
    double inside = (double)(r->tokens - r->out_of_vocab);

    assert_non_null(counts);
    for (size_t k = 0; k < c->count; k++)
        if (c->tokens[k] < c->vocab)
            counts[c->tokens[k]]++;
    for (size_t k = 0; k < c->vocab; k++) {
        r->used_ids += counts[k] > 0;
        if (counts[k] > 0)
            r->entropy_bits -= (double)counts[k] / inside * log2((double)counts[k] / inside);
    }
    r->unused_ids = c->vocab - r->used_ids;
    r->entropy_limit_bits = log2((double)c->vocab);
    free(counts);
}

static inline void model_runs(const stat_case *c, iron_stat_report *r) {
    for (size_t k = 0, begin = 0; k < c->count; k++) {
        if (c->tokens[k] != c->tokens[begin])
            begin = k;
        if (k - begin + 1 > r->run_length) {
            r->run_length = k - begin + 1;
            r->run_position = c->first + begin;
            r->run_value = c->tokens[k];
        }
    }
}

static inline iron_stat_report model_report(const stat_case *c) {
    iron_stat_report r = {.struct_size = sizeof r, .tokens = c->count};

    for (size_t k = 0; k < c->count; k++) {
        uint32_t v = c->tokens[k];

        r.min = k == 0 || v < r.min ? v : r.min;
        r.max = v > r.max ? v : r.max;
        r.zeros += v == 0;
        if (v < c->vocab)
            continue;
        if (r.out_of_vocab++ < IRON_STAT_PLACES)
            r.places[r.place_count++] = (iron_stat_place){c->first + k, v};
    }
    model_runs(c, &r);
    if (c->eos != IRON_COUNT_UNKNOWN)
        model_documents(c, &r);
    if (c->has_histogram)
        model_histogram(c, &r);
    return r;
}

#define assert_field(field) assert_int_equal(a->field, b->field)

static inline void assert_same_report(const iron_stat_report *a, const iron_stat_report *b) {
    assert_field(tokens);
    assert_field(min);
    assert_field(max);
    assert_field(zeros);
    assert_field(out_of_vocab);
    assert_field(place_count);
    for (size_t k = 0; k < a->place_count; k++) {
        assert_field(places[k].position);
        assert_field(places[k].value);
    }
    assert_field(run_length);
    assert_field(run_position);
    assert_field(run_value);
    assert_field(documents);
    assert_field(document_min);
    assert_field(document_max);
    assert_field(document_median);
    assert_field(document_p95);
    assert_field(empty_documents);
    assert_field(is_last_open);
    assert_field(used_ids);
    assert_field(unused_ids);
    assert_true(fabs(a->document_mean - b->document_mean) <= 1e-9 * b->document_mean);
    assert_true(fabs(a->entropy_bits - b->entropy_bits) <= 1e-9);
    assert_true(fabs(a->entropy_limit_bits - b->entropy_limit_bits) <= 1e-9);
}

static inline void assert_report(const iron_stat *stat, const stat_case *c) {
    iron_stat_report found = {.struct_size = sizeof found}, wanted = model_report(c);
    iron_error err;

    assert_ok(iron_stat_describe(stat, &found, &err), &err);
    assert_same_report(&found, &wanted);
}

/* Streams of few values with runs of every length, so that boundaries cut runs and documents. */
static inline uint32_t *grab_stream(rng *r, size_t count, uint32_t values, size_t run_max) {
    uint32_t *tokens = grab(count * sizeof *tokens);

    for (size_t k = 0; k < count;) {
        uint32_t value = (uint32_t)rng_below(r, values);
        size_t run = 1 + (rng_below(r, 3) == 0 ? rng_below(r, run_max) : 0);

        for (; run > 0 && k < count; run--)
            tokens[k++] = value;
    }
    return tokens;
}

#endif
