/* SPDX-License-Identifier: MIT */
/*
 * test_adaptive.c: the op adaptive: the function is what its contract says, keeps what it is given
 * apart, and stays clear of numbers without all their digits; every row on the CPU is right at
 * every size and density; the judge lets nothing else pass; data have the density they should.
 */
#include "line_op_support.h"

#include "ops/adaptive/adaptive.h"
#include "ops/adaptive/adaptive_op.h"

#include <float.h>
#include <math.h>

static const double densities[] = {0, 0.01, 0.1, 0.5, 0.9, 1};

static void rows_are_right(void **state) {
    (void)state;
    every_row_is_right(&iron__op_adaptive, densities, COUNT(densities));
}

/* One value at a time, each operation by itself. */
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

static void the_function_is_the_contracts(void **state) {
    iron__team *team = make_team(2);
    iron__problem p = make_problem(&iron__op_adaptive, 20011, 0.75, 9, team);
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
    iron__team_destroy(team);
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

static void results_stay_apart(void **state) {
    iron__team *team = make_team(2);
    iron__problem p = make_problem(&iron__op_adaptive, 200000, 1, 9, team);
    float *out = (float *)(void *)right_answer(&p, team), *in = p.inputs[0].data;

    (void)state;
    for (size_t k = 0; k < p.c.rows; k++) {
        assert_true(fabsf(out[k]) >= 1000 * FLT_MIN && fabsf(out[k]) < 0.125f);
        assert_true(fabsf(out[k]) <= fabsf(in[k]) && signbit(out[k]) == signbit(in[k]));
    }
    assert_true(distinct(out, 200000) * 100 >= distinct(in, 200000) * 97);
    free(out);
    iron__op_adaptive.unmake(&p);
    iron__team_destroy(team);
}

static void data_have_their_density(void **state) {
    static const double wanted[] = {0, 1e-3, 0.01, 0.25, 0.5, 0.75, 0.999, 1};
    iron__team *team = make_team(2);
    const double n = 200000;

    (void)state;
    for (size_t d = 0; d < COUNT(wanted); d++) {
        iron__problem p = make_problem(&iron__op_adaptive, (uint64_t)n, wanted[d], 11, team);
        const float *in = p.inputs[0].data;
        double found = 0, pairs = 0, variance = wanted[d] * (1 - wanted[d]) * n;

        for (size_t k = 0; k < p.c.rows; k++) {
            assert_true(in[k] > -0.125f && in[k] < 0.125f && !(in[k] == 0 && signbit(in[k])));
            found += in[k] != 0;
            pairs += k > 0 && in[k] != 0 && in[k - 1] != 0;
        }
        found -= wanted[d] * n;
        assert_true(found * found <= 25 * variance);
        /* neighbours know nothing of each other */
        pairs -= wanted[d] * wanted[d] * n;
        assert_true(pairs * pairs <= 100 * variance + 1);
        iron__op_adaptive.unmake(&p);
    }
    iron__team_destroy(team);
}

static void wrong_answers_fail(void **state) {
    static const uint64_t sizes[] = {1, 1000, 70001};
    iron__team *team = make_team(3);

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t d = 0; d < COUNT(densities); d++) {
            iron__problem p = make_problem(&iron__op_adaptive, sizes[s], densities[d], 7, team);
            uint32_t *out = right_answer(&p, team);

            assert_single_elements_count(&p, out);
            /* the last: where some are 0, a shift may meet a shorter line's only elements */
            if (densities[d] == 1 || (densities[d] >= 0.1 && sizes[s] > 1))
                assert_wrong_answers_fail(&p, out, team);
            free(out);
            iron__op_adaptive.unmake(&p);
        }
    iron__team_destroy(team);
}

static void op_says_what_it_is(void **state) {
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
    assert_true(iron__op_adaptive.operations(&c) == 800 * 250.0);
    for (size_t k = 0; k < COUNT(refused); k++) {
        c.at[0] = refused[k];
        assert_refused(iron__op_adaptive.accept(&c, &err), IRON_E_ARG, &err);
        assert_says(&err, "density");
    }
    assert_data_are_the_seeds(&iron__op_adaptive, 0.3);
}

/* Rows that compute every element say so, so that nobody waits for them unasked. */
static void long_runs_are_foretold(void **state) {
    iron__case c = make_case(&iron__op_adaptive, UINT64_C(1) << 28, 0.01, 1);
    iron__contender row;

    (void)state;
    for (size_t k = 0; iron__op_adaptive.contender_at(k, &row); k++) {
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
        cmocka_unit_test(rows_are_right),         cmocka_unit_test(the_function_is_the_contracts),
        cmocka_unit_test(results_stay_apart),     cmocka_unit_test(data_have_their_density),
        cmocka_unit_test(wrong_answers_fail),     cmocka_unit_test(op_says_what_it_is),
        cmocka_unit_test(long_runs_are_foretold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
