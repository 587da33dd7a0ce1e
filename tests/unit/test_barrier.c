/* SPDX-License-Identifier: MIT */
/*
 * test_barrier.c: the op barrier: its data and sums, its check, its CPU rows, its limits, and the
 * case that a peer sees. The selftest covers the GPU rows.
 */
#include "support.h"

#include "arena/arena_internal.h"
#include "ops/barrier/barrier.c"
#include "ops/op.h"

static const uint64_t test_sizes[] = {1,    2,    3,    5,     1023,  1024,
                                      1025, 2048, 3001, 65536, 65537, 200001};

static iron__thread_pool *make_team(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    return pool;
}

static iron__case make_case(uint64_t rows, int reach) {
    return (iron__case){.op = &iron__op_barrier,
                        .rows = rows,
                        .cols = 1,
                        .element = IRON_U32,
                        .seed = 7,
                        .at = {(double)reach}};
}

static iron__op_problem make_problem(uint64_t rows, int reach, uint64_t seed,
                                     iron__thread_pool *pool) {
    iron__op_problem p = {.c = make_case(rows, reach)};
    iron_error err;

    p.c.seed = seed;
    assert_ok(iron__op_barrier.accept(&p.c, &err), &err);
    assert_ok(iron__op_barrier.make(&p, pool, &err), &err);
    return p;
}

/* The answer, one element at a time. */
static void *answer_of(const iron__op_problem *p) {
    const uint32_t *line = p->inputs[0].data;
    void *answer = grab(p->output_bytes);
    uint64_t total = 0;

    memset(answer, 0, p->output_bytes);
    for (size_t k = 0; k < p->c.rows; k++) {
        total += line[k];
        if (p->c.at[0] == 0)
            ((uint32_t *)answer)[k / 1024] += line[k];
    }
    if (p->c.at[0] != 0)
        memcpy(answer, &total, sizeof total);
    return answer;
}

static bool passes(const iron__op_problem *p, const void *answer) {
    char text[160] = "";
    bool is_right = iron__op_barrier.check(p, answer, text, sizeof text);

    assert_true(is_right == (text[0] == '\0'));
    return is_right;
}

