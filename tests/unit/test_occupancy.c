/* SPDX-License-Identifier: MIT */
/*
 * test_occupancy.c: the op occupancy without a GPU: data depend on the seed, the check finds every
 * planted error, the local memory that limits the number of groups is found for several kinds of
 * units, and rows and limits are as expected.
 */
#include "line_support.h"

#include "ops/occupancy/occupancy.c"
#include "ops/op.h"

#define OP (&iron__op_occupancy)

static void data_come_from_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = make_line(OP, 200003, 0, 5, one), b = make_line(OP, 200003, 0, 5, three);
    iron__op_problem c = make_line(OP, 200003, 0, 6, three);
    const uint32_t *words = a.inputs[0].data;
    uint32_t zeros = 0xFFFFFFFF, ones = 0xFFFFFFFF;
    size_t same = 0;

    (void)state;
    assert_same_data(&a, &b);
    assert_memory_not_equal(a.inputs[0].data, c.inputs[0].data, a.inputs[0].bytes);
    for (size_t k = 1; k < 200003; k++) {
        same += words[k] == words[k - 1];
        zeros &= words[k];
        ones &= ~words[k];
    }
    assert_true(same == 0 && zeros == 0 &&
                ones == 0); /* every bit is sometimes 0 and sometimes 1 */
    OP->unmake(&a);
    OP->unmake(&b);
    OP->unmake(&c);
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

/* Inverting each step restores the input, so different words stay different. */
static void mix_is_invertible(void **state) {
    const uint32_t inverse = 0x1D69E2A5; /* of 0x7FEB352D, modulo 2^32 */
    rng r = {9};

    (void)state;
    assert_true(0x7FEB352Du * inverse == 1);
    for (size_t k = 0; k < 100000; k++) {
        uint32_t x = k < 1000 ? (uint32_t)k : rng_u32(&r), y = mix(x);

        y ^= y >> 15 ^ y >> 30;
        y *= inverse;
        y ^= y >> 16;
        assert_int_equal(y, x);
    }
}

static uint32_t *right_answer(const iron__op_problem *p) {
    const uint32_t *in = p->inputs[0].data;
    uint32_t *out = grab(p->output_bytes);

    for (size_t i = 0; i < p->c.rows; i++)
        out[i] = mix(in[i]);
    return out;
}

static void the_check_finds_errors(void **state) {
    iron__thread_pool *pool = make_team(3);
    iron__op_problem p = make_line(OP, 150001, 0, 3, pool);
    iron__op_problem other = make_line(OP, 150001, 0, 4, pool);
    uint32_t *out = right_answer(&p), *before = right_answer(&other), *wrong = grab(150001 * 4);
    const size_t places[] = {0, 65535, 65536, 75000, 150000};
    char says[40];

    (void)state;
    assert_passes(&p, out, "the right answer");
    for (size_t k = 0; k < COUNT(places); k++) {
        snprintf(says, sizeof says, "out[%zu] is", places[k]);
        out[places[k]] ^= 1u << (k * 7);
        assert_caught(&p, out, says);
        out[places[k]] ^= 1u << (k * 7);
    }
    memset(wrong, 0, p.output_bytes);
    assert_caught(&p, wrong, "out[0] is 0,");
    memset(wrong, 0xFF, p.output_bytes);
    assert_caught(&p, wrong, "out[0] is 4294967295,");
    assert_caught(&p, before, "out[0]");
    assert_caught(&p, p.inputs[0].data, "out[0]");
    memcpy(wrong, out + 1, 150000 * 4);
    wrong[150000] = out[0];
    assert_caught(&p, wrong, "out[0]");
    free(out);
    free(before);
    free(wrong);
    OP->unmake(&p);
    OP->unmake(&other);
    iron__thread_pool_destroy(pool);
}

