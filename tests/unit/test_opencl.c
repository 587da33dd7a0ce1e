/* SPDX-License-Identifier: MIT */
/*
 * test_opencl.c: programs, launches, queues, events and memory on the first OpenCL device, with
 * kernels small enough to know their results: copies in all directions and at all offsets, host
 * access to mapped and managed memory, wrapped buffers and queues. Invalid calls must be refused,
 * including those that OpenCL itself would accept, and must not mark the device as failed.
 *
 * Without a device all but the first test are skipped with the reason.
 */
#include "opencl_support.h"

#include "core/clock.h"

typedef struct numbers {
    uint32_t add, times;
    uint64_t wide;
} numbers;

static const iron__gpu_image image = {
    .name = "small",
    .source =
        "#if !defined(K_HAS_U64_ATOMICS) || !defined(K_HAS_F64) || defined(__FAST_RELAXED_MATH__)\n"
        "#error unexpected options\n"
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

static iron__gpu_device *device;
static iron__gpu_queue *queue;
static iron__gpu_program *program;

static int open_all(void **state) {
    (void)state;
    make_place();
    setenv("IRON_CACHE_DIR", name_in(&place, "cache").path, 1);
    if (OPS->device_open(0, &device, &reason) != IRON_OK)
        return 0;
    if (iron__gpu_queue_create(device, &queue, &reason) != IRON_OK ||
        iron__gpu_program_load(device, &image, &program, &reason) != IRON_OK) {
        print_error("%s\n", reason.text);
        return -1;
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    if (device)
        assert_int_equal(device->failure.status, IRON_OK);
    if (device) {
        iron__gpu_program_unload(program->device, program);
        iron__gpu_queue_destroy(queue);
        OPS->device_close(device);
    }
    opencl_forget();
    folder_remove(&place);
    return 0;
}

static iron__gpu_buffer *buffer_of(iron__gpu_memory memory, size_t bytes) {
    iron__gpu_buffer *buffer = NULL;
    iron_error err;

    assert_ok(iron__gpu_buffer_create(device, memory, bytes, &buffer, &err), &err);
    assert_ptr_equal(buffer->device, device);
    assert_int_equal(buffer->memory, memory);
    assert_int_equal(buffer->bytes, bytes);
    assert_true(buffer->native != 0 && !buffer->is_borrowed);
    return buffer;
}

static iron__gpu_kernel *kernel_of(const char *name) {
    iron__gpu_kernel *kernel = NULL;
    iron_error err;

    assert_ok(iron__gpu_kernel_find(program->device, program, name, &kernel, &err), &err);
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

    return iron__gpu_run(on, &launch, err);
}

/* Waits for the copy. */
static void copy_out(const iron__gpu_buffer *from, size_t offset, void *to, size_t bytes) {
    iron_error err;

    assert_ok(
        iron__gpu_copy_bytes(
            queue,
            &(iron__gpu_copy){.from = from, .from_offset = offset, .to_host = to, .bytes = bytes},
            &err),
        &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
}

static void missing_library(void **state) {
    const char *name = "/nonexistent/libOpenCL.so", *before = getenv("IRON_OPENCL_LIBRARY");
    char *saved = before ? strdup(before) : NULL;
    size_t count = 7;
    iron_error err;

    (void)state;
    setenv("IRON_OPENCL_LIBRARY", name, 1);
    opencl_forget();
    assert_refused(OPS->probe(&count, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, name);
    assert_int_equal(count, 0);
    assert_refused(OPS->device_open(0, &device, &err), IRON_E_UNSUPPORTED, &err);
    assert_null(device);
    unsetenv("IRON_OPENCL_LIBRARY");
    if (saved)
        setenv("IRON_OPENCL_LIBRARY", saved, 1);
    free(saved);
    opencl_forget();
}

static void device_info(void **state) {
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
        print_message("%zu: %s (%s), %u units, groups of %u, uvm '%s'\n", k, info.name, info.driver,
                      info.units, info.group_threads_max, info.lacks[IRON_GPU_UVM]);
        assert_true(info.name[0] && info.name[0] != ' ' && info.driver[0]);
        assert_true(info.units && info.group_threads_max && info.memory_bytes);
        assert_true(info.version >= 120);
        assert_string_equal(info.lacks[IRON_GPU_PAGEABLE], "");
    }
    assert_memory_equal(device->info.name, info.name, count == 1 ? sizeof info.name : 0);
    assert_refused(OPS->describe(count, &info, &err), IRON_E_ARG, &err);
    assert_refused(OPS->device_open(count, &none, &err), IRON_E_ARG, &err);
    assert_null(none);
    assert_true(OPS->context(device) != 0);
}

static void value_and_struct_arguments(void **state) {
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
    s = (numbers){0}; /* the launch copied the values */
    count = 0;
    copy_out(to, 0, got, sizeof got);
    for (uint64_t k = 0; k < N; k++)
        assert_int_equal(got[k], UINT64_C(0x123456789ABCDEF0) + k * 1000003 + 3);
    iron__gpu_buffer_destroy(to);
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
                               .flags = IRON_GPU_LAUNCH_OVERLAP, /* no effect */
                               .args = args,
                               .arg_count = 1,
                               .persisting = to, /* no effect */
                               .persisting_bytes = sizeof got};
    assert_ok(iron__gpu_run(queue, &launch, &err), &err);
    copy_out(to, 0, got, sizeof got);
    for (uint32_t y = 0; y < 6; y++)
        for (uint32_t x = 0; x < 8; x++)
            assert_int_equal(got[y][x], y / 2 * 1000 + y % 2 * 100 + x);
    iron__gpu_buffer_destroy(to);
}

static void invalid_launches(void **state) {
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
                                 .flags = IRON_GPU_LAUNCH_COOPERATIVE,
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
    assert_refused(iron__gpu_run(queue, &together, &err), IRON_E_UNSUPPORTED, &err);
    assert_int_equal(launch_on(queue, "total", 0, 1, good, 4, NULL), IRON_E_ARG);
    iron__gpu_buffer_destroy(b);
    iron__gpu_buffer_destroy(pinned);
}

static uint32_t after_busy(uint32_t value, uint32_t turns) {
    while (turns--)
        value = value * 1664525u + 1013904223u;
    return value;
}

/* Each queue continues with the other's result; without events they would run concurrently. */
static void queues_wait_for_events(void **state) {
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
    assert_ok(iron__gpu_clear(queue, b, 0, sizeof got, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    for (int k = 0; k < 2; k++) {
        assert_ok(iron__gpu_queue_create(device, &queues[k], &err), &err);
        assert_ok(iron__gpu_event_create(device, &events[k], &err), &err);
        assert_ok(iron__gpu_queue_wait_event(queues[k], events[k], &err),
                  &err); /* never recorded: returns at once */
        assert_ok(iron__gpu_event_wait(device, events[k], &err), &err);
    }
    for (int k = 0; k < 2 * ROUNDS; k++) {
        assert_ok(iron__gpu_queue_wait_event(queues[k % 2], events[1 - k % 2], &err), &err);
        assert_ok(launch_on(queues[k % 2], "busy", N / 64, 64, args, 2, &err), &err);
        assert_ok(iron__gpu_event_record(queues[k % 2], events[k % 2], &err), &err);
    }
    assert_ok(iron__gpu_event_wait(device, events[1], &err), &err);
    copy_out(b, 0, got, sizeof got);
    for (size_t k = 0; k < N; k++)
        assert_int_equal(got[k], after_busy(0, 2 * ROUNDS * turns));
    for (int k = 0; k < 2; k++) {
        iron__gpu_event_destroy(device, events[k]);
        iron__gpu_queue_destroy(queues[k]);
    }
    iron__gpu_buffer_destroy(b);
}

/* Times a kernel with events, and with the host's clock around them. */
static iron_status time_busy(iron__gpu_event *from, iron__gpu_event *to, const iron__gpu_arg *args,
                             double *ms, double *wall, iron_error *err) {
    uint64_t started = iron__clock_ns();

    assert_ok(iron__gpu_event_record(queue, from, err), err);
    assert_ok(launch_on(queue, "busy", 1, 64, args, 2, err), err);
    assert_ok(iron__gpu_event_record(queue, to, err), err);
    assert_ok(iron__gpu_event_wait(device, to, err), err);
    *wall = (double)(iron__clock_ns() - started) * 1e-6;
    return iron__gpu_event_elapsed(device, from, to, ms, err);
}

/* The host's clock shows more, but not arbitrarily more: in one of many runs the host notices
 * the end soon enough. */
static void event_times(void **state) {
    iron__gpu_event *from, *to;
    iron__gpu_buffer *b;
    uint32_t turns = 1000000;
    double ms = -1, wall = 0;
    iron_status status = IRON_OK;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64 * 4);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(b), IRON_GPU_VALUE(turns)};
    assert_ok(iron__gpu_event_create(device, &from, &err), &err);
    assert_ok(iron__gpu_event_create(device, &to, &err), &err);
    assert_refused(iron__gpu_event_elapsed(device, from, to, &ms, &err), IRON_E_STATE, &err);
    assert_ok(iron__gpu_clear(queue, b, 0, 64 * 4, &err), &err);
    assert_ok(launch_on(queue, "busy", 1, 64, args, 2, &err), &err); /* PoCL builds it here */
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    for (int k = 0; k < 100 && status == IRON_OK && ms <= 0.1 * wall; k++) {
        status = time_busy(from, to, args, &ms, &wall, &err);
        assert_true(status != IRON_OK || ms < 1.05 * wall);
    }
    if (status == IRON_E_UNSUPPORTED) {
        print_message("no event times: %s\n", err.text);
    } else {
        assert_ok(status, &err);
        print_message("%.3f ms by events, %.3f ms by the host's clock\n", ms, wall);
        assert_true(ms > 0.1 * wall);
    }
    iron__gpu_event_destroy(device, from);
    iron__gpu_event_destroy(device, to);
    iron__gpu_buffer_destroy(b);
}

static void wrapped_queues(void **state) {
    const iron__opencl_library *library = &the_library;
    iron__gpu_queue *q = NULL;
    iron__cl_context *context, *foreign;
    iron__cl_queue *native;
    int32_t code = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(need_library(&err), &err);
    assert_refused(iron__gpu_queue_wrap(device, 0, &q, &err), IRON_E_ARG, &err);
    assert_null(q);
    context = (iron__cl_context *)OPS->context(device);
    native = library->api.clCreateCommandQueue(context, library->entries[0].id, 0, &code);
    assert_int_equal(code, 0);
    assert_ok(iron__gpu_queue_wrap(device, (uintptr_t)native, &q, &err), &err);
    assert_true(q->is_borrowed && q->native == (uintptr_t)native && q->device == device);
    library->api.clReleaseCommandQueue(native); /* the wrapper retains it */
    assert_ok(iron__gpu_queue_wait(q, &err), &err);
    { /* a queue without profiling works, but has no times */
        iron__gpu_event *event;
        double ms;

        assert_ok(iron__gpu_event_create(device, &event, &err), &err);
        assert_ok(iron__gpu_event_record(q, event, &err), &err);
        assert_ok(iron__gpu_event_wait(device, event, &err), &err);
        assert_refused(iron__gpu_event_elapsed(device, event, event, &ms, &err), IRON_E_UNSUPPORTED,
                       &err);
        iron__gpu_event_destroy(device, event);
    }
    iron__gpu_queue_destroy(q);
    native = library->api.clCreateCommandQueue(context, library->entries[0].id,
                                               IRON_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    if (code == 0) { /* not every device has out-of-order queues */
        assert_refused(iron__gpu_queue_wrap(device, (uintptr_t)native, &q, &err), IRON_E_ARG, &err);
        library->api.clReleaseCommandQueue(native);
    }
    const intptr_t properties[] = {IRON_CL_CONTEXT_PLATFORM, (intptr_t)library->entries[0].platform,
                                   0};
    foreign =
        library->api.clCreateContext(properties, 1, &library->entries[0].id, NULL, NULL, &code);
    assert_int_equal(code, 0);
    native = library->api.clCreateCommandQueue(foreign, library->entries[0].id, 0, &code);
    assert_int_equal(code, 0);
    assert_refused(iron__gpu_queue_wrap(device, (uintptr_t)native, &q, &err), IRON_E_ARG, &err);
    assert_says(&err, "iron_engine_native_context");
    assert_null(q);
    library->api.clReleaseCommandQueue(native);
    library->api.clReleaseContext(foreign);
}

static void kernel_lookup(void **state) {
    iron__gpu_kernel *kernel = (iron__gpu_kernel *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ptr_equal(kernel_of("total"), kernel_of("total"));
    assert_ptr_not_equal(kernel_of("total"), kernel_of("put"));
    assert_refused(iron__gpu_kernel_find(program->device, program, "absent", &kernel, &err),
                   IRON_E_ARG, &err);
    assert_null(kernel);
    assert_says(&err, "CL_INVALID_KERNEL_NAME");
    assert_says(&err, "absent");
}

static int32_t fail_work_group_info(iron__cl_kernel *kernel, iron__cl_device *id, uint32_t what,
                                    size_t room, void *out, size_t *needed) {
    (void)kernel;
    (void)id;
    (void)what;
    (void)needed;
    memset(out, 0xA5, room);
    return IRON_CL_DEVICE_NOT_AVAILABLE; /* from other functions it marks the device */
}

/* A kernel whose driver does not report local memory. */
static iron__gpu_kernel *kernel_without_local_bytes(iron__gpu_program *of) {
    iron__opencl_api *api = writable_api(), real = *api;
    iron__gpu_kernel *kernel = NULL;
    iron_error err;

    api->clGetKernelWorkGroupInfo = fail_work_group_info;
    assert_ok(iron__gpu_kernel_find(of->device, of, "twice", &kernel, &err), &err);
    *api = real;
    return kernel;
}

/* OpenCL reports local memory only. If the driver does not, it is 0, and the kernel still works. */
static void kernel_resources(void **state) {
    iron__gpu_resources resources = {.registers = 7, .local_bytes = 7};
    iron__gpu_program *other = NULL;
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 4);
    assert_ok(iron__gpu_program_load(device, &image, &other, &err), &err);
    iron__gpu_kernel *kernels[] = {kernel_of("twice"), kernel_without_local_bytes(other)};
    for (int k = 0; k < 4; k++) { /* before and after a launch */
        const iron__gpu_arg args[] = {IRON_GPU_BUFFER(b)};
        const iron__gpu_launch launch = {.kernel = kernels[k % 2],
                                         .groups = {1},
                                         .threads = {8},
                                         .args = args,
                                         .arg_count = 1,
                                         .local_bytes = 64};
        uint32_t got = 0;

        assert_string_equal(kernels[k % 2]->name, "twice");
        assert_ok(iron__gpu_kernel_resources(device, kernels[k % 2], 8, 128, &resources, &err),
                  &err);
        assert_int_equal(resources.local_bytes, k % 2 ? 0 : 8 * 4 + 128);
        assert_true(resources.registers == 0 && resources.spill_bytes == 0 &&
                    resources.groups == 0);
        assert_true(resources.occupancy == 0);
        assert_ok(iron__gpu_run(queue, &launch, &err), &err);
        copy_out(b, 0, &got, sizeof got);
        assert_int_equal(got, 42);
    }
    assert_int_equal(device->failure.status, IRON_OK);
    iron__gpu_buffer_destroy(b);
    iron__gpu_program_unload(other->device, other);
}

static void build_errors(void **state) {
    iron__gpu_image bad = {.name = "broken",
                           .source = "__kernel void k(__global int *p) { *p = no_such_word; }\n"};
    iron__gpu_program *none = (iron__gpu_program *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_refused(iron__gpu_program_load(device, &bad, &none, &err), IRON_E_IO, &err);
    assert_null(none);
    print_message("%s\n", err.text);
    assert_says(&err, "opencl: clBuildProgram failed: CL_BUILD_PROGRAM_FAILURE; ");
    assert_says(&err, "broken");
    assert_says(&err, "no_such_word");
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.native, -11);
    bad.source = NULL;
    assert_refused(iron__gpu_program_load(device, &bad, &none, &err), IRON_E_UNSUPPORTED, &err);
    assert_int_equal(iron__gpu_program_load(device, &bad, &none, NULL), IRON_E_UNSUPPORTED);
    assert_null(none);
}

static iron_status launch_total(const iron__gpu_arg *args, uint32_t groups, iron_error *err) {
    iron__gpu_launch launch = {.groups = {groups}, .threads = {64}, .args = args, .arg_count = 4};

    assert_ok(iron__gpu_kernel_find(program->device, program, "total", &launch.kernel, err), err);
    return iron__gpu_run(queue, &launch, err);
}

static void copy_in(const void *from, iron__gpu_buffer *to, size_t offset, size_t bytes) {
    iron_error err;

    assert_ok(
        iron__gpu_copy_bytes(
            queue,
            &(iron__gpu_copy){.from_host = from, .to = to, .to_offset = offset, .bytes = bytes},
            &err),
        &err);
}

/* The sum of count tokens of a buffer, computed by a kernel. */
static uint32_t total_of(const iron__gpu_buffer *from, uint64_t first, uint64_t count) {
    iron__gpu_buffer *sum = buffer_of(IRON_GPU_MEMORY_DEVICE, 4);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_VALUE(first), IRON_GPU_VALUE(count),
                            IRON_GPU_BUFFER(sum)};
    uint32_t got;
    iron_error err;

    assert_ok(iron__gpu_clear(queue, sum, 0, 4, &err), &err);
    assert_ok(launch_total(args, (uint32_t)(count + 63) / 64, &err), &err);
    copy_out(sum, 0, &got, sizeof got);
    iron__gpu_buffer_destroy(sum);
    return got;
}

static void copies_at_offsets(void **state) {
    enum { N = 1024 };
    unsigned char in[N], out[N], want[N];
    iron__gpu_buffer *a, *b;
    rng r = {5};
    iron_error err;

    (void)state;
    NEED_DEVICE();
    a = buffer_of(IRON_GPU_MEMORY_DEVICE, N);
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, N);
    for (int round = 0; round < 50; round++) {
        size_t from = (size_t)rng_below(&r, N), to = (size_t)rng_below(&r, N);
        size_t longest = N - (from > to ? from : to);
        size_t bytes = (size_t)rng_below(&r, longest + 1); /* including 0 */

        for (size_t k = 0; k < N; k++)
            in[k] = (unsigned char)rng_next(&r);
        memset(want, 0, N);
        memcpy(want + to, in + from, bytes);
        copy_in(in, a, 0, N);
        assert_ok(iron__gpu_clear(queue, b, 0, N, &err), &err);
        iron__gpu_copy copy = {
            .from = a, .to = b, .from_offset = from, .to_offset = to, .bytes = bytes};
        assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
        memset(out, 0xEE, N);
        copy_out(b, to, out + to, N - to);
        assert_memory_equal(out + to, want + to, N - to);
        /* offsets in host memory count from its address */
        copy = (iron__gpu_copy){
            .from_host = in, .to = b, .from_offset = from, .to_offset = to, .bytes = bytes};
        assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
        copy_out(b, 0, out, N);
        assert_memory_equal(out, want, N);
    }
    iron__gpu_buffer_destroy(a);
    iron__gpu_buffer_destroy(b);
}

static void clears(void **state) {
    uint32_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    const uint32_t want[8] = {1, 2, 0, 0, 0, 6, 7, 8};
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, sizeof in);
    copy_in(in, b, 0, sizeof in);
    assert_ok(iron__gpu_clear(queue, b, 8, 12, &err), &err);
    assert_ok(iron__gpu_clear(queue, b, 32, 0, &err), &err);
    assert_refused(iron__gpu_clear(queue, b, 2, 4, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_clear(queue, b, 4, 5, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_clear(queue, b, 4, 32, &err), IRON_E_ARG, &err);
    copy_out(b, 0, out, sizeof out);
    assert_memory_equal(out, want, sizeof out);
    iron__gpu_buffer_destroy(b);
}

static void invalid_copies(void **state) {
    iron__gpu_buffer *b;
    char host[64];
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    iron__gpu_copy bad[] = {
        {.from = b, .to_host = host, .bytes = 65},
        {.from = b, .to_host = host, .from_offset = 60, .bytes = 5},
        {.from = b, .to_host = host, .from_offset = SIZE_MAX, .bytes = 2},
        {.from_host = host, .to = b, .to_offset = 65},
        {.from_host = host, .to = b, .to_offset = 32, .bytes = SIZE_MAX},
        {.from = b, .bytes = 4},
        {.to = b, .bytes = 4},
        {.from_host = host, .to_host = host, .bytes = 4},
        {.from = b, .from_host = host, .to_host = host, .bytes = 4},
        {.from = b, .to = b, .to_offset = 4, .bytes = 16},
    };
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__gpu_copy_bytes(queue, &bad[k], &err), IRON_E_ARG, &err);
    assert_says(&err, "CL_MEM_COPY_OVERLAP");
    iron__gpu_buffer_destroy(b);
}

static void invalid_buffers(void **state) {
    iron__gpu_buffer *b = (iron__gpu_buffer *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    for (int kind = IRON_GPU_MEMORY_DEVICE; kind <= IRON_GPU_MEMORY_MAPPED; kind++) {
        assert_refused(iron__gpu_buffer_create(device, (iron__gpu_memory)kind, 0, &b, &err),
                       IRON_E_ARG, &err);
        assert_null(b);
        assert_refused(iron__gpu_buffer_create(device, (iron__gpu_memory)kind, SIZE_MAX, &b, &err),
                       IRON_E_NOMEM, &err);
        assert_says(&err, "18446744073709551615");
        assert_null(b);
    }
    iron__gpu_buffer_destroy(NULL);
    iron__gpu_queue_destroy(NULL);
    iron__gpu_event_destroy(device, NULL);
    iron__gpu_program_unload(device, NULL);
    iron__gpu_device_close(NULL);
}

static void pinned_memory(void **state) {
    enum { N = 100000 };
    iron__gpu_buffer *pinned, *b;
    uint32_t *tokens, sum = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    pinned = buffer_of(IRON_GPU_MEMORY_PINNED, N * 4);
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, N * 4);
    tokens = pinned->host;
    assert_non_null(tokens);
    for (uint32_t k = 0; k < N; k++)
        sum += tokens[k] = k * 2654435761u;
    assert_ok(iron__gpu_host_begin(queue, pinned, &err), &err); /* nothing to do */
    assert_ok(iron__gpu_host_end(queue, pinned, &err), &err);
    assert_ptr_equal(pinned->host, tokens);
    iron__gpu_copy copy = {.from = pinned, .to = b, .from_offset = 4, .bytes = (N - 1) * 4};
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_int_equal(total_of(b, 0, N - 1), sum - tokens[0]);
    memset(tokens, 0, N * 4);
    copy = (iron__gpu_copy){.from = b, .to = pinned, .bytes = (N - 1) * 4};
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    for (uint32_t k = 0; k + 1 < N; k++)
        assert_int_equal(tokens[k], (k + 1) * 2654435761u);
    assert_refused(iron__gpu_clear(queue, pinned, 0, 4, &err), IRON_E_ARG, &err);
    iron__gpu_buffer_destroy(pinned);
    iron__gpu_buffer_destroy(b);
}

/* For managed and mapped memory: host and kernels use the buffer alternately. */
static void alternate_host_and_kernel(iron__gpu_memory memory) {
    enum { N = 5000 };
    iron__gpu_buffer *shared = buffer_of(memory, N * 4), *b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    uint64_t first = 0, count = N;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(shared), IRON_GPU_VALUE(first), IRON_GPU_VALUE(count),
                            IRON_GPU_BUFFER(b)};
    uint32_t few[4];
    iron_error err;

    assert_null(shared->host);
    if (memory == IRON_GPU_MEMORY_MANAGED)
        assert_int_equal(shared->native % IRON_GPU_ALIGNMENT, 0);
    for (uint32_t round = 1; round < 4; round++) {
        uint32_t *tokens, sum = 0;

        assert_refused(iron__gpu_host_end(queue, shared, &err), IRON_E_STATE, &err);
        assert_ok(iron__gpu_host_begin(queue, shared, &err), &err);
        tokens = shared->host;
        assert_non_null(tokens);
        /* only part of it: the rest stays from the last round */
        for (uint32_t k = 0; k < N; k++) {
            if (round == 1 || k % round == 0)
                tokens[k] = k * round * 40503u;
            sum += tokens[k];
        }
        assert_refused(iron__gpu_host_begin(queue, shared, &err), IRON_E_STATE, &err);
        assert_refused(launch_total(args, 1, &err), IRON_E_STATE, &err);
        assert_refused(iron__gpu_clear(queue, shared, 0, 4, &err), IRON_E_STATE, &err);
        assert_ok(iron__gpu_host_end(queue, shared, &err), &err);
        assert_null(shared->host);
        assert_int_equal(total_of(shared, 0, N), sum);
        assert_int_equal(total_of(shared, 0, N), sum);
    }
    copy_out(shared, 16, few, sizeof few);
    assert_int_equal(few[0], 4 * 2 * 40503u);
    copy_in(few, shared, 0, sizeof few);
    assert_int_equal(total_of(shared, 0, 1), few[0]);
    assert_ok(iron__gpu_clear(queue, shared, 4, 8, &err), &err);
    assert_int_equal(total_of(shared, 0, 4), few[0] + few[3]);
    /* to and from device memory */
    iron__gpu_copy copy = {.from = shared, .to = b, .from_offset = 12, .to_offset = 4, .bytes = 4};
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_int_equal(total_of(b, 1, 1), few[3]);
    copy = (iron__gpu_copy){.from = b, .to = shared, .from_offset = 4, .to_offset = 4, .bytes = 4};
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_int_equal(total_of(shared, 1, 1), few[3]);
    copy = (iron__gpu_copy){.from = shared, .to = shared, .to_offset = 4000, .bytes = 16};
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_int_equal(total_of(shared, 1000, 4), total_of(shared, 0, 4));
    iron__gpu_buffer_destroy(b);
    /* destroyed while the host has access */
    assert_ok(iron__gpu_host_begin(queue, shared, &err), &err);
    iron__gpu_buffer_destroy(shared);
}

