/* SPDX-License-Identifier: MIT */
/*
 * test_seal_op.c: the op `seal` in races: every contender on the CPU gives the reference's answer
 * for all values of `lanes`, for any number of threads and tokens; the check names the word that
 * differs and accepts no other answer.
 */
#include "line_support.h"

#include "core/cpu.h"
#include "ops/seal/seal.c"

static const iron__op *const op = &iron__op_seal;

static iron__op_problem problem_of(uint64_t tokens, uint32_t vocab, double lanes,
                                   iron__thread_pool *pool) {
    iron__op_problem p = {.c = line_case(op, tokens, lanes)};
    iron_error err;

    p.c.vocab = vocab;
    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, pool, &err), &err);
    assert_int_equal(p.inputs[0].bytes, tokens * 4);
    assert_int_equal(p.output_bytes, sizeof(seal_answer));
    return p;
}

static void expect_all_right(uint64_t tokens, uint32_t vocab, double lanes,
                             iron__thread_pool *pool) {
    iron__op_problem p = problem_of(tokens, vocab, lanes, pool);
    seal_answer answer;
    iron__contender row;
    size_t tried = 0;

    for (size_t k = 0; op->contender_at(k, &row); k++) {
        if (!(row.backends & IRON_ON_CPU) || !iron__cpu_has(row.needs))
            continue;
        run_row(&row, &p, pool, &answer);
        assert_passes(&p, &answer, row.name);
        tried++;
    }
    assert_true(tried >= 3);
    op->unmake(&p);
}

static void every_contender_is_right(void **state) {
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 17, 4095, 4097, 262143, 262147, 600001};
    static const uint32_t vocabs[] = {2, 50257, UINT32_C(1) << 31};

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t c = 0; c < COUNT(counts); c++)
            for (size_t v = 0; v < COUNT(vocabs); v++)
                for (int lanes = 0; lanes < 3; lanes++)
                    expect_all_right(counts[c], vocabs[v], lanes, pool);
        iron__thread_pool_destroy(pool);
    }
}

/* The expected answer is computed from the stream token by token, not by a row. */
static void expected_answer_is_that_of_the_stream(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = problem_of(100003, 50257, WITH_ALL, pool);
    const seal_answer *want = &((seal_problem *)p.own)->expected;
    iron__seal seal = {.carried = 0};
    iron__seal_words w;

    (void)state;
    for (size_t k = 0; k < p.c.rows; k++)
        iron__seal_feed(&seal, (const uint32_t *)p.inputs[0].data + k, 1);
    w = iron__seal_total(&seal);
    assert_true(w.count == want->count && w.t == want->t && w.a == want->a && w.b == want->b);
    assert_int_equal(want->out_of_vocab, 1);
    assert_int_equal(want->first_position, 100003 / 2);
    assert_int_equal(want->first_value, want->max);
    assert_true(want->max >= 50257 && want->min < 50257 && want->sum > 0);
    op->unmake(&p);
    p = problem_of(100003, 50257, SEAL_ALONE, pool);
    want = &((seal_problem *)p.own)->expected;
    assert_true(want->min == UINT32_MAX && want->max == 0 && want->first_position == UINT64_MAX);
    assert_true(want->a == w.a && want->b == w.b && want->sum == 0 && want->xors == 0);
    op->unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void data_depend_only_on_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = problem_of(300000, 50257, 0, one), b = problem_of(300000, 50257, 0, three);

    (void)state;
    assert_same_data(&a, &b);
    op->unmake(&a);
    op->unmake(&b);
    op->unmake(&b); /* a second time: all of the struct but c is zero */
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

#define CHANGED(word, says)                                                                        \
    do {                                                                                           \
        seal_answer wrong = right;                                                                 \
        wrong.word ^= 1;                                                                           \
        assert_caught(&p, &wrong, says);                                                           \
    } while (0)

static void check_names_the_wrong_word(void **state) {
    iron__thread_pool *pool = make_team(1);
    iron__op_problem p = problem_of(1000, 50257, WITH_ALL, pool);
    seal_answer right, poison;
    iron__contender row;

    (void)state;
    assert_true(op->contender_at(0, &row));
    run_row(&row, &p, pool, &right);
    assert_passes(&p, &right, "reference");
    CHANGED(count, "count is 1001, should be 1000");
    CHANGED(t, "T is ");
    CHANGED(a, "A is ");
    CHANGED(b, "B is ");
    CHANGED(min, "min is ");
    CHANGED(max, "max is ");
    CHANGED(out_of_vocab, "out_of_vocab is 0, should be 1");
    CHANGED(first_position, "position out of vocab is 501, should be 500");
    CHANGED(first_value, "first value");
    CHANGED(xors, "xor");
    CHANGED(sum, "sum");
    memset(&poison, 0xFF, sizeof poison);
    assert_caught(&p, &poison, "count");
    op->unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void impossible_cases_are_refused(void **state) {
    iron__case c = line_case(op, 10, 0);
    iron_error err;

    (void)state;
    c.vocab = 50257;
    assert_ok(op->accept(&c, &err), &err);
    assert_int_equal(iron__op_useful_bytes(&c), 40);
    c.vocab = 1;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.vocab = 50257;
    c.rows = 0;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.rows = UINT64_C(1) << 41;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.rows = 10;
    c.at[0] = 3;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.at[0] = 0;
    c.element = IRON_F32;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
}

static void rows_and_texts_are_complete(void **state) {
    iron__contender row;

    (void)state;
    assert_ptr_equal(iron__op_find("seal"), op);
    assert_true(op->why[0] && op->traffic[0] && op->unless[0] && op->used[0] && op->contract[0]);
    assert_true(has_row(op, op->baselines[0], IRON_ON_CPU));
    for (size_t k = 0; op->contender_at(k, &row); k++) {
        assert_true(row.idea[0] && (row.cpu_run || row.gpu));
        assert_true(!row.beats || has_row(op, row.beats, row.backends));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_contender_is_right),
        cmocka_unit_test(expected_answer_is_that_of_the_stream),
        cmocka_unit_test(data_depend_only_on_the_seed),
        cmocka_unit_test(check_names_the_wrong_word),
        cmocka_unit_test(impossible_cases_are_refused),
        cmocka_unit_test(rows_and_texts_are_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
