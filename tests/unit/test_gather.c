/* SPDX-License-Identifier: MIT */
/*
 * test_gather.c: the op gather: indices have the promised order, all words of the table differ, the
 * check finds every planted error, and the CPU rows are right for every order and size.
 */
#include "line_support.h"

#include "ops/gather/gather.c"
#include "ops/gather/kernel_params.h"
#include "ops/op.h"

#define OP     (&iron__op_gather)
#define ORDERS 3u

static const uint64_t counts[] = {1, 2, 3, 17, 63, 64, 65, 1000, 4099, 16384, 70001};

static const uint32_t *index_of(const iron__op_problem *p) { return p->inputs[0].data; }

static const uint32_t *table_of(const iron__op_problem *p) { return p->inputs[1].data; }

static size_t words_of(const iron__op_problem *p) { return p->inputs[1].bytes / sizeof(uint32_t); }

static void data_come_from_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);

    (void)state;
    for (uint32_t order = 0; order < ORDERS; order++) {
        iron__op_problem a = make_line(OP, 200003, order, 5, one);
        iron__op_problem b = make_line(OP, 200003, order, 5, three);
        iron__op_problem c = make_line(OP, 200003, order, 6, three);

        assert_same_data(&a, &b);
        assert_memory_not_equal(a.inputs[0].data, c.inputs[0].data, a.inputs[0].bytes);
        assert_memory_not_equal(a.inputs[1].data, c.inputs[1].data, a.inputs[1].bytes);
        OP->unmake(&a);
        OP->unmake(&b);
        OP->unmake(&c);
    }
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

