/* SPDX-License-Identifier: MIT */
/*
 * test_transpose.c: the op transpose: the check refuses typical wrong answers, data depend on the
 * seed alone, every CPU row is right at every shape, in all types, on one to three threads; rows,
 * sizes and limits are as expected. GPU rows run in the selftest.
 */
#include "support.h"

#include "ops/op.h"

typedef struct shape {
    uint64_t rows, cols;
} shape;

static const iron__element elements[] = {IRON_F32, IRON_F64, IRON_U8, IRON_U16};

/* Tiny, odd, prime, at and around the edges of blocks and tiles, long and narrow. */
static const shape shapes[] = {
    {1, 1},     {1, 7},    {7, 1},    {2, 3},    {4, 4},    {5, 17},    {31, 33},
    {32, 32},   {63, 65},  {64, 64},  {128, 64}, {127, 63}, {129, 65},  {257, 129},
    {500, 300}, {1, 5000}, {5000, 1}, {3, 4099}, {4099, 3}, {256, 256}, {1009, 613},
};

static iron__thread_pool *make_team(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    return pool;
}

static iron__case make_case(shape s, iron__element element, uint64_t seed) {
    return (iron__case){.op = &iron__op_transpose,
                        .rows = s.rows,
                        .cols = s.cols,
                        .element = element,
                        .seed = seed};
}

static iron__op_problem make_problem(shape s, iron__element element, uint64_t seed,
                                     iron__thread_pool *pool) {
    iron__op_problem p = {.c = make_case(s, element, seed)};
    iron_error err;

    assert_ok(iron__op_transpose.accept(&p.c, &err), &err);
    assert_ok(iron__op_transpose.make(&p, pool, &err), &err);
    assert_int_equal(p.output_bytes, p.inputs[0].bytes);
    return p;
}

static void *compute(const iron__op_problem *p) {
    size_t rows = (size_t)p->c.rows, cols = (size_t)p->c.cols;
    size_t element = iron__element_bytes(p->c.element);
    const char *a = p->inputs[0].data;
    char *b = grab(p->output_bytes);

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            memcpy(b + (j * rows + i) * element, a + (i * cols + j) * element, element);
    return b;
}

static void assert_passes(const iron__op_problem *p, const void *b, const char *what) {
    char text[240] = "";

    if (!iron__op_transpose.check(p, b, text, sizeof text))
        fail_msg("%s, %s, %llux%llu: %s", what, iron__element_name(p->c.element),
                 (unsigned long long)p->c.rows, (unsigned long long)p->c.cols, text);
}

/* The check must report the first element of B that differs from the right one. Small elements can
 * be equal by chance, so that is not always the first that was changed. */
static void assert_fails(const iron__op_problem *p, const char *right, const char *b,
                         const char *what) {
    size_t rows = (size_t)p->c.rows, element = iron__element_bytes(p->c.element), at = 0;
    char text[240] = "", begin[80];

    if (memcmp(b, right, p->output_bytes) == 0)
        return;
    if (iron__op_transpose.check(p, b, text, sizeof text))
        fail_msg("%s, %s, %llux%llu: passes", what, iron__element_name(p->c.element),
                 (unsigned long long)p->c.rows, (unsigned long long)p->c.cols);
    while (memcmp(b + at * element, right + at * element, element) == 0)
        at++;
    snprintf(begin, sizeof begin, "B[%zu][%zu] is ", at / rows, at % rows);
    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("%s: '%s' does not begin with '%s'", what, text, begin);
}

/* Single elements with one bit changed, the lowest or the highest (of reals, the sign): all at
 * small sizes, samples at large ones. */
static void assert_single_elements_count(const iron__op_problem *p, const char *right, char *b) {
    size_t count = (size_t)(p->c.rows * p->c.cols), step = count < 2000 ? 1 : count / 41;
    size_t element = iron__element_bytes(p->c.element);

    memcpy(b, right, p->output_bytes);
    for (size_t k = 0; k < count; k += step) {
        b[k * element] ^= 1;
        assert_fails(p, right, b, "the lowest bit");
        b[k * element] ^= 1;
        b[k * element + element - 1] ^= (char)0x80;
        assert_fails(p, right, b, "the highest bit");
        b[k * element + element - 1] ^= (char)0x80;
    }
    b[(count - 1) * element] ^= 1;
    assert_fails(p, right, b, "the last element");
}

