/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_shared.c: what all who have one device open share: the context, which the last one's
 * closing releases, and the programs built in it, each built once. And what they must not share: a
 * text's program with another text, and a context that died with those who open the device later.
 *
 * The functions that make and release contexts and programs are replaced by ones that count; after
 * every test all that was made must be released. The cache on disk is off, or it would answer in
 * place of the open device. Without a device the tests are skipped with the reason.
 */
#include "opencl_planted.h"
#include "place.h"

#include "gpu/opencl/opencl.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_loader.h"

#include <pthread.h>
#include <stdatomic.h>

#define OPS (&iron__opencl_ops)

static const char text_a[] = "__kernel void one(__global uint *to) { to[get_global_id(0)] = 1; }\n";
static const char text_b[] = "__kernel void one(__global uint *to) { to[get_global_id(0)] = 2; }\n";
static const char text_bad[] = "__kernel void one(__global uint *to) { *to = no_such_word; }\n";

static iron_error reason; /* status IRON_OK: there is a device */
static iron__opencl_api *api, real;
static atomic_size_t contexts_made, contexts_released, builds;
static atomic_size_t programs_taken, programs_released; /* made or retained */

/* PoCL's compiler never gives back what it took; leaks of our own are found all the same. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libpocl\nleak:libLLVM\n"; }

#define NEED_DEVICE()                                                                              \
    do {                                                                                           \
        if (reason.status != IRON_OK) {                                                            \
            print_message("skipped: %s\n", reason.text);                                           \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

static iron__cl_context *count_context(const intptr_t *properties, uint32_t count,
                                       iron__cl_device *const *devices,
                                       iron__cl_context_callback callback, void *user,
                                       int32_t *code) {
    iron__cl_context *context =
        real.clCreateContext(properties, count, devices, callback, user, code);

    contexts_made += context != NULL;
    return context;
}

static int32_t count_context_release(iron__cl_context *context) {
    contexts_released++;
    return real.clReleaseContext(context);
}

static iron__cl_program *count_text(iron__cl_context *context, uint32_t count, const char **texts,
                                    const size_t *bytes, int32_t *code) {
    iron__cl_program *program = real.clCreateProgramWithSource(context, count, texts, bytes, code);

    programs_taken += program != NULL;
    return program;
}

static int32_t count_build(iron__cl_program *program, uint32_t count,
                           iron__cl_device *const *devices, const char *options,
                           iron__cl_program_callback callback, void *user) {
    builds++;
    return real.clBuildProgram(program, count, devices, options, callback, user);
}

static int32_t count_retain(iron__cl_program *program) {
    programs_taken++;
    return real.clRetainProgram(program);
}

static int32_t count_release(iron__cl_program *program) {
    programs_released++;
    return real.clReleaseProgram(program);
}

static int32_t bad_retain(iron__cl_program *program) {
    (void)program;
    return planted;
}

static int32_t bad_finish(iron__cl_queue *queue) {
    (void)queue;
    return planted;
}

static iron__cl_queue *bad_queue(iron__cl_context *context, iron__cl_device *id, uint64_t flags,
                                 int32_t *code) {
    (void)context;
    (void)id;
    (void)flags;
    *code = planted;
    return NULL;
}

static int make_cache(void **state) {
    (void)state;
    folder_make(&place);
    setenv("POCL_CACHE_DIR", place.path, 0); /* PoCL's own, out of the user's home */
    setenv("IRON_OPENCL_CACHE", "0", 1);
    return 0;
}

static int set_up(void **state) {
    const iron__opencl_library *library;

    (void)state;
    contexts_made = contexts_released = builds = programs_taken = programs_released = 0;
    planted = IRON_CL_OUT_OF_RESOURCES;
    reason = (iron_error){.status = IRON_OK};
    if (iron__opencl_load(&library, &reason) != IRON_OK)
        return 0;
    api = (iron__opencl_api *)&library->api;
    real = *api;
    api->clCreateContext = count_context;
    api->clReleaseContext = count_context_release;
    api->clCreateProgramWithSource = count_text;
    api->clBuildProgram = count_build;
    api->clRetainProgram = count_retain;
    api->clReleaseProgram = count_release;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (reason.status == IRON_OK)
        *api = real;
    iron__opencl_forget();
    assert_int_equal(contexts_made, contexts_released);
    assert_int_equal(programs_taken, programs_released);
    return 0;
}

static iron__gpu_device *open_device(void) {
    iron__gpu_device *device = NULL;
    iron_error err;

    assert_ok(OPS->device_open(0, &device, &err), &err);
    return device;
}

static iron__gpu_program *load(iron__gpu_device *device, const char *text) {
    iron__gpu_image image = {.name = "one", .source = text};
    iron__gpu_program *program = NULL;
    iron_error err;

    assert_ok(OPS->program_load(device, &image, &program, &err), &err);
    return program;
}

