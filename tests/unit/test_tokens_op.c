/* SPDX-License-Identifier: MIT */
/*
 * test_tokens_op.c: the op `tokens` in races: every contender on the CPU gives the reference's
 * answer, for any number of threads and tokens; and the check accepts no other answer.
 */
#include "support.h"

#include "ops/tokens/tokens.c"

static const iron__op *const op = &iron__op_tokens;

static iron__thread_pool *team_of(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    return pool;
}

static iron__op_problem problem_of(uint64_t tokens, uint32_t vocab, uint64_t seed,
                                   iron__thread_pool *pool) {
    iron__op_problem p = {.c = {.op = op,
                                .rows = tokens,
                                .cols = 1,
                                .element = IRON_U32,
                                .vocab = vocab,
                                .seed = seed}};
    iron_error err;

    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, pool, &err), &err);
    assert_int_equal(p.inputs[0].bytes, tokens * 4);
    assert_int_equal(p.output_bytes, sizeof(tokens_answer));
    return p;
}

/* Runs the row; its output is filled with ones before. */
static void answer(const iron__contender *row, const iron__op_problem *p, iron__thread_pool *pool,
                   tokens_answer *out) {
    iron__cpu_work w = {.row = row, .problem = p, .pool = pool, .output = out};
    size_t bytes =
        row->cpu_scratch_bytes ? row->cpu_scratch_bytes(p, iron__thread_pool_threads(pool)) : 0;

    w.scratch = grab(bytes);
    memset(w.scratch, 0xFF, bytes);
    memset(out, 0xFF, sizeof *out);
    row->cpu_run(&w);
    free(w.scratch);
}

static void expect_all_right(uint64_t tokens, uint32_t vocab, uint32_t threads) {
    iron__thread_pool *pool = team_of(threads);
    iron__op_problem p = problem_of(tokens, vocab, 7, pool);
    tokens_answer *out = grab(sizeof *out);
    iron__contender row;
    size_t tried = 0;
    char text[200];

    for (size_t k = 0; op->contender_at(k, &row); k++) {
        if (!(row.backends & IRON_ON_CPU) || (row.passes > 1 && tokens > 1000))
            continue;
        answer(&row, &p, pool, out);
        if (!op->check(&p, out, text, sizeof text))
            fail_msg("%s, %u threads, %zu tokens: %s", row.name, threads, (size_t)tokens, text);
        tried++;
    }
    assert_true(tried >= 4);
    free(out);
    op->unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void every_contender_is_right(void **state) {
    static const uint64_t counts[] = {1, 15, 16, 17, 999, 262143, 262145, 600001};
    static const uint32_t vocabs[] = {2, 50257, 65536, UINT32_C(1) << 31};

    (void)state;
    for (size_t c = 0; c < COUNT(counts); c++)
        for (size_t v = 0; v < COUNT(vocabs); v++)
            for (uint32_t threads = 1; threads <= 3; threads += 2)
                expect_all_right(counts[c], vocabs[v], threads);
}

static void data_depend_only_on_the_seed(void **state) {
    iron__thread_pool *one = team_of(1), *three = team_of(3);
    iron__op_problem a = problem_of(300000, 50257, 1, one), b = problem_of(300000, 50257, 1, three);
    iron__op_problem c = problem_of(300000, 50257, 2, one);

    (void)state;
    assert_memory_equal(a.inputs[0].data, b.inputs[0].data, a.inputs[0].bytes);
    assert_memory_not_equal(a.inputs[0].data, c.inputs[0].data, a.inputs[0].bytes);
    op->unmake(&a);
    op->unmake(&b);
    op->unmake(&c);
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

/* Each of these was once a bug. */
static void check_rejects_wrong_answers(void **state) {
    iron__thread_pool *pool = team_of(1);
    iron__op_problem p = problem_of(1000, 50257, 3, pool);
    tokens_answer *right = grab(sizeof *right), *out = grab(sizeof *out);
    iron__contender row;
    char text[200];

    (void)state;
    assert_true(op->contender_at(0, &row));
    answer(&row, &p, pool, right);
    assert_true(op->check(&p, right, text, sizeof text));
    memset(out, 0xFF, sizeof *out);
    assert_false(op->check(&p, out, text, sizeof text)); /* nothing was written */
    memset(out, 0, sizeof *out);
    assert_false(op->check(&p, out, text, sizeof text)); /* zeros */
    *out = *right;
    out->sum ^= 1;
    assert_false(op->check(&p, out, text, sizeof text));
    *out = *right;
    out->xor_accumulators[4095] ^= 1;
    assert_false(op->check(&p, out, text, sizeof text));
    assert_non_null(strstr(text, "4095"));
    *out = *right;
    out->potentials[17] = -out->potentials[17] - 1;
    assert_false(op->check(&p, out, text, sizeof text));
    assert_non_null(strstr(text, "potential 17"));
    *out = *right;
    out->count--;
    assert_false(op->check(&p, out, text, sizeof text));
    *out = *right;
    out->has_nodes = 2;
    assert_false(op->check(&p, out, text, sizeof text));
    out->has_nodes = 0; /* a contender that only reduces may omit the nodes */
    memset(out->potentials, 0xFF, sizeof out->potentials);
    assert_true(op->check(&p, out, text, sizeof text));
    free(right);
    free(out);
    op->unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void impossible_cases_are_refused(void **state) {
    iron__case c = {.op = op, .rows = 10, .cols = 1, .element = IRON_U32, .vocab = 50257};
    iron_error err;

    (void)state;
    assert_ok(op->accept(&c, &err), &err);
    c.vocab = 1;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.vocab = 50257;
    c.rows = 0;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.rows = UINT64_C(1) << 47;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_contender_is_right),
        cmocka_unit_test(data_depend_only_on_the_seed),
        cmocka_unit_test(check_rejects_wrong_answers),
        cmocka_unit_test(impossible_cases_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
