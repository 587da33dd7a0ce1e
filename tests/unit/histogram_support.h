/* SPDX-License-Identifier: MIT */
/* histogram_support.h: cases and problems for the tests of the op histogram. */
#ifndef TESTS_UNIT_HISTOGRAM_SUPPORT_H
#define TESTS_UNIT_HISTOGRAM_SUPPORT_H

#include "row_support.h"

#include "ops/histogram/histogram.h"
#include "ops/op.h"

static const iron__op *const op = &iron__op_histogram;

static inline iron__case make_case(iron__element element, uint64_t count, uint32_t vocab,
                                   iron__histogram_data data, uint64_t seed) {
    return (iron__case){.op = op,
                        .rows = count,
                        .cols = 1,
                        .element = element,
                        .vocab = element == IRON_U32 ? vocab : 0,
                        .seed = seed,
                        .at = {data}};
}

static inline iron__op_problem make_problem(iron__case c, iron__thread_pool *pool) {
    iron__op_problem p = {.c = c};
    iron_error err;

    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, pool, &err), &err);
    assert_int_equal(p.inputs[0].bytes, c.rows * iron__element_bytes(c.element));
    assert_int_equal(p.output_bytes, iron__histogram_bins(&c) * 8);
    return p;
}

static inline uint32_t value_at(const iron__op_problem *p, uint64_t index) {
    const void *data = p->inputs[0].data;

    return p->c.element == IRON_U8    ? ((const uint8_t *)data)[index]
           : p->c.element == IRON_U16 ? ((const uint16_t *)data)[index]
                                      : ((const uint32_t *)data)[index];
}

/* The right answer, counted here. */
static inline uint64_t *count_values(const iron__op_problem *p) {
    uint64_t *counts = grab(p->output_bytes);

    memset(counts, 0, p->output_bytes);
    for (uint64_t k = 0; k < p->c.rows; k++)
        counts[value_at(p, k)]++;
    return counts;
}

static inline void assert_passes(const iron__op_problem *p, const void *answer, const char *what) {
    char text[200] = "";

    if (!op->check(p, answer, text, sizeof text))
        fail_msg("%s, %s, %zu elements, data %g: %s", what, iron__element_name(p->c.element),
                 (size_t)p->c.rows, p->c.at[0], text);
}

#endif