static void sums_are_right(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t k = 0; k < COUNT(test_sizes); k++)
        for (int reach = 0; reach < 2; reach++) {
            iron__op_problem p = make_problem(test_sizes[k], reach, k, pool);
            void *answer = answer_of(&p);

            assert_int_equal(p.output_bytes, reach ? 8 : (test_sizes[k] + 1023) / 1024 * 4);
            assert_true(passes(&p, answer));
            free(answer);
            iron__op_barrier.unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

static void data_come_from_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = make_problem(200001, 0, 1, one), b = make_problem(200001, 1, 1, three);
    iron__op_problem other = make_problem(200001, 0, 2, one);
    const uint32_t *line = a.inputs[0].data;

    (void)state;
    assert_memory_equal(line, b.inputs[0].data, a.inputs[0].bytes);
    assert_memory_not_equal(line, other.inputs[0].data, a.inputs[0].bytes);
    for (size_t k = 0; k < a.c.rows; k++) /* every element matters, and no segment overflows */
        assert_true(line[k] > 0 && line[k] < LIMIT);
    assert_true(UINT64_C(1024) * (LIMIT - 1) <= UINT32_MAX);
    iron__op_barrier.unmake(&a);
    iron__op_barrier.unmake(&b);
    iron__op_barrier.unmake(&other);
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

/* An answer with one flipped bit is refused; flipped back, it is accepted. */
static void assert_seen(const iron__op_problem *p, unsigned char *answer, size_t byte) {
    for (int bit = 0; bit < 8; bit++) {
        answer[byte] ^= (unsigned char)(1 << bit);
        assert_false(passes(p, answer));
        answer[byte] ^= (unsigned char)(1 << bit);
    }
}

static void the_check_finds_errors(void **state) {
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (int reach = 0; reach < 2; reach++) {
        iron__op_problem p = make_problem(100001, reach, 3, pool);
        iron__op_problem before = make_problem(100001, reach, 4, pool);
        unsigned char *answer = answer_of(&p), *wrong = answer_of(&before);
        size_t bytes = p.output_bytes;

        assert_seen(&p, answer, 0);
        assert_seen(&p, answer, bytes / 2);
        assert_seen(&p, answer, bytes - 1);
        assert_false(passes(&p, wrong)); /* of another line */
        memset(wrong, 0, bytes);
        assert_false(passes(&p, wrong));
        memset(wrong, 0xFF, bytes);
        assert_false(passes(&p, wrong));
        memcpy(wrong, answer + 4, bytes - 4); /* shifted by one */
        memcpy(wrong + bytes - 4, answer, 4);
        assert_false(passes(&p, wrong));
        assert_true(passes(&p, answer));
        free(answer);
        free(wrong);
        iron__op_barrier.unmake(&p);
        iron__op_barrier.unmake(&before);
    }
    iron__thread_pool_destroy(pool);
}

static void the_check_names_the_sum(void **state) {
    iron__thread_pool *pool = make_team(1);
    iron__op_problem p = make_problem(5000, 0, 3, pool);
    uint32_t *answer = answer_of(&p);
    char text[160];

    (void)state;
    answer[3]++;
    assert_false(iron__op_barrier.check(&p, answer, text, sizeof text));
    assert_non_null(strstr(text, "sum[3] is "));
    assert_non_null(strstr(text, "elements 3072"));
    free(answer);
    iron__op_barrier.unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void cpu_rows_are_right(void **state) {
    iron__contender row;

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t k = 0; k < 2 * COUNT(test_sizes); k++) {
            iron__op_problem p = make_problem(test_sizes[k / 2], k % 2, k, pool);
            void *output = grab(p.output_bytes);
            iron__cpu_work work = {.problem = &p, .pool = pool, .output = output};

            for (size_t r = 0; iron__op_contender(&iron__op_barrier, r, &row); r++) {
                if (!(row.backends & IRON_ON_CPU))
                    continue;
                assert_true(!row.suits || row.suits(&row, &p.c));
                memset(output, 0xFF, p.output_bytes);
                work.row = &row;
                row.cpu_run(&work);
                assert_true(passes(&p, output));
            }
            free(output);
            iron__op_barrier.unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

static bool is_row(const char *name, size_t before) {
    iron__contender row;

    for (size_t k = 0; k < before && iron__op_contender(&iron__op_barrier, k, &row); k++)
        if (strcmp(row.name, name) == 0)
            return true;
    return false;
}

/* Names, the reach that each row is for, and the row it improves on. */
static void rows_are_complete(void **state) {
    static const struct {
        const char *name;
        int reach; /* 2: both */
        uint32_t backends;
    } want[] = {{"plain", 2, IRON_ON_CPU},         {"threads", 2, IRON_ON_CPU},
                {"block-barrier", 0, IRON_ON_GPU}, {"warp-sync", 0, IRON_ON_GPU},
                {"shuffle", 0, IRON_ON_GPU},       {"redux", 0, IRON_ON_CUDA},
                {"warp-segment", 0, IRON_ON_GPU},  {"two-launches", 1, IRON_ON_GPU},
                {"last-block", 1, IRON_ON_GPU},    {"grid-sync", 1, IRON_ON_CUDA},
                {"atomic", 1, IRON_ON_GPU}};
    iron__contender row;

    (void)state;
    for (size_t k = 0; k < COUNT(want); k++) {
        assert_true(iron__op_contender(&iron__op_barrier, k, &row));
        assert_string_equal(row.name, want[k].name);
        assert_int_equal(row.backends, want[k].backends);
        assert_true(row.idea && row.idea[0]);
        assert_true(!row.beats || is_row(row.beats, k));
        for (int reach = 0; reach < 2; reach++) {
            iron__case c = make_case(5000, reach);

            assert_int_equal(!row.suits || row.suits(&row, &c),
                             want[k].reach == 2 || want[k].reach == reach);
        }
    }
    assert_false(iron__op_contender(&iron__op_barrier, COUNT(want), &row));
    assert_true(is_row(iron__op_barrier.baselines[0], 2) && iron__op_barrier.why[0]);
    assert_true(is_row(iron__op_barrier.baselines[1], COUNT(want)));
}

static void limits_are_kept(void **state) {
    static const uint64_t fine[] = {1, UINT64_C(1) << 33, UINT64_C(1) << 38};
    static const uint64_t refused[] = {0, (UINT64_C(1) << 38) + 1, UINT64_MAX};
    iron_error err;
    iron__case c;

    (void)state;
    for (size_t k = 0; k < COUNT(fine); k++) {
        c = make_case(fine[k], k % 2);
        assert_ok(iron__op_barrier.accept(&c, &err), &err);
    }
    for (size_t k = 0; k < COUNT(refused); k++) {
        c = make_case(refused[k], 0);
        assert_refused(iron__op_barrier.accept(&c, &err), IRON_E_ARG, &err);
        assert_says(&err, "2^38");
    }
    c = make_case(8, 0);
    c.element = IRON_F32;
    assert_refused(iron__op_barrier.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f32");
    c = make_case(8, 0);
    c.cols = 2;
    assert_refused(iron__op_barrier.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "is a count from 1");
    c = make_case(8, 2);
    assert_refused(iron__op_barrier.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "block and grid");
}

static void work_is_counted(void **state) {
    iron__case block = make_case(5000, 0), grid = make_case(5000, 1);
    uint64_t rows = 0, cols = 0;
    const char *name = "";
    double value = 0;

    (void)state;
    assert_int_equal(iron__op_barrier.useful_bytes(&block), 5000 * 4 + 5 * 4);
    assert_int_equal(iron__op_barrier.useful_bytes(&grid), 5000 * 4 + 8);
    assert_true(iron__op_operations(&grid) == 5000);
    assert_true(iron__op_barrier.param_at(&block, 0, &name, &value));
    assert_true(strcmp(name, "segment") == 0 && value == 1024);
    assert_false(iron__op_barrier.param_at(&block, 1, &name, &value));
    assert_false(iron__op_barrier.param_at(&grid, 0, &name, &value));
    iron__op_usual_size(&iron__op_barrier, 60 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows * 4 >= UINT64_C(1) << 30 && cols == 1);
    iron__op_usual_size(&iron__op_barrier, 32 << 20, false, IRON_U32, &rows, &cols);
    assert_true(rows * 4 >= 4 * (UINT64_C(32) << 20) && rows * 4 <= UINT64_C(256) << 20);
}

/* For a line of two segments the answer's size does not determine the reach; the words do. */
static void peers_get_the_reach(void **state) {
    static const char *const says[] = {"reach=block segment=1024", "reach=grid"};
    iron__thread_pool *pool = make_team(1);

    (void)state;
    for (int reach = 0; reach < 2; reach++) {
        iron__op_problem p = make_problem(2000, reach, 1, pool);
        iron_peer_case c = iron__peer_case(&p, NULL, 1);

        assert_int_equal(c.struct_size, sizeof c);
        assert_int_equal(c.output_bytes, 8);
        assert_string_equal(c.params, says[reach]);
        iron__op_barrier.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_right),         cmocka_unit_test(data_come_from_the_seed),
        cmocka_unit_test(the_check_finds_errors), cmocka_unit_test(the_check_names_the_sum),
        cmocka_unit_test(cpu_rows_are_right),     cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(limits_are_kept),        cmocka_unit_test(work_is_counted),
        cmocka_unit_test(peers_get_the_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