/* What the program's kernel writes; 0: something failed, and err says what. */
static uint32_t result_of(iron__gpu_device *device, iron__gpu_program *program, iron_error *err) {
    iron__gpu_launch launch = {.groups = {1}, .threads = {1}, .arg_count = 1};
    iron__gpu_queue *queue = NULL;
    iron__gpu_buffer *b = NULL;
    uint32_t got = 0;

    if (OPS->queue_create(device, &queue, err) == IRON_OK &&
        OPS->buffer_create(device, IRON_GPU_MEMORY_DEVICE, 4, &b, err) == IRON_OK &&
        OPS->kernel_find(program, "one", &launch.kernel, err) == IRON_OK) {
        iron__gpu_arg arg = IRON_GPU_BUFFER(b);
        iron__gpu_copy copy = {.from = b, .to_host = &got, .bytes = 4};

        launch.args = &arg;
        if (OPS->launch(queue, &launch, err) != IRON_OK ||
            OPS->copy(queue, &copy, err) != IRON_OK || OPS->queue_wait(queue, err) != IRON_OK)
            got = 0;
    }
    OPS->buffer_destroy(b);
    OPS->queue_destroy(queue);
    return got;
}

static void assert_result(iron__gpu_device *device, iron__gpu_program *program, uint32_t expected) {
    iron_error err = {.text = "it wrote something else"};
    uint32_t got = result_of(device, program, &err);

    if (got != expected)
        fail_msg("%u in place of %u: %s", got, expected, err.text);
}

/* The driver's answer to a wait: a kernel crashed. */
static void crash(iron__gpu_device *device) {
    iron__gpu_queue *queue = NULL;
    iron_error err;

    assert_ok(OPS->queue_create(device, &queue, &err), &err);
    api->clFinish = bad_finish;
    assert_refused(OPS->queue_wait(queue, &err), IRON_E_IO, &err);
    api->clFinish = real.clFinish;
    assert_int_equal(device->failure.status, IRON_E_IO);
    OPS->queue_destroy(queue);
}

static void two_handles_share_the_context(void **state) {
    iron__gpu_device *a, *b;
    iron__gpu_buffer *ours, *theirs = NULL;
    iron__gpu_program *program;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    a = open_device();
    b = open_device();
    assert_ptr_not_equal(a, b);
    assert_true(iron__opencl_context(a) != 0);
    assert_int_equal(iron__opencl_context(a), iron__opencl_context(b));
    assert_int_equal(contexts_made, 1);
    /* so what was made through one may be used through the other */
    assert_ok(OPS->buffer_create(a, IRON_GPU_MEMORY_DEVICE, 64, &ours, &err), &err);
    assert_ok(OPS->buffer_wrap(b, ours->native, 64, &theirs, &err), &err);
    OPS->buffer_destroy(theirs);
    OPS->buffer_destroy(ours);
    /* and the first one's closing leaves the second its context */
    OPS->device_close(a);
    assert_int_equal(contexts_released, 0);
    program = load(b, text_a);
    assert_result(b, program, 1);
    OPS->program_unload(program);
    OPS->device_close(b);
}

static void the_last_close_releases_it(void **state) {
    iron__gpu_device *devices[3];

    (void)state;
    NEED_DEVICE();
    for (size_t round = 1; round <= 3; round++) {
        for (size_t k = 0; k < COUNT(devices); k++)
            devices[k] = open_device();
        assert_int_equal(contexts_made, round);
        OPS->program_unload(load(devices[1], text_a));
        assert_int_equal(builds, round); /* the programs went, too */
        for (size_t k = 0; k < COUNT(devices); k++) {
            assert_int_equal(contexts_released, round - 1);
            assert_true(programs_released < programs_taken);
            OPS->device_close(devices[(k + round) % COUNT(devices)]);
        }
        assert_int_equal(contexts_released, round);
        assert_int_equal(programs_released, programs_taken);
    }
}

static void a_second_load_builds_nothing(void **state) {
    iron__gpu_device *a, *b;
    iron__gpu_program *first, *again, *others;

    (void)state;
    NEED_DEVICE();
    a = open_device();
    b = open_device();
    first = load(a, text_a);
    again = load(a, text_a);
    others = load(b, text_a);
    assert_int_equal(builds, 1);
    assert_true(first != again && again != others && first != others);
    assert_result(a, first, 1);
    OPS->program_unload(first); /* the others keep what they have */
    assert_result(a, again, 1);
    assert_result(b, others, 1);
    OPS->program_unload(again);
    OPS->program_unload(others);
    OPS->device_close(a); /* whoever built it */
    others = load(b, text_a);
    assert_int_equal(builds, 1);
    assert_result(b, others, 1);
    OPS->program_unload(others);
    OPS->device_close(b);
}

