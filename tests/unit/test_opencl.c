/* SPDX-License-Identifier: MIT */
/*
 * test_opencl.c: devices, programs, launches, queues and events of OpenCL on the first device there
 * is, with kernels small enough to know their results (memory: test_opencl_memory.c). Where there
 * is none, all but the first test are skipped with the reason.
 *
 * What cannot be must be refused; and none of these refusals may mark the device.
 */
#include "opencl_work.h"

#include "core/clock.h"
#include "gpu/opencl/opencl_loader.h"

typedef struct numbers {
    uint32_t add, times;
    uint64_t wide;
} numbers;

static const iron__gpu_image image = {
    .name = "small",
    .source =
        "#if !defined(K_HAS_U64_ATOMICS) || !defined(K_HAS_F64) || defined(__FAST_RELAXED_MATH__)\n"
        "#error the options are not what they should be\n"
        "#endif\n"
        "typedef struct numbers { uint add, times; ulong wide; } numbers;\n"
        "__kernel void put(__global ulong *to, ulong count, numbers s) {\n"
        "    ulong k = get_global_id(0);\n"
        "    if (k < count) to[k] = s.wide + k * s.times + s.add;\n"
        "}\n"
        "__kernel void total(__global const uint *from, ulong first, ulong count,\n"
        "                    __global uint *sum) {\n"
        "    ulong k = get_global_id(0);\n"
        "    if (k < count) atomic_add(sum, from[first + k]);\n"
        "}\n"
        "__kernel void plane(__global uint *to) {\n"
        "    uint x = get_global_id(0), y = get_global_id(1);\n"
        "    to[y * get_global_size(0) + x] = get_group_id(1) * 1000 + get_local_id(1) * 100 + x;\n"
        "}\n"
        "__kernel void busy(__global uint *to, uint turns) {\n"
        "    uint k = get_global_id(0), v = to[k];\n"
        "    for (uint t = 0; t < turns; t++) v = v * 1664525u + 1013904223u;\n"
        "    to[k] = v;\n"
        "}\n"
        "__kernel void twice(__global uint *to, __local uint *held) {\n"
        "    __local uint own[8];\n"
        "    held[0] = 21; own[get_local_id(0)] = 2;\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    to[0] = held[0] * own[get_local_size(0) - 1];\n"
        "}\n",
};

static iron__gpu_kernel *kernel_of(const char *name) {
    iron__gpu_kernel *kernel = NULL;
    iron_error err;

    assert_ok(OPS->kernel_find(program, name, &kernel, &err), &err);
    return kernel;
}

static iron_status launch_on(iron__gpu_queue *on, const char *name, uint32_t groups,
                             uint32_t threads, const iron__gpu_arg *args, size_t arg_count,
                             iron_error *err) {
    iron__gpu_launch launch = {.kernel = kernel_of(name),
                               .groups = {groups},
                               .threads = {threads},
                               .args = args,
                               .arg_count = arg_count};

    return OPS->launch(on, &launch, err);
}

/* Waits, so that the host may look. */
static void copy_out(const iron__gpu_buffer *from, size_t offset, void *to, size_t bytes) {
    iron_error err;

    assert_ok(OPS->copy(queue,
                        &(iron__gpu_copy){
                            .from = from, .from_offset = offset, .to_host = to, .bytes = bytes},
                        &err),
              &err);
    assert_ok(OPS->queue_wait(queue, &err), &err);
}

