/* SPDX-License-Identifier: MIT */
/*
 * test_divergence.c: the op divergence: every CPU row is right at every size for both kinds of
 * keys; the two paths differ and are bijective; the check refuses wrong answers; data, limits and
 * rows are as expected.
 */
#include "line_op_support.h"

#include "ops/divergence/divergence.c"
#include "ops/op.h"

static const double test_keys[] = {KEYS_ALTERNATING, KEYS_RANDOM};

static void rows_are_right(void **state) {
    (void)state;
    every_row_is_right(&iron__op_divergence, test_keys, COUNT(test_keys));
}

/* x with p q = 1 modulo 2^32: Newton's steps double the digits. */
static uint32_t inverse(uint32_t odd) {
    uint32_t x = odd;

    for (int k = 0; k < 5; k++)
        x *= 2 - odd * x;
    return x;
}

/* Inverts both paths, which shows that they are as kernel_params.h says. */
static uint32_t odd_backwards(uint32_t x) {
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++) {
        x ^= x >> 15 ^ x >> 30;
        x = (x - DIVERGENCE_ODD_Q) * inverse(DIVERGENCE_ODD_P);
    }
    return x;
}

static uint32_t even_backwards(uint32_t x) {
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++) {
        x *= inverse(DIVERGENCE_EVEN_S);
        x ^= DIVERGENCE_EVEN_R;
        x ^= x << 11 ^ x << 22;
    }
    return x;
}

static void paths_are_invertible(void **state) {
    rng r = {1};

    (void)state;
    for (int k = 0; k < 100000; k++) {
        uint32_t x = rng_u32(&r);

        assert_int_equal(odd_backwards(odd_path(x)), x);
        assert_int_equal(even_backwards(even_path(x)), x);
        assert_int_equal(value_of(x), x & 1 ? odd_path(x) : even_path(x));
    }
}

static void keys_match_their_names(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem a = make_problem(&iron__op_divergence, 200000, test_keys[0], 3, pool);
    iron__op_problem r = make_problem(&iron__op_divergence, 200000, test_keys[1], 3, pool);
    const uint32_t *alternating = a.inputs[0].data, *random = r.inputs[0].data;
    size_t odd = 0, changes = 0;

    (void)state;
    for (size_t k = 0; k < a.c.rows; k++) {
        assert_int_equal(alternating[k] & 1, k & 1);
        odd += random[k] & 1;
        changes += k > 0 && (random[k] ^ random[k - 1]) & 1;
    }
    assert_true(odd > 98500 && odd < 101500 && changes > 98500 && changes < 101500);
    iron__op_divergence.unmake(&a);
    iron__op_divergence.unmake(&r);
    iron__thread_pool_destroy(pool);
}

static void wrong_answers_fail(void **state) {
    static const uint64_t sizes[] = {1, 2, 1000, 70001};
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t c = 0; c < COUNT(test_keys); c++) {
            iron__op_problem p =
                make_problem(&iron__op_divergence, sizes[s], test_keys[c], 7, pool);
            const uint32_t *in = p.inputs[0].data;
            uint32_t *out = right_answer(&p, pool), right = out[0];

            assert_single_elements_count(&p, out);
            assert_wrong_answers_fail(&p, out, pool);
            out[0] = in[0] & 1 ? even_path(in[0]) : odd_path(in[0]);
            assert_fails(&p, out, 0, "the other path");
            out[0] = right;
            free(out);
            iron__op_divergence.unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

/* Rows that choose the path by index exist for test_keys that depend on the index. */
static void rows_suit_their_keys(void **state) {
    static const char *const by_index[] = {"warp-uniform", "block-uniform", "thread-pair"};
    iron__case alternating = make_case(&iron__op_divergence, 8, test_keys[0], 1);
    iron__case random = make_case(&iron__op_divergence, 8, test_keys[1], 1);
    iron__contender row;

    (void)state;
    for (size_t k = 0; iron__op_contender(&iron__op_divergence, k, &row); k++) {
        bool is_by_index = false;

        for (size_t j = 0; j < COUNT(by_index); j++)
            is_by_index |= strcmp(row.name, by_index[j]) == 0;
        assert_true(is_by_index == (row.suits != NULL));
        assert_true(!row.suits || (row.suits(&row, &alternating) && !row.suits(&row, &random)));
    }
}

static void op_is_described(void **state) {
    static const char *const on_cpu[] = {"plain", "branch-free", "threads"};
    static const char *const on_gpu[] = {"thread-odd-even", "branch-free", "block-uniform",
                                         "warp-uniform",    "thread-pair", "sorted"};
    iron__case c = make_case(&iron__op_divergence, 8, 2, 1);
    iron_error err;

    (void)state;
    assert_is_a_line(&iron__op_divergence, 8, UINT64_C(1) << 36);
    assert_sizes_outgrow_caches(&iron__op_divergence, 512);
    assert_rows_are(&iron__op_divergence, IRON_ON_CPU, on_cpu, COUNT(on_cpu));
    assert_rows_are(&iron__op_divergence, IRON_ON_GPU, on_gpu, COUNT(on_gpu));
    assert_refused(iron__op_divergence.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "alternating and random");
    assert_data_depend_on_the_seed(&iron__op_divergence, KEYS_RANDOM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_right),         cmocka_unit_test(paths_are_invertible),
        cmocka_unit_test(keys_match_their_names), cmocka_unit_test(wrong_answers_fail),
        cmocka_unit_test(rows_suit_their_keys),   cmocka_unit_test(op_is_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