static void mapped_memory(void **state) {
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    alternate_host_and_kernel(IRON_GPU_MEMORY_MAPPED);
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    assert_refused(iron__gpu_host_begin(queue, b, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_host_end(queue, b, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_prefetch(queue, b, 64, &err), IRON_E_ARG, &err);
    iron__gpu_buffer_destroy(b);
}

static void managed_memory(void **state) {
    const char *lack;
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    lack = device->info.lacks[IRON_GPU_UVM];
    if (lack[0]) {
        assert_refused(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_MANAGED, 64, &b, &err),
                       IRON_E_UNSUPPORTED, &err);
        assert_says(&err, lack);
        assert_null(b);
        return;
    }
    alternate_host_and_kernel(IRON_GPU_MEMORY_MANAGED);
    assert_refused(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_MANAGED,
                                           (size_t)device->info.memory_bytes / 2 + 1, &b, &err),
                   IRON_E_NOMEM, &err);
    b = buffer_of(IRON_GPU_MEMORY_MANAGED, 4096);
    if (!device->info.lacks[IRON_GPU_UVM_PREFETCH][0]) {
        assert_ok(iron__gpu_prefetch(queue, b, 4096, &err), &err);
        assert_ok(iron__gpu_prefetch(queue, b, 0, &err), &err);
        assert_refused(iron__gpu_prefetch(queue, b, 4097, &err), IRON_E_ARG, &err);
        assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    }
    iron__gpu_buffer_destroy(b);
}

