/* SPDX-License-Identifier: MIT */
/* atax_support.h: shapes and problems for the tests of the op atax. */
#ifndef TESTS_UNIT_ATAX_SUPPORT_H
#define TESTS_UNIT_ATAX_SUPPORT_H

#include "row_support.h"

#include "ops/atax/atax.h"
#include "ops/op.h"

typedef struct shape {
    uint64_t rows, cols;
} shape;

static const iron__element elements[] = {IRON_F32, IRON_F64};

static inline iron__case make_case(shape s, iron__element element, uint64_t seed) {
    return (iron__case){
        .op = &iron__op_atax, .rows = s.rows, .cols = s.cols, .element = element, .seed = seed};
}

static inline iron__op_problem make_problem(shape s, iron__element element, uint64_t seed,
                                            iron__thread_pool *pool) {
    iron__op_problem p = {.c = make_case(s, element, seed)};
    iron_error err;

    assert_ok(iron__op_atax.accept(&p.c, &err), &err);
    assert_ok(iron__op_atax.make(&p, pool, &err), &err);
    return p;
}

/* Element `index` of an array of the problem's type. */
static inline double get(const iron__op_problem *p, const void *array, size_t index) {
    return p->c.element == IRON_F32 ? (double)((const float *)array)[index]
                                    : ((const double *)array)[index];
}

static inline void put(const iron__op_problem *p, void *array, size_t index, double value) {
    if (p->c.element == IRON_F32)
        ((float *)array)[index] = (float)value;
    else
        ((double *)array)[index] = value;
}

static inline void assert_passes(const iron__op_problem *p, const void *y, const char *what) {
    char text[240] = "";

    if (!iron__op_atax.check(p, y, text, sizeof text))
        fail_msg("%s, %s, %llux%llu: %s", what, iron__element_name(p->c.element),
                 (unsigned long long)p->c.rows, (unsigned long long)p->c.cols, text);
}

#endif