static void assert_wrong_answers_fail(const iron__op_problem *p) {
    size_t rows = (size_t)p->c.rows, cols = (size_t)p->c.cols, count = rows * cols;
    size_t element = iron__element_bytes(p->c.element);
    char *right = compute(p), *wrong = grab(p->output_bytes);

    assert_passes(p, right, "the definition");
    memset(wrong, 0, p->output_bytes);
    assert_fails(p, right, wrong, "zeros");
    memset(wrong, 0xFF, p->output_bytes);
    assert_fails(p, right, wrong, "NaN");
    if (count > 1) {
        memcpy(wrong, right + element, p->output_bytes - element);
        memcpy(wrong + p->output_bytes - element, right, element);
        assert_fails(p, right, wrong, "shifted by one");
    }
    if (rows > 1 && cols > 1) {
        assert_fails(p, right, p->inputs[0].data, "not transposed");
        memcpy(wrong, right, p->output_bytes);
        memcpy(wrong, right + rows * element, rows * element);
        memcpy(wrong + rows * element, right, rows * element);
        assert_fails(p, right, wrong, "two rows exchanged");
    }
    assert_single_elements_count(p, right, wrong);
    free(wrong);
    free(right);
}

static void wrong_answers_fail(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t s = 0; s < COUNT(elements) * COUNT(shapes); s++) {
            iron__op_problem p =
                make_problem(shapes[s / COUNT(elements)], elements[s % COUNT(elements)], 7, pool);

            assert_wrong_answers_fail(&p);
            iron__op_transpose.unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

/* The output of an earlier run with other data is not accepted. */
static void earlier_answers_fail(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_problem((shape){200, 300}, IRON_F32, 1, pool);
    iron__op_problem before = make_problem((shape){200, 300}, IRON_F32, 2, pool);
    char *right = compute(&p), *b = compute(&before);

    (void)state;
    assert_memory_not_equal(right, b, p.output_bytes);
    assert_fails(&p, right, b, "of another seed");
    free(right);
    free(b);
    iron__op_transpose.unmake(&p);
    iron__op_transpose.unmake(&before);
    iron__thread_pool_destroy(pool);
}

static void the_check_names_the_element(void **state) {
    iron__thread_pool *pool = make_team(3);
    iron__op_problem p = make_problem((shape){300, 200}, IRON_F64, 1, pool);
    double *b = compute(&p);
    char text[240];

    (void)state;
    ((double *)p.inputs[0].data)[70 * 200 + 150] = 12.25;
    b[150 * 300 + 70] = 0.5;
    b[199 * 300 + 299] = 0; /* later */
    assert_false(iron__op_transpose.check(&p, b, text, sizeof text));
    assert_string_equal(text, "B[150][70] is 0.5, should be 12.25");
    free(b);
    iron__op_transpose.unmake(&p);
    iron__thread_pool_destroy(pool);
}

/* No symmetry, and no more equal elements than by chance: otherwise a wrong place could not be
 * detected. */
static void data_depend_on_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);

    (void)state;
    for (size_t e = 0; e < COUNT(elements); e++) {
        iron__op_problem a = make_problem((shape){400, 400}, elements[e], 5, one);
        iron__op_problem b = make_problem((shape){400, 400}, elements[e], 5, three);
        iron__op_problem c = make_problem((shape){400, 400}, elements[e], 6, three);
        size_t element = iron__element_bytes(elements[e]), same = 0;
        const char *data = a.inputs[0].data;

        assert_ptr_equal(b.pool, three);
        assert_memory_equal(a.inputs[0].data, b.inputs[0].data, a.inputs[0].bytes);
        assert_memory_not_equal(a.inputs[0].data, c.inputs[0].data, a.inputs[0].bytes);
        for (size_t i = 0; i < 400; i++)
            for (size_t j = 0; j < i; j++)
                same += memcmp(data + (i * 400 + j) * element, data + (j * 400 + i) * element,
                               element) == 0;
        assert_true(same < 5 + (element < 4 ? (size_t)400 * 400 >> 8 * element : 0));
        iron__op_transpose.unmake(&a);
        iron__op_transpose.unmake(&b);
        iron__op_transpose.unmake(&c);
        iron__op_transpose.unmake(&c); /* a struct of zeros but c */
    }
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

