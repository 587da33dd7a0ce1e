/* SPDX-License-Identifier: MIT */
/*
 * test_tokens_op.c: the op `tokens` as races see it: every contender of the CPU gives the answer
 * that the reference gives, whatever the number of threads and tokens; and the check takes no
 * other.
 */
#include "support.h"

#include "ops/tokens/tokens_op.h"

static const iron__op *const op = &iron__op_tokens;

static iron__team *team_of(uint32_t threads) {
    iron__team *team = NULL;
    iron_error err;

    assert_ok(iron__team_create(threads, iron__allocator_default(), &team, &err), &err);
    return team;
}

static iron__problem make(uint64_t tokens, uint32_t vocab, uint64_t seed, iron__team *team) {
    iron__problem p = {.c = {.op = op,
                             .rows = tokens,
                             .cols = 1,
                             .element = IRON_U32,
                             .vocab = vocab,
                             .seed = seed}};
    iron_error err;

    assert_ok(op->accept(&p.c, &err), &err);
    assert_ok(op->make(&p, team, &err), &err);
    assert_int_equal(p.inputs[0].bytes, tokens * 4);
    assert_int_equal(p.output_bytes, sizeof(iron__tokens_answer));
    return p;
}

/* What the row answers, its output poisoned before. */
static void answer(const iron__contender *row, const iron__problem *p, iron__team *team,
                   iron__tokens_answer *out) {
    iron__cpu_work w = {.row = row, .problem = p, .team = team, .output = out};
    size_t bytes = row->cpu_scratch_bytes ? row->cpu_scratch_bytes(p, iron__team_threads(team)) : 0;

    w.scratch = grab(bytes);
    memset(w.scratch, 0xFF, bytes);
    memset(out, 0xFF, sizeof *out);
    row->cpu_run(&w);
    free(w.scratch);
}

static void expect_all_right(uint64_t tokens, uint32_t vocab, uint32_t threads) {
    iron__team *team = team_of(threads);
    iron__problem p = make(tokens, vocab, 7, team);
    iron__tokens_answer *out = grab(sizeof *out);
    iron__contender row;
    size_t tried = 0;
    char text[200];

    for (size_t k = 0; op->contender_at(k, &row); k++) {
        if (!(row.backends & IRON_ON_CPU) || (row.passes > 1 && tokens > 1000))
            continue;
        answer(&row, &p, team, out);
        if (!op->check(&p, out, text, sizeof text))
            fail_msg("%s, %u threads, %zu tokens: %s", row.name, threads, (size_t)tokens, text);
        tried++;
    }
    assert_true(tried >= 4);
    free(out);
    op->unmake(&p);
    iron__team_destroy(team);
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

static void data_depend_on_the_seed_alone(void **state) {
    iron__team *one = team_of(1), *three = team_of(3);
    iron__problem a = make(300000, 50257, 1, one), b = make(300000, 50257, 1, three);
    iron__problem c = make(300000, 50257, 2, one);

    (void)state;
    assert_memory_equal(a.inputs[0].data, b.inputs[0].data, a.inputs[0].bytes);
    assert_memory_not_equal(a.inputs[0].data, c.inputs[0].data, a.inputs[0].bytes);
    op->unmake(&a);
    op->unmake(&b);
    op->unmake(&c);
    iron__team_destroy(one);
    iron__team_destroy(three);
}

/* Each of these once was somebody's bug. */
static void the_check_takes_nothing_else(void **state) {
    iron__team *team = team_of(1);
    iron__problem p = make(1000, 50257, 3, team);
    iron__tokens_answer *right = grab(sizeof *right), *out = grab(sizeof *out);
    iron__contender row;
    char text[200];

    (void)state;
    assert_true(op->contender_at(0, &row));
    answer(&row, &p, team, right);
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
    out->has_nodes = 0; /* who only reduces may leave the nodes out */
    memset(out->potentials, 0xFF, sizeof out->potentials);
    assert_true(op->check(&p, out, text, sizeof text));
    free(right);
    free(out);
    op->unmake(&p);
    iron__team_destroy(team);
}

static void what_cannot_be_is_refused(void **state) {
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
        cmocka_unit_test(data_depend_on_the_seed_alone),
        cmocka_unit_test(the_check_takes_nothing_else),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
