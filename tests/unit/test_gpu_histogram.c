/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_histogram.c: what the selftest does not cover of histogram's kernels: packed counters
 * that reach their limit many times, mixed ones that overflow, frequent values everywhere, values
 * without counters, and the champion on simulated devices with less local memory or smaller groups
 * than this one.
 *
 * By default it runs with uniform data and a single value, and fewer sizes; IRON_TEST_FULL=1 runs
 * all. IRON_TEST_BACKEND=cuda in the environment runs it on CUDA instead of OpenCL.
 */
#include "gpu_support.h"
#include "histogram_support.h"

#include "ops/histogram/kernel_params.h"

static iron__gpu_device *device;
static iron__gpu_queue *queue;
static iron__thread_pool *pool;

static int set_up(void **state) {
    iron_error err;

    gpu_set_up(state);
    setenv("IRON_OPENCL_CACHE", "0", 1); /* saving a program would compile all its kernels */
    if (gpu_reason.status != IRON_OK)
        return 0;
    pool = make_team(2);
    assert_ok(iron__gpu_device_open(gpu_index(), 0, &device, &err), &err);
    assert_ok(iron__gpu_queue_create(device, &queue, &err), &err);
    return 0;
}

static int tear_down(void **state) {
    iron__gpu_queue_destroy(queue);
    iron__gpu_device_close(device);
    iron__thread_pool_destroy(pool);
    return gpu_tear_down(state);
}

static void copy(const iron__gpu_buffer *from, const iron__gpu_buffer *to, void *host,
                 size_t bytes) {
    const iron__gpu_copy c = {.from = from,
                              .to = to,
                              .from_host = from ? NULL : host,
                              .to_host = to ? NULL : host,
                              .bytes = bytes};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queue, &c, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
}

static iron__gpu_buffer *buffer_of(size_t bytes) {
    iron__gpu_buffer *buffer = NULL;
    iron_error err;

    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, bytes, &buffer, &err), &err);
    return buffer;
}

static iron__contender row_of(const char *name) {
    iron__contender row;
    size_t k = 0;

    while (op->contender_at(k, &row) &&
           (!(row.backends & IRON_ON_GPU) || strcmp(row.name, name) != 0))
        k++;
    assert_string_equal(row.name, name);
    return row;
}

/* Element `index` of data that no kind of histogram's data has. */
typedef uint32_t (*maker)(uint64_t index, uint32_t bins);

static void replace_data(iron__op_problem *p, maker make) {
    uint32_t bins = iron__histogram_bins(&p->c), *elements = p->inputs[0].data;
    uint64_t *counts = p->reference.data;

    memset(counts, 0, bins * sizeof *counts);
    for (uint64_t k = 0; k < p->c.rows; k++) {
        elements[k] = make(k, bins);
        counts[elements[k]]++;
    }
}

/* The row runs twice into an output full of ones, and is right both times. */
static void expect_right_of(const char *name, iron__case c, maker make) {
    iron__op_problem p = make_problem(c, pool);
    iron__gpu_buffer *input = buffer_of(p.inputs[0].bytes);
    iron__gpu_data data = {.inputs = {input}, .output = buffer_of(p.output_bytes)};
    iron__contender row = row_of(name);
    void *answer = grab(p.output_bytes);
    iron__gpu_work *work = NULL;
    iron_error err;

    if (make)
        replace_data(&p, make);
    copy(NULL, input, p.inputs[0].data, p.inputs[0].bytes);
    assert_ok(row.gpu->create(device, &row, &p, 1, &work, &err), &err);
    for (int round = 0; round < 2; round++) {
        memset(answer, 0xFF, p.output_bytes);
        copy(NULL, data.output, answer, p.output_bytes);
        assert_ok(row.gpu->run(work, &data, queue, &err), &err);
        copy(data.output, NULL, answer, p.output_bytes);
        assert_passes(&p, answer, name);
    }
    row.gpu->destroy(work);
    free(answer);
    iron__gpu_buffer_destroy(data.output);
    iron__gpu_buffer_destroy(input);
    op->unmake(&p);
}

static void expect_right(const char *name, iron__case c) { expect_right_of(name, c, NULL); }

/* Few groups, so that each has many elements on any device and far counters have copies. */
static void expect_right_in_two_groups(const char *name, iron__case c, maker make) {
    uint32_t units = device->info.units;

    device->info.units = 2;
    expect_right_of(name, c, make);
    device->info.units = units;
}