static void different_texts_do_not_mix(void **state) {
    iron__gpu_device *a, *b;
    iron__gpu_program *ones[2], *twos[2];

    (void)state;
    NEED_DEVICE();
    a = open_device();
    b = open_device();
    ones[0] = load(a, text_a);
    twos[0] = load(b, text_b);
    assert_int_equal(builds, 2);
    ones[1] = load(b, text_a);
    twos[1] = load(a, text_b);
    assert_int_equal(builds, 2);
    assert_result(a, ones[0], 1);
    assert_result(b, twos[0], 2);
    assert_result(b, ones[1], 1);
    assert_result(a, twos[1], 2);
    for (size_t k = 0; k < 2; k++) {
        OPS->program_unload(ones[k]);
        OPS->program_unload(twos[k]);
    }
    OPS->device_close(a);
    OPS->device_close(b);
}

static void what_does_not_build_is_not_kept(void **state) {
    iron__gpu_image bad = {.name = "bad", .source = text_bad};
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    device = open_device();
    for (size_t round = 1; round <= 2; round++) {
        assert_refused(OPS->program_load(device, &bad, &program, &err), IRON_E_IO, &err);
        assert_says(&err, "no_such_word");
        assert_null(program);
        assert_int_equal(builds, round);
    }
    assert_int_equal(programs_taken, programs_released);
    api->clRetainProgram = bad_retain; /* what cannot be shared is built for each */
    for (size_t round = 3; round <= 4; round++) {
        program = load(device, text_a);
        assert_int_equal(builds, round);
        assert_result(device, program, 1);
        OPS->program_unload(program);
    }
    api->clRetainProgram = count_retain;
    OPS->program_unload(load(device, text_a));
    api->clRetainProgram = bad_retain;
    OPS->program_unload(load(device, text_a)); /* kept, and not to be had */
    assert_int_equal(builds, 6);
    OPS->device_close(device);
}

static void a_dead_context_is_not_handed_on(void **state) {
    iron__gpu_device *dead, *beside, *fresh, *more;
    iron__gpu_program *program;
    uintptr_t old;

    (void)state;
    NEED_DEVICE();
    dead = open_device();
    beside = open_device();
    old = iron__opencl_context(dead);
    OPS->program_unload(load(beside, text_a));
    crash(dead);
    assert_int_equal(beside->failure.status, IRON_OK); /* it has yet to find out */
    fresh = open_device();
    assert_int_equal(contexts_made, 2);
    assert_true(iron__opencl_context(fresh) != old);
    assert_int_equal(iron__opencl_context(beside), old);
    program = load(fresh, text_a); /* not the one of the dead context */
    assert_int_equal(builds, 2);
    assert_result(fresh, program, 1);
    OPS->program_unload(program);
    crash(beside); /* in the old context: no reason to leave the new one */
    more = open_device();
    assert_int_equal(iron__opencl_context(more), iron__opencl_context(fresh));
    assert_int_equal(contexts_made, 2);
    OPS->device_close(dead);
    assert_int_equal(contexts_released, 0);
    OPS->device_close(beside);
    assert_int_equal(contexts_released, 1);
    OPS->device_close(fresh);
    assert_int_equal(contexts_released, 1);
    OPS->device_close(more);
}

/* Retired after another one was listed before it, and alone. */
static void every_context_may_die(void **state) {
    iron__gpu_device *devices[4];

    (void)state;
    NEED_DEVICE();
    for (size_t k = 0; k < COUNT(devices); k++) {
        devices[k] = open_device();
        crash(devices[k]);
        crash(devices[k / 2]); /* once more is no matter */
        assert_int_equal(contexts_made, k + 1);
    }
    for (size_t k = 0; k < COUNT(devices); k++) {
        OPS->device_close(devices[k]);
        assert_int_equal(contexts_released, k + 1);
    }
}