static void one_word_is_a_problem(void **state) {
    iron__thread_pool *pool = make_team(1);
    iron__op_problem p = make_line(OP, 1, 0, 3, pool);
    uint32_t *out = right_answer(&p);

    (void)state;
    assert_passes(&p, out, "one word");
    *out ^= 0x80000000;
    assert_caught(&p, out, "out[0]");
    free(out);
    OP->unmake(&p);
    iron__thread_pool_destroy(pool);
}

/* A unit: its local memory, the share that the driver takes per group, and its maximum number of
 * groups of 64 threads. */
typedef struct unit {
    uint64_t bytes, taken, most_bytes;
    uint32_t groups_max, asked;
} unit;

static uint32_t groups_on(void *context, uint64_t local_bytes) {
    unit *u = context;
    uint64_t fit = u->bytes / (local_bytes + u->taken ? local_bytes + u->taken : 1);

    u->asked++;
    assert_true(local_bytes <= u->most_bytes);
    return fit < u->groups_max ? (uint32_t)fit : u->groups_max;
}

static void groups_are_limited(void **state) {
    static const unit units[] = {{228 << 10, 1024, 227 << 10, 32, 0}, /* 2048 threads */
                                 {100 << 10, 1024, 99 << 10, 24, 0},  /* 1536 */
                                 {64 << 10, 0, 64 << 10, 16, 0}};     /* 1024 */

    (void)state;
    for (size_t k = 0; k < COUNT(units); k++) {
        for (uint32_t part = 2; part <= 8; part *= 2) {
            unit u = units[k];
            uint32_t groups = u.groups_max / part;
            uint64_t bytes = least_local_bytes(groups, u.most_bytes, groups_on, &u);

            assert_true(u.asked <= 10);
            assert_true(bytes > 0 && bytes % 1024 == 0 && bytes <= u.most_bytes);
            assert_int_equal(groups_on(&u, bytes), groups);
            assert_true(groups_on(&u, bytes - 1024) > groups);
        }
    }
}

static void impossible_limits_are_reported(void **state) {
    unit huge = {1 << 20, 0, 64 << 10, 32, 0}, small = {64 << 10, 0, 64 << 10, 4, 0};

    (void)state;
    assert_true(least_local_bytes(2, huge.most_bytes, groups_on, &huge) == UINT64_MAX);
    assert_true(least_local_bytes(4, small.most_bytes, groups_on, &small) == 0);
}

static void rows_are_complete(void **state) {
    static const char *const names[] = {
        "threads-32",   "threads-64",   "threads-256",  "threads-1024",    "threads-256-words",
        "limit-50%",    "limit-25%",    "limit-12%",    "limit-12%-ilp-4", "limit-12%-ilp-8",
        "registers-32", "registers-64", "registers-128"};
    iron__contender row;

    (void)state;
    assert_rows_are_complete(OP, names, COUNT(names));
    assert_true(has_row(OP, OP->baselines[1], IRON_ON_CUDA));
    for (size_t k = 0; iron__op_contender(OP, k, &row); k++)
        assert_int_equal(row.backends, IRON_ON_CUDA);
}

static void sizes_and_limits(void **state) {
    iron__case c = line_case(OP, (uint64_t)1 << 33, 0);
    uint64_t rows = 0, cols = 0;
    iron_error err;

    (void)state;
    iron__op_usual_size(OP, (uint64_t)60 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows * 8 >= 4 * ((uint64_t)60 << 20) && cols == 1);
    assert_ok(OP->accept(&c, &err), &err);
    assert_int_equal(iron__op_useful_bytes(&c), (uint64_t)8 << 33);
    c.rows++;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "2^33");
    c = line_case(OP, 0, 0);
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    c = line_case(OP, 8, 0);
    c.cols = 2;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    c = line_case(OP, 8, 0);
    c.element = IRON_F64;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_come_from_the_seed), cmocka_unit_test(mix_is_invertible),
        cmocka_unit_test(the_check_finds_errors),  cmocka_unit_test(one_word_is_a_problem),
        cmocka_unit_test(groups_are_limited),      cmocka_unit_test(impossible_limits_are_reported),
        cmocka_unit_test(rows_are_complete),       cmocka_unit_test(sizes_and_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
