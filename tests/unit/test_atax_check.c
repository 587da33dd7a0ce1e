/* SPDX-License-Identifier: MIT */
/*
 * test_atax_check.c: reference and check of the op atax. The reference agrees with arithmetic of
 * higher precision; correct sums in any order pass at every shape; typical wrong answers fail; data
 * depend on the seed alone.
 */
#include "atax_support.h"

#include "ops/atax/atax.c"

#include <math.h>

static const shape shapes[] = {
    {1, 1},     {1, 7},    {7, 1},    {32, 32},   {38, 42},     {390, 410},
    {500, 500}, {1000, 3}, {3, 1000}, {5, 20001}, {2048, 2048},
};

/* A^T A x without one row and one column of A (SIZE_MAX: none), with the highest precision of the
 * compiler. */
static void compute_without(const iron__op_problem *p, size_t no_row, size_t no_col,
                            long double *y) {
    size_t rows = (size_t)p->c.rows, cols = (size_t)p->c.cols;

    for (size_t j = 0; j < cols; j++)
        y[j] = 0;
    for (size_t i = 0; i < rows; i++) {
        long double t = 0;

        for (size_t j = 0; j < cols; j++)
            if (j != no_col)
                t += (long double)get(p, p->inputs[0].data, i * cols + j) *
                     (long double)get(p, p->inputs[1].data, j);
        for (size_t j = 0; j < cols; j++)
            if (i != no_row && j != no_col)
                y[j] += t * (long double)get(p, p->inputs[0].data, i * cols + j);
    }
}

/* Sums in double would be off by some 2^-49 of the scale at 500 terms. */
static void reference_has_more_digits(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t s = 0; s < 2 * (COUNT(shapes) - 1); s++) {
        iron__op_problem p = make_problem(shapes[s / 2], elements[s % 2], s, pool);
        const iron__atax_own *own = p.own;
        long double *y = malloc((size_t)p.c.cols * sizeof *y);

        assert_non_null(y);
        compute_without(&p, SIZE_MAX, SIZE_MAX, y);
        for (size_t j = 0; j < p.c.cols; j++) {
            long double off = y[j] - (long double)((const double *)p.reference.data)[j];

            if (!(off <= 0x1p-51L * own->scale && -off <= 0x1p-51L * own->scale))
                fail_msg("%llux%llu: reference[%zu] is off by %Lg of %g",
                         (unsigned long long)p.c.rows, (unsigned long long)p.c.cols, j, off,
                         own->scale);
        }
        free(y);
        iron__op_atax.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

/* Orders of summation, in the problem's own precision. */
typedef enum order { FORWARD, BACKWARD, STRIDED, PAIRWISE, ORDERS } order;

typedef struct terms {
    const iron__op_problem *p;
    const void *a, *b; /* sum of a[k * step] * b[k] */
    size_t step, count;
} terms;

/* Each operation rounds to the problem's type. */
static double rounded(const iron__op_problem *p, double value) {
    return p->c.element == IRON_F32 ? (double)(float)value : value;
}

static double term(const terms *t, size_t k) {
    return rounded(t->p, get(t->p, t->a, k * t->step) * get(t->p, t->b, k));
}

static double sum_pairwise(const terms *t, size_t begin, size_t end) {
    size_t middle = begin + (end - begin) / 2;

    if (end - begin == 1)
        return term(t, begin);
    return rounded(t->p, sum_pairwise(t, begin, middle) + sum_pairwise(t, middle, end));
}

/* 32 sums over every 32nd term, like the lanes of a warp. */
static double sum_strided(const terms *t) {
    double sum = 0;

    for (size_t lane = 0; lane < 32; lane++) {
        double own = 0;

        for (size_t k = lane; k < t->count; k += 32)
            own = rounded(t->p, own + term(t, k));
        sum = rounded(t->p, sum + own);
    }
    return sum;
}

static double sum_in_order(const terms *t, order o) {
    double sum = 0;

    if (o == PAIRWISE)
        return sum_pairwise(t, 0, t->count);
    if (o == STRIDED)
        return sum_strided(t);
    for (size_t k = 0; k < t->count; k++)
        sum = rounded(t->p, sum + term(t, o == FORWARD ? k : t->count - 1 - k));
    return sum;
}

static void *compute_in_order(const iron__op_problem *p, order o) {
    size_t rows = (size_t)p->c.rows, cols = (size_t)p->c.cols;
    size_t element = iron__element_bytes(p->c.element);
    const char *a = p->inputs[0].data;
    char *t = malloc(rows * element), *y = malloc(cols * element);

    assert_true(t && y);
    for (size_t i = 0; i < rows; i++) {
        terms row = {p, a + i * cols * element, p->inputs[1].data, 1, cols};

        put(p, t, i, sum_in_order(&row, o));
    }
    for (size_t j = 0; j < cols; j++) {
        terms column = {p, a + j * element, t, cols, rows};

        put(p, y, j, sum_in_order(&column, o));
    }
    free(t);
    return y;
}

static void honest_sums_pass(void **state) {
    static const char *const names[ORDERS] = {"forward", "backward", "strided", "pairwise"};
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t s = 0; s < 2 * COUNT(shapes); s++) {
        size_t seeds = shapes[s / 2].rows * shapes[s / 2].cols < 10000 ? 30 : 1;

        for (uint64_t seed = 0; seed < seeds; seed++) {
            iron__op_problem p = make_problem(shapes[s / 2], elements[s % 2], seed, pool);

            for (order o = 0; o < ORDERS; o++) {
                void *y = compute_in_order(&p, o);

                assert_passes(&p, y, names[o]);
                free(y);
            }
            iron__op_atax.unmake(&p);
        }
    }
    iron__thread_pool_destroy(pool);
}