static void a_library_that_is_not_there(void **state) {
    const char *name = "/nonexistent/libOpenCL.so", *before = getenv("IRON_OPENCL_LIBRARY");
    char *kept = before ? strdup(before) : NULL;
    size_t count = 7;
    iron_error err;

    (void)state;
    setenv("IRON_OPENCL_LIBRARY", name, 1);
    iron__opencl_forget();
    assert_refused(OPS->probe(&count, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, name);
    assert_int_equal(count, 0);
    assert_refused(OPS->device_open(0, &device, &err), IRON_E_UNSUPPORTED, &err);
    assert_null(device);
    unsetenv("IRON_OPENCL_LIBRARY");
    if (kept)
        setenv("IRON_OPENCL_LIBRARY", kept, 1);
    free(kept);
    iron__opencl_forget();
}

static void devices_describe_themselves(void **state) {
    iron__gpu_device *none = NULL;
    iron__gpu_info info;
    size_t count = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_string_equal(OPS->name, "opencl");
    assert_ok(OPS->probe(&count, &err), &err);
    assert_true(count > 0);
    for (size_t k = 0; k < count; k++) {
        assert_ok(OPS->describe(k, &info, &err), &err);
        print_message("%zu: %s (%s), %u units, groups of %u, %u in step, uvm '%s'\n", k, info.name,
                      info.driver, info.units, info.group_threads_max, info.subgroup,
                      info.lacks[IRON_GPU_UVM]);
        assert_true(info.name[0] && info.name[0] != ' ' && info.driver[0]);
        assert_true(info.units && info.group_threads_max && info.subgroup && info.memory_bytes);
        assert_true(info.version >= 120);
        assert_string_equal(info.lacks[IRON_GPU_PAGEABLE], "");
    }
    assert_memory_equal(device->info.name, info.name, count == 1 ? sizeof info.name : 0);
    assert_refused(OPS->describe(count, &info, &err), IRON_E_ARG, &err);
    assert_refused(OPS->device_open(count, &none, &err), IRON_E_ARG, &err);
    assert_null(none);
    assert_true(iron__opencl_context(device) != 0);
}

static void kernels_get_values_and_structs(void **state) {
    enum { N = 1000 };
    iron__gpu_buffer *to;
    uint64_t count = N, got[N];
    numbers s = {.add = 3, .times = 1000003, .wide = UINT64_C(0x123456789ABCDEF0)};
    iron_error err;

    (void)state;
    NEED_DEVICE();
    to = buffer_of(IRON_GPU_MEMORY_DEVICE, sizeof got);
    assert_null(to->host);
    {
        iron__gpu_arg args[] = {IRON_GPU_BUFFER(to), IRON_GPU_VALUE(count), IRON_GPU_VALUE(s)};

        assert_ok(launch_on(queue, "put", 16, 64, args, 3, &err), &err);
    }
    s = (numbers){0}; /* values were copied at the launch */
    count = 0;
    copy_out(to, 0, got, sizeof got);
    for (uint64_t k = 0; k < N; k++)
        assert_int_equal(got[k], UINT64_C(0x123456789ABCDEF0) + k * 1000003 + 3);
    OPS->buffer_destroy(to);
}

static void two_dimensions(void **state) {
    iron__gpu_buffer *to;
    uint32_t got[6][8];
    iron_error err;

    (void)state;
    NEED_DEVICE();
    to = buffer_of(IRON_GPU_MEMORY_DEVICE, sizeof got);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(to)};
    iron__gpu_launch launch = {.kernel = kernel_of("plane"),
                               .groups = {2, 3},
                               .threads = {4, 2},
                               .flags = IRON_GPU_LAUNCH_OVERLAP, /* without effect */
                               .args = args,
                               .arg_count = 1,
                               .kept = to, /* likewise */
                               .kept_bytes = sizeof got};
    assert_ok(OPS->launch(queue, &launch, &err), &err);
    copy_out(to, 0, got, sizeof got);
    for (uint32_t y = 0; y < 6; y++)
        for (uint32_t x = 0; x < 8; x++)
            assert_int_equal(got[y][x], y / 2 * 1000 + y % 2 * 100 + x);
    OPS->buffer_destroy(to);
}

