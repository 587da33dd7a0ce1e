/* SPDX-License-Identifier: MIT */
/*
 * test_adaptive.c: the op adaptive: the function matches its contract, maps different values to
 * different results, and avoids denormals; every CPU row is right at every size and density; the
 * check refuses all other answers; data have the requested density.
 */
#include "line_op_support.h"

#include "ops/adaptive/adaptive.c"
#include "ops/op.h"

#include <float.h>
#include <math.h>

static const double test_densities[] = {0, 0.01, 0.1, 0.5, 0.9, 1};

static void rows_are_right(void **state) {
    (void)state;
    every_row_is_right(&iron__op_adaptive, test_densities, COUNT(test_densities));
}

/* One value at a time, each operation rounded separately. */
static float alone(float v) {
    for (int k = 0; k < 100; k++) {
        float w = v * v, q = w * ADAPTIVE_C7;

        q = q + ADAPTIVE_C5;
        q = q * w;
        q = q + ADAPTIVE_C3;
        q = q * w;
        q = q + 1.0f;
        v = v * q;
    }
    return v;
}

/* sin(v) cos(v) = sin(2v) / 2, to the last digit of a double for these v. */
static double sine_times_cosine(double v) {
    double term = v, sum = v;

    for (int k = 2; k < 30; k += 2) {
        term *= -4 * v * v / (k * (k + 1));
        sum += term;
    }
    return sum;
}

static void function_matches_the_contract(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_problem(&iron__op_adaptive, 20011, 0.75, 9, pool);
    const float *in = p.inputs[0].data;
    float *out = grab(p.output_bytes);

    (void)state;
    for (size_t k = 0; k < p.c.rows; k++) {
        double v = (double)in[k];

        for (int turn = 0; turn < 100; turn++)
            v = sine_times_cosine(v);
        out[k] = alone(in[k]);
        assert_true(fabs((double)out[k] - v) <= 2e-5 * fabs(v));
    }
    assert_passes(&p, out, "one by one");
    free(out);
    iron__op_adaptive.unmake(&p);
    iron__thread_pool_destroy(pool);
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static size_t distinct(float *values, size_t count) {
    size_t found = 1;

    qsort(values, count, sizeof *values, by_value);
    for (size_t k = 1; k < count; k++)
        found += values[k] != values[k - 1];
    return found;
}

static void results_differ(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_problem(&iron__op_adaptive, 200000, 1, 9, pool);
    float *out = (float *)(void *)right_answer(&p, pool), *in = p.inputs[0].data;

    (void)state;
    for (size_t k = 0; k < p.c.rows; k++) {
        assert_true(fabsf(out[k]) >= 1000 * FLT_MIN && fabsf(out[k]) < 0.125f);
        assert_true(fabsf(out[k]) <= fabsf(in[k]) && signbit(out[k]) == signbit(in[k]));
    }
    assert_true(distinct(out, 200000) * 100 >= distinct(in, 200000) * 97);
    free(out);
    iron__op_adaptive.unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void data_have_their_density(void **state) {
    static const double wanted[] = {0, 1e-3, 0.01, 0.25, 0.5, 0.75, 0.999, 1};
    iron__thread_pool *pool = make_team(2);
    const double n = 200000;

    (void)state;
    for (size_t d = 0; d < COUNT(wanted); d++) {
        iron__op_problem p = make_problem(&iron__op_adaptive, (uint64_t)n, wanted[d], 11, pool);
        const float *in = p.inputs[0].data;
        double found = 0, pairs = 0, variance = wanted[d] * (1 - wanted[d]) * n;

        for (size_t k = 0; k < p.c.rows; k++) {
            assert_true(in[k] > -0.125f && in[k] < 0.125f && !(in[k] == 0 && signbit(in[k])));
            found += in[k] != 0;
            pairs += k > 0 && in[k] != 0 && in[k - 1] != 0;
        }
        found -= wanted[d] * n;
        assert_true(found * found <= 25 * variance);
        /* neighbours are independent */
        pairs -= wanted[d] * wanted[d] * n;
        assert_true(pairs * pairs <= 100 * variance + 1);
        iron__op_adaptive.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

static void wrong_answers_fail(void **state) {
    static const uint64_t sizes[] = {1, 1000, 70001};
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t d = 0; d < COUNT(test_densities); d++) {
            iron__op_problem p =
                make_problem(&iron__op_adaptive, sizes[s], test_densities[d], 7, pool);
            uint32_t *out = right_answer(&p, pool);

            assert_single_elements_count(&p, out);
            /* the last one: with zeros in the data, a shift may not change a short line */
            if (test_densities[d] == 1 || (test_densities[d] >= 0.1 && sizes[s] > 1))
                assert_wrong_answers_fail(&p, out, pool);
            free(out);
            iron__op_adaptive.unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

static void op_is_described(void **state) {
    static const char *const on_cpu[] = {"dense-always", "branch", "compact", "threads"};
    static const char *const on_gpu[] = {"dense-always", "branch", "density-switch", "compact",
                                         "auto"};
    static const double refused[] = {-0.1, 1.01, (double)NAN, (double)INFINITY};
    iron__case c = make_case(&iron__op_adaptive, 1000, 0.25, 1);
    iron_error err;

    (void)state;
    assert_is_a_line(&iron__op_adaptive, 8, UINT64_C(1) << 36);
    assert_sizes_outgrow_caches(&iron__op_adaptive, 512);
    assert_rows_are(&iron__op_adaptive, IRON_ON_CPU, on_cpu, COUNT(on_cpu));
    assert_rows_are(&iron__op_adaptive, IRON_ON_GPU, on_gpu, COUNT(on_gpu));
    assert_true(iron__op_operations(&c) == 800 * 250.0);
    for (size_t k = 0; k < COUNT(refused); k++) {
        c.at[0] = refused[k];
        assert_refused(iron__op_adaptive.accept(&c, &err), IRON_E_ARG, &err);
        assert_says(&err, "density");
    }
    assert_data_depend_on_the_seed(&iron__op_adaptive, 0.3);
}

/* Rows that may take minutes have an estimate. */
static void long_runs_have_estimates(void **state) {
    iron__case c = make_case(&iron__op_adaptive, UINT64_C(1) << 28, 0.01, 1);
    iron__contender row;

    (void)state;
    for (size_t k = 0; iron__op_contender(&iron__op_adaptive, k, &row); k++) {
        iron__gpu_info gpu = {.is_gpu = true};

        assert_non_null(row.seconds);
        if (!(row.backends & IRON_ON_CPU))
            assert_true(row.seconds(&row, &c, &gpu, 1) == 0);
        else if (strcmp(row.name, "dense-always") == 0)
            assert_true(row.seconds(&row, &c, NULL, 4) > 1);
        else if (strcmp(row.name, "threads") == 0)
            assert_true(row.seconds(&row, &c, NULL, 4) < 0.1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_right),           cmocka_unit_test(function_matches_the_contract),
        cmocka_unit_test(results_differ),           cmocka_unit_test(data_have_their_density),
        cmocka_unit_test(wrong_answers_fail),       cmocka_unit_test(op_is_described),
        cmocka_unit_test(long_runs_have_estimates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
