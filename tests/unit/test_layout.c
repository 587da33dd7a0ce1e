/* SPDX-License-Identifier: MIT */
/*
 * test_layout.c: the op layout: the step matches the contract bit for bit; the check refuses
 * typical wrong answers; conversions between layouts are inverse to each other; every CPU row is
 * right for every number of particles, both values of the axis, on one to three threads. GPU rows
 * run in the selftest.
 */
#include "support.h"

#include "ops/layout/layout.c"
#include "ops/op.h"

#include <math.h>

enum { FIELDS_ALL, FIELDS_ONE };

/* Around blocks, vectors, and the pieces that threads take. */
static const uint64_t counts[] = {1,  2,  3,   4,    5,     17,    31,    32,
                                  33, 64, 100, 1000, 65536, 65537, 140001};

static iron__thread_pool *make_team(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    return pool;
}

static iron__case make_case(uint64_t count, int fields, uint64_t seed) {
    return (iron__case){.op = &iron__op_layout,
                        .rows = count,
                        .cols = 1,
                        .element = IRON_F32,
                        .seed = seed,
                        .at = {fields}};
}

static iron__op_problem make_problem(uint64_t count, int fields, uint64_t seed,
                                     iron__thread_pool *pool) {
    iron__op_problem p = {.c = make_case(count, fields, seed)};
    iron_error err;

    assert_ok(iron__op_layout.accept(&p.c, &err), &err);
    assert_ok(iron__op_layout.make(&p, pool, &err), &err);
    assert_int_equal(p.inputs[0].bytes, count * 24);
    assert_int_equal(p.output_bytes, count * (fields == FIELDS_ONE ? 4 : 24));
    return p;
}

/* The nearest float to a sum or product of floats: a double holds the product of two floats, and
 * the sum of floats like these, exactly, so the result is rounded once. */
static float rounded(double exact) { return (float)exact; }

static void convert(iron__thread_pool *pool, const float *from, float *to, size_t count,
                    size_t block) {
    conversion m = {from, to, count, block, false};

    iron__data_pieces(pool, count, convert_piece, &m);
}

/* The operations in the op's order. */
static float *compute_answer(const iron__op_problem *p) {
    const float *in = p->inputs[0].data;
    float *out = grab(p->output_bytes);

    for (size_t k = 0; k < p->c.rows; k++, in += 6) {
        if (p->c.at[0] != FIELDS_ALL) {
            out[k] = rounded((double)in[0] + (double)0.1f);
            continue;
        }
        for (size_t axis = 0; axis < 3; axis++) {
            float v = axis == 2 ? rounded((double)in[5] - (double)0.0981f) : in[3 + axis];
            float way = rounded((double)v * (double)0.01f);

            out[k * 6 + axis] = rounded((double)in[axis] + (double)way);
            out[k * 6 + 3 + axis] = v;
        }
    }
    return out;
}

static void assert_passes(const iron__op_problem *p, const void *output, const char *what) {
    char text[240] = "";

    if (!iron__op_layout.check(p, output, text, sizeof text))
        fail_msg("%s, %llu particles, fields %g: %s", what, (unsigned long long)p->c.rows,
                 p->c.at[0], text);
}

/* The check must report this element of the output first. */
static void assert_fails(const iron__op_problem *p, const void *output, size_t at,
                         const char *what) {
    static const char *const names[] = {"x", "y", "z", "vx", "vy", "vz"};
    size_t fields = p->c.at[0] != FIELDS_ALL ? 1 : 6;
    char text[240] = "", begin[80];

    if (iron__op_layout.check(p, output, text, sizeof text))
        fail_msg("%s, %llu particles, fields %g: passes", what, (unsigned long long)p->c.rows,
                 p->c.at[0]);
    snprintf(begin, sizeof begin, "%s of particle %zu is ", names[at % fields], at / fields);
    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("%s: '%s' does not begin with '%s'", what, text, begin);
}

