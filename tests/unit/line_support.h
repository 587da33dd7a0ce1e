/* SPDX-License-Identifier: MIT */
/* line_support.h: helpers for tests of one-dimensional ops over u32: problems, and properties of
 * every table of rows. */
#ifndef TESTS_UNIT_LINE_SUPPORT_H
#define TESTS_UNIT_LINE_SUPPORT_H

#include "row_support.h"

static inline iron__case line_case(const iron__op *op, uint64_t rows, double at) {
    return (iron__case){
        .op = op, .rows = rows, .cols = 1, .element = IRON_U32, .seed = 7, .at = {at}};
}

static inline iron__op_problem make_line(const iron__op *op, uint64_t rows, double at,
                                         uint64_t seed, iron__thread_pool *pool) {
    iron__op_problem p = {.c = line_case(op, rows, at)};
    iron_error err;

    p.c.seed = seed;
    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, pool, &err), &err);
    assert_int_equal(p.inputs[0].bytes, rows * sizeof(uint32_t));
    assert_ptr_equal(p.pool, pool);
    return p;
}

static inline void assert_same_data(const iron__op_problem *a, const iron__op_problem *b) {
    assert_int_equal(a->input_count, b->input_count);
    for (size_t k = 0; k < a->input_count; k++) {
        assert_int_equal(a->inputs[k].bytes, b->inputs[k].bytes);
        assert_memory_equal(a->inputs[k].data, b->inputs[k].data, a->inputs[k].bytes);
    }
}

static inline void assert_passes(const iron__op_problem *p, const void *output, const char *what) {
    char text[200] = "";

    if (!p->c.op->check(p, output, text, sizeof text))
        fail_msg("%s, %llu elements, at %g: %s", what, (unsigned long long)p->c.rows, p->c.at[0],
                 text);
}

/* The check refuses the answer with this message. */
static inline void assert_caught(const iron__op_problem *p, const void *output, const char *says) {
    char text[200] = "";

    assert_false(p->c.op->check(p, output, text, sizeof text));
    if (!strstr(text, says))
        fail_msg("'%s' does not say '%s'", text, says);
}

/* Whether there is a row of that name on one of those backends. */
static inline bool has_row(const iron__op *op, const char *name, uint32_t backends) {
    iron__contender row;

    for (size_t k = 0; iron__op_contender(op, k, &row); k++)
        if (strcmp(row.name, name) == 0 && (row.backends & backends))
            return true;
    return false;
}

/* Every row has an idea, can run, and improves on a row of the same backend. */
static inline void assert_rows_are_complete(const iron__op *op, const char *const *names,
                                            size_t count) {
    iron__contender row;

    for (size_t k = 0; k < count; k++) {
        assert_true(iron__op_contender(op, k, &row));
        assert_string_equal(row.name, names[k]);
        assert_true(row.idea && row.idea[0]);
        assert_true(row.backends == IRON_ON_CPU ? row.cpu_run != NULL : row.gpu && row.gpu->run);
        if (row.beats)
            assert_true(has_row(op, row.beats, row.backends));
    }
    assert_false(iron__op_contender(op, count, &row));
    assert_ptr_equal(iron__op_find(op->name), op);
    assert_true(op->why && op->traffic && op->unless && op->used && op->contract);
}

#endif
