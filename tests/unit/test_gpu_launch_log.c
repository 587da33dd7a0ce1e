/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_launch_log.c: a device's launch log has one record per kernel with its largest launch,
 * in the order of the first launches, up to its capacity. Uses a fake backend.
 */
#include "support.h"

#include "gpu/gpu.h"

static uint32_t launches, queries;
static bool fails_query;

static iron_status launch(iron__gpu_queue *queue, const iron__gpu_launch *l, iron_error *err) {
    (void)queue;
    (void)err;
    launches++;
    return l->flags ? IRON_E_UNSUPPORTED : IRON_OK;
}

/* Figures that depend on the arguments. */
static void query(iron__gpu_device *device, const iron__gpu_kernel *kernel, uint32_t threads,
                  size_t local_bytes, iron__gpu_resources *out) {
    (void)device;
    queries++;
    if (fails_query)
        return;
    *out = (iron__gpu_resources){
        .registers = (uint32_t)strlen(kernel->name), .local_bytes = local_bytes, .groups = threads};
}

static const iron__gpu_program_ops full_program = {.launch = launch, .kernel_resources = query};
static const iron__gpu_program_ops bare_program = {.launch = launch};
static const iron__gpu_ops full = {.program = &full_program}, bare = {.program = &bare_program};

typedef struct fixture {
    iron__gpu_device device;
    iron__gpu_queue queue;
    iron__gpu_launch_log log;
} fixture;

static int set_up(void **state) {
    static fixture s;

    memset(&s, 0, sizeof s);
    s.device.ops = &full;
    s.device.info.group_threads_max = 1024;
    s.device.launch_log = &s.log;
    s.queue.device = &s.device;
    launches = queries = 0;
    fails_query = false;
    *state = &s;
    return 0;
}

static void run(fixture *s, const char *name, uint32_t x, uint32_t y) {
    iron__gpu_kernel kernel = {.name = name};
    const iron__gpu_launch l = {
        .kernel = &kernel, .groups = {x, y}, .threads = {64}, .local_bytes = x};

    assert_int_equal(iron__gpu_run(&s->queue, &l, NULL), IRON_OK);
}

static void largest_launch_of_each_kernel(void **state) {
    fixture *s = *state;
    const iron__gpu_launch_record *seen = s->log.seen;

    run(s, "a", 4, 0);
    run(s, "bb", 7, 0);
    run(s, "a", 3, 1);
    run(s, "a", 3, 2);
    run(s, "a", 6, 1); /* equal: the first stays */
    run(s, "bb", 7, 1);
    assert_int_equal(s->log.count, 2);
    assert_string_equal(seen[0].kernel, "a");
    assert_int_equal(seen[0].groups, 6);
    assert_int_equal(seen[0].threads, 64);
    assert_int_equal(seen[0].resources.local_bytes, 3);
    assert_int_equal(seen[0].resources.registers, 1);
    assert_int_equal(seen[0].resources.groups, 64);
    assert_string_equal(seen[1].kernel, "bb");
    assert_int_equal(seen[1].groups, 7);
    assert_int_equal(seen[1].resources.registers, 2);
    assert_int_equal(queries, 3); /* only for launches that are recorded */
    run(s, "bb", INT32_MAX, UINT16_MAX);
    assert_true(seen[1].groups == (uint64_t)INT32_MAX * UINT16_MAX);
}

static void log_capacity(void **state) {
    fixture *s = *state;
    char name[8];

    for (uint32_t k = 0; k < IRON_GPU_LAUNCH_RECORDS + 3; k++) {
        snprintf(name, sizeof name, "k%u", k);
        run(s, name, k + 1, 0);
    }
    assert_int_equal(s->log.count, IRON_GPU_LAUNCH_RECORDS);
    run(s, "k7", 100, 0);
    run(s, "k8", 100, 0);
    assert_int_equal(s->log.count, IRON_GPU_LAUNCH_RECORDS);
    assert_string_equal(s->log.seen[7].kernel, "k7");
    assert_int_equal(s->log.seen[7].groups, 100);
    assert_int_equal(s->log.seen[0].groups, 1);
    assert_int_equal(launches, IRON_GPU_LAUNCH_RECORDS + 5);
}

/* A name that is too long is truncated, but still one kernel. */
static void long_names(void **state) {
    fixture *s = *state;
    char name[200];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    run(s, name, 1, 0);
    run(s, name, 2, 0);
    name[63] = '\0'; /* the longest that fits */
    run(s, name, 3, 0);
    assert_int_equal(s->log.count, 1);
    assert_string_equal(s->log.seen[0].kernel, name);
    assert_int_equal(s->log.seen[0].groups, 3);
    name[62] = '\0';
    run(s, name, 1, 0);
    assert_int_equal(s->log.count, 2);
}

static void launches_not_logged(void **state) {
    fixture *s = *state;
    iron__gpu_kernel kernel = {.name = "a"};
    const iron__gpu_launch refused = {.kernel = &kernel, .groups = {1}, .threads = {1}, .flags = 1};

    assert_int_equal(iron__gpu_run(&s->queue, &refused, NULL), IRON_E_UNSUPPORTED);
    assert_int_equal(s->log.count, 0);
    s->device.launch_log = NULL;
    run(s, "a", 1, 0);
    assert_true(s->log.count == 0 && queries == 0);
    s->device.launch_log = &s->log;
    s->device.failure.status = IRON_E_IO;
    assert_int_equal(iron__gpu_run(&s->queue, &refused, NULL), IRON_E_IO);
    assert_true(s->log.count == 0 && launches == 2);
}

/* A launch succeeds even if its resources cannot be read. */
static void unreported_resources(void **state) {
    fixture *s = *state;
    const iron__gpu_resources none = {.registers = 0};

    fails_query = true;
    run(s, "a", 5, 0);
    s->device.ops = &bare;
    run(s, "b", 6, 0);
    assert_int_equal(s->log.count, 2);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(s->log.seen[k].groups, 5 + k);
        assert_memory_equal(&s->log.seen[k].resources, &none, sizeof none);
    }
    assert_int_equal(s->device.failure.status, IRON_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(largest_launch_of_each_kernel, set_up),
        cmocka_unit_test_setup(log_capacity, set_up),
        cmocka_unit_test_setup(long_names, set_up),
        cmocka_unit_test_setup(launches_not_logged, set_up),
        cmocka_unit_test_setup(unreported_resources, set_up),
    };

    return cmocka_run_group_tests_name("gpu_launch_log", tests, NULL, NULL);
}