static void every_cpu_row_is_right(void **state) {
    iron__contender row;

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t s = 0; s < COUNT(elements) * COUNT(shapes); s++) {
            iron__op_problem p =
                make_problem(shapes[s / COUNT(elements)], elements[s % COUNT(elements)], s, pool);
            void *output = grab(p.output_bytes);

            for (size_t k = 0; iron__op_contender(&iron__op_transpose, k, &row); k++) {
                iron__cpu_work work = {.row = &row, .problem = &p, .pool = pool, .output = output};

                if (!(row.backends & IRON_ON_CPU))
                    continue;
                memset(output, 0xFF, p.output_bytes);
                row.cpu_run(&work);
                assert_passes(&p, output, row.name);
            }
            free(output);
            iron__op_transpose.unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

/* Whether there is a row of that name on one of these backends before row number `end`. */
static bool has_row(const char *name, uint32_t backends, size_t end) {
    iron__contender row;

    for (size_t k = 0; k < end && iron__op_contender(&iron__op_transpose, k, &row); k++)
        if ((row.backends & backends) && strcmp(row.name, name) == 0)
            return true;
    return false;
}

static void rows_are_complete(void **state) {
    static const char *const on_cpu[] = {"naive", "blocked", "vector", "threads"};
    static const char *const on_gpu[] = {
        "naive",        "tiled",    "tiled-padded",       "tiled-swizzled",
        "tiled-vector", "champion", "champion-rows-first"};
    iron__contender row;
    size_t k = 0;

    (void)state;
    for (; iron__op_contender(&iron__op_transpose, k, &row); k++) {
        assert_true(row.idea && row.idea[0]);
        assert_true(row.backends == IRON_ON_CPU ? row.cpu_run && !row.gpu
                                                : row.gpu && row.gpu->own);
        assert_true(row.beats ? has_row(row.beats, row.backends, k)
                              : strcmp(row.name, "naive") == 0);
    }
    for (size_t n = 0; n < COUNT(on_cpu); n++)
        assert_true(has_row(on_cpu[n], IRON_ON_CPU, k));
    for (size_t n = 0; n < COUNT(on_gpu); n++)
        assert_true(has_row(on_gpu[n], IRON_ON_GPU, k));
    assert_true(iron__op_transpose.is_resident);
    assert_int_equal(iron__op_transpose.bound, IRON_BOUND_COPY);
    assert_ptr_equal(iron__op_find("transpose"), &iron__op_transpose);
}

static void sizes_are_large_enough(void **state) {
    static const struct {
        uint64_t cache_mib;
        bool has_gpu;
        iron__element element;
        uint64_t side;
    } cases[] = {{0, false, IRON_F32, 4000},   {8, false, IRON_F32, 4000},
                 {32, false, IRON_F32, 6000},  {32, false, IRON_F64, 5000},
                 {60, true, IRON_F32, 16384},  {60, true, IRON_F64, 16384},
                 {256, false, IRON_F32, 17000}};
    iron__case c = make_case((shape){300, 200}, IRON_F64, 1);

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        uint64_t rows = 0, cols = 0, cache = cases[k].cache_mib << 20;

        iron__op_transpose.usual_size(cache, cases[k].has_gpu, cases[k].element, &rows, &cols);
        assert_true(rows == cases[k].side && cols == cases[k].side);
        assert_true(rows * cols * iron__element_bytes(cases[k].element) >= 4 * cache);
    }
    assert_int_equal(iron__op_transpose.useful_bytes(&c), 2 * 300 * 200 * 8);
    for (size_t k = 0; k < iron__op_transpose.size_count; k++) {
        const iron__size *s = &iron__op_transpose.sizes[k];
        iron_error err;

        c = make_case((shape){s->rows, s->cols}, IRON_F64, 1);
        assert_ok(iron__op_transpose.accept(&c, &err), &err);
    }
}

static void limits_are_kept(void **state) {
    const uint64_t longest = 0x7FFFFFFF;
    const shape fine[] = {{1, 1}, {1, longest}, {longest, 1}, {UINT64_C(1) << 20, 1 << 17}};
    const shape refused[] = {{0, 1},
                             {1, 0},
                             {longest + 1, 1},
                             {1, longest + 1},
                             {UINT64_C(1) << 20, (1 << 17) + 1},
                             {longest, longest},
                             {UINT64_MAX, UINT64_MAX}};
    iron_error err;
    iron__case c;

    (void)state;
    for (size_t k = 0; k < COUNT(fine); k++) {
        c = make_case(fine[k], IRON_F64, 0);
        assert_ok(iron__op_transpose.accept(&c, &err), &err);
    }
    for (size_t k = 0; k < COUNT(refused); k++) {
        c = make_case(refused[k], IRON_F64, 0);
        assert_refused(iron__op_transpose.accept(&c, &err), IRON_E_ARG, &err);
    }
    c = make_case((shape){8, 8}, IRON_U32, 0);
    assert_refused(iron__op_transpose.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "u32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_answers_fail),          cmocka_unit_test(earlier_answers_fail),
        cmocka_unit_test(the_check_names_the_element), cmocka_unit_test(data_depend_on_the_seed),
        cmocka_unit_test(every_cpu_row_is_right),      cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(sizes_are_large_enough),      cmocka_unit_test(limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
