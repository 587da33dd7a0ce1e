/* SPDX-License-Identifier: MIT */
/*
 * test_histogram.c: the op histogram: data match their names, the check accepts only the right
 * counts, every CPU row gives them at any length, type and number of threads, and limits hold. It
 * also tests the launch plans for many kinds of GPUs, which needs no GPU.
 */
#include "histogram_support.h"

#include "ops/histogram/histogram_gpu.c"
#include "ops/histogram/kernel_params.h"

/* Each type with bins that suit it, few and many. */
static const struct {
    iron__element element;
    uint32_t vocab;
} kinds[] = {{IRON_U8, 0},      {IRON_U16, 0},      {IRON_U32, 2},      {IRON_U32, 3},
             {IRON_U32, 50257}, {IRON_U32, 128256}, {IRON_U32, 1 << 20}};

static void try_rows(const iron__op_problem *p, iron__thread_pool *pool) {
    void *output = grab(p->output_bytes);
    iron__contender row;
    char what[64];
    size_t tried = 0;

    for (size_t k = 0; op->contender_at(k, &row); k++) {
        if (!(row.backends & IRON_ON_CPU))
            continue;
        run_row(&row, p, pool, output);
        snprintf(what, sizeof what, "%s, %u threads", row.name, iron__thread_pool_threads(pool));
        assert_passes(p, output, what);
        tried++;
    }
    assert_int_equal(tried, 3);
    free(output);
}

static void every_contender_is_right(void **state) {
    static const uint64_t counts[] = {1, 2, 7, 8, 9, 1001, 65537, 300007};

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        iron__thread_pool *pool = make_team(threads);

        for (size_t k = 0; k < COUNT(kinds); k++)
            for (size_t n = 0; n < COUNT(counts); n++) {
                iron__histogram_data data = (iron__histogram_data)((n + k) % IRON_HISTOGRAM_DATA);
                iron__op_problem p = make_problem(
                    make_case(kinds[k].element, counts[n], kinds[k].vocab, data, n), pool);

                try_rows(&p, pool);
                op->unmake(&p);
            }
        iron__thread_pool_destroy(pool);
    }
}

/* Enough elements for every thread to have its own table. */
static void threads_share_long_data(void **state) {
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (int data = 0; data < IRON_HISTOGRAM_DATA; data++) {
        iron__op_problem p =
            make_problem(make_case(IRON_U16, 3000001, 0, (iron__histogram_data)data, 9), pool);
        iron__contender row;

        assert_true(op->contender_at(2, &row));
        assert_string_equal(row.name, "threads");
        assert_int_equal(row.cpu_scratch_bytes(&p, 3), 3 * 65536 * 4);
        assert_int_equal(row.cpu_scratch_bytes(&p, 1024), 22 * 65536 * 4);
        try_rows(&p, pool);
        op->unmake(&p);
    }
    iron__thread_pool_destroy(pool);
}