static void devices_that_cannot_be_opened(void **state) {
    iron__gpu_device *device, *none = (iron__gpu_device *)&place;
    uintptr_t old;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clCreateContext = bad_context;
    assert_refused(OPS->device_open(0, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    api->clCreateContext = count_context;
    api->clCreateCommandQueueWithProperties = NULL;
    api->clCreateCommandQueue = bad_queue; /* the context is there already, and must go */
    assert_refused(OPS->device_open(0, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    assert_int_equal(contexts_made, 1);
    assert_int_equal(contexts_released, 1);
    api->clCreateCommandQueue = real.clCreateCommandQueue;
    device = open_device();
    old = iron__opencl_context(device);
    api->clCreateCommandQueue = bad_queue; /* this one is in use, and stays */
    assert_refused(OPS->device_open(0, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    assert_int_equal(contexts_made, 2);
    assert_int_equal(contexts_released, 1);
    api->clCreateCommandQueue = real.clCreateCommandQueue;
    assert_int_equal(device->failure.status, IRON_OK);
    none = open_device(); /* but gave no queue: nobody gets it any more */
    assert_true(iron__opencl_context(none) != old);
    OPS->device_close(none);
    OPS->device_close(device);
}

/* NULL: all went well. */
static void *open_load_run_close(void *argument) {
    const char *text = *(size_t *)argument % 2 ? text_b : text_a;
    iron__gpu_image image = {.name = "one", .source = text};

    for (int round = 0; round < 20; round++) {
        iron__gpu_device *device = NULL;
        iron__gpu_program *program = NULL;
        iron_error err;
        bool is_right;

        if (OPS->device_open(0, &device, &err) != IRON_OK)
            return argument;
        is_right = OPS->program_load(device, &image, &program, &err) == IRON_OK &&
                   (round % 5 || result_of(device, program, &err) == (text == text_b ? 2 : 1));
        OPS->program_unload(program);
        OPS->device_close(device);
        if (!is_right)
            return argument;
    }
    return NULL;
}

/* Each with a handle of its own. With one open beside them, all are in its context. */
static void threads_share(void **state) {
    enum { THREADS = 4 };

    (void)state;
    NEED_DEVICE();
    for (int is_held = 0; is_held < 2; is_held++) {
        iron__gpu_device *held = is_held ? open_device() : NULL;
        size_t before = contexts_made, built = builds, numbers[THREADS];
        pthread_t threads[THREADS];
        void *bad;

        for (size_t k = 0; k < THREADS; k++) {
            numbers[k] = k;
            assert_int_equal(pthread_create(&threads[k], NULL, open_load_run_close, &numbers[k]),
                             0);
        }
        for (size_t k = 0; k < THREADS; k++) {
            assert_int_equal(pthread_join(threads[k], &bad), 0);
            assert_null(bad);
        }
        if (is_held) {
            assert_int_equal(contexts_made, before);
            assert_in_range(builds - built, 2, THREADS); /* at the same time at most */
        }
        OPS->device_close(held);
        assert_int_equal(contexts_made, contexts_released);
    }
}

static char options_seen[256];

/* A stand-in for the one compiler that knows the option: the device's own gets the others. */
static int32_t see_options(iron__cl_program *program, uint32_t count,
                           iron__cl_device *const *devices, const char *options,
                           iron__cl_program_callback callback, void *user) {
    char kept[256];
    char *limit;

    snprintf(options_seen, sizeof options_seen, "%s", options);
    snprintf(kept, sizeof kept, "%s", options);
    limit = strstr(kept, " -DK_REGISTERS_ARE_LIMITED -cl-nv-maxrregcount=");
    if (limit)
        *limit = '\0';
    return real.clBuildProgram(program, count, devices, kept, callback, user);
}

/* Only where the compiler takes it, and only for texts that want it; a text built with a limit is
 * another program than the same without. */
static void registers_are_limited_where_that_is_known(void **state) {
    iron__gpu_device *device;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clBuildProgram = see_options;
    device = open_device();
    for (uint32_t k = 0; k < 4; k++) {
        iron__gpu_image image = {.name = "one", .source = text_a, .most_registers = k % 2 ? 64 : 0};
        iron__gpu_program *program = NULL;

        iron__opencl_device_of(device)->has_register_limit = k >= 2;
        options_seen[0] = '\0';
        assert_ok(OPS->program_load(device, &image, &program, &err), &err);
        assert_int_equal(strstr(options_seen, "-cl-nv-maxrregcount=64") != NULL, k == 3);
        assert_int_equal(options_seen[0] != '\0', k == 0 || k == 3);
        assert_int_equal(result_of(device, program, &err), 1);
        OPS->program_unload(program);
    }
    OPS->device_close(device);
}

#define SHARED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        SHARED_TEST(two_handles_share_the_context),
        SHARED_TEST(the_last_close_releases_it),
        SHARED_TEST(a_second_load_builds_nothing),
        SHARED_TEST(different_texts_do_not_mix),
        SHARED_TEST(what_does_not_build_is_not_kept),
        SHARED_TEST(a_dead_context_is_not_handed_on),
        SHARED_TEST(every_context_may_die),
        SHARED_TEST(devices_that_cannot_be_opened),
        SHARED_TEST(threads_share),
        SHARED_TEST(registers_are_limited_where_that_is_known),
    };

    return cmocka_run_group_tests_name("opencl_shared", tests, make_cache, remove_place);
}
