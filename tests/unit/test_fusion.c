/* SPDX-License-Identifier: MIT */
/*
 * test_fusion.c: the op fusion: every CPU row is right at every size for both chains; the check
 * accepts only the bits of operations that round one by one; data, limits and rows are as expected.
 */
#include "line_op_support.h"

#include "ops/fusion/fusion.c"
#include "ops/op.h"

static const double test_chains[] = {CHAIN_SHORT, CHAIN_LONG};

static void rows_are_right(void **state) {
    (void)state;
    every_row_is_right(&iron__op_fusion, test_chains, COUNT(test_chains));
}

/* One operation, rounded to float. */
static float rounded(double value) { return (float)value; }

/* The chain in doubles, rounded after each step: a product or a sum of two floats in double rounds
 * to the float that the operation itself gives. */
static float by_steps(float a, float b, bool is_long) {
    float t = rounded((double)rounded((double)a + (double)b) * (double)FUSION_SCALE);

    if (!is_long)
        return t;
    t = rounded((double)rounded((double)t + (double)b) * (double)a);
    t = t < FUSION_LOW ? FUSION_LOW : t > FUSION_HIGH ? FUSION_HIGH : t;
    return rounded((double)t - (double)b);
}

static void operations_round_one_by_one(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t c = 0; c < COUNT(test_chains); c++) {
        iron__op_problem p = make_problem(&iron__op_fusion, 100003, test_chains[c], 3, pool);
        const float *a = p.inputs[0].data, *b = p.inputs[1].data;
        float *d = grab(p.output_bytes);
        size_t low = 0, high = 0;

        for (size_t k = 0; k < p.c.rows; k++) {
            float t = ((a[k] + b[k]) * FUSION_SCALE + b[k]) * a[k];

            d[k] = by_steps(a[k], b[k], c == CHAIN_LONG);
            low += t < FUSION_LOW;
            high += t > FUSION_HIGH;
        }
        assert_passes(&p, d, "step by step");
        /* both sides of the clamp occur often */
        assert_true(low > 1000 && high > 1000 && low + high < p.c.rows / 2);
        free(d);
        iron__op_fusion.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

/* A contracted t * s + b: for some elements the last bit differs, and the check must detect
 * that. */
static void contraction_fails(void **state) {
    iron__thread_pool *pool = make_team(1);
    iron__op_problem p = make_problem(&iron__op_fusion, 10007, CHAIN_LONG, 3, pool);
    const float *a = p.inputs[0].data, *b = p.inputs[1].data;
    float *d = grab(p.output_bytes);

    (void)state;
    for (size_t k = 0; k < p.c.rows; k++) {
        float sum = a[k] + b[k];
        float t = rounded((double)sum * (double)FUSION_SCALE + (double)b[k]) * a[k];

        d[k] = clamped(t) - b[k];
    }
    assert_fails(&p, d, SIZE_MAX, "contracted");
    free(d);
    iron__op_fusion.unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void wrong_answers_fail(void **state) {
    static const uint64_t sizes[] = {1, 2, 1000, 70001};
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t c = 0; c < COUNT(test_chains); c++) {
            iron__op_problem p = make_problem(&iron__op_fusion, sizes[s], test_chains[c], 7, pool);
            uint32_t *d = right_answer(&p, pool), *other;
            iron__op_problem q =
                make_problem(&iron__op_fusion, sizes[s], test_chains[1 - c], 7, pool);

            assert_single_elements_count(&p, d);
            assert_wrong_answers_fail(&p, d, pool);
            other = right_answer(&q, pool);
            assert_fails(&p, other, SIZE_MAX, "the other chain");
            free(other);
            free(d);
            iron__op_fusion.unmake(&q);
            iron__op_fusion.unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

static void chains_have_their_length(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT(test_chains); c++) {
        iron__case k = make_case(&iron__op_fusion, 1000, test_chains[c], 1);

        assert_int_equal(chain_of(&k)->count, c == 0 ? 2 : 6);
        assert_true(iron__op_operations(&k) == (c == 0 ? 2000.0 : 6000.0));
    }
}

static void op_is_described(void **state) {
    static const char *const on_cpu[] = {"separate", "fused", "separate-threads", "fused-threads"};
    static const char *const on_gpu[] = {"separate", "graph", "fused", "fused-vector"};
    iron__case c = make_case(&iron__op_fusion, 8, 2, 1);
    iron_error err;

    (void)state;
    assert_is_a_line(&iron__op_fusion, 12, UINT64_C(1) << 36);
    assert_sizes_outgrow_caches(&iron__op_fusion, 1024);
    assert_rows_are(&iron__op_fusion, IRON_ON_CPU, on_cpu, COUNT(on_cpu));
    assert_rows_are(&iron__op_fusion, IRON_ON_GPU, on_gpu, COUNT(on_gpu));
    assert_refused(iron__op_fusion.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "short and long");
    assert_data_depend_on_the_seed(&iron__op_fusion, CHAIN_LONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_right),           cmocka_unit_test(operations_round_one_by_one),
        cmocka_unit_test(contraction_fails),        cmocka_unit_test(wrong_answers_fail),
        cmocka_unit_test(chains_have_their_length), cmocka_unit_test(op_is_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