static void reference_counts(void **state) {
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int data = 0; data < IRON_HISTOGRAM_DATA; data++) {
            iron__op_problem p = make_problem(
                make_case(kinds[k].element, 1000003, kinds[k].vocab, (iron__histogram_data)data, k),
                pool);
            uint64_t *counts =
                count_values(&p); /* an element outside the bins would end the test */

            assert_passes(&p, counts, "counted here");
            free(counts);
            op->unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

/* Only the exact counts pass. */
static void the_check_refuses_everything_else(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p =
        make_problem(make_case(IRON_U32, 200000, 50257, IRON_HISTOGRAM_ZIPF, 3), pool);
    static const size_t places[] = {0, 25128, 50256};
    uint64_t *counts = count_values(&p);
    char text[200];

    (void)state;
    for (size_t k = 0; k < COUNT(places); k++) {
        char word[40];

        counts[places[k]]++;
        assert_false(op->check(&p, counts, text, sizeof text));
        snprintf(word, sizeof word, "value %zu occurs", places[k]);
        assert_non_null(strstr(text, word));
        counts[places[k]] -= 1;
        counts[places[k]] ^= UINT64_C(1) << 32; /* right modulo 2^32 */
        assert_false(op->check(&p, counts, text, sizeof text));
        counts[places[k]] ^= UINT64_C(1) << 32;
    }
    assert_true(op->check(&p, counts, text, sizeof text));
    counts[7]--; /* the sum is right */
    counts[8]++;
    assert_false(op->check(&p, counts, text, sizeof text));
    counts[7]++;
    counts[8]--;
    memmove(counts + 1, counts, p.output_bytes - 8); /* shifted */
    assert_false(op->check(&p, counts, text, sizeof text));
    memset(counts, 0, p.output_bytes);
    assert_false(op->check(&p, counts, text, sizeof text));
    memset(counts, 0xFF, p.output_bytes);
    assert_false(op->check(&p, counts, text, sizeof text));
    free(counts);
    op->unmake(&p);
    iron__thread_pool_destroy(pool);
}

/* Every count within a few standard deviations of its mean. */
static void uniform_is_even(void **state) {
    iron__thread_pool *pool = make_team(2);
    iron__op_problem p =
        make_problem(make_case(IRON_U8, 1 << 20, 0, IRON_HISTOGRAM_UNIFORM, 1), pool);
    uint64_t *counts = count_values(&p);

    (void)state;
    for (size_t k = 0; k < 256; k++)
        assert_in_range(counts[k], 4096 - 6 * 64, 4096 + 6 * 64);
    free(counts);
    op->unmake(&p);
    iron__thread_pool_destroy(pool);
}

/* Value k has 1 / (k + 1) of the count of value 0: the first values each within six deviations, and
 * so are ranges of the tail, whose values are rare. */
static void expect_zipf(iron__element element, uint32_t vocab, iron__thread_pool *pool) {
    const uint64_t rows = 2000000;
    iron__op_problem p =
        make_problem(make_case(element, rows, vocab, IRON_HISTOGRAM_ZIPF, 11), pool);
    uint32_t bins = iron__histogram_bins(&p.c);
    uint64_t *counts = count_values(&p);
    double harmonic = 0;

    for (uint32_t k = 0; k < bins; k++)
        harmonic += 1.0 / (k + 1);
    for (uint32_t k = 0; k < bins;) {
        uint32_t end = k + 1 + k / 8; /* about as frequent as value 8 alone */
        double mean = 0, off;
        uint64_t got = 0;

        for (; k < end && k < bins; k++) {
            mean += (double)rows / harmonic / (k + 1);
            got += counts[k];
        }
        off = (double)got - mean;
        if (!(off * off <= 36 * mean + 36)) /* six deviations, squared */
            fail_msg("%u bins: values below %u occur %zu times, not about %.1f", bins, k,
                     (size_t)got, mean);
    }
    free(counts);
    op->unmake(&p);
}

static void zipf_is_skewed(void **state) {
    iron__thread_pool *pool = make_team(2);

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        expect_zipf(kinds[k].element, kinds[k].vocab, pool);
    iron__thread_pool_destroy(pool);
}

static void one_is_one(void **state) {
    iron__thread_pool *pool = make_team(2);
    uint32_t first = 0, others = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        iron__op_problem p =
            make_problem(make_case(IRON_U32, 70000, 1000, IRON_HISTOGRAM_ONE, seed), pool);
        uint32_t value = value_at(&p, 0);

        assert_in_range(value, 1, 999);
        for (uint64_t k = 0; k < p.c.rows; k++)
            assert_int_equal(value_at(&p, k), value);
        first = seed == 0 ? value : first;
        others += value != first;
        op->unmake(&p);
    }
    assert_true(others > 10); /* depends on the seed */
    iron__thread_pool_destroy(pool);
}

static void sorted_is_sorted(void **state) {
    static const uint64_t counts[] = {1, 7, 255, 256, 257, 65536, 200003, 3000000};
    iron__thread_pool *pool = make_team(3);

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t n = 0; n < COUNT(counts); n++) {
            iron__op_problem p = make_problem(
                make_case(kinds[k].element, counts[n], kinds[k].vocab, IRON_HISTOGRAM_SORTED, 1),
                pool);
            uint64_t bins = iron__histogram_bins(&p.c);

            for (uint64_t i = 0; i < counts[n]; i++)
                if (value_at(&p, i) != i * bins / counts[n])
                    fail_msg("element %zu of %zu is %u", (size_t)i, (size_t)counts[n],
                             value_at(&p, i));
            op->unmake(&p);
        }
    iron__thread_pool_destroy(pool);
}