static void assert_fails(const iron__op_problem *p, const void *y, const char *what) {
    char text[240] = "";

    if (iron__op_atax.check(p, y, text, sizeof text))
        fail_msg("%s, %s, %llux%llu: passes", what, iron__element_name(p->c.element),
                 (unsigned long long)p->c.rows, (unsigned long long)p->c.cols);
    assert_memory_equal(text, "y[", 2);
}

static void store(const iron__op_problem *p, const long double *from, void *to) {
    for (size_t j = 0; j < p->c.cols; j++)
        put(p, to, j, (double)from[j]);
}

/* y = A (A x): the result if A is mistaken for its transpose. */
static void compute_untransposed(const iron__op_problem *p, void *y) {
    size_t n = (size_t)p->c.rows;
    double *t = calloc(n, sizeof *t);

    assert_non_null(t);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            t[i] += get(p, p->inputs[0].data, i * n + j) * get(p, p->inputs[1].data, j);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (size_t j = 0; j < n; j++)
            sum += get(p, p->inputs[0].data, i * n + j) * t[j];
        put(p, y, i, sum);
    }
    free(t);
}

/* Changes one element at a time of a right answer. */
static void assert_single_elements_count(const iron__op_problem *p, void *y) {
    static const double wrong[] = {0, (double)NAN, (double)INFINITY, -(double)INFINITY};
    size_t at[] = {0, (size_t)p->c.cols / 2, (size_t)p->c.cols - 1};

    for (size_t k = 0; k < COUNT(at); k++) {
        double right = get(p, y, at[k]);

        for (size_t w = 0; w < COUNT(wrong); w++) {
            put(p, y, at[k], wrong[w]);
            assert_fails(p, y, "one element");
        }
        put(p, y, at[k], right);
    }
    assert_passes(p, y, "put right again");
}

static void assert_wrong_answers_fail(const iron__op_problem *p) {
    size_t cols = (size_t)p->c.cols;
    long double *exact = malloc(cols * sizeof *exact);
    void *y = malloc(p->output_bytes);

    assert_true(exact && y);
    memset(y, 0, p->output_bytes);
    assert_fails(p, y, "zeros");
    memset(y, 0xFF, p->output_bytes);
    assert_fails(p, y, "NaN");
    compute_without(p, SIZE_MAX, SIZE_MAX, exact);
    for (size_t j = 0; j < cols; j++)
        put(p, y, j, (double)exact[j] * 1.001);
    assert_fails(p, y, "scaled by 1.001");
    store(p, exact, y);
    assert_single_elements_count(p, y);
    compute_without(p, (size_t)p->c.rows - 1, SIZE_MAX, exact);
    store(p, exact, y);
    assert_fails(p, y, "the last row dropped");
    compute_without(p, SIZE_MAX, cols - 1, exact);
    store(p, exact, y);
    assert_fails(p, y, "the last column dropped");
    if (p->c.rows == p->c.cols && p->c.rows > 1) {
        compute_untransposed(p, y);
        assert_fails(p, y, "A (A x)");
    }
    free(exact);
    free(y);
}

