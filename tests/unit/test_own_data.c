/* SPDX-License-Identifier: MIT */
/*
 * test_own_data.c: races over the user's tokens: which are read and with what vocabulary, and the
 * problems made of them. Each op that takes them has the same answer for generated tokens and for
 * the same tokens as data; the variations that the referee makes are of the data, and differ.
 */
#include "line_support.h"

#include "arena/arena.c"

#define TOKENS ((size_t)70001)

static uint32_t stored[TOKENS];

static iron_status read_stored(void *context, uint32_t *tokens, size_t count, iron_error *err) {
    size_t *asked = context;

    *asked = count;
    IRON_FAIL_IF(count > TOKENS, err, IRON_E_IO, "the file ended");
    memcpy(tokens, stored, count * sizeof *tokens);
    return IRON_OK;
}

static size_t asked;

static iron_arena_data data_of(uint64_t tokens) {
    return (iron_arena_data){.struct_size = sizeof(iron_arena_data),
                             .file = "shards/my tokens=1.bin",
                             .arguments = "",
                             .dtype = "u16",
                             .tokens = tokens,
                             .read = read_stored,
                             .context = &asked};
}

static iron_status read_own(iron__own_data *own, uint64_t tokens, uint64_t wanted, uint32_t vocab,
                            uint64_t host_bytes, iron_error *err) {
    iron_arena_data from = data_of(tokens);
    iron_status status;

    *own = (iron__own_data){.vocab = 0};
    *err = (iron_error){IRON_OK, 0, ""};
    status = own_data_read(own, &from, wanted, vocab, host_bytes, err);
    iron__release_large(own->tokens, own->bytes);
    return status;
}

static void reads_what_is_wanted(void **state) {
    iron__own_data own;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < TOKENS; k++)
        stored[k] = (uint32_t)(k % 900);
    assert_ok(read_own(&own, TOKENS, 0, 0, 0, &err), &err);
    assert_int_equal(own.data.count, TOKENS);
    assert_int_equal(asked, TOKENS);
    assert_int_equal(own.total, TOKENS);
    assert_int_equal(own.data.element, IRON_U16);
    assert_int_equal(own.vocab, 50257);
    assert_string_equal(own.data.name, "my_tokens_1.bin");
    assert_string_equal(own.file, "shards/my tokens=1.bin");
    assert_ok(read_own(&own, TOKENS, 1000, 900, 0, &err), &err);
    assert_int_equal(own.data.count, 1000);
    assert_int_equal(asked, 1000);
    assert_int_equal(own.total, TOKENS);
    assert_int_equal(own.vocab, 900);
    /* sixteen bytes of memory for each token: eight for the race, eight for the others */
    assert_ok(read_own(&own, TOKENS, 0, 0, 16 * 5000, &err), &err);
    assert_int_equal(own.data.count, 5000);
    assert_int_equal(own.total, TOKENS);
}

static void finds_the_vocabulary(void **state) {
    iron__own_data own;
    iron_error err;

    (void)state;
    memset(stored, 0, sizeof stored);
    stored[77] = 128255;
    stored[78] = 128255;
    assert_ok(read_own(&own, TOKENS, 0, 0, 0, &err), &err);
    assert_int_equal(own.vocab, 128256);
    assert_ok(read_own(&own, TOKENS, 77, 0, 0, &err), &err);
    assert_int_equal(own.vocab, 50257);
    assert_int_equal(read_own(&own, TOKENS, 0, 128255, 0, &err), IRON_E_ARG);
    assert_non_null(strstr(err.text, "token 128255 at position 77 is not below --vocab 128255"));
    stored[80] = UINT32_C(1) << 31;
    assert_int_equal(read_own(&own, TOKENS, 0, 0, 0, &err), IRON_E_ARG);
    assert_non_null(strstr(err.text, "position 80"));
    stored[80]--;
    assert_ok(read_own(&own, TOKENS, 0, 0, 0, &err), &err);
    assert_int_equal(own.vocab, UINT32_C(1) << 31);
}

static void refuses_what_is_not_there(void **state) {
    iron__own_data own;
    iron_error err;

    (void)state;
    assert_int_equal(read_own(&own, 0, 0, 0, 0, &err), IRON_E_ARG);
    assert_non_null(strstr(err.text, "no tokens"));
    assert_int_equal(read_own(&own, 100, 101, 0, 0, &err), IRON_E_ARG);
    assert_non_null(strstr(err.text, "--size 101 is more than the 100 tokens"));
    assert_null(strstr(err.text, "memory"));
    assert_int_equal(read_own(&own, TOKENS, 5001, 0, 16 * 5000, &err), IRON_E_ARG);
    assert_non_null(strstr(err.text, "fit into memory"));
    assert_int_equal(read_own(&own, TOKENS + 1, 0, 0, 0, &err), IRON_E_IO);
}