static void data_depend_on_the_seed_alone(void **state) {
    iron__thread_pool *one = make_team(1), *three = make_team(3);

    (void)state;
    for (int data = 0; data < IRON_HISTOGRAM_DATA; data++) {
        iron__case c = make_case(IRON_U16, 300000, 0, (iron__histogram_data)data, 1);
        iron__op_problem a = make_problem(c, one), b = make_problem(c, three), other;

        c.seed = 2;
        other = make_problem(c, one);
        assert_memory_equal(a.inputs[0].data, b.inputs[0].data, a.inputs[0].bytes);
        if (data != IRON_HISTOGRAM_SORTED)
            assert_memory_not_equal(a.inputs[0].data, other.inputs[0].data, a.inputs[0].bytes);
        op->unmake(&a);
        op->unmake(&b);
        op->unmake(&other);
    }
    iron__thread_pool_destroy(one);
    iron__thread_pool_destroy(three);
}

static void limits_are_kept(void **state) {
    iron__case good = make_case(IRON_U32, 1, 2, IRON_HISTOGRAM_UNIFORM, 0), c = good;
    iron_error err;

    (void)state;
    assert_ok(op->accept(&c, &err), &err);
    c.vocab = 1 << 24;
    c.rows = UINT64_C(1) << 38;
    assert_ok(op->accept(&c, &err), &err);
    c.vocab++;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "16777217");
    c.vocab = 1;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "vocab is 1");
    c = good;
    c.rows = 0;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.rows = (UINT64_C(1) << 38) + 1;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c = good;
    c.cols = 2;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c = good;
    c.element = IRON_F32;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    assert_says(&err, "f32");
    c = good;
    c.at[0] = IRON_HISTOGRAM_DATA;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c.at[0] = -1;
    assert_refused(op->accept(&c, &err), IRON_E_ARG, &err);
    c = make_case(IRON_U8, 1, 0, IRON_HISTOGRAM_SORTED, 0); /* bytes need no vocabulary */
    assert_ok(op->accept(&c, &err), &err);
}

static void cases_are_described(void **state) {
    iron__case c = make_case(IRON_U32, 1000, 50257, IRON_HISTOGRAM_UNIFORM, 0);
    const char *name = NULL;
    double value = 0;
    uint64_t rows = 0, cols = 0;

    (void)state;
    assert_ptr_equal(iron__op_find("histogram"), op);
    assert_true(op->param_at(&c, 0, &name, &value));
    assert_string_equal(name, "bins");
    assert_true(value == 50257);
    assert_false(op->param_at(&c, 1, &name, &value));
    assert_int_equal(op->useful_bytes(&c), 4000 + 50257 * 8);
    assert_true(iron__op_operations(&c) == 1000);
    assert_int_equal(op->axes[0].count, 5);
    assert_string_equal(op->axes[0].words[IRON_HISTOGRAM_SORTED], "sorted");
    assert_string_equal(op->baselines[0], "plain");
    assert_string_equal(op->baselines[1], "shared");
    op->usual_size(60 << 20, true, IRON_U32, &rows, &cols);
    assert_true(rows == UINT64_C(1) << 30 && cols == 1);
    op->usual_size(32 << 20, false, IRON_U8, &rows, &cols);
    assert_true(rows == UINT64_C(1) << 27 && cols == 1);
    op->usual_size(UINT64_C(96) << 20, false, IRON_U16, &rows, &cols);
    assert_true(rows == UINT64_C(1) << 28 && cols == 1);
}

/* Every row that another row improves on exists and comes before it. */
static void rows_are_complete(void **state) {
    iron__contender row, slower;

    (void)state;
    for (size_t k = 0; op->contender_at(k, &row); k++) {
        bool is_there = !row.beats;

        for (size_t j = 0; j < k && op->contender_at(j, &slower); j++)
            is_there |= (slower.backends & row.backends) && strcmp(slower.name, row.beats) == 0;
        if (!is_there)
            fail_msg("%s beats %s, which is not there", row.name, row.beats);
        assert_true(row.idea && row.idea[0]);
    }
}

/* Additions in place may take seconds, so they are estimated: the fewer counters, the longer. This
 * does not apply to a CPU device of OpenCL. */
