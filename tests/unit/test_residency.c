/* SPDX-License-Identifier: MIT */
/*
 * test_residency.c: the op residency without a GPU: data depend on the seed, the reference matches
 * the contract, the check refuses typical wrong sums, and the cache is prepared with as few driver
 * calls as possible.
 */
#include "line_support.h"

#include "ops/op.h"
#include "ops/residency/residency.c"

#define OP (&iron__op_residency)

typedef struct mistakes {
    bool no_table, no_last, next_place, first_twice;
    size_t keys_at; /* offset of the key in a record */
} mistakes;

/* The contract, literally, or a variation of it. */
static answer compute(const iron__op_problem *p, mistakes m) {
    const uint32_t *stream = p->inputs[0].data, *table = p->inputs[1].data;
    uint64_t words = p->inputs[1].bytes / 4, rows = p->c.rows - m.no_last;
    answer a = {0, 0};

    for (size_t i = 0; i < rows; i++) {
        uint64_t value = stream[m.first_twice && i + 1 == rows ? 0 : i];
        uint64_t place = value * words / UINT64_C(4294967296);

        if (i % 32 == m.keys_at && !m.no_table)
            value ^= table[m.next_place ? (place + 1) % words : place];
        a.sum += value;
        a.xors ^= value;
    }
    return a;
}

static void data_come_from_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = make_line(OP, 200003, 1, 5, one), b = make_line(OP, 200003, 1, 5, three);
    iron__op_problem c = make_line(OP, 200003, 1, 6, three), d = make_line(OP, 200003, 3, 5, three);

    (void)state;
    assert_same_data(&a, &b);
    assert_int_equal(a.inputs[1].bytes, 1 << 20);
    assert_int_equal(d.inputs[1].bytes, 3 << 20);
    assert_memory_equal(a.reference.data, b.reference.data, sizeof(answer));
    assert_memory_not_equal(a.reference.data, c.reference.data, sizeof(answer));
    assert_memory_not_equal(a.reference.data, d.reference.data, sizeof(answer));
    assert_memory_not_equal(a.inputs[0].data, a.inputs[1].data, a.inputs[0].bytes);
    OP->unmake(&a);
    OP->unmake(&b);
    OP->unmake(&c);
    OP->unmake(&d);
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

