/* SPDX-License-Identifier: MIT */
/*
 * test_seal_op.c: the op `seal` as races see it: every contender of the CPU gives the reference's
 * answer for all lanes, whatever the number of threads and tokens; the check names the word that
 * differs, and takes no other answer.
 */
#include "line_support.h"

#include "core/cpu.h"
#include "ops/seal/seal_op.h"

static const iron__op *const op = &iron__op_seal;

static iron__problem make(uint64_t tokens, uint32_t vocab, double lanes, iron__team *team) {
    iron__problem p = {.c = line_case(op, tokens, lanes)};
    iron_error err;

    p.c.vocab = vocab;
    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, team, &err), &err);
    assert_int_equal(p.inputs[0].bytes, tokens * 4);
    assert_int_equal(p.output_bytes, sizeof(iron__seal_answer));
    return p;
}

static void expect_all_right(uint64_t tokens, uint32_t vocab, double lanes, iron__team *team) {
    iron__problem p = make(tokens, vocab, lanes, team);
    iron__seal_answer answer;
    iron__contender row;
    size_t tried = 0;

    for (size_t k = 0; op->contender_at(k, &row); k++) {
        if (!(row.backends & IRON_ON_CPU) || (row.needs & ~iron__cpu_features()))
            continue;
        run_row(&row, &p, team, &answer);
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
        iron__team *team = make_team(threads);

        for (size_t c = 0; c < COUNT(counts); c++)
            for (size_t v = 0; v < COUNT(vocabs); v++)
                for (int lanes = 0; lanes < 3; lanes++)
                    expect_all_right(counts[c], vocabs[v], lanes, team);
        iron__team_destroy(team);
    }
}

/* The answer is that of the stream, not of any row: by the seal's own feed. */
static void the_answer_is_the_streams(void **state) {
    iron__team *team = make_team(2);
    iron__problem p = make(100003, 50257, IRON_SEAL_LANES_ALL, team);
    const iron__seal_answer *want = &((iron__seal_problem *)p.own)->expected;
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
    p = make(100003, 50257, IRON_SEAL_LANES_ALONE, team);
    want = &((iron__seal_problem *)p.own)->expected;
    assert_true(want->min == UINT32_MAX && want->max == 0 && want->first_position == UINT64_MAX);
    assert_true(want->a == w.a && want->b == w.b && want->sum == 0 && want->xors == 0);
    op->unmake(&p);
    iron__team_destroy(team);
}

static void data_depend_on_the_seed_alone(void **state) {
    iron__team *one = make_team(1), *three = make_team(3);
    iron__problem a = make(300000, 50257, 0, one), b = make(300000, 50257, 0, three);

    (void)state;
    assert_same_data(&a, &b);
    op->unmake(&a);
    op->unmake(&b);
    op->unmake(&b); /* a struct of zeros but c */
    iron__team_destroy(one);
    iron__team_destroy(three);
}

#define SPOILED(word, says)                                                                        \
    do {                                                                                           \
        iron__seal_answer wrong = right;                                                           \
        wrong.word ^= 1;                                                                           \
        assert_caught(&p, &wrong, says);                                                           \
    } while (0)

static void the_check_names_the_word(void **state) {
    iron__team *team = make_team(1);
    iron__problem p = make(1000, 50257, IRON_SEAL_LANES_ALL, team);
    iron__seal_answer right, poison;
    iron__contender row;

    (void)state;
    assert_true(op->contender_at(0, &row));
    run_row(&row, &p, team, &right);
    assert_passes(&p, &right, "reference");
    SPOILED(count, "count is 1001, should be 1000");
    SPOILED(t, "T is ");
    SPOILED(a, "A is ");
    SPOILED(b, "B is ");
    SPOILED(min, "min is ");
    SPOILED(max, "max is ");
    SPOILED(out_of_vocab, "out_of_vocab is 0, should be 1");
    SPOILED(first_position, "position out of vocab is 501, should be 500");
    SPOILED(first_value, "first value");
    SPOILED(xors, "xor");
    SPOILED(sum, "sum");
    memset(&poison, 0xFF, sizeof poison);
    assert_caught(&p, &poison, "count");
    op->unmake(&p);
    iron__team_destroy(team);
}

static void what_cannot_be_is_refused(void **state) {
    iron__case c = line_case(op, 10, 0);
    iron_error err;

    (void)state;
    c.vocab = 50257;
    assert_ok(op->accept(&c, &err), &err);
    assert_int_equal(op->useful_bytes(&c), 40);
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

static void rows_tell_a_story(void **state) {
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
        cmocka_unit_test(the_answer_is_the_streams),
        cmocka_unit_test(data_depend_on_the_seed_alone),
        cmocka_unit_test(the_check_names_the_word),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(rows_tell_a_story),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
