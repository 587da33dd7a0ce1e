/* SPDX-License-Identifier: MIT */
/*
 * test_atax.c: the op atax on the CPU: every contender is right at every shape, in both types, on
 * one to three threads, and so are the loops of every instruction set of this machine; rows, sizes
 * and limits are as expected. test_atax_check.c tests the reference and the check.
 */
#include "atax_support.h"

#include "ops/atax/atax_cpu.c"

#include "core/cpu.h"

#define THREADS_MAX 3u

/* Tiny, odd, prime, not a multiple of any vector; tall; long rows that go by panels, in turns or in
 * phases. */
static const shape shapes[] = {
    {1, 1},     {1, 7},      {7, 1},      {2, 3},       {4, 16},     {5, 17},     {9, 33},
    {32, 32},   {38, 42},    {13, 101},   {97, 89},     {390, 410},  {500, 500},  {1000, 3},
    {3, 1000},  {1, 5000},   {5000, 1},   {11, 1031},   {41, 2053},  {11, 20011}, {4, 60000},
    {7, 70001}, {8, 8192},   {16, 4096},  {6, 2},       {33, 15},    {40000, 2},  {70001, 5},
    {9, 40000}, {29, 40001}, {26, 20011}, {50, 140000}, {2, 300001},
};

/* The result is right, and a second run gives the same bits. */
static void assert_row_is_right(const iron__contender *row, const iron__op_problem *p,
                                iron__thread_pool *pool) {
    void *output = malloc(p->output_bytes), *again = malloc(p->output_bytes);
    char what[64];

    assert_true(output && again);
    run_row(row, p, pool, output);
    snprintf(what, sizeof what, "%s, %u threads", row->name, iron__thread_pool_threads(pool));
    assert_passes(p, output, what);
    run_row(row, p, pool, again);
    assert_memory_equal(output, again, p->output_bytes);
    free(output);
    free(again);
}

static void every_contender_is_right(void **state) {
    iron__contender row;

    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t s = 0; s < 2 * COUNT(shapes); s++) {
            iron__op_problem p = make_problem(shapes[s / 2], elements[s % 2], 42 + s, pool);

            for (size_t k = 0; iron__op_atax.contender_at(k, &row); k++)
                if (row.backends & IRON_ON_CPU)
                    assert_row_is_right(&row, &p, pool);
            iron__op_atax.unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

static void assert_loops_are_right(const loops *l, const iron__op_problem *p, const char *set) {
    size_t element = iron__element_bytes(p->c.element);
    block b = {.a = p->inputs[0].data,
               .rows = (size_t)p->c.rows,
               .cols = (size_t)p->c.cols,
               .stride = (size_t)p->c.cols,
               .x = p->inputs[1].data,
               .t = malloc((size_t)p->c.rows * element),
               .y = calloc(1, p->output_bytes)};

    assert_true(b.t && b.y);
    b.next = b.a;
    memset(b.t, 0, (size_t)p->c.rows * element);
    l->advance(&b, NULL);
    l->advance(NULL, &b);
    assert_passes(p, b.y, set);
    free(b.t);
    b.t = NULL;
    memset(b.y, 0, p->output_bytes);
    l->add_both(&b);
    assert_passes(p, b.y, set);
    free(b.y);
}

/* All instruction sets, not only the one that this machine would choose. */
static void assert_sets_are_right(shape c, iron__element element, uint64_t seed,
                                  iron__thread_pool *pool) {
    iron__op_problem p = make_problem(c, element, seed, pool);
    char name[32];

    for (size_t k = 0; k < COUNT(instruction_sets); k++) {
        snprintf(name, sizeof name, "instruction set %zu", k);
        if (iron__cpu_has(instruction_sets[k].needs))
            assert_loops_are_right(instruction_sets[k].loops[element == IRON_F64], &p, name);
    }
    iron__op_atax.unmake(&p);
}

/* Loops change where rows get longer by a vector: every width up to the longest rows that stay in
 * registers, and some more. */
static void every_instruction_set_is_right(void **state) {
    iron__thread_pool *pool = make_team(1);

    (void)state;
    for (size_t s = 0; s < 2 * COUNT(shapes); s++)
        assert_sets_are_right(shapes[s / 2], elements[s % 2], s, pool);
    for (uint64_t cols = 1; cols <= 150; cols++)
        for (size_t e = 0; e < 2; e++)
            assert_sets_are_right((shape){1 + cols % 7, cols}, elements[e], cols, pool);
    assert_non_null(best_loops(IRON_F32));
    iron__thread_pool_destroy(pool);
}

/* One sum of so many floats of one sign would be off by more than the tolerance. */
static void tall_columns_stay_accurate(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        iron__thread_pool *pool = make_team(threads);
        iron__op_problem p = make_problem((shape){12000000, 1}, IRON_F32, 1, pool);

        assert_row_is_right(&iron__atax_cpu_rows[IRON_ATAX_CPU_ROWS - threads], &p, pool);
        iron__op_atax.unmake(&p);
        iron__thread_pool_destroy(pool);
    }
}