static void launches_that_cannot_be(void **state) {
    uint64_t first = 0, count = 4;
    uint32_t narrow = 1;
    iron__gpu_buffer *b, *pinned;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    pinned = buffer_of(IRON_GPU_MEMORY_PINNED, 64);
    iron__gpu_arg good[] = {IRON_GPU_BUFFER(b), IRON_GPU_VALUE(first), IRON_GPU_VALUE(count),
                            IRON_GPU_BUFFER(b)};
    iron__gpu_arg many[17] = {good[0], good[0]};
    iron__gpu_arg thin[] = {good[0], IRON_GPU_VALUE(narrow), good[2], good[3]};
    iron__gpu_arg locked[] = {IRON_GPU_BUFFER(pinned), good[1], good[2], good[3]};
    iron__gpu_arg empty[] = {good[0], {0}, good[2], good[3]};
    iron__gpu_launch together = {.kernel = kernel_of("total"),
                                 .groups = {1},
                                 .threads = {1},
                                 .flags = IRON_GPU_LAUNCH_TOGETHER,
                                 .args = good,
                                 .arg_count = 4};

    assert_refused(launch_on(queue, "total", 1, 1, many, 17, &err), IRON_E_ARG, &err);
    assert_refused(launch_on(queue, "total", 1, 1, good, 3, &err), IRON_E_ARG, &err);
    assert_says(&err, "3 arguments for 4 parameters");
    assert_refused(launch_on(queue, "total", 1, 1, thin, 4, &err), IRON_E_ARG, &err);
    assert_says(&err, "clSetKernelArg failed: CL_INVALID_ARG_SIZE; ");
    assert_refused(launch_on(queue, "total", 1, 1, locked, 4, &err), IRON_E_ARG, &err);
    assert_refused(launch_on(queue, "total", 1, 1, empty, 4, &err), IRON_E_ARG, &err);
    assert_refused(launch_on(queue, "total", 0, 1, good, 4, &err), IRON_E_ARG, &err);
    assert_refused(launch_on(queue, "total", 1, 0, good, 4, &err), IRON_E_ARG, &err);
    assert_refused(launch_on(queue, "total", 1, device->info.group_threads_max + 1, good, 4, &err),
                   IRON_E_ARG, &err);
    assert_refused(OPS->launch(queue, &together, &err), IRON_E_UNSUPPORTED, &err);
    assert_int_equal(launch_on(queue, "total", 0, 1, good, 4, NULL), IRON_E_ARG);
    OPS->buffer_destroy(b);
    OPS->buffer_destroy(pinned);
}

static uint32_t busied(uint32_t value, uint32_t turns) {
    while (turns--)
        value = value * 1664525u + 1013904223u;
    return value;
}

/* Each queue works on the other's result; without the events the two would run at once. */
static void two_queues_wait_for_each_other(void **state) {
    enum { N = 256, ROUNDS = 10 };
    iron__gpu_queue *queues[2];
    iron__gpu_event *events[2];
    iron__gpu_buffer *b;
    uint32_t turns = 20000, got[N];
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, sizeof got);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(b), IRON_GPU_VALUE(turns)};
    assert_ok(OPS->clear(queue, b, 0, sizeof got, &err), &err);
    assert_ok(OPS->queue_wait(queue, &err), &err);
    for (int k = 0; k < 2; k++) {
        assert_ok(OPS->queue_create(device, &queues[k], &err), &err);
        assert_ok(OPS->event_create(device, &events[k], &err), &err);
        assert_ok(OPS->event_follow(queues[k], events[k], &err), &err); /* never recorded */
        assert_ok(OPS->event_wait(events[k], &err), &err);
    }
    for (int k = 0; k < 2 * ROUNDS; k++) {
        assert_ok(OPS->event_follow(queues[k % 2], events[1 - k % 2], &err), &err);
        assert_ok(launch_on(queues[k % 2], "busy", N / 64, 64, args, 2, &err), &err);
        assert_ok(OPS->event_record(queues[k % 2], events[k % 2], &err), &err);
    }
    assert_ok(OPS->event_wait(events[1], &err), &err);
    copy_out(b, 0, got, sizeof got);
    for (size_t k = 0; k < N; k++)
        assert_int_equal(got[k], busied(0, 2 * ROUNDS * turns));
    for (int k = 0; k < 2; k++) {
        OPS->event_destroy(events[k]);
        OPS->queue_destroy(queues[k]);
    }
    OPS->buffer_destroy(b);
}

/* How long a kernel took, by events and by the host's clock around them. */
static iron_status time_busy(iron__gpu_event *from, iron__gpu_event *to, const iron__gpu_arg *args,
                             double *ms, double *wall, iron_error *err) {
    uint64_t started = iron__clock_ns();

    assert_ok(OPS->event_record(queue, from, err), err);
    assert_ok(launch_on(queue, "busy", 1, 64, args, 2, err), err);
    assert_ok(OPS->event_record(queue, to, err), err);
    assert_ok(OPS->event_wait(to, err), err);
    *wall = (double)(iron__clock_ns() - started) * 1e-6;
    return OPS->event_elapsed(from, to, ms, err);
}

/* By the host's clock it takes longer, but not without bounds: of many times the host is not kept
 * from noticing the end at least once. */