static void reference_is_the_contract(void **state) {
    static const uint64_t counts[] = {1, 2, 31, 32, 33, 1000, 4096, 65537, 200003};

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t k = 0; k < COUNT(counts); k++) {
            iron__op_problem p = make_line(OP, counts[k], 1 + (double)(k % 3), k, pool);
            answer right = compute(&p, (mistakes){.no_table = false});

            assert_int_equal(p.output_bytes, sizeof right);
            assert_passes(&p, &right, "the contract");
            OP->unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

static void places_cover_the_table(void **state) {
    const uint32_t words = 24 << 18;

    (void)state;
    assert_int_equal(place_of(0, words), 0);
    assert_int_equal(place_of(0xFFFFFFFF, words), words - 1);
    assert_int_equal(place_of(0x80000000, words), words / 2);
}

static void the_check_refuses_wrong_sums(void **state) {
    static const mistakes wrong[] = {{.no_table = true},
                                     {.no_last = true},
                                     {.next_place = true},
                                     {.first_twice = true},
                                     {.keys_at = 1}};
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_line(OP, 100001, 1, 3, pool);
    iron__op_problem other = make_line(OP, 100001, 1, 4, pool);
    answer right = compute(&p, wrong[0]), a;

    (void)state;
    for (size_t k = 0; k < COUNT(wrong); k++) {
        a = compute(&p, wrong[k]);
        assert_caught(&p, &a, "the sum is");
    }
    right = compute(&p, (mistakes){.no_table = false});
    for (size_t bit = 0; bit < 64; bit++) {
        a = right;
        a.sum ^= UINT64_C(1) << bit;
        assert_caught(&p, &a, "the sum is");
        a = right;
        a.xors ^= UINT64_C(1) << bit;
        assert_caught(&p, &a, "the XOR is");
    }
    a = (answer){0, 0};
    assert_caught(&p, &a, "the sum is 0,");
    memset(&a, 0xFF, sizeof a);
    assert_caught(&p, &a, "the sum is 18446744073709551615,");
    assert_caught(&p, other.reference.data, "the sum is");
    OP->unmake(&p);
    OP->unmake(&other);
    iron__thread_pool_destroy(pool);
}

/* A device that only records what it is asked to keep. */
typedef struct noting {
    iron__gpu_device base;
    uint64_t asked[8];
    size_t count;
} noting;

static iron_status note_keep(iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    noting *n = (noting *)device;

    (void)err;
    assert_true(n->count < COUNT(n->asked));
    n->asked[n->count++] = bytes;
    return IRON_OK;
}

static void assert_asked(noting *n, const uint64_t *asked, size_t count) {
    assert_int_equal(n->count, count);
    if (count)
        assert_memory_equal(n->asked, asked, count * sizeof *asked);
    n->count = 0;
}

static void settle(noting *n, uint64_t bytes, bool is_marking) {
    iron_error err;

    assert_ok(prepare_cache(&n->base, bytes, is_marking, &err), &err);
    assert_int_equal(n->base.persisting_bytes, bytes);
    assert_int_equal(n->base.has_persisting_lines, is_marking);
}

static void the_cache_is_prepared_once(void **state) {
    static const iron__gpu_ops ops = {.name = "noting", .cache_reserve = note_keep};
    noting n = {.base = {.ops = &ops, .info = {.persisting_bytes_max = 100}}};

    (void)state;
    settle(&n, 0, false); /* no change: no driver call */
    assert_asked(&n, NULL, 0);
    settle(&n, 64, false);
    settle(&n, 64, false);
    assert_asked(&n, (const uint64_t[]){64}, 1);
    settle(&n, 0, false);
    settle(&n, 0, false);
    assert_asked(&n, (const uint64_t[]){0}, 1);
    settle(&n, 0, true); /* its own marks stay from run to run */
    settle(&n, 0, true);
    assert_asked(&n, NULL, 0);
    settle(&n, 0, false); /* and are removed by the next contender */
    assert_asked(&n, (const uint64_t[]){0}, 1);
    settle(&n, 0, true);
    settle(&n, 64, false);
    assert_asked(&n, (const uint64_t[]){0, 64}, 2);
    settle(&n, 32, false); /* what was kept is released as well */
    assert_asked(&n, (const uint64_t[]){0, 32}, 2);
    settle(&n, 0, true);
    assert_asked(&n, (const uint64_t[]){0}, 1);
}

static void too_much_is_refused(void **state) {
    static const iron__gpu_ops ops = {.name = "noting", .cache_reserve = note_keep};
    noting n = {.base = {.ops = &ops, .info = {.name = "a card", .persisting_bytes_max = 100}}};
    iron_error err;

    (void)state;
    assert_refused(prepare_cache(&n.base, 101, false, &err), IRON_E_ARG, &err);
    assert_true(n.count == 0 && n.base.persisting_bytes == 0);
}

static void rows_are_complete(void **state) {
    static const char *const names[] = {"plain", "persisting", "streaming-loads", "evict-policy",
                                        "persisting-streaming"};
    iron__contender row;

    (void)state;
    assert_rows_are_complete(OP, names, COUNT(names));
    assert_true(has_row(OP, OP->baselines[1], IRON_ON_CUDA));
    for (size_t k = 0; iron__op_contender(OP, k, &row); k++)
        assert_int_equal(row.backends, IRON_ON_CUDA);
}

static void sizes_and_limits(void **state) {
    const double refused[] = {0, 0.5, 8.5, 65, -8, 1e30};
    iron__case c = line_case(OP, (uint64_t)1 << 33, 64);
    uint64_t rows = 0, cols = 0;
    iron_error err;

    (void)state;
    iron__op_usual_size(OP, (uint64_t)60 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows == (uint64_t)1 << 28 && cols == 1);
    iron__op_usual_size(OP, (uint64_t)256 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows * 4 >= (uint64_t)8 * 256 << 20);
    assert_ok(OP->accept(&c, &err), &err);
    assert_int_equal(iron__op_useful_bytes(&c), (uint64_t)4 << 33);
    c.rows++;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    c = line_case(OP, 0, 8);
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    c = line_case(OP, 8, 8);
    c.element = IRON_U8;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    for (size_t k = 0; k < COUNT(refused); k++) {
        c = line_case(OP, 8, refused[k]);
        assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
        assert_says(&err, "whole number from 1 to 64");
    }
    for (size_t k = 0; k < OP->axes[0].count; k++) {
        c = line_case(OP, 8, OP->axes[0].numbers[k]);
        assert_ok(OP->accept(&c, &err), &err);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_come_from_the_seed),
        cmocka_unit_test(reference_is_the_contract),
        cmocka_unit_test(places_cover_the_table),
        cmocka_unit_test(the_check_refuses_wrong_sums),
        cmocka_unit_test(the_cache_is_prepared_once),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(sizes_and_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