/* Kinds of data, and how many of them the sweep uses: uniform and one by default. */
static iron__histogram_data data_at(size_t k) {
    static const iron__histogram_data data[IRON_HISTOGRAM_DATA] = {
        IRON_HISTOGRAM_UNIFORM, IRON_HISTOGRAM_ONE, IRON_HISTOGRAM_ZIPF, IRON_HISTOGRAM_SORTED,
        IRON_HISTOGRAM_SKEWED};

    return data[k];
}

static size_t data_count(void) { return is_full_test() ? IRON_HISTOGRAM_DATA : 2; }

/* Counts of one group exceed 16 bits dozens of times: one by one for zipf's most frequent value, by
 * 16 bytes if all elements are equal. */
static void small_counters_reach_their_limits(void **state) {
    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < 2 * data_count(); k++) {
        const char *name = k % 2 ? "mixed" : "packed";
        iron__histogram_data d = data_at(k / 2);

        expect_right_in_two_groups(name, make_case(IRON_U32, 3000001, 116160, d, 1), NULL);
        expect_right_in_two_groups(name, make_case(IRON_U32, 3000003, 2, d, 1), NULL);
        expect_right_in_two_groups(name, make_case(IRON_U32, 3000002, 3, d, 1), NULL);
        expect_right_in_two_groups(name, make_case(IRON_U16, 3000007, 0, d, 1), NULL);
    }
}