/* The problem's input as u32. */
static uint32_t element_at(const iron__op_problem *p, size_t k) {
    const void *data = p->inputs[0].data;

    return p->c.element == IRON_U8    ? ((const uint8_t *)data)[k]
           : p->c.element == IRON_U16 ? ((const uint16_t *)data)[k]
                                      : ((const uint32_t *)data)[k];
}

static void make(iron__op_problem *p, iron__thread_pool *pool) {
    iron_error err;

    assert_ok(p->c.op->accept(&p->c, &err), &err);
    assert_ok(p->c.op->make(p, pool, &err), &err);
}

/* Generated tokens, and the same ones as data. */
static void expect_same_answer(const iron__case *c, iron__thread_pool *pool) {
    iron__op_problem made = {.c = *c}, own = {.c = *c};
    iron__op_data data = {.tokens = stored, .count = c->rows};
    iron__contender row;
    void *answer;

    make(&made, pool);
    for (size_t k = 0; k < c->rows; k++)
        stored[k] = element_at(&made, k);
    own.c.data = &data;
    own.c.seed = 0;
    make(&own, pool);
    assert_int_equal(own.inputs[0].bytes, made.inputs[0].bytes);
    assert_memory_equal(own.inputs[0].data, made.inputs[0].data, made.inputs[0].bytes);
    assert_int_equal(own.output_bytes, made.output_bytes);
    answer = grab(made.output_bytes);
    assert_true(iron__op_contender(c->op, 0, &row));
    run_row(&row, &made, pool, answer);
    assert_passes(&made, answer, row.name);
    assert_passes(&own, answer, row.name);
    free(answer);
    made.c.op->unmake(&made);
    own.c.op->unmake(&own);
}

static void answers_are_those_of_the_tokens(void **state) {
    static const uint64_t counts[] = {1, 3, 1023, 1024, 65536, TOKENS};
    iron__thread_pool *pool = make_team(3);
    size_t ops = 0;

    (void)state;
    for (size_t k = 0; iron__op_at(k); k++)
        for (iron__element e = 0; iron__op_at(k)->takes_data && e < IRON_ELEMENTS; e++) {
            if (!(iron__op_at(k)->elements & IRON_BIT(e)))
                continue;
            ops++;
            for (size_t n = 0; n < COUNT(counts); n++) {
                iron__case c = {.op = iron__op_at(k), .rows = counts[n], .cols = 1, .element = e};

                c.vocab = e == IRON_U32 ? 50257 : 0;
                c.seed = 6;
                expect_same_answer(&c, pool);
            }
        }
    assert_int_equal(ops, 5); /* tokens, seal, and three types of histogram */
    iron__thread_pool_destroy(pool);
}

/* Every token of a variation is one of the data. Few differ from a rotation of them, in which each
 * would occur equally often. */
static void variations_differ(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_data data = {.tokens = stored, .count = TOKENS};
    iron__case c = {.op = &iron__op_histogram,
                    .rows = TOKENS,
                    .cols = 1,
                    .element = IRON_U32,
                    .vocab = TOKENS,
                    .data = &data};
    iron__op_problem all[3];

    (void)state;
    for (size_t k = 0; k < TOKENS; k++)
        stored[k] = (uint32_t)k;
    for (size_t n = 0; n < COUNT(all); n++) {
        size_t moved = 0;

        all[n] = (iron__op_problem){.c = c};
        all[n].c.seed = n + 1;
        make(&all[n], pool);
        for (size_t k = 1; k < c.rows; k++) {
            assert_true(element_at(&all[n], k) < TOKENS);
            moved += (element_at(&all[n], k - 1) + 1) % TOKENS != element_at(&all[n], k);
        }
        assert_true(moved > 0 && moved <= 2 * (c.rows / 1024 + 1));
        for (size_t other = 0; other < n; other++)
            assert_memory_not_equal(all[n].inputs[0].data, all[other].inputs[0].data,
                                    all[n].inputs[0].bytes);
    }
    assert_memory_not_equal(all[0].reference.data, all[1].reference.data, all[0].output_bytes);
    for (size_t n = 0; n < COUNT(all); n++)
        all[n].c.op->unmake(&all[n]);
    iron__thread_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_wanted),
        cmocka_unit_test(finds_the_vocabulary),
        cmocka_unit_test(refuses_what_is_not_there),
        cmocka_unit_test(answers_are_those_of_the_tokens),
        cmocka_unit_test(variations_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
