/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_contexts.c: handles of one device share its context, which the last close releases,
 * and the programs built in it, each built once. They do not share programs of different sources,
 * and a handle opened after a crash does not get the old context.
 *
 * The functions that create and release contexts and programs are replaced by counting ones; after
 * every test everything must be released. The cache on disk is off, because it would hide builds.
 * Skipped with the reason if there is no device.
 */
#include "opencl_support.h"

#include <stdatomic.h>

static const char bad_source[] = "__kernel void one(__global uint *to) { *to = no_such_word; }\n";

static iron__opencl_api *api, real;
static atomic_size_t contexts_made, contexts_released, builds;
static atomic_size_t programs_taken, programs_released; /* made or retained */

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

static iron__cl_program *count_source(iron__cl_context *context, uint32_t count, const char **texts,
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

static int32_t fail_retain(iron__cl_program *program) {
    (void)program;
    return fail_code;
}

static iron__cl_queue *fail_create_queue(iron__cl_context *context, iron__cl_device *id,
                                         uint64_t flags, int32_t *code) {
    (void)context;
    (void)id;
    (void)flags;
    *code = fail_code;
    return NULL;
}

static int make_folder(void **state) {
    (void)state;
    make_place();
    setenv("IRON_OPENCL_CACHE", "0", 1);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    folder_remove(&place);
    return 0;
}

static int set_up(void **state) {
    (void)state;
    contexts_made = contexts_released = builds = programs_taken = programs_released = 0;
    fail_code = IRON_CL_OUT_OF_RESOURCES;
    reason = (iron_error){.status = IRON_OK};
    if (need_library(&reason) != IRON_OK)
        return 0;
    api = &the_library.api;
    real = *api;
    api->clCreateContext = count_context;
    api->clReleaseContext = count_context_release;
    api->clCreateProgramWithSource = count_source;
    api->clBuildProgram = count_build;
    api->clRetainProgram = count_retain;
    api->clReleaseProgram = count_release;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (reason.status == IRON_OK)
        *api = real;
    opencl_forget();
    assert_int_equal(contexts_made, contexts_released);
    assert_int_equal(programs_taken, programs_released);
    return 0;
}

static iron__gpu_device *open_device(void) {
    iron__gpu_device *opened = NULL;
    iron_error err;

    assert_ok(OPS->device_open(0, &opened, &err), &err);
    return opened;
}

static iron__gpu_program *load(iron__gpu_device *device, const char *text) {
    iron__gpu_image image = {.name = "one", .source = text};
    iron__gpu_program *program = NULL;
    iron_error err;

    assert_ok(iron__gpu_program_load(device, &image, &program, &err), &err);
    return program;
}

static void assert_result(iron__gpu_device *device, iron__gpu_program *program, uint32_t expected) {
    iron_error err = {.text = "wrong value"};
    uint32_t got = result_of(device, program, &err);

    if (got != expected)
        fail_msg("%u instead of %u: %s", got, expected, err.text);
}

/* Makes a wait fail as after a crashed kernel. */
static void crash(iron__gpu_device *device) {
    iron_error err;

    api->clFinish = fail_finish;
    assert_refused(iron__gpu_queue_wait(iron__opencl_device_of(device)->memory_queue, &err),
                   IRON_E_IO, &err);
    api->clFinish = real.clFinish;
    assert_int_equal(device->failure.status, IRON_E_IO);
}

static void handles_share_the_context(void **state) {
    iron__gpu_device *a, *b;
    iron__gpu_buffer *ours, *theirs = NULL;
    iron__gpu_program *program;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    a = open_device();
    b = open_device();
    assert_ptr_not_equal(a, b);
    assert_true(OPS->context(a) != 0);
    assert_int_equal(OPS->context(a), OPS->context(b));
    assert_int_equal(contexts_made, 1);
    /* objects of one handle can be used through the other */
    assert_ok(iron__gpu_buffer_create(a, IRON_GPU_MEMORY_DEVICE, 64, &ours, &err), &err);
    assert_ok(iron__gpu_buffer_wrap(b, ours->native, 64, &theirs, &err), &err);
    iron__gpu_buffer_destroy(theirs);
    iron__gpu_buffer_destroy(ours);
    /* closing the first handle leaves the second its context */
    OPS->device_close(a);
    assert_int_equal(contexts_released, 0);
    program = load(b, source_1);
    assert_result(b, program, 1);
    iron__gpu_program_unload(program->device, program);
    OPS->device_close(b);
}

static void last_close_releases_the_context(void **state) {
    iron__gpu_device *devices[3];

    (void)state;
    NEED_DEVICE();
    for (size_t round = 1; round <= 3; round++) {
        for (size_t k = 0; k < COUNT(devices); k++)
            devices[k] = open_device();
        assert_int_equal(contexts_made, round);
        iron__gpu_program_unload(devices[1], load(devices[1], source_1));
        assert_int_equal(builds, round); /* programs were released with the context */
        for (size_t k = 0; k < COUNT(devices); k++) {
            assert_int_equal(contexts_released, round - 1);
            assert_true(programs_released < programs_taken);
            OPS->device_close(devices[(k + round) % COUNT(devices)]);
        }
        assert_int_equal(contexts_released, round);
        assert_int_equal(programs_released, programs_taken);
    }
}

static void programs_are_shared(void **state) {
    iron__gpu_device *a, *b;
    iron__gpu_program *first, *again, *others;

    (void)state;
    NEED_DEVICE();
    a = open_device();
    b = open_device();
    first = load(a, source_1);
    again = load(a, source_1);
    others = load(b, source_1);
    assert_int_equal(builds, 1);
    assert_true(first != again && again != others && first != others);
    assert_result(a, first, 1);
    iron__gpu_program_unload(first->device, first); /* the others stay loaded */
    assert_result(a, again, 1);
    assert_result(b, others, 1);
    iron__gpu_program_unload(again->device, again);
    iron__gpu_program_unload(others->device, others);
    OPS->device_close(a); /* the handle that built it */
    others = load(b, source_1);
    assert_int_equal(builds, 1);
    assert_result(b, others, 1);
    iron__gpu_program_unload(others->device, others);
    OPS->device_close(b);
}

static void different_sources(void **state) {
    iron__gpu_device *a, *b;
    iron__gpu_program *ones[2], *twos[2];

    (void)state;
    NEED_DEVICE();
    a = open_device();
    b = open_device();
    ones[0] = load(a, source_1);
    twos[0] = load(b, source_2);
    assert_int_equal(builds, 2);
    ones[1] = load(b, source_1);
    twos[1] = load(a, source_2);
    assert_int_equal(builds, 2);
    assert_result(a, ones[0], 1);
    assert_result(b, twos[0], 2);
    assert_result(b, ones[1], 1);
    assert_result(a, twos[1], 2);
    for (size_t k = 0; k < 2; k++) {
        iron__gpu_program_unload(ones[k]->device, ones[k]);
        iron__gpu_program_unload(twos[k]->device, twos[k]);
    }
    OPS->device_close(a);
    OPS->device_close(b);
}

static void failed_builds_are_not_shared(void **state) {
    iron__gpu_image bad = {.name = "bad", .source = bad_source};
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    device = open_device();
    for (size_t round = 1; round <= 2; round++) {
        assert_refused(iron__gpu_program_load(device, &bad, &program, &err), IRON_E_IO, &err);
        assert_says(&err, "no_such_word");
        assert_null(program);
        assert_int_equal(builds, round);
    }
    assert_int_equal(programs_taken, programs_released);
    api->clRetainProgram = fail_retain; /* without sharing each load builds */
    for (size_t round = 3; round <= 4; round++) {
        program = load(device, source_1);
        assert_int_equal(builds, round);
        assert_result(device, program, 1);
        iron__gpu_program_unload(program->device, program);
    }
    api->clRetainProgram = count_retain;
    iron__gpu_program_unload(device, load(device, source_1));
    api->clRetainProgram = fail_retain;
    iron__gpu_program_unload(device, load(device, source_1)); /* shared, but cannot be retained */
    assert_int_equal(builds, 6);
    OPS->device_close(device);
}

static void lost_context_is_not_shared(void **state) {
    iron__gpu_device *dead, *beside, *fresh, *more;
    iron__gpu_program *program;
    uintptr_t old;

    (void)state;
    NEED_DEVICE();
    dead = open_device();
    beside = open_device();
    old = OPS->context(dead);
    iron__gpu_program_unload(beside, load(beside, source_1));
    crash(dead);
    assert_int_equal(beside->failure.status, IRON_OK); /* it has not noticed yet */
    fresh = open_device();
    assert_int_equal(contexts_made, 2);
    assert_true(OPS->context(fresh) != old);
    assert_int_equal(OPS->context(beside), old);
    program = load(fresh, source_1); /* not the one of the old context */
    assert_int_equal(builds, 2);
    assert_result(fresh, program, 1);
    iron__gpu_program_unload(program->device, program);
    crash(beside); /* in the old context: the new one stays */
    more = open_device();
    assert_int_equal(OPS->context(more), OPS->context(fresh));
    assert_int_equal(contexts_made, 2);
    OPS->device_close(dead);
    assert_int_equal(contexts_released, 0);
    OPS->device_close(beside);
    assert_int_equal(contexts_released, 1);
    OPS->device_close(fresh);
    assert_int_equal(contexts_released, 1);
    OPS->device_close(more);
}

/* Retires contexts at different positions of the list. */
static void lost_contexts(void **state) {
    iron__gpu_device *devices[4];

    (void)state;
    NEED_DEVICE();
    for (size_t k = 0; k < COUNT(devices); k++) {
        devices[k] = open_device();
        crash(devices[k]);
        crash(devices[k / 2]); /* twice is harmless */
        assert_int_equal(contexts_made, k + 1);
    }
    for (size_t k = 0; k < COUNT(devices); k++) {
        OPS->device_close(devices[k]);
        assert_int_equal(contexts_released, k + 1);
    }
}

static void open_errors(void **state) {
    iron__gpu_device *device, *none = (iron__gpu_device *)&place;
    uintptr_t old;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clCreateContext = fail_context;
    assert_refused(OPS->device_open(0, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    api->clCreateContext = count_context;
    api->clCreateCommandQueueWithProperties = NULL;
    api->clCreateCommandQueue =
        fail_create_queue; /* the context exists already and must be released */
    assert_refused(OPS->device_open(0, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    assert_int_equal(contexts_made, 1);
    assert_int_equal(contexts_released, 1);
    api->clCreateCommandQueue = real.clCreateCommandQueue;
    device = open_device();
    old = OPS->context(device);
    api->clCreateCommandQueue = fail_create_queue; /* this context is in use and stays */
    assert_refused(OPS->device_open(0, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    assert_int_equal(contexts_made, 2);
    assert_int_equal(contexts_released, 1);
    api->clCreateCommandQueue = real.clCreateCommandQueue;
    assert_int_equal(device->failure.status, IRON_OK);
    none = open_device(); /* but is no longer shared */
    assert_true(OPS->context(none) != old);
    OPS->device_close(none);
    OPS->device_close(device);
}

/* Returns NULL on success. */
static void *open_load_run_close(void *argument) {
    const char *text = *(size_t *)argument % 2 ? source_2 : source_1;
    iron__gpu_image image = {.name = "one", .source = text};

    for (int round = 0; round < 10; round++) {
        iron__gpu_device *device = NULL;
        iron__gpu_program *program = NULL;
        iron_error err;
        bool is_right;

        if (OPS->device_open(0, &device, &err) != IRON_OK)
            return argument;
        is_right = iron__gpu_program_load(device, &image, &program, &err) == IRON_OK &&
                   (round % 5 || result_of(device, program, &err) == (text == source_2 ? 2 : 1));
        iron__gpu_program_unload(program->device, program);
        OPS->device_close(device);
        if (!is_right)
            return argument;
    }
    return NULL;
}

/* Each thread has its own handle. With another handle open, all share its context. */
static void threads_share_the_context(void **state) {
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
            assert_in_range(builds - built, 2,
                            THREADS); /* each source at least once, each thread at most once */
        }
        iron__gpu_device_close(held);
        assert_int_equal(contexts_made, contexts_released);
    }
}

static char options_seen[256];

/* Records the options and removes the one that only NVIDIA's compiler accepts. */
static int32_t record_options(iron__cl_program *program, uint32_t count,
                              iron__cl_device *const *devices, const char *options,
                              iron__cl_program_callback callback, void *user) {
    char others[256];
    char *limit;

    snprintf(options_seen, sizeof options_seen, "%s", options);
    snprintf(others, sizeof others, "%s", options);
    limit = strstr(others, " -DK_REGISTERS_ARE_LIMITED -cl-nv-maxrregcount=");
    if (limit)
        *limit = '\0';
    return real.clBuildProgram(program, count, devices, others, callback, user);
}

/* Only if the compiler accepts it and the image has a limit. The same source with and without a
 * limit are two programs. */
static void register_limit(void **state) {
    iron__gpu_device *device;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clBuildProgram = record_options;
    device = open_device();
    for (uint32_t k = 0; k < 4; k++) {
        iron__gpu_image image = {
            .name = "one", .source = source_1, .registers_max = k % 2 ? 64 : 0};
        iron__gpu_program *program = NULL;

        iron__opencl_device_of(device)->has_register_limit = k >= 2;
        options_seen[0] = '\0';
        assert_ok(iron__gpu_program_load(device, &image, &program, &err), &err);
        assert_int_equal(strstr(options_seen, "-cl-nv-maxrregcount=64") != NULL, k == 3);
        assert_int_equal(options_seen[0] != '\0', k == 0 || k == 3);
        assert_int_equal(result_of(device, program, &err), 1);
        iron__gpu_program_unload(program->device, program);
    }
    OPS->device_close(device);
}

#define CONTEXT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CONTEXT_TEST(handles_share_the_context),
        CONTEXT_TEST(last_close_releases_the_context),
        CONTEXT_TEST(programs_are_shared),
        CONTEXT_TEST(different_sources),
        CONTEXT_TEST(failed_builds_are_not_shared),
        CONTEXT_TEST(lost_context_is_not_shared),
        CONTEXT_TEST(lost_contexts),
        CONTEXT_TEST(open_errors),
        CONTEXT_TEST(threads_share_the_context),
        CONTEXT_TEST(register_limit),
    };

    return cmocka_run_group_tests_name("opencl_contexts", tests, make_folder, remove_folder);
}