static uint32_t hash(uint64_t index) {
    return (uint32_t)(index * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Half of the elements are one value, and the other half another. */
static uint32_t two_values(uint64_t index, uint32_t bins) {
    return hash(index) & 1 ? bins - 1 : bins / 2;
}

static uint32_t twenty_values(uint64_t index, uint32_t bins) {
    return bins - 1 - hash(index) % 20 * (bins / 40);
}

/* More frequent values than threads that can drain their words. */
static uint32_t thousands_of_values(uint64_t index, uint32_t bins) {
    return bins - 1 - hash(index) % 6000 % bins;
}

/* In turn, like sorted data, but no run is longer than three elements. */
static uint32_t in_turn(uint64_t index, uint32_t bins) { return (uint32_t)(index / 3 % bins); }

/* Uniform, and then so different that a list made at the start is of no use. */
static uint32_t changing(uint64_t index, uint32_t bins) {
    return index < 750000 || hash(index) % 8 ? hash(index ^ index >> 9) % bins
                                             : bins - 1 - hash(index) / 8 % 7;
}

/* The highest values, and one of them more often than the others: 4-bit counters do not overflow,
 * but the bytes that they are added to do. */
static uint32_t steady(uint64_t index, uint32_t bins) {
    return index % 2000 == 0 ? bins - 1 : bins - 2 - hash(index) % 16000 % (bins - 1);
}

static const maker makers[] = {two_values, twenty_values, thousands_of_values,
                               in_turn,    changing,      steady};

/* 8-bit counters overflow, whatever threads do meanwhile, or are drained in time; one of the values
 * is hot. With a third of the memory, most values are far. */
static void frequent_values_anywhere(void **state) {
    const uint32_t bins = 12000;
    iron__gpu_info info;

    (void)state;
    NEED_GPU();
    info = device->info;
    for (size_t k = 0; k < COUNT(makers); k++)
        for (uint32_t memory = bins + 2100; memory > bins / 4; memory /= 3) {
            device->info.local_bytes_max = HISTOGRAM_CONTROL * sizeof(k_u32) + memory;
            expect_right_in_two_groups(
                "mixed", make_case(IRON_U32, 1500001 + k, bins, IRON_HISTOGRAM_UNIFORM, 1),
                makers[k]);
        }
    device->info = info;
}

/* Counters of 16, 8 and 4 bits. With data that 4-bit counters do not suit, their values become far
 * after two epochs. */
static void four_bit_counters(void **state) {
    static const uint32_t vocabs[] = {195000, 256000, 226033, 322000, 386000};

    (void)state;
    NEED_GPU();
    for (size_t v = 0; v < (is_full_test() ? COUNT(vocabs) : 2); v++) {
        for (size_t k = 0; k < COUNT(makers); k++)
            expect_right_in_two_groups(
                "mixed", make_case(IRON_U32, 1500001 + k, vocabs[v], IRON_HISTOGRAM_UNIFORM, 1),
                makers[k]);
        for (size_t k = 0; k < IRON_HISTOGRAM_DATA; k++)
            expect_right_in_two_groups(
                "mixed", make_case(IRON_U32, 1500001 + k, vocabs[v], data_at(k), 1), NULL);
    }
}

/* Single values in a wide counter, in a narrow one, and without a counter; seeds are tried until
 * all three have occurred. */
static void single_values_everywhere(void **state) {
    const uint32_t part = 4096; /* wide, narrow, and far values */
    bool is_seen[3] = {false, false, false};
    iron__gpu_info info;

    (void)state;
    NEED_GPU();
    info = device->info;
    for (uint64_t seed = 0; !(is_seen[0] && is_seen[1] && is_seen[2]); seed++) {
        iron__case c = make_case(IRON_U32, 1, 3 * part, IRON_HISTOGRAM_ONE, seed);
        iron__op_problem p = make_problem(c, pool);
        size_t place = value_at(&p, 0) < HISTOGRAM_WIDE_LEAST ? 0
                       : value_at(&p, 0) < 2 * part           ? 1
                                                              : 2;

        op->unmake(&p);
        assert_true(seed < 1000);
        if (is_seen[place])
            continue;
        is_seen[place] = true;
        device->info.local_bytes_max =
            HISTOGRAM_CONTROL * sizeof(k_u32) + 2 * (size_t)part + HISTOGRAM_WIDE_LEAST;
        for (c.rows = 400000; c.rows < 400010; c.rows += 3)
            expect_right_in_two_groups("mixed", c, NULL);
        device->info = info;
    }
}

/* Epochs have 1, 4, 16 turns at first: lengths around their ends, in one group. */
static void epochs_of_all_lengths(void **state) {
    const uint64_t turn = UINT64_C(4) * HISTOGRAM_MIXED_THREADS * HISTOGRAM_MIXED_LOADS;
    uint32_t units;

    (void)state;
    NEED_GPU();
    units = device->info.units;
    device->info.units = 1;
    for (uint64_t turns = 1; turns <= 22; turns += is_full_test() ? 1 : 7)
        for (uint64_t more = 0; more < 3; more++) {
            iron__case c =
                make_case(IRON_U32, turns * turn + more - 1, 128256, IRON_HISTOGRAM_ONE, turns);

            expect_right("mixed", c);
        }
    device->info.units = units;
}

/* Most values have no counter. */
static void little_local_memory(void **state) {
    iron__gpu_info info;

    (void)state;
    NEED_GPU();
    info = device->info;
    for (size_t k = 0; k < data_count(); k++) {
        iron__histogram_data d = data_at(k);

        device->info.local_bytes_max = HISTOGRAM_CONTROL * sizeof(k_u32) + HISTOGRAM_ROOM_LEAST;
        expect_right("mixed", make_case(IRON_U16, 300007, 0, d, 2));
        device->info.local_bytes_max = 16;
        expect_right("champion", make_case(IRON_U16, 300007, 0, d, 2));
        device->info.local_bytes_max = 16384;
        expect_right("mixed", make_case(IRON_U32, 300001, 50257, d, 2));
        expect_right("champion", make_case(IRON_U32, 300001, 50257, d, 2));
        expect_right("champion", make_case(IRON_U32, 300001, 1 << 21, d, 2)); /* one copy */
        expect_right("champion", make_case(IRON_U8, 300009, 0, d, 2));
    }
    device->info = info;
}

static void small_groups(void **state) {
    iron__gpu_info info;

    (void)state;
    NEED_GPU();
    info = device->info;
    device->info.group_threads_max = HISTOGRAM_SMALL_THREADS;
    device->info.local_bytes_max = 32768;
    for (size_t k = 0; k < data_count(); k++) {
        iron__histogram_data d = data_at(k);

        expect_right("champion", make_case(IRON_U8, 300009, 0, d, 3));
        expect_right("champion", make_case(IRON_U32, 300001, 8192, d, 3));
        expect_right("champion", make_case(IRON_U32, 300001, 8193, d, 3));
        expect_right("champion", make_case(IRON_U16, 300001, 0, d, 3));
    }
    device->info = info;
}

/* Few bins of u32, which the selftest does not have. */
static void small_vocabularies(void **state) {
    static const uint32_t vocabs[] = {2, 33, 512, 513, 20000};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(vocabs); k++)
        for (size_t j = 0; j < data_count(); j++) {
            iron__case c = make_case(IRON_U32, 100001, vocabs[k], data_at(j), 4);

            expect_right("champion", c);
            if (vocabs[k] < 1000)
                expect_right("lane-private", c);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_counters_reach_their_limits),
        cmocka_unit_test(single_values_everywhere),
        cmocka_unit_test(frequent_values_anywhere),
        cmocka_unit_test(four_bit_counters),
        cmocka_unit_test(epochs_of_all_lengths),
        cmocka_unit_test(little_local_memory),
        cmocka_unit_test(small_groups),
        cmocka_unit_test(small_vocabularies),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