static void wrapped_buffers(void **state) {
    const iron__opencl_library *library = &the_library;
    iron__cl_context *foreign;
    iron__gpu_buffer *b = NULL;
    iron__cl_memory *memory;
    uint32_t in[4] = {1, 20, 300, 4000};
    int32_t code = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(need_library(&err), &err);
    memory = library->api.clCreateBuffer((iron__cl_context *)OPS->context(device),
                                         IRON_CL_MEM_READ_WRITE, 16, NULL, &code);
    assert_int_equal(code, 0);
    assert_refused(iron__gpu_buffer_wrap(device, (uintptr_t)memory, 17, &b, &err), IRON_E_ARG,
                   &err);
    assert_refused(iron__gpu_buffer_wrap(device, (uintptr_t)memory, 0, &b, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_buffer_wrap(device, 0, 16, &b, &err), IRON_E_ARG, &err);
    assert_null(b);
    assert_ok(iron__gpu_buffer_wrap(device, (uintptr_t)memory, 16, &b, &err), &err);
    assert_true(b->is_borrowed && b->native == (uintptr_t)memory && !b->host);
    library->api.clReleaseMemObject(memory); /* the wrapper retains it */
    copy_in(in, b, 0, sizeof in);
    assert_int_equal(total_of(b, 1, 3), 4320);
    iron__gpu_buffer_destroy(b);

    const intptr_t properties[] = {IRON_CL_CONTEXT_PLATFORM, (intptr_t)library->entries[0].platform,
                                   0};
    foreign =
        library->api.clCreateContext(properties, 1, &library->entries[0].id, NULL, NULL, &code);
    assert_int_equal(code, 0);
    memory = library->api.clCreateBuffer(foreign, IRON_CL_MEM_READ_WRITE, 16, NULL, &code);
    assert_int_equal(code, 0);
    assert_refused(iron__gpu_buffer_wrap(device, (uintptr_t)memory, 16, &b, &err), IRON_E_ARG,
                   &err);
    assert_says(&err, "iron_engine_native_context");
    assert_null(b);
    library->api.clReleaseMemObject(memory);
    library->api.clReleaseContext(foreign);
}

int main(void) {
    const struct CMUnitTest without_device[] = {
        cmocka_unit_test(missing_library),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_info),
        cmocka_unit_test(value_and_struct_arguments),
        cmocka_unit_test(two_dimensions),
        cmocka_unit_test(invalid_launches),
        cmocka_unit_test(queues_wait_for_events),
        cmocka_unit_test(event_times),
        cmocka_unit_test(wrapped_queues),
        cmocka_unit_test(kernel_lookup),
        cmocka_unit_test(kernel_resources),
        cmocka_unit_test(build_errors),
        cmocka_unit_test(copies_at_offsets),
        cmocka_unit_test(clears),
        cmocka_unit_test(invalid_copies),
        cmocka_unit_test(invalid_buffers),
        cmocka_unit_test(pinned_memory),
        cmocka_unit_test(mapped_memory),
        cmocka_unit_test(managed_memory),
        cmocka_unit_test(wrapped_buffers),
    };
    int failed = cmocka_run_group_tests_name("opencl_library", without_device, NULL, NULL);

    return failed ? failed : cmocka_run_group_tests_name("opencl", tests, open_all, close_all);
}
