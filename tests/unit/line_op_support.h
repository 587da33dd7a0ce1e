/* SPDX-License-Identifier: MIT */
/*
 * line_op_support.h: helpers for tests of ops whose answer is a line of 4-byte elements, beyond
 * line_support.h: sizes, all rows of an op, and wrong answers that every check must refuse.
 */
#ifndef TESTS_UNIT_LINE_OP_SUPPORT_H
#define TESTS_UNIT_LINE_OP_SUPPORT_H

#include "line_support.h"

/* Tiny, odd, prime, around blocks of vectors and around the pieces of a thread. */
static const uint64_t line_sizes[] = {1,    2,    3,    4,     5,     15,    16,    17,     31,
                                      63,   64,   65,   255,   257,   1000,  1023,  1025,   4095,
                                      4096, 4097, 9973, 65535, 65536, 65537, 70001, 131072, 200003};

static inline iron__case make_case(const iron__op *op, uint64_t rows, double at, uint64_t seed) {
    return (iron__case){
        .op = op, .rows = rows, .cols = 1, .element = op->usual, .seed = seed, .at = {at}};
}

static inline iron__op_problem make_problem(const iron__op *op, uint64_t rows, double at,
                                            uint64_t seed, iron__thread_pool *pool) {
    iron__op_problem p = {.c = make_case(op, rows, at, seed)};
    iron_error err;

    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, pool, &err), &err);
    assert_int_equal(p.output_bytes, rows * 4);
    assert_int_equal(p.inputs[0].bytes, rows * 4);
    return p;
}

/* The check refuses the answer and names the element. */
static inline void assert_fails(const iron__op_problem *p, const void *output, size_t first,
                                const char *what) {
    char text[240] = "", place[40];

    if (p->c.op->check(p, output, text, sizeof text))
        fail_msg("%s, %llu elements, at %g: passes", what, (unsigned long long)p->c.rows,
                 p->c.at[0]);
    snprintf(place, sizeof place, "[%zu] is ", first);
    if (first != SIZE_MAX && !strstr(text, place))
        fail_msg("%s: '%s' does not name element %zu", what, text, first);
}

/* The answer of the op's last CPU row, which must pass; free() it. */
static inline uint32_t *right_answer(const iron__op_problem *p, iron__thread_pool *pool) {
    uint32_t *output = grab(p->output_bytes);
    iron__contender row, last = {0};

    for (size_t k = 0; iron__op_contender(p->c.op, k, &row); k++)
        if (row.backends & IRON_ON_CPU)
            last = row;
    run_row(&last, p, pool, output);
    assert_passes(p, output, last.name);
    return output;
}

static inline void assert_rows_are_right(const iron__op_problem *p, iron__thread_pool *pool) {
    void *output = grab(p->output_bytes);
    iron__contender row;
    char what[64];

    for (size_t k = 0; iron__op_contender(p->c.op, k, &row); k++) {
        if (!(row.backends & IRON_ON_CPU) || (row.suits && !row.suits(&row, &p->c)))
            continue;
        run_row(&row, p, pool, output);
        snprintf(what, sizeof what, "%s, %u threads", row.name, iron__thread_pool_threads(pool));
        assert_passes(p, output, what);
    }
    free(output);
}

/* Every CPU row, on one thread and on three, at every size, with each of the values. */
static inline void every_row_is_right(const iron__op *op, const double *at, size_t count) {
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t s = 0; s < COUNT(line_sizes); s++)
            for (size_t k = 0; k < count; k++) {
                iron__op_problem p = make_problem(op, line_sizes[s], at[k], 42 + s, pool);

                assert_rows_are_right(&p, pool);
                op->unmake(&p);
            }
        iron__thread_pool_destroy(pool);
    }
}

/* One wrong element at a time: one bit wrong, or NaN. */
static inline void assert_single_elements_count(const iron__op_problem *p, uint32_t *output) {
    size_t n = (size_t)p->c.rows, places[] = {0, n / 2, n - 1};

    for (size_t k = 0; k < COUNT(places); k++) {
        uint32_t right = output[places[k]];

        for (int bit = 0; bit < 32; bit++) {
            output[places[k]] = right ^ UINT32_C(1) << bit;
            assert_fails(p, output, places[k], "one bit");
        }
        output[places[k]] = UINT32_C(0x7FC00000);
        assert_fails(p, output, places[k], "NaN");
        output[places[k]] = right;
    }
    assert_passes(p, output, "put right again");
}

/* All zeros, all NaN, the answer shifted by one, its halves exchanged, and the answer for other
 * data. */
