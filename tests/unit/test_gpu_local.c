/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_local.c: what the selftest does not cover of ops whose threads communicate in local
 * memory. The selftest runs a contender once; here each runs several times without being cleared in
 * between, as in a race, so that a contender that counts arrivals must leave a valid count for the
 * next run. The selftest uses the default values of axes; here are strides in between.
 *
 * IRON_TEST_BACKEND=cuda in the environment runs it on CUDA instead of OpenCL.
 */
#include "gpu_support.h"

#include "ops/op.h"

#define RUNS 4

static iron__gpu_device *device;
static iron__gpu_queue *queue;
static iron__thread_pool *pool;

static int set_up(void **state) {
    iron_error err;

    gpu_set_up(state);
    setenv("IRON_OPENCL_CACHE", "0", 1); /* saving a program would compile all its kernels */
    if (gpu_reason.status != IRON_OK)
        return 0;
    assert_ok(iron__gpu_device_open(gpu_index(), 0, &device, &err), &err);
    assert_ok(iron__gpu_queue_create(device, &queue, &err), &err);
    assert_ok(iron__thread_pool_create(2, iron__allocator_default(), &pool, &err), &err);
    return 0;
}

static int tear_down(void **state) {
    iron__gpu_queue_destroy(queue);
    iron__gpu_device_close(device);
    iron__thread_pool_destroy(pool);
    return gpu_tear_down(state);
}

/* The answer of one run, into a poisoned output. */
static void run_once(const iron__contender *row, iron__gpu_work *work, const iron__gpu_data *data,
                     void *answer, size_t bytes) {
    iron__gpu_copy in = {.from_host = answer, .to = data->output, .bytes = bytes};
    iron__gpu_copy out = {.from = data->output, .to_host = answer, .bytes = bytes};
    iron_error err;

    memset(answer, 0xFF, bytes);
    assert_ok(iron__gpu_copy_bytes(queue, &in, &err), &err);
    assert_ok(row->gpu->run(work, data, queue, &err), &err);
    assert_ok(iron__gpu_copy_bytes(queue, &out, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
}

static void assert_right_every_time(const iron__contender *row, const iron__op_problem *p,
                                    const iron__gpu_data *data) {
    void *answer = grab(p->output_bytes);
    iron__gpu_work *work = NULL;
    iron_error err;
    iron_status status = row->gpu->create(device, row, p, 1, &work, &err);
    char text[160] = "";

    if (status != IRON_E_UNSUPPORTED)
        assert_ok(status, &err);
    for (int run = 0; work && run < RUNS; run++) {
        run_once(row, work, data, answer, p->output_bytes);
        if (!p->c.op->check(p, answer, text, sizeof text))
            fail_msg("%s, %zu elements, run %d: %s", row->name, (size_t)p->c.rows, run, text);
    }
    if (work)
        row->gpu->destroy(work);
    free(answer);
}

static void race(const iron__op *op, uint64_t rows, double at) {
    iron__op_problem p = {
        .c = {.op = op, .rows = rows, .cols = 1, .element = IRON_U32, .seed = rows, .at = {at}}};
    uint32_t on = (uint32_t)IRON_ON_CUDA << gpu_index();
    iron__gpu_buffer *line = NULL, *output = NULL;
    iron__contender row;
    iron_error err;

    assert_ok(op->make(&p, pool, &err), &err);
    iron__gpu_copy copy = {.from_host = p.inputs[0].data, .bytes = p.inputs[0].bytes};
    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, copy.bytes, &line, &err),
              &err);
    assert_ok(
        iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, p.output_bytes, &output, &err),
        &err);
    copy.to = line;
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    iron__gpu_data data = {.inputs = {line}, .output = output};
    for (size_t k = 0; iron__op_contender(op, k, &row); k++)
        if ((row.backends & on) && (!row.suits || row.suits(&row, &p.c)))
            assert_right_every_time(&row, &p, &data);
    iron__gpu_buffer_destroy(output);
    iron__gpu_buffer_destroy(line);
    op->unmake(&p);
}

static void repeated_sums_are_right(void **state) {
    static const uint64_t sizes[] = {3, 100003};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(sizes); k++)
        for (int reach = 0; reach < 2; reach++)
            race(&iron__op_barrier, sizes[k], reach);
}

static void strides_between_the_defaults_are_right(void **state) {
    static const double strides[] = {12, 31};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(strides); k++)
        race(&iron__op_banks, 5000 + 11 * k, strides[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_sums_are_right),
        cmocka_unit_test(strides_between_the_defaults_are_right),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
