/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_watch.c: who watches a device sees each kernel that was launched once, its largest
 * launch, in the order of their first ones, and no more than there is room for. By a backend of the
 * test's own, of which gpu.c knows three entries.
 */
#include "support.h"

#include "gpu/gpu.h"

struct iron__gpu_kernel {
    const char *name;
};

static uint32_t launches, questions;
static bool fails_to_tell;

static const char *name_of(const iron__gpu_kernel *kernel) { return kernel->name; }

static iron_status launch(iron__gpu_queue *queue, const iron__gpu_launch *l, iron_error *err) {
    (void)queue;
    (void)err;
    launches++;
    return l->flags ? IRON_E_UNSUPPORTED : IRON_OK;
}

/* Figures that depend on what was asked. */
static iron_status tell(iron__gpu_device *device, const iron__gpu_kernel *kernel, uint32_t threads,
                        size_t local_bytes, iron__gpu_facts *out, iron_error *err) {
    (void)device;
    questions++;
    if (fails_to_tell) {
        err->status = IRON_E_IO;
        return IRON_E_IO;
    }
    *out = (iron__gpu_facts){
        .registers = (uint32_t)strlen(kernel->name), .local_bytes = local_bytes, .groups = threads};
    return IRON_OK;
}

static const iron__gpu_ops full = {.launch = launch, .kernel_name = name_of, .kernel_facts = tell};
static const iron__gpu_ops bare = {.launch = launch, .kernel_name = name_of};

typedef struct stage {
    iron__gpu_device device;
    iron__gpu_queue queue;
    iron__gpu_watch watch;
} stage;

static int begin(void **state) {
    static stage s;

    memset(&s, 0, sizeof s);
    s.device.ops = &full;
    s.device.watch = &s.watch;
    s.queue.device = &s.device;
    launches = questions = 0;
    fails_to_tell = false;
    *state = &s;
    return 0;
}

static void run(stage *s, const char *name, uint32_t x, uint32_t y) {
    iron__gpu_kernel kernel = {name};
    const iron__gpu_launch l = {
        .kernel = &kernel, .groups = {x, y}, .threads = {64}, .local_bytes = x};

    assert_int_equal(iron__gpu_run(&s->queue, &l, NULL), IRON_OK);
}

static void the_largest_launch_of_each(void **state) {
    stage *s = *state;
    const iron__gpu_sighting *seen = s->watch.seen;

    run(s, "a", 4, 0);
    run(s, "bb", 7, 0);
    run(s, "a", 3, 1);
    run(s, "a", 3, 2);
    run(s, "a", 6, 1); /* as large: the first stays */
    run(s, "bb", 7, 1);
    assert_int_equal(s->watch.count, 2);
    assert_string_equal(seen[0].kernel, "a");
    assert_int_equal(seen[0].groups, 6);
    assert_int_equal(seen[0].threads, 64);
    assert_int_equal(seen[0].facts.local_bytes, 3);
    assert_int_equal(seen[0].facts.registers, 1);
    assert_int_equal(seen[0].facts.groups, 64);
    assert_string_equal(seen[1].kernel, "bb");
    assert_int_equal(seen[1].groups, 7);
    assert_int_equal(seen[1].facts.registers, 2);
    assert_int_equal(questions, 3); /* nothing is asked of launches that are not kept */
    run(s, "bb", UINT32_MAX, UINT32_MAX);
    assert_true(seen[1].groups == (uint64_t)UINT32_MAX * UINT32_MAX);
}

static void there_is_room_for_some(void **state) {
    stage *s = *state;
    char name[8];

    for (uint32_t k = 0; k < IRON_GPU_SIGHTINGS + 3; k++) {
        snprintf(name, sizeof name, "k%u", k);
        run(s, name, k + 1, 0);
    }
    assert_int_equal(s->watch.count, IRON_GPU_SIGHTINGS);
    run(s, "k7", 100, 0);
    run(s, "k8", 100, 0);
    assert_int_equal(s->watch.count, IRON_GPU_SIGHTINGS);
    assert_string_equal(s->watch.seen[7].kernel, "k7");
    assert_int_equal(s->watch.seen[7].groups, 100);
    assert_int_equal(s->watch.seen[0].groups, 1);
    assert_int_equal(launches, IRON_GPU_SIGHTINGS + 5);
}

/* A name that is too long is cut, and still one kernel. */
static void long_names(void **state) {
    stage *s = *state;
    char name[200];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    run(s, name, 1, 0);
    run(s, name, 2, 0);
    name[63] = '\0'; /* what there is room for */
    run(s, name, 3, 0);
    assert_int_equal(s->watch.count, 1);
    assert_string_equal(s->watch.seen[0].kernel, name);
    assert_int_equal(s->watch.seen[0].groups, 3);
    name[62] = '\0';
    run(s, name, 1, 0);
    assert_int_equal(s->watch.count, 2);
}

static void what_is_not_seen(void **state) {
    stage *s = *state;
    iron__gpu_kernel kernel = {"a"};
    const iron__gpu_launch refused = {.kernel = &kernel, .groups = {1}, .threads = {1}, .flags = 1};

    assert_int_equal(iron__gpu_run(&s->queue, &refused, NULL), IRON_E_UNSUPPORTED);
    assert_int_equal(s->watch.count, 0);
    s->device.watch = NULL;
    run(s, "a", 1, 0);
    assert_true(s->watch.count == 0 && questions == 0);
    s->device.watch = &s->watch;
    s->device.failure.status = IRON_E_IO;
    assert_int_equal(iron__gpu_run(&s->queue, &refused, NULL), IRON_E_IO);
    assert_true(s->watch.count == 0 && launches == 2);
}

/* A launch that worked has worked, whatever can be told of it. */
static void what_is_not_told(void **state) {
    stage *s = *state;
    const iron__gpu_facts none = {.registers = 0};

    fails_to_tell = true;
    run(s, "a", 5, 0);
    s->device.ops = &bare;
    run(s, "b", 6, 0);
    assert_int_equal(s->watch.count, 2);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(s->watch.seen[k].groups, 5 + k);
        assert_memory_equal(&s->watch.seen[k].facts, &none, sizeof none);
    }
    assert_int_equal(s->device.failure.status, IRON_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_largest_launch_of_each, begin),
        cmocka_unit_test_setup(there_is_room_for_some, begin),
        cmocka_unit_test_setup(long_names, begin),
        cmocka_unit_test_setup(what_is_not_seen, begin),
        cmocka_unit_test_setup(what_is_not_told, begin),
    };

    return cmocka_run_group_tests_name("gpu_watch", tests, NULL, NULL);
}
