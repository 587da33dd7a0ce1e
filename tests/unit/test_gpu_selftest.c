/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_selftest.c: the selftest on a device that lacks a feature, cannot be opened, or fails
 * midway: the failure is reported once, with the driver's message, and everything else is still
 * tested. Functions of the OpenCL table are replaced to simulate this. The test `selftest` covers
 * working devices (`iron selftest`).
 */
#include "gpu_support.h"

#include "gpu/gpu.h"

#include <iron/iron_arena.h>

#if __has_include("gpu/opencl/opencl_internal.h")
#include "gpu/opencl/opencl_internal.h"

static iron__opencl_api *api, real;
static size_t finishes_left; /* calls that still work */

/* What the selftest reported. */
typedef struct told {
    size_t passed, failed, skipped;
    size_t on_device; /* checks of an OpenCL device, with any verdict */
    char failure[400], lacking[400];
} told;

static void note(void *context, iron_verdict verdict, const char *what, const char *text) {
    told *t = context;

    assert_int_equal(verdict == IRON_VERDICT_PASSED, text[0] == '\0');
    t->on_device += strstr(what, "tokens.opencl.") != NULL;
    switch (verdict) {
    case IRON_VERDICT_PASSED:
        t->passed++;
        return;
    case IRON_VERDICT_FAILED:
        t->failed++;
        snprintf(t->failure, sizeof t->failure, "%s: %s", what, text);
        return;
    case IRON_VERDICT_SKIPPED:
        t->skipped++;
        if (strstr(what, "memory uvm,"))
            snprintf(t->lacking, sizeof t->lacking, "%s: %s", what, text);
        return;
    default:
        fail_msg("verdict %d", (int)verdict);
    }
}

static void assert_tells(const char *text, const char *word) {
    if (!strstr(text, word))
        fail_msg("'%s' does not say '%s'", text, word);
}

#define NEED_OPENCL()                                                                              \
    do {                                                                                           \
        if (!api) {                                                                                \
            print_message("skipped: %s\n", gpu_reason.text);                                       \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

static int set_up(void **state) {
    iron__gpu_device *device = NULL;

    gpu_set_up(state);
    if (iron__gpu_device_open(iron__gpu_backend_find("opencl"), 0, &device, &gpu_reason) ==
        IRON_OK) {
        api = (iron__opencl_api *)iron__opencl_device_of(device)->api; /* of all devices */
        real = *api;
    }
    iron__gpu_device_close(device);
    return 0;
}

static int restore(void **state) {
    (void)state;
    if (api)
        *api = real;
    return 0;
}

static int32_t finish_for_a_while(iron__cl_queue *queue) {
    if (finishes_left == 0)
        return -5; /* CL_OUT_OF_RESOURCES: how drivers report a crashed kernel */
    finishes_left--;
    return real.clFinish(queue);
}

static iron__cl_context *no_context(const intptr_t *properties, uint32_t count,
                                    iron__cl_device *const *devices,
                                    iron__cl_context_callback callback, void *user, int32_t *code) {
    (void)properties;
    (void)count;
    (void)devices;
    (void)callback;
    (void)user;
    *code = -2; /* CL_DEVICE_NOT_AVAILABLE */
    return NULL;
}

static void run(told *t, iron_status expected) {
    iron_selftest_result result = {0};
    iron_selftest_options options = {.is_quick = 1, .line = note, .context = t};
    iron_error err = {0};

    *t = (told){0};
    assert_int_equal(iron_selftest(&options, &result, &err), expected);
    assert_int_equal(err.status, expected);
    assert_int_equal(result.passed, t->passed);
    assert_int_equal(result.failed, t->failed);
    assert_int_equal(result.skipped, t->skipped);
    assert_true(t->passed > 500); /* the CPU's */
}

/* The device fails after some work: one failed check with its message, then no more checks. */
static void a_device_that_fails_midway(void **state) {
    told t;

    (void)state;
    NEED_OPENCL();
    finishes_left = 60;
    api->clFinish = finish_for_a_while;
    api->clEnqueueSVMMap = NULL; /* no shared memory either: a reason to skip */
    run(&t, IRON_E_MISMATCH);
    assert_int_equal(t.failed, 1);
    assert_tells(t.failure, "CL_OUT_OF_RESOURCES");
    assert_tells(t.failure, "golden");
    assert_tells(t.failure, "not tested any further");
    assert_true(t.on_device > 1 && t.on_device < 100);
    assert_tells(t.lacking, "the device has no shared virtual memory");
}

static void a_device_that_cannot_be_opened(void **state) {
    told t;

    (void)state;
    NEED_OPENCL();
    api->clCreateContext = no_context;
    run(&t, IRON_E_MISMATCH);
    assert_int_equal(t.failed, iron_device_count("opencl"));
    assert_tells(t.failure, "opencl device");
    assert_tells(t.failure, "CL_DEVICE_NOT_AVAILABLE");
    assert_int_equal(t.on_device, 0);
}

/* A strategy that the device lacks: the engine refuses it with the device's reason. */
static void a_missing_strategy(void **state) {
    iron_config c = gpu_config();
    iron_engine *e = NULL;
    iron_error err;

    (void)state;
    NEED_OPENCL();
    api->clEnqueueSVMMap = NULL;
    c.backend = "opencl";
    c.memory = "uvm";
    assert_refused(iron_engine_create(&c, &e, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "memory strategy uvm is not available on");
    assert_says(&err, "the device has no shared virtual memory");
    assert_says(&err, "--memory auto");
    assert_null(e);
}

#else

static int set_up(void **state) { return gpu_set_up(state); }

static int restore(void **state) {
    (void)state;
    return 0;
}

static void a_device_that_fails_midway(void **state) {
    (void)state;
    print_message("skipped: this build has no OpenCL\n");
    skip();
}

#define a_device_that_cannot_be_opened a_device_that_fails_midway
#define a_missing_strategy             a_device_that_fails_midway

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_device_that_fails_midway, restore),
        cmocka_unit_test_teardown(a_device_that_cannot_be_opened, restore),
        cmocka_unit_test_teardown(a_missing_strategy, restore),
    };

    return cmocka_run_group_tests(tests, set_up, gpu_tear_down);
}