/* The adjacent float. */
static float beside(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits ^= 1;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static void assert_single_elements_count(const iron__op_problem *p, float *output) {
    static const float wrong[] = {0, NAN, INFINITY, 2};
    size_t count = p->output_bytes / sizeof(float), step = count < 2000 ? 1 : count / 23;

    for (size_t k = 0; k < count; k += step) {
        float right = output[k];

        output[k] = wrong[k % COUNT(wrong)];
        assert_fails(p, output, k, "one element");
        output[k] = beside(right);
        assert_fails(p, output, k, "its last digit");
        output[k] = right;
    }
    output[count - 1] = beside(output[count - 1]);
    assert_fails(p, output, count - 1, "the last element's last digit");
}

static void assert_wrong_answers_fail(const iron__op_problem *p) {
    size_t count = p->output_bytes / sizeof(float);
    float *right = compute_answer(p), *wrong = grab(p->output_bytes);

    assert_passes(p, right, "the definition");
    memset(wrong, 0, p->output_bytes);
    assert_fails(p, wrong, 0, "zeros");
    memset(wrong, 0xFF, p->output_bytes);
    assert_fails(p, wrong, 0, "NaN");
    memcpy(wrong, p->inputs[0].data, p->output_bytes);
    assert_fails(p, wrong, 0, "no step");
    if (p->c.rows > 1) {
        size_t fields = count / (size_t)p->c.rows;

        memcpy(wrong, right + fields, (count - fields) * sizeof(float));
        memcpy(wrong + count - fields, right, fields * sizeof(float));
        assert_fails(p, wrong, 0, "particles shifted by one");
    }
    if (p->c.rows > 1 && p->c.at[0] == FIELDS_ALL) {
        convert(p->pool, right, wrong, (size_t)p->c.rows, (size_t)p->c.rows);
        assert_fails(p, wrong, 1, "in another layout");
    }
    assert_single_elements_count(p, right);
    free(wrong);
    free(right);
}

static void wrong_answers_fail(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t s = 0; s < 2 * COUNT(counts); s++) {
            iron__op_problem p = make_problem(counts[s / 2], s % 2, 7, pool);

            assert_wrong_answers_fail(&p);
            iron__op_layout.unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

/* A fused multiply-add gives another result: the data must show it. */
static void fused_steps_fail(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p = make_problem(1000, FIELDS_ALL, 1, pool);
    const float *in = p.inputs[0].data;
    float *output = compute_answer(&p);
    size_t others = 0;

    (void)state;
    for (size_t k = 0; k < 6000; k += 6) {
        float fused = rounded((double)in[k] + (double)in[k + 3] * (double)0.01f);

        others += fused != output[k];
        output[k] = fused;
    }
    assert_true(others > 10);
    assert_false(iron__op_layout.check(&p, output, (char[80]){""}, 80));
    free(output);
    iron__op_layout.unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void the_check_names_the_element(void **state) {
    iron__thread_pool *pool = make_team(3);
    iron__op_problem p = make_problem(100000, FIELDS_ALL, 1, pool);
    float *output = compute_answer(&p);
    char text[240];

    (void)state;
    ((float *)p.inputs[0].data)[70000 * 6 + 4] = 0.25f;
    ((float *)p.inputs[0].data)[70000 * 6 + 1] = 0;
    output[70000 * 6 + 4] = 0.25f;
    output[70000 * 6 + 1] = 0.5f;
    output[90000 * 6] = 0.5f; /* later */
    assert_false(iron__op_layout.check(&p, output, text, sizeof text));
    assert_string_equal(text, "y of particle 70000 is 0.5, should be 0.00249999994");
    free(output);
    iron__op_layout.unmake(&p);
    iron__thread_pool_destroy(pool);
}

static void data_depend_on_the_seed(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);
    iron__op_problem a = make_problem(70001, FIELDS_ALL, 5, one);
    iron__op_problem b = make_problem(70001, FIELDS_ONE, 5, three);
    iron__op_problem c = make_problem(70001, FIELDS_ALL, 6, three);

    (void)state;
    assert_ptr_equal(b.pool, three);
    assert_memory_equal(a.inputs[0].data, b.inputs[0].data, a.inputs[0].bytes);
    assert_memory_not_equal(a.inputs[0].data, c.inputs[0].data, a.inputs[0].bytes);
    iron__op_layout.unmake(&a);
    iron__op_layout.unmake(&b);
    iron__op_layout.unmake(&c);
    iron__op_layout.unmake(&c); /* a struct of zeros but c */
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

/* Field f of particle k in each layout, as described in kernel_params.h. */
static void conversions_match_the_layouts(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t s = 0; s < COUNT(counts); s++) {
        iron__op_problem p = make_problem(counts[s], FIELDS_ALL, s, pool);
        size_t count = (size_t)counts[s], bytes = p.inputs[0].bytes;
        const float *in = p.inputs[0].data;
        float *soa = grab(bytes), *aosoa = grab(bytes), *back = grab(bytes);

        convert(pool, in, soa, count, count);
        convert(pool, in, aosoa, count, LAYOUT_BLOCK);
        for (size_t k = 0; k < count; k++) {
            size_t first = k - k % 32, block = count - first < 32 ? count - first : 32;

            for (size_t f = 0; f < 6; f++)
                if (soa[f * count + k] != in[k * 6 + f] ||
                    aosoa[first * 6 + f * block + k % 32] != in[k * 6 + f])
                    fail_msg("field %zu of particle %zu of %zu", f, k, count);
        }
        unpack_soa(&p, soa, back);
        assert_memory_equal(back, in, bytes);
        memset(back, 0, bytes);
        unpack_aosoa(&p, aosoa, back);
        assert_memory_equal(back, in, bytes);
        free(soa);
        free(aosoa);
        free(back);
        iron__op_layout.unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

/* Runs as in a race: output and scratch have exactly the required size and contain garbage. */
static void assert_row_is_right(const iron__contender *row, const iron__op_problem *p,
                                iron__thread_pool *pool) {
    void *output = grab(p->output_bytes), *unpacked = grab(p->output_bytes);
    size_t bytes =
        row->cpu_scratch_bytes ? row->cpu_scratch_bytes(p, iron__thread_pool_threads(pool)) : 0;
    iron__cpu_work work = {
        .row = row, .problem = p, .pool = pool, .output = output, .scratch = grab(bytes)};

    memset(work.scratch, 0xFF, bytes);
    if (row->cpu_prepare)
        row->cpu_prepare(&work);
    for (int round = 0; round < 2; round++) {
        memset(output, 0xFF, p->output_bytes);
        memset(unpacked, 0xFF, p->output_bytes);
        row->cpu_run(&work);
        if (row->unpack)
            row->unpack(p, output, unpacked);
        assert_passes(p, row->unpack ? unpacked : output, row->name);
    }
    free(work.scratch);
    free(unpacked);
    free(output);
}

static void every_cpu_row_is_right(void **state) {
    iron__contender row;

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t s = 0; s < 2 * COUNT(counts); s++) {
            iron__op_problem p = make_problem(counts[s / 2], s % 2, s, pool);

            for (size_t k = 0; iron__op_contender(&iron__op_layout, k, &row); k++)
                if (row.backends & IRON_ON_CPU)
                    assert_row_is_right(&row, &p, pool);
            iron__op_layout.unmake(&p);
        }
        iron__thread_pool_destroy(pool);
    }
}

static bool has_row(const char *name, uint32_t backends, size_t end) {
    iron__contender row;

    for (size_t k = 0; k < end && iron__op_contender(&iron__op_layout, k, &row); k++)
        if ((row.backends & backends) && strcmp(row.name, name) == 0)
            return true;
    return false;
}

static void rows_are_complete(void **state) {
    static const char *const on_cpu[] = {"aos",         "aosoa",         "soa",
                                         "aos-threads", "aosoa-threads", "soa-threads"};
    static const char *const on_gpu[] = {"aos", "aosoa", "soa", "soa-vector"};
    iron__contender row;
    size_t k = 0;

    (void)state;
    for (; iron__op_contender(&iron__op_layout, k, &row); k++) {
        assert_true(row.idea && row.idea[0]);
        assert_true(row.beats ? has_row(row.beats, row.backends, k) : strcmp(row.name, "aos") == 0);
        assert_true(!row.gpu || !row.gpu->run_part || !row.gpu->derive);
        assert_true((row.unpack == NULL) ==
                    (strncmp(row.name, "aos", 3) == 0 && strncmp(row.name, "aosoa", 5) != 0));
    }
    assert_int_equal(k, COUNT(on_cpu) + COUNT(on_gpu));
    for (size_t n = 0; n < COUNT(on_cpu); n++)
        assert_true(has_row(on_cpu[n], IRON_ON_CPU, k));
    for (size_t n = 0; n < COUNT(on_gpu); n++)
        assert_true(has_row(on_gpu[n], IRON_ON_GPU, k));
    assert_int_equal(iron__op_layout.axis_count, 1);
    assert_string_equal(iron__op_layout.axes[0].name, "fields");
    assert_string_equal(iron__op_layout.axes[0].words[FIELDS_ALL], "all");
    assert_string_equal(iron__op_layout.axes[0].words[FIELDS_ONE], "one");
    assert_ptr_equal(iron__op_find("layout"), &iron__op_layout);
}

static void sizes_are_large_enough(void **state) {
    static const struct {
        uint64_t cache_mib;
        bool has_gpu;
        uint64_t count;
    } cases[] = {{0, false, 1 << 22},
                 {2, false, 1 << 22},
                 {32, false, 1 << 24},
                 {60, true, 1 << 26},
                 {256, false, 1 << 26}};
    iron__case all = make_case(1000, FIELDS_ALL, 0), one = make_case(1000, FIELDS_ONE, 0);

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        uint64_t rows = 0, cols = 0;

        iron__op_layout.usual_size(cases[k].cache_mib << 20, cases[k].has_gpu, IRON_F32, &rows,
                                   &cols);
        assert_int_equal(rows, cases[k].count);
        assert_int_equal(cols, 1);
        assert_true(rows * 24 >= 4 * (cases[k].cache_mib << 20));
    }
    assert_int_equal(iron__op_useful_bytes(&all), 48000);
    assert_int_equal(iron__op_useful_bytes(&one), 8000);
    assert_int_equal(iron__op_layout.host_bytes(&all), 48000);
    assert_int_equal(iron__op_layout.host_bytes(&one), 28000);
    assert_true(iron__op_operations(&all) == 7000 && iron__op_operations(&one) == 1000);
}

static void limits_are_kept(void **state) {
    iron__case c = make_case((UINT64_C(1) << 40) / 24, FIELDS_ALL, 0);
    iron_error err;

    (void)state;
    assert_ok(iron__op_layout.accept(&c, &err), &err);
    c.rows++;
    assert_refused(iron__op_layout.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "too many");
    c.rows = 0;
    assert_refused(iron__op_layout.accept(&c, &err), IRON_E_ARG, &err);
    c = make_case(10, FIELDS_ALL, 0);
    c.cols = 2;
    assert_refused(iron__op_layout.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "10x2");
    c = make_case(10, FIELDS_ALL, 0);
    c.element = IRON_F64;
    assert_refused(iron__op_layout.accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_answers_fail),
        cmocka_unit_test(fused_steps_fail),
        cmocka_unit_test(the_check_names_the_element),
        cmocka_unit_test(data_depend_on_the_seed),
        cmocka_unit_test(conversions_match_the_layouts),
        cmocka_unit_test(every_cpu_row_is_right),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(sizes_are_large_enough),
        cmocka_unit_test(limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