static void indices_stay_in_the_table(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t k = 0; k < ORDERS * COUNT(counts); k++) {
        iron__op_problem p = make_line(OP, counts[k / ORDERS], (double)(k % ORDERS), k, pool);

        assert_int_equal(words_of(&p), table_words(&p.c));
        for (size_t i = 0; i < p.c.rows; i++)
            assert_true(index_of(&p)[i] < words_of(&p));
        OP->unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

static int compare_words(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The number of different values. */
static size_t count_different(const uint32_t *values, size_t count) {
    uint32_t *sorted = grab(count * sizeof *sorted);
    size_t found = 1;

    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_words);
    for (size_t k = 1; k < count; k++)
        found += sorted[k] != sorted[k - 1];
    free(sorted);
    return found;
}

/* For random indices, about 1 - 1/e of the words are read. */
static void assert_drawn_by_chance(const iron__op_problem *p) {
    size_t found = count_different(index_of(p), (size_t)p->c.rows);

    assert_true(found > p->c.rows * 6 / 10 && found < p->c.rows * 66 / 100);
}

static void indices_have_their_order(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem random = make_line(OP, 100003, ORDER_RANDOM, 1, pool);
    iron__op_problem windowed = make_line(OP, 100003, ORDER_WINDOWED, 1, pool);
    iron__op_problem sorted = make_line(OP, 100003, ORDER_SORTED, 1, pool);
    size_t far = 0, down = 0;

    (void)state;
    assert_int_equal(count_different(table_of(&random), words_of(&random)), words_of(&random));
    assert_drawn_by_chance(&random);
    assert_drawn_by_chance(&windowed);
    assert_drawn_by_chance(&sorted);
    for (size_t i = 1; i < 100003; i++) {
        uint64_t low = i * (uint64_t)(100003 - GATHER_WINDOW) / 100003;
        uint32_t step = index_of(&random)[i] - index_of(&random)[i - 1];

        far += step > GATHER_WINDOW && step < 0u - GATHER_WINDOW;
        assert_true(index_of(&windowed)[i] >= low);
        assert_true(index_of(&windowed)[i] < low + GATHER_WINDOW);
        down += index_of(&windowed)[i] < index_of(&windowed)[i - 1];
        assert_true(index_of(&sorted)[i] >= index_of(&sorted)[i - 1]);
    }
    assert_true(far > 80000);                  /* random: neighbours are far from each other */
    assert_true(down > 45000 && down < 55000); /* windowed: half of the steps go back */
    OP->unmake(&random);
    OP->unmake(&windowed);
    OP->unmake(&sorted);
    iron__thread_pool_destroy(pool);
}

static uint32_t *right_answer(const iron__op_problem *p) {
    uint32_t *out = grab(p->output_bytes);

    for (size_t i = 0; i < p->c.rows; i++)
        out[i] = table_of(p)[index_of(p)[i]];
    return out;
}

static void the_check_finds_single_errors(void **state) {
    iron__thread_pool *pool = make_team(3);
    iron__op_problem p = make_line(OP, 150001, ORDER_RANDOM, 3, pool);
    uint32_t *out = right_answer(&p);
    const size_t places[] = {0, 1, 65535, 65536, 75000, 149999, 150000};
    char says[40];

    (void)state;
    assert_passes(&p, out, "the right answer");
    for (size_t k = 0; k < COUNT(places); k++) {
        snprintf(says, sizeof says, "out[%zu] is", places[k]);
        out[places[k]] ^= 1u << (k * 5);
        assert_caught(&p, out, says);
        out[places[k]] ^= 1u << (k * 5);
    }
    out[150000] = out[70000] = 0xFFFFFFFF; /* the first of two is reported */
    assert_caught(&p, out, "out[70000] is 4294967295, should be table[");
    free(out);
    OP->unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void the_check_refuses_wrong_answers(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_line(OP, 5003, ORDER_RANDOM, 3, pool);
    iron__op_problem other = make_line(OP, 5003, ORDER_RANDOM, 4, pool);
    uint32_t *out = right_answer(&p), *before = right_answer(&other), *wrong = grab(5003 * 4);

    (void)state;
    memset(wrong, 0, p.output_bytes);
    assert_caught(&p, wrong, "out[0] is 0,");
    memset(wrong, 0xFF, p.output_bytes);
    assert_caught(&p, wrong, "out[0]");
    assert_caught(&p, before, "out[0]");
    assert_caught(&p, index_of(&p), "out[0]");
    assert_caught(&p, table_of(&p), "out[0]");
    memcpy(wrong, out + 1, 5002 * 4);
    wrong[5002] = out[0];
    assert_caught(&p, wrong, "out["); /* shifted */
    memcpy(wrong, out, p.output_bytes);
    wrong[4000] = out[4001];
    wrong[4001] = out[4000];
    assert_caught(&p, wrong, "out[4000]"); /* two exchanged */
    free(out);
    free(before);
    free(wrong);
    OP->unmake(&p);
    OP->unmake(&other);
    iron__thread_pool_destroy(pool);
}

static void cpu_rows_are_right(void **state) {
    iron__contender row;

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t c = 0; c < ORDERS * COUNT(counts); c++) {
            iron__op_problem p = make_line(OP, counts[c / ORDERS], (double)(c % ORDERS), c, pool);
            uint32_t *out = grab(p.output_bytes);

            for (size_t k = 0; iron__op_contender(OP, k, &row); k++) {
                if (!(row.backends & IRON_ON_CPU))
                    continue;
                run_row(&row, &p, pool, out);
                assert_passes(&p, out, row.name);
            }
            free(out);
            OP->unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

static void rows_are_complete(void **state) {
    static const char *const names[] = {
        "plain",     "prefetch", "threads", "prefetch-threads", "sorted-first", "global",
        "read-only", "texture",  "vector",  "shared-staged",    "sorted-first"};

    (void)state;
    assert_rows_are_complete(OP, names, COUNT(names));
    assert_true(has_row(OP, OP->baselines[0], IRON_ON_CPU));
    assert_true(has_row(OP, OP->baselines[1], IRON_ON_GPU));
    assert_int_equal(OP->axes[0].count, ORDERS);
    assert_string_equal(OP->axes[0].words[ORDER_WINDOWED], "windowed");
    assert_string_equal(OP->axes[0].words[ORDER_SORTED], "sorted");
}

static void sizes_and_bytes(void **state) {
    uint64_t rows = 0, cols = 0;
    iron__case c = line_case(OP, 1000, 0);
    const char *name = NULL;
    double value = 0;

    (void)state;
    iron__op_usual_size(OP, (uint64_t)60 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows == (uint64_t)1 << 27 && cols == 1);
    iron__op_usual_size(OP, (uint64_t)32 << 20, false, IRON_U32, &rows, &cols);
    assert_true(rows * 12 >= (uint64_t)128 << 20 && rows * 12 <= (uint64_t)160 << 20);
    iron__op_usual_size(OP, (uint64_t)1 << 40, false, IRON_U32, &rows, &cols);
    assert_true(rows * 12 <= (uint64_t)270 << 20);
    iron__op_usual_size(OP, 0, false, IRON_U32, &rows, &cols);
    assert_true(rows >= (uint64_t)1 << 20 && cols == 1);
    assert_int_equal(iron__op_useful_bytes(&c), 12000);
    c.rows = (uint64_t)1 << 30;
    assert_int_equal(iron__op_useful_bytes(&c), ((uint64_t)8 << 30) + ((uint64_t)4 << 27));
    assert_true(OP->param_at(&c, 0, &name, &value) && value == 0x1p27);
    assert_string_equal(name, "table");
    assert_false(OP->param_at(&c, 1, &name, &value));
}

static void limits_are_kept(void **state) {
    iron__case c = line_case(OP, (uint64_t)1 << 33, 2);
    iron_error err;

    (void)state;
    assert_ok(OP->accept(&c, &err), &err);
    c.rows++;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "2^33");
    c = line_case(OP, 0, 0);
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    c = line_case(OP, 8, 0);
    c.cols = 2;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    c = line_case(OP, 8, 3);
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "windowed");
    c = line_case(OP, 8, 0);
    c.element = IRON_F32;
    assert_refused(OP->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_come_from_the_seed),
        cmocka_unit_test(indices_stay_in_the_table),
        cmocka_unit_test(indices_have_their_order),
        cmocka_unit_test(the_check_finds_single_errors),
        cmocka_unit_test(the_check_refuses_wrong_answers),
        cmocka_unit_test(cpu_rows_are_right),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(sizes_and_bytes),
        cmocka_unit_test(limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