static void events_give_times(void **state) {
    iron__gpu_event *from, *to;
    iron__gpu_buffer *b;
    uint32_t turns = 4000000;
    double ms = -1, wall = 0;
    iron_status status = IRON_OK;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64 * 4);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(b), IRON_GPU_VALUE(turns)};
    assert_ok(OPS->event_create(device, &from, &err), &err);
    assert_ok(OPS->event_create(device, &to, &err), &err);
    assert_refused(OPS->event_elapsed(from, to, &ms, &err), IRON_E_STATE, &err);
    assert_ok(OPS->clear(queue, b, 0, 64 * 4, &err), &err);
    assert_ok(launch_on(queue, "busy", 1, 64, args, 2, &err), &err); /* PoCL builds it here */
    assert_ok(OPS->queue_wait(queue, &err), &err);
    for (int k = 0; k < 100 && status == IRON_OK && ms <= 0.1 * wall; k++) {
        status = time_busy(from, to, args, &ms, &wall, &err);
        assert_true(status != IRON_OK || ms < 1.05 * wall);
    }
    if (status == IRON_E_UNSUPPORTED) {
        print_message("no times: %s\n", err.text);
    } else {
        assert_ok(status, &err);
        print_message("%.3f ms by events, %.3f ms by the host's clock\n", ms, wall);
        assert_true(ms > 0.1 * wall);
    }
    OPS->event_destroy(from);
    OPS->event_destroy(to);
    OPS->buffer_destroy(b);
}

static void the_callers_own_queues(void **state) {
    const iron__opencl_library *library;
    iron__gpu_queue *q = NULL;
    iron__cl_context *context, *foreign;
    iron__cl_queue *native;
    int32_t code = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron__opencl_load(&library, &err), &err);
    assert_refused(OPS->queue_wrap(device, 0, &q, &err), IRON_E_ARG, &err);
    assert_null(q);
    context = (iron__cl_context *)iron__opencl_context(device);
    native = library->api.clCreateCommandQueue(context, library->entries[0].id, 0, &code);
    assert_int_equal(code, 0);
    assert_ok(OPS->queue_wrap(device, (uintptr_t)native, &q, &err), &err);
    assert_true(q->is_borrowed && q->native == (uintptr_t)native && q->device == device);
    library->api.clReleaseCommandQueue(native); /* the wrap keeps it */
    assert_ok(OPS->queue_wait(q, &err), &err);
    { /* a queue that keeps no times works, but tells none */
        iron__gpu_event *event;
        double ms;

        assert_ok(OPS->event_create(device, &event, &err), &err);
        assert_ok(OPS->event_record(q, event, &err), &err);
        assert_ok(OPS->event_wait(event, &err), &err);
        assert_refused(OPS->event_elapsed(event, event, &ms, &err), IRON_E_UNSUPPORTED, &err);
        OPS->event_destroy(event);
    }
    OPS->queue_destroy(q);
    native = library->api.clCreateCommandQueue(context, library->entries[0].id,
                                               IRON_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    if (code == 0) { /* not every device has such queues */
        assert_refused(OPS->queue_wrap(device, (uintptr_t)native, &q, &err), IRON_E_ARG, &err);
        library->api.clReleaseCommandQueue(native);
    }
    const intptr_t properties[] = {IRON_CL_CONTEXT_PLATFORM, (intptr_t)library->entries[0].platform,
                                   0};
    foreign =
        library->api.clCreateContext(properties, 1, &library->entries[0].id, NULL, NULL, &code);
    assert_int_equal(code, 0);
    native = library->api.clCreateCommandQueue(foreign, library->entries[0].id, 0, &code);
    assert_int_equal(code, 0);
    assert_refused(OPS->queue_wrap(device, (uintptr_t)native, &q, &err), IRON_E_ARG, &err);
    assert_says(&err, "iron_engine_native_context");
    assert_null(q);
    library->api.clReleaseCommandQueue(native);
    library->api.clReleaseContext(foreign);
}