static void additions_in_place_take_long(void **state) {
    const iron__gpu_info gpu = {.is_gpu = true}, other = {.is_gpu = false};
    const uint64_t rows = UINT64_C(1) << 32;
    double u8[IRON_HISTOGRAM_DATA], u32[IRON_HISTOGRAM_DATA];
    iron__contender row;
    size_t k = 0;

    (void)state;
    while (op->contender_at(k, &row) && strcmp(row.name, "global-atomic") != 0)
        k++;
    assert_string_equal(row.name, "global-atomic");
    for (int d = 0; d < IRON_HISTOGRAM_DATA; d++) {
        iron__case c = make_case(IRON_U8, rows, 0, (iron__histogram_data)d, 0);

        assert_true(row.seconds(&row, &c, &other, 1) == 0);
        u8[d] = row.seconds(&row, &c, &gpu, 1);
        c = make_case(IRON_U32, rows, 50257, (iron__histogram_data)d, 0);
        u32[d] = row.seconds(&row, &c, &gpu, 1);
        c.rows = 1;
        assert_true(row.seconds(&row, &c, &gpu, 1) < 1e-8);
        c.vocab = 2;
        assert_true(row.seconds(&row, &c, &gpu, 1) > 0);
    }
    assert_true(u8[IRON_HISTOGRAM_ONE] > 3 && u8[IRON_HISTOGRAM_ONE] < 3.3);
    assert_true(u8[IRON_HISTOGRAM_UNIFORM] > 0.6 && u8[IRON_HISTOGRAM_UNIFORM] < 0.8);
    assert_true(u32[IRON_HISTOGRAM_UNIFORM] < 0.1 && u32[IRON_HISTOGRAM_ONE] > 3);
    assert_true(u32[IRON_HISTOGRAM_ZIPF] > 0.6 && u32[IRON_HISTOGRAM_ZIPF] < 1);
}

typedef struct expectation {
    uint64_t local_bytes_max;
    uint32_t threads_max;
    iron__element element;
    uint32_t vocab;
    const char *kernel;
    uint32_t groups;
    size_t local_bytes;
} expectation;

#define CONTROL (HISTOGRAM_CONTROL * sizeof(k_u32))
#define HOPPER  232448u /* local memory of a group with CUDA; NVIDIA's OpenCL has 48 KiB */

static const expectation champions[] = {
    {HOPPER, 1024, IRON_U8, 0, "histogram_lanes", 2, 32768},
    {HOPPER, 1024, IRON_U32, 512, "histogram_lanes", 2, 65536},
    {HOPPER, 1024, IRON_U32, 513, "histogram_table", 2, 513 * 4},
    {HOPPER, 1024, IRON_U32, 28928, "histogram_table", 2, 28928 * 4},
    {HOPPER, 1024, IRON_U32, 28929, "histogram_packed", 1, 57860},
    {HOPPER, 1024, IRON_U32, 50257, "histogram_packed", 1, 100516},
    {HOPPER, 1024, IRON_U16, 0, "histogram_packed", 1, 131072},
    {HOPPER, 1024, IRON_U32, 58112, "histogram_packed", 1, 116224},
    {HOPPER, 1024, IRON_U32, 58113, "histogram_mixed", 1, 116240 + CONTROL},
    {HOPPER, 1024, IRON_U32, 100277, "histogram_mixed", 1, 195312 + CONTROL},
    {HOPPER, 1024, IRON_U32, 193264, "histogram_mixed", 1, 195312 + CONTROL},
    {HOPPER, 1024, IRON_U32, 193265, "histogram_mixed_tiny", 1, 187136 + CONTROL},
    {HOPPER, 1024, IRON_U32, 320992, "histogram_mixed_tiny", 1, 195312 + CONTROL},
    {HOPPER, 1024, IRON_U32, 320993, "histogram_mixed_tiny", 1, 228080 + CONTROL},
    {HOPPER, 1024, IRON_U32, 386528, "histogram_mixed_tiny", 1, 228080 + CONTROL},
    {HOPPER, 1024, IRON_U32, 386529, "histogram_mixed_part", 1, 228080 + CONTROL},
    {1 << 20, 4096, IRON_U32, 50257, "histogram_packed", 1, 100516},
    {1 << 20, 4096, IRON_U32, 500000, "histogram_mixed_part", 1, 228080 + CONTROL},
    {49152, 1024, IRON_U8, 0, "histogram_lanes", 2, 32768},
    {49152, 1024, IRON_U32, 50257, "histogram_mixed_part", 1, 44784 + CONTROL},
    {49152, 1024, IRON_U16, 0, "histogram_mixed_part", 1, 44784 + CONTROL},
    {CONTROL + 4095, 1024, IRON_U32, 50257, "histogram_global", 8, 0},
    {32768, 256, IRON_U8, 0, "histogram_table_small", 8, 1024},
    {32768, 256, IRON_U32, 8192, "histogram_table_small", 1, 32768},
    {32768, 256, IRON_U32, 8193, "histogram_global", 8, 0},
};

