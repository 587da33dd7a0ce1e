/* SPDX-License-Identifier: MIT */
/*
 * test_banks.c: the op banks: the walk through a tile, the number of threads per bank in each
 * layout, the reference against a literal version of the contract, the check, and the limits. Rows
 * run on GPUs only, where the selftest covers them.
 */
#include "support.h"

#include "ops/banks/banks.c"
#include "ops/op.h"

static iron__thread_pool *make_team(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    return pool;
}

static iron__case make_case(uint64_t rows, double stride) {
    return (iron__case){.op = &iron__op_banks,
                        .rows = rows,
                        .cols = 1,
                        .element = IRON_U32,
                        .seed = 11,
                        .at = {stride}};
}

static iron__op_problem make_problem(uint64_t rows, uint32_t stride, uint64_t seed,
                                     iron__thread_pool *pool) {
    iron__op_problem p = {.c = make_case(rows, stride)};
    iron_error err;

    p.c.seed = seed;
    assert_ok(iron__op_banks.accept(&p.c, &err), &err);
    assert_ok(iron__op_banks.make(&p, pool, &err), &err);
    return p;
}

static bool passes(const iron__op_problem *p, const void *answer) {
    char text[160] = "";
    bool is_right = iron__op_banks.check(p, answer, text, sizeof text);

    assert_true(is_right == (text[0] == '\0'));
    return is_right;
}

static uint32_t place(uint32_t step, uint32_t stride) {
    return BANKS_PLACE(step, stride, block_of(stride));
}

static void walk_visits_every_word_once(void **state) {
    (void)state;
    for (uint32_t stride = 1; stride <= 32; stride++) {
        bool is_seen[BANKS_TILE] = {false};

        for (uint32_t i = 0; i < BANKS_TILE; i++) {
            uint32_t at = place(i, stride);

            assert_true(at < BANKS_TILE && !is_seen[at]);
            is_seen[at] = true;
            if (i % 32 > 0) /* the words of a warp are a stride apart */
                assert_int_equal(at, (place(i - 1, stride) + stride) % BANKS_TILE);
        }
    }
}

typedef enum layout { PLAIN, PADDED, SWIZZLED } layout;

static uint32_t lies_at(uint32_t word, layout l) {
    return l == PLAIN ? BANKS_PLAIN(word) : l == PADDED ? BANKS_PADDED(word) : BANKS_SWIZZLED(word);
}

/* The maximum number of lanes of a warp in the same bank, over all warps of the walk. */
static uint32_t ways_in(uint32_t stride, layout l) {
    uint32_t most = 0;

    for (uint32_t first = 0; first < BANKS_TILE; first += 32) {
        uint32_t lanes[32] = {0};

        for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t *bank = &lanes[lies_at(place(first + lane, stride), l) % 32];

            *bank += 1;
            most = *bank > most ? *bank : most;
        }
    }
    return most;
}

/* Counts what kernel_params.h says. */
static void banks_are_as_documented(void **state) {
    (void)state;
    for (uint32_t stride = 1; stride <= 32; stride++) {
        bool is_power = (stride & (stride - 1)) == 0;
        uint32_t padded = ways_in(stride, PADDED), swizzled = ways_in(stride, SWIZZLED);

        assert_int_equal(ways_in(stride, PLAIN), ways_of(stride));
        assert_int_equal(padded, is_power ? 1 : stride == 31 ? 31 : 2);
        assert_true(is_power ? swizzled == 1 : swizzled > 1);
        assert_true(swizzled <= (stride == 31 ? 31 : 11));
    }
    assert_int_equal(ways_in(11, SWIZZLED), 11);
    assert_int_equal(ways_in(31, SWIZZLED), 31);
}

/* In each layout every word has a different place. */
static void layouts_keep_words_apart(void **state) {
    (void)state;
    for (layout l = PLAIN; l <= SWIZZLED; l++) {
        bool is_taken[BANKS_TILE + BANKS_TILE / 32] = {false};

        for (uint32_t word = 0; word < BANKS_TILE; word++) {
            uint32_t at = lies_at(word, l);

            assert_true(at < (l == PADDED ? COUNT(is_taken) : BANKS_TILE) && !is_taken[at]);
            is_taken[at] = true;
        }
    }
}

/* The contract, one round at a time, from one copy of the tile to another. */
static uint32_t *answer_of(const iron__op_problem *p) {
    uint32_t stride = (uint32_t)p->c.at[0];
    size_t rows = (size_t)p->c.rows, tiles = (rows + BANKS_TILE - 1) / BANKS_TILE;
    uint32_t *now = calloc(tiles * BANKS_TILE, 4), *then = grab(tiles * BANKS_TILE * 4);

    assert_non_null(now);
    memcpy(now, p->inputs[0].data, rows * 4);
    for (int round = 0; round < BANKS_ROUNDS; round++) {
        for (size_t k = 0; k < tiles * BANKS_TILE; k++) {
            uint32_t step = (uint32_t)(k % BANKS_TILE), on = (step + BANKS_NEXT) % BANKS_TILE;
            size_t tile = k - step;

            then[tile + place(step, stride)] =
                now[tile + place(step, stride)] * 0x2545F491u + now[tile + place(on, stride)];
        }
        memcpy(now, then, tiles * BANKS_TILE * 4);
    }
    free(then);
    return now;
}