/* Scratch memory must not grow with the threads beyond the number of rows. */
static void scratch_is_bounded(void **state) {
    iron__thread_pool *pool = make_team(1);
    iron__op_problem p = make_problem((shape){8, 4096}, IRON_F64, 1, pool);
    iron__contender row;

    (void)state;
    for (size_t k = 0; iron__op_atax.contender_at(k, &row); k++)
        if (row.cpu_scratch_bytes)
            assert_true(row.cpu_scratch_bytes(&p, IRON_THREADS_MAX) <= p.inputs[0].bytes);
    iron__op_atax.unmake(&p);
    iron__thread_pool_destroy(pool);
}

/* The index of a CPU row, or the number of rows if the name is unknown. */
static size_t row_index(const char *name) {
    iron__contender row;
    size_t k = 0;

    while (iron__op_atax.contender_at(k, &row) &&
           !((row.backends & IRON_ON_CPU) && strcmp(row.name, name) == 0))
        k++;
    return k;
}

static void rows_are_complete(void **state) {
    static const char *const names[] = {
        "naive",   "interchanged",           "blocked",     "vector",
        "threads", "single-pass-one-thread", "single-pass",
    };
    iron__contender row;

    (void)state;
    for (size_t k = 0; k < COUNT(names); k++) {
        assert_true(iron__op_atax.contender_at(k, &row));
        assert_string_equal(row.name, names[k]);
        assert_int_equal(row.backends, IRON_ON_CPU);
        assert_true(row.idea && row.idea[0] && row.cpu_run);
        assert_true(row.passes == (strncmp(row.name, "single-pass", 11) == 0 ? 1 : 2));
        if (k > 0)
            assert_true(row_index(row.beats) < k);
        else
            assert_null(row.beats);
    }
    assert_string_equal(iron__op_atax.baselines[0], names[0]);
    assert_string_equal(iron__op_atax.baselines[1], names[0]);
    assert_ptr_equal(iron__op_find("atax"), &iron__op_atax);
}