static void a_kernel_is_found_once(void **state) {
    iron__gpu_kernel *kernel = (iron__gpu_kernel *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ptr_equal(kernel_of("total"), kernel_of("total"));
    assert_ptr_not_equal(kernel_of("total"), kernel_of("put"));
    assert_refused(OPS->kernel_find(program, "nobody", &kernel, &err), IRON_E_ARG, &err);
    assert_null(kernel);
    assert_says(&err, "CL_INVALID_KERNEL_NAME");
    assert_says(&err, "nobody");
}

static int32_t no_answer(iron__cl_kernel *kernel, iron__cl_device *id, uint32_t what, size_t room,
                         void *out, size_t *needed) {
    (void)kernel;
    (void)id;
    (void)what;
    (void)needed;
    memset(out, 0xA5, room);
    return IRON_CL_DEVICE_NOT_AVAILABLE; /* elsewhere the end of a device */
}

/* Found where the driver tells nothing of it. */
static iron__gpu_kernel *silent_kernel(iron__gpu_program *of) {
    const iron__opencl_library *library;
    iron__gpu_kernel *kernel = NULL;
    iron__opencl_api *api, real;
    iron_error err;

    assert_ok(iron__opencl_load(&library, &err), &err);
    api = (iron__opencl_api *)&library->api;
    real = *api;
    api->clGetKernelWorkGroupInfo = no_answer;
    assert_ok(OPS->kernel_find(of, "twice", &kernel, &err), &err);
    *api = real;
    return kernel;
}

/* OpenCL tells of local memory alone; where it does not, that is 0 too, and the kernel works. */
static void what_is_told_of_kernels(void **state) {
    iron__gpu_facts facts = {.registers = 7, .local_bytes = 7};
    iron__gpu_program *other = NULL;
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 4);
    assert_ok(OPS->program_load(device, &image, &other, &err), &err);
    iron__gpu_kernel *kernels[] = {kernel_of("twice"), silent_kernel(other)};
    for (int k = 0; k < 4; k++) { /* before and after a launch */
        const iron__gpu_arg args[] = {IRON_GPU_BUFFER(b)};
        const iron__gpu_launch launch = {.kernel = kernels[k % 2],
                                         .groups = {1},
                                         .threads = {8},
                                         .args = args,
                                         .arg_count = 1,
                                         .local_bytes = 64};
        uint32_t got = 0;

        assert_string_equal(OPS->kernel_name(kernels[k % 2]), "twice");
        assert_ok(OPS->kernel_facts(device, kernels[k % 2], 8, 128, &facts, &err), &err);
        assert_int_equal(facts.local_bytes, k % 2 ? 0 : 8 * 4 + 128);
        assert_true(facts.registers == 0 && facts.spill_bytes == 0 && facts.groups == 0);
        assert_true(facts.occupancy == 0);
        assert_ok(OPS->launch(queue, &launch, &err), &err);
        copy_out(b, 0, &got, sizeof got);
        assert_int_equal(got, 42);
    }
    assert_int_equal(device->failure.status, IRON_OK);
    OPS->buffer_destroy(b);
    OPS->program_unload(other);
}

static void a_text_that_does_not_compile(void **state) {
    iron__gpu_image bad = {.name = "broken",
                           .source = "__kernel void k(__global int *p) { *p = no_such_word; }\n"};
    iron__gpu_program *none = (iron__gpu_program *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_refused(OPS->program_load(device, &bad, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    print_message("%s\n", err.text);
    assert_says(&err, "opencl: clBuildProgram failed: CL_BUILD_PROGRAM_FAILURE; ");
    assert_says(&err, "broken");
    assert_says(&err, "no_such_word");
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.native, -11);
    bad.source = NULL;
    assert_refused(OPS->program_load(device, &bad, &none, &err), IRON_E_UNSUPPORTED, &err);
    assert_int_equal(OPS->program_load(device, &bad, &none, NULL), IRON_E_UNSUPPORTED);
    assert_null(none);
}

int main(void) {
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(a_library_that_is_not_there),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_describe_themselves),
        cmocka_unit_test(kernels_get_values_and_structs),
        cmocka_unit_test(two_dimensions),
        cmocka_unit_test(launches_that_cannot_be),
        cmocka_unit_test(two_queues_wait_for_each_other),
        cmocka_unit_test(events_give_times),
        cmocka_unit_test(the_callers_own_queues),
        cmocka_unit_test(a_kernel_is_found_once),
        cmocka_unit_test(what_is_told_of_kernels),
        cmocka_unit_test(a_text_that_does_not_compile),
    };
    int failed = cmocka_run_group_tests_name("opencl_library", alone, NULL, NULL);

    return failed ? failed : cmocka_run_group_tests_name("opencl", tests, open_all, close_all);
}