static void reference_is_the_contract(void **state) {
    static const uint64_t sizes[] = {1, 2, 31, 2047, 2048, 2049, 10000};
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++)
        for (uint32_t stride = 1; stride <= 32; stride += (uint32_t)k + 1) {
            iron__op_problem p = make_problem(sizes[k], stride, k + stride, pool);
            uint32_t *answer = answer_of(&p);

            assert_int_equal(p.output_bytes, sizes[k] * 4);
            assert_true(passes(&p, answer));
            free(answer);
            iron__op_banks.unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

static void the_check_finds_errors(void **state) {
    static const size_t places[] = {0, 1, 2047, 2048, 5000, 9999};
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_problem(10000, 8, 1, pool), other = make_problem(10000, 16, 1, pool);
    uint32_t *answer = answer_of(&p), *wrong = answer_of(&other);

    (void)state;
    assert_memory_equal(p.inputs[0].data, other.inputs[0].data, p.output_bytes);
    assert_false(passes(&p, wrong)); /* of another stride */
    for (size_t k = 0; k < COUNT(places); k++) {
        char text[160];

        answer[places[k]] ^= 0x80000000u;
        assert_false(iron__op_banks.check(&p, answer, text, sizeof text));
        snprintf((char *)wrong, p.output_bytes, "out[%zu] is ", places[k]);
        assert_non_null(strstr(text, (char *)wrong));
        answer[places[k]] ^= 0x80000000u;
    }
    assert_true(passes(&p, answer));
    assert_false(passes(&p, p.inputs[0].data)); /* unchanged input */
    memset(wrong, 0, p.output_bytes);
    assert_false(passes(&p, wrong));
    memset(wrong, 0xFF, p.output_bytes);
    assert_false(passes(&p, wrong));
    memcpy(wrong, answer + 1, p.output_bytes - 4); /* shifted by one */
    wrong[9999] = answer[0];
    assert_false(passes(&p, wrong));
    free(answer);
    free(wrong);
    iron__op_banks.unmake(&p);
    iron__op_banks.unmake(&other);
    iron__thread_pool_destroy(pool);
}

static void data_come_from_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = make_problem(70001, 2, 1, one), b = make_problem(70001, 2, 1, three);
    iron__op_problem other = make_problem(70001, 2, 2, one);

    (void)state;
    assert_memory_equal(a.inputs[0].data, b.inputs[0].data, a.inputs[0].bytes);
    assert_memory_equal(a.reference.data, b.reference.data, a.output_bytes);
    assert_memory_not_equal(a.inputs[0].data, other.inputs[0].data, a.inputs[0].bytes);
    iron__op_banks.unmake(&a);
    iron__op_banks.unmake(&b);
    iron__op_banks.unmake(&other);
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

static void limits_are_kept(void **state) {
    static const double refused[] = {0, -1, 33, 1.5, 1e30};
    iron_error err;
    iron__case c;

    (void)state;
    for (uint32_t stride = 1; stride <= 32; stride++) {
        c = make_case(UINT64_C(1) << 33, stride);
        assert_ok(iron__op_banks.accept(&c, &err), &err);
    }
    for (size_t k = 0; k < COUNT(refused); k++) {
        c = make_case(8, refused[k]);
        assert_refused(iron__op_banks.accept(&c, &err), IRON_E_ARG, &err);
        assert_says(&err, "1 to 32");
    }
    c = make_case(0, 1);
    assert_refused(iron__op_banks.accept(&c, &err), IRON_E_ARG, &err);
    c = make_case((UINT64_C(1) << 38) + 1, 1);
    assert_refused(iron__op_banks.accept(&c, &err), IRON_E_ARG, &err);
    c = make_case(8, 1);
    c.element = IRON_F64;
    assert_refused(iron__op_banks.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f64");
    c = make_case(8, 1);
    c.cols = 8;
    assert_refused(iron__op_banks.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "is a count from 1");
}

static void work_is_counted(void **state) {
    static const char *const names[] = {"plain", "padded", "swizzled"};
    static const uint32_t ways[][2] = {{1, 1}, {2, 2}, {6, 2}, {12, 4}, {24, 8}, {31, 1}, {32, 32}};
    iron__case c = make_case(1000, 1);
    uint64_t rows = 0, cols = 0;
    const char *name = "";
    double value = 0;
    iron__contender row;

    (void)state;
    assert_int_equal(iron__op_useful_bytes(&c), 8000);
    assert_true(iron__op_operations(&c) == 2.0 * BANKS_ROUNDS * 1000);
    for (size_t k = 0; k < COUNT(ways); k++) {
        c.at[0] = ways[k][0];
        assert_true(iron__op_banks.param_at(&c, 0, &name, &value));
        assert_true(strcmp(name, "ways") == 0 && value == ways[k][1]);
    }
    assert_false(iron__op_banks.param_at(&c, 1, &name, &value));
    for (size_t k = 0; k < COUNT(names); k++) {
        assert_true(iron__op_contender(&iron__op_banks, k, &row));
        assert_string_equal(row.name, names[k]);
        assert_int_equal(row.backends, IRON_ON_GPU);
    }
    assert_false(iron__op_contender(&iron__op_banks, COUNT(names), &row));
    iron__op_usual_size(&iron__op_banks, 60 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows * 8 >= 4 * (UINT64_C(60) << 20) && cols == 1);
    iron__op_usual_size(&iron__op_banks, 32 << 20, false, IRON_U32, &rows, &cols);
    assert_true(rows * 8 >= 4 * (UINT64_C(32) << 20) && rows * 4 <= UINT64_C(256) << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_visits_every_word_once),
        cmocka_unit_test(banks_are_as_documented),
        cmocka_unit_test(layouts_keep_words_apart),
        cmocka_unit_test(reference_is_the_contract),
        cmocka_unit_test(the_check_finds_errors),
        cmocka_unit_test(data_come_from_the_seed),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(work_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