static void the_champion_takes_the_first_that_fits(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(champions); k++) {
        const expectation *e = &champions[k];
        iron__gpu_info info = {.name = "a device",
                               .group_threads_max = e->threads_max,
                               .local_bytes_max = e->local_bytes_max,
                               .units = 132};
        iron__case c = make_case(e->element, 1 << 30, e->vocab, IRON_HISTOGRAM_UNIFORM, 0);
        plan p = {.kernel = NULL};
        iron_error err;

        assert_ok(plan_champion(&info, &c, &p, &err), &err);
        assert_string_equal(p.kernel, e->kernel);
        assert_int_equal(p.groups, e->groups);
        assert_int_equal(p.local_bytes, e->local_bytes);
        assert_true(p.local_bytes <= e->local_bytes_max && p.threads <= e->threads_max);
        assert_int_equal(p.loads == 0, strcmp(p.kernel, "histogram_global") == 0);
    }
}

/* Counters fit local memory, whatever it has and however many bins there are. Far values have
 * several copies of their counters while these are small, one copy if there are many, and never
 * more bytes than the row reserved before the device was known. */
static void mixed_counters_fit(void **state) {
    static const uint64_t memory[] = {CONTROL + 4096, CONTROL + 5000, 49152,  65536,
                                      101376,         HOPPER,         1 << 20};

    (void)state;
    for (size_t k = 0; k < COUNT(memory); k++)
        for (uint32_t bins = 2; bins <= 1 << 24; bins += bins / 3 + 1) {
            iron__gpu_info info = {.group_threads_max = 1024, .local_bytes_max = memory[k]};
            iron__case c = make_case(IRON_U32, 1000, bins, IRON_HISTOGRAM_UNIFORM, 0);
            plan p = {.kernel = NULL};
            uint64_t far, table, stored;
            iron_error err;

            assert_ok(plan_mixed(&info, &c, &p, &err), &err);
            far = bins - p.narrow; /* 4-bit counters may be given up */
            table = p.local_bytes - CONTROL;
            stored = table + (p.held - p.narrow) / 2; /* where 4-bit counters have 8 bits */
            assert_true(p.local_bytes <= info.local_bytes_max && p.local_bytes <= HOPPER);
            assert_true(p.wide % 8 == 0 && p.held <= bins && p.held > 0);
            assert_true(p.narrow <= p.held && (p.narrow == p.held || p.held == bins));
            assert_true(table % 16 == 0 && 2 * table >= 2 * p.wide + p.narrow + p.held);
            assert_true(p.wide < p.held || p.held == bins);
            assert_true(far == 0 || p.wide >= 1000);
            assert_true(p.copies >= 1 && p.copies <= HISTOGRAM_FAR_COPIES);
            assert_true(far * p.copies * 8 <= mixed_bytes(&c, 1));
            assert_true(stored * HISTOGRAM_MIXED_GROUPS <= mixed_bytes(&c, 0));
        }
}

static void plans_report_what_does_not_fit(void **state) {
    iron__gpu_info info = {.name = "a device", .group_threads_max = 1024, .local_bytes_max = 49152};
    iron__case c = make_case(IRON_U32, 1000, 50257, IRON_HISTOGRAM_UNIFORM, 0);
    plan p = {.kernel = "any"};
    iron_error err;

    (void)state;
    assert_refused(plan_table(&info, &c, &p, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "50257 bins need 201028 bytes");
    assert_says(&err, "49152");
    assert_refused(plan_lanes(&info, &c, &p, &err), IRON_E_UNSUPPORTED, &err);
    c.vocab = 10000;
    assert_ok(plan_table(&info, &c, &p, &err), &err);
    assert_refused(plan_copies(&info, &c, &p, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "two tables");
    c.vocab = 2000;
    assert_ok(plan_copies(&info, &c, &p, &err), &err);
    assert_int_equal(p.copies, 6);
    assert_int_equal(p.local_bytes, 48000);
    info.local_bytes_max = CONTROL + 4095;
    assert_refused(plan_mixed(&info, &c, &p, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "too little for mixed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_contender_is_right),
        cmocka_unit_test(threads_share_long_data),
        cmocka_unit_test(reference_counts),
        cmocka_unit_test(the_check_refuses_everything_else),
        cmocka_unit_test(uniform_is_even),
        cmocka_unit_test(zipf_is_skewed),
        cmocka_unit_test(one_is_one),
        cmocka_unit_test(sorted_is_sorted),
        cmocka_unit_test(data_depend_on_the_seed_alone),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(cases_are_described),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(additions_in_place_take_long),
        cmocka_unit_test(the_champion_takes_the_first_that_fits),
        cmocka_unit_test(mixed_counters_fit),
        cmocka_unit_test(plans_report_what_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