static void sizes_are_those_of_the_suites(void **state) {
    static const iron__size want[] = {
        {"talk", "MINI", 32, 32, NULL},
        {"talk", "SMALL", 500, 500, NULL},
        {"talk", "STANDARD", 4000, 4000, NULL},
        {"talk", "LARGE", 8000, 8000, NULL},
        {"talk", "EXTRALARGE", 20000, 20000, NULL},
        {"acc", "MINI", 1024, 1024, "f32"},
        {"acc", "SMALL", 2048, 2048, "f32"},
        {"acc", "STANDARD", 4096, 4096, "f32"},
        {"acc", "LARGE", 8192, 8192, "f32"},
        {"acc", "EXTRALARGE", 16384, 16384, "f32"},
        {"polybench", "MINI", 38, 42, NULL},
        {"polybench", "SMALL", 116, 124, NULL},
        {"polybench", "MEDIUM", 390, 410, NULL},
        {"polybench", "LARGE", 1900, 2100, NULL},
        {"polybench", "EXTRALARGE", 1800, 2200, NULL},
    };

    (void)state;
    assert_int_equal(iron__op_atax.size_count, COUNT(want));
    for (size_t k = 0; k < COUNT(want); k++) {
        const iron__size *got = &iron__op_atax.sizes[k];

        assert_string_equal(got->set, want[k].set);
        assert_string_equal(got->name, want[k].name);
        assert_true(got->rows == want[k].rows && got->cols == want[k].cols);
        assert_true((got->dtype == NULL) == (want[k].dtype == NULL));
        assert_true(!got->dtype || strcmp(got->dtype, want[k].dtype) == 0);
    }
}

static void usual_size_outgrows_caches(void **state) {
    static const struct {
        uint64_t cache_mib;
        iron__element element;
        uint64_t side;
    } cases[] = {{0, IRON_F64, 4000},    {8, IRON_F64, 4000},  {32, IRON_F64, 5000},
                 {32, IRON_F32, 6000},   {96, IRON_F64, 8000}, {384, IRON_F64, 15000},
                 {1024, IRON_F32, 33000}};

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        uint64_t rows = 0, cols = 0, cache = cases[k].cache_mib << 20;

        iron__op_atax.usual_size(cache, false, cases[k].element, &rows, &cols);
        assert_true(rows == cases[k].side && cols == cases[k].side);
        assert_true(rows * cols * iron__element_bytes(cases[k].element) >= 4 * cache);
    }
}

static void work_is_counted_once(void **state) {
    iron__case c = make_case((shape){300, 200}, IRON_F64, 1);

    (void)state;
    assert_int_equal(iron__op_atax.useful_bytes(&c), (300 * 200 + 200 + 200) * 8);
    assert_true(iron__op_atax.operations(&c) == 4.0 * 300 * 200);
    c.element = IRON_F32;
    assert_int_equal(iron__op_atax.useful_bytes(&c), (300 * 200 + 200 + 200) * 4);
}

static void limits_are_kept(void **state) {
    const uint64_t longest = 0x7FFFFFFF;
    const shape fine[] = {{1, 1}, {1, longest}, {longest, 1}, {UINT64_C(1) << 20, 1 << 17}};
    const shape refused[] = {{0, 1},
                             {1, 0},
                             {0, 0},
                             {longest + 1, 1},
                             {1, longest + 1},
                             {UINT64_C(1) << 20, (1 << 17) + 1},
                             {longest, longest},
                             {UINT64_C(1) << 32, UINT64_C(1) << 32},
                             {UINT64_MAX, UINT64_MAX}};
    iron_error err;
    iron__case c;

    (void)state;
    for (size_t k = 0; k < COUNT(fine); k++) {
        c = make_case(fine[k], IRON_F64, 0);
        assert_ok(iron__op_atax.accept(&c, &err), &err);
    }
    for (size_t k = 0; k < COUNT(refused); k++) {
        c = make_case(refused[k], IRON_F64, 0);
        assert_refused(iron__op_atax.accept(&c, &err), IRON_E_ARG, &err);
    }
    c = make_case((shape){8, 8}, IRON_U32, 0);
    assert_refused(iron__op_atax.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "u32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_contender_is_right),
        cmocka_unit_test(every_instruction_set_is_right),
        cmocka_unit_test(tall_columns_stay_accurate),
        cmocka_unit_test(scratch_is_bounded),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(sizes_are_those_of_the_suites),
        cmocka_unit_test(usual_size_outgrows_caches),
        cmocka_unit_test(work_is_counted_once),
        cmocka_unit_test(limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