static inline void assert_wrong_answers_fail(const iron__op_problem *p, uint32_t *output,
                                             iron__thread_pool *pool) {
    size_t n = (size_t)p->c.rows;
    uint32_t *wrong = grab(p->output_bytes), *other_answer;
    iron__op_problem other = make_problem(p->c.op, p->c.rows, p->c.at[0], p->c.seed + 1, pool);

    memset(wrong, 0, p->output_bytes);
    assert_fails(p, wrong, SIZE_MAX, "zeros");
    memset(wrong, 0xFF, p->output_bytes);
    assert_fails(p, wrong, 0, "NaN");
    other_answer = right_answer(&other, pool);
    assert_fails(p, other_answer, SIZE_MAX, "the answer to other data");
    if (n > 1) {
        memcpy(wrong, output + 1, (n - 1) * 4);
        wrong[n - 1] = output[0];
        assert_fails(p, wrong, SIZE_MAX, "moved by one");
        memcpy(wrong, output + n / 2, (n - n / 2) * 4);
        memcpy(wrong + (n - n / 2), output, n / 2 * 4);
        assert_fails(p, wrong, SIZE_MAX, "halves exchanged");
    }
    p->c.op->unmake(&other);
    free(other_answer);
    free(wrong);
}

/* Inputs depend on the seed alone, not on how many threads make them. */
static inline void assert_data_depend_on_the_seed(const iron__op *op, double at) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = make_problem(op, 200003, at, 5, one);
    iron__op_problem b = make_problem(op, 200003, at, 5, three);
    iron__op_problem c = make_problem(op, 200003, at, 6, three);

    for (size_t k = 0; k < a.input_count; k++) {
        assert_memory_equal(a.inputs[k].data, b.inputs[k].data, a.inputs[k].bytes);
        assert_memory_not_equal(a.inputs[k].data, c.inputs[k].data, a.inputs[k].bytes);
    }
    op->unmake(&a);
    op->unmake(&b);
    op->unmake(&c);
    op->unmake(&c); /* all zeros except c */
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

/* The rows of one backend have these names in this order, and each improves on an earlier one; the
 * first is the baseline. */
static inline void assert_rows_are(const iron__op *op, uint32_t backends, const char *const *names,
                                   size_t count) {
    iron__contender row;
    size_t found = 0;

    for (size_t k = 0; iron__op_contender(op, k, &row); k++) {
        bool is_known = false;

        if (row.backends != backends)
            continue;
        assert_true(found < count);
        assert_string_equal(row.name, names[found]);
        assert_true(row.idea && row.idea[0] && (row.cpu_run || row.gpu));
        for (size_t j = 0; row.beats && j < found; j++)
            is_known |= strcmp(row.beats, names[j]) == 0;
        assert_true(found == 0 ? !row.beats : is_known);
        found++;
    }
    assert_int_equal(found, count);
    assert_string_equal(op->baselines[backends != IRON_ON_CPU], names[0]);
}

/* What a one-dimensional op must accept, refuse and document. */
static inline void assert_is_a_line(const iron__op *op, uint64_t useful_bytes, uint64_t most) {
    iron__case c = make_case(op, 1000, 0, 1);
    iron_error err;

    assert_ptr_equal(iron__op_find(op->name), op);
    assert_true(op->is_line && op->is_resident && op->bound == IRON_BOUND_COPY);
    assert_true(op->contract[0] && op->why[0] && op->traffic[0] && op->unless[0] && op->used[0]);
    assert_int_equal(iron__op_useful_bytes(&c), useful_bytes * 1000);
    assert_ok(op->accept(&c, &err), &err);
    c.rows = most;
    assert_ok(op->accept(&c, &err), &err);
    c.rows = most + 1;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "too many");
    c.rows = 0;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.rows = 8;
    c.cols = 2;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "8x2");
    c.cols = 1;
    c.element = IRON_F64;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f64");
}

/* gpu_mib: the minimum of MiB moved on a GPU. */
static inline void assert_sizes_outgrow_caches(const iron__op *op, uint64_t gpu_mib) {
    for (uint64_t mib = 0; mib <= 1024; mib = 2 * mib + 1) {
        iron__case c = make_case(op, 0, 0, 1), on_gpu = c;

        iron__op_usual_size(op, mib << 20, false, op->usual, &c.rows, &c.cols);
        iron__op_usual_size(op, mib << 20, true, op->usual, &on_gpu.rows, &on_gpu.cols);
        assert_true(c.cols == 1 && on_gpu.cols == 1);
        assert_true(iron__op_useful_bytes(&c) >= 4 * (mib << 20));
        assert_true(iron__op_useful_bytes(&on_gpu) >= 4 * (mib << 20));
        assert_true(iron__op_useful_bytes(&on_gpu) >= gpu_mib << 20);
    }
}

#endif