static void wrong_answers_fail(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t s = 0; s < 2 * COUNT(shapes); s++) {
        iron__op_problem p = make_problem(shapes[s / 2], elements[s % 2], 7, pool);

        assert_wrong_answers_fail(&p);
        iron__op_atax.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

static void the_check_names_the_element(void **state) {
    iron__thread_pool *pool = make_team(1);
    iron__op_problem p = make_problem((shape){40, 30}, IRON_F64, 1, pool);
    iron__atax_own *own = p.own;
    double y[30];
    char text[240];

    (void)state;
    ((double *)p.reference.data)[17] = 12.25;
    own->tolerance = 0.5;
    memcpy(y, p.reference.data, sizeof y);
    y[17] = 0;
    y[20] += 1;
    assert_false(iron__op_atax.check(&p, y, text, sizeof text));
    assert_string_equal(text, "y[17] is 0, should be 12.25 (off by 12.2; tolerance 0.5)");
    iron__op_atax.unmake(&p);
    iron__thread_pool_destroy(pool);
}

/* Large enough for several pieces of data and several blocks of the reference. */
static void data_depend_on_the_seed(void **state) {
    const shape s = {700, 301};

    (void)state;
    for (size_t e = 0; e < COUNT(elements); e++) {
        iron__thread_pool *one = make_team(1), *three = make_team(3);
        iron__op_problem a = make_problem(s, elements[e], 5, one);
        iron__op_problem b = make_problem(s, elements[e], 5, three);
        iron__op_problem c = make_problem(s, elements[e], 6, three);
        const iron__atax_own *own_a = a.own, *own_b = b.own;

        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(a.inputs[k].bytes, b.inputs[k].bytes);
            assert_memory_equal(a.inputs[k].data, b.inputs[k].data, a.inputs[k].bytes);
            assert_memory_not_equal(a.inputs[k].data, c.inputs[k].data, a.inputs[k].bytes);
        }
        assert_memory_equal(a.reference.data, b.reference.data, 301 * sizeof(double));
        assert_true(own_a->tolerance == own_b->tolerance && own_a->tolerance > 0);
        iron__op_atax.unmake(&a);
        iron__op_atax.unmake(&b);
        iron__op_atax.unmake(&c);
        iron__op_atax.unmake(&c); /* a struct of zeros but c */
        iron__thread_pool_destroy(one);
        iron__thread_pool_destroy(three);
    }
}

/* In (-1, 1), uniformly distributed; x is not a copy of A; A is not symmetric. */
static void data_look_random(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t e = 0; e < COUNT(elements); e++) {
        iron__op_problem p = make_problem((shape){300, 300}, elements[e], 0, pool);
        double sum = 0, squares = 0;
        size_t same = 0;

        for (size_t k = 0; k < 90000; k++) {
            double v = get(&p, p.inputs[0].data, k);

            assert_true(v > -1 && v < 1 && v != 0);
            sum += v;
            squares += v * v;
            same += k % 301 != 0 && v == get(&p, p.inputs[0].data, k % 300 * 300 + k / 300);
        }
        assert_true(sum > -1000 && sum < 1000);
        assert_true(squares > 29000 && squares < 31000);
        assert_true(same < 10);
        assert_memory_not_equal(p.inputs[0].data, p.inputs[1].data, p.inputs[1].bytes);
        iron__op_atax.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

static void roots_are_roots(void **state) {
    static const double squares[] = {1e-300, 1e-30, 0.25, 1, 2, 9, 1e10, 1e300};

    (void)state;
    for (size_t k = 0; k < COUNT(squares); k++) {
        double root = square_root(squares[k]), off = root * root / squares[k] - 1;

        assert_true(off < 1e-15 && off > -1e-15);
    }
    assert_true(square_root(0) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_has_more_digits), cmocka_unit_test(honest_sums_pass),
        cmocka_unit_test(wrong_answers_fail),        cmocka_unit_test(the_check_names_the_element),
        cmocka_unit_test(data_depend_on_the_seed),   cmocka_unit_test(data_look_random),
        cmocka_unit_test(roots_are_roots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
