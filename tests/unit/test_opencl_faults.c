/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_faults.c: driver errors. Functions of the loader's table are replaced by ones that
 * fail with a code. The error must have that code's name and the right status, leak nothing, and
 * mark the device as failed exactly if the code means that it is lost.
 *
 * Every test opens its own device, because a mark stays. Skipped with the reason if there is none.
 */
#include "opencl_support.h"

static iron__opencl_api *api, real;
static iron__gpu_device *device;
static iron__gpu_queue *queue;
static size_t memory_held; /* buffers created and not released */

static int32_t fail_wait_for_events(uint32_t count, iron__cl_event *const *events) {
    (void)count;
    (void)events;
    return fail_code;
}

static int32_t fail_profiling_info(iron__cl_event *event, uint32_t what, size_t room, void *out,
                                   size_t *needed) {
    (void)event;
    (void)what;
    (void)needed;
    memset(out, 0, room);
    return fail_code;
}

static int32_t fail_fill(iron__cl_queue *q, iron__cl_memory *memory, const void *pattern,
                         size_t pattern_bytes, size_t offset, size_t bytes, uint32_t count,
                         iron__cl_event *const *events, iron__cl_event **event) {
    (void)q;
    (void)memory;
    (void)pattern;
    (void)pattern_bytes;
    (void)offset;
    (void)bytes;
    (void)count;
    (void)events;
    (void)event;
    return fail_code;
}

/* Fails once: the device is alive. */
static int32_t fail_fill_once(iron__cl_queue *q, iron__cl_memory *memory, const void *pattern,
                              size_t pattern_bytes, size_t offset, size_t bytes, uint32_t count,
                              iron__cl_event *const *events, iron__cl_event **event) {
    api->clEnqueueFillBuffer = real.clEnqueueFillBuffer;
    return fail_fill(q, memory, pattern, pattern_bytes, offset, bytes, count, events, event);
}

static void *fail_map(iron__cl_queue *q, iron__cl_memory *memory, uint32_t is_blocking,
                      uint64_t flags, size_t offset, size_t bytes, uint32_t count,
                      iron__cl_event *const *events, iron__cl_event **event, int32_t *code) {
    (void)q;
    (void)memory;
    (void)is_blocking;
    (void)flags;
    (void)offset;
    (void)bytes;
    (void)count;
    (void)events;
    (void)event;
    *code = fail_code;
    return NULL;
}

static iron__cl_memory *counted_create(iron__cl_context *context, uint64_t flags, size_t bytes,
                                       void *host, int32_t *code) {
    iron__cl_memory *memory = real.clCreateBuffer(context, flags, bytes, host, code);

    memory_held += memory != NULL;
    return memory;
}

static int32_t counted_release(iron__cl_memory *memory) {
    memory_held--;
    return real.clReleaseMemObject(memory);
}

static iron__cl_memory *fail_create(iron__cl_context *context, uint64_t flags, size_t bytes,
                                    void *host, int32_t *code) {
    (void)context;
    (void)flags;
    (void)bytes;
    (void)host;
    *code = fail_code;
    return NULL;
}

static void *fail_svm_alloc(iron__cl_context *context, uint64_t flags, size_t bytes,
                            uint32_t alignment) {
    (void)context;
    (void)flags;
    (void)bytes;
    (void)alignment;
    return NULL;
}

static iron__cl_queue *fail_create_queue(iron__cl_context *context, iron__cl_device *id,
                                         const uint64_t *properties, int32_t *code) {
    (void)context;
    (void)id;
    (void)properties;
    *code = fail_code;
    return NULL;
}

static int set_up(void **state) {
    (void)state;
    make_place();
    device = NULL;
    reason = (iron_error){.status = IRON_OK};
    queue = NULL;
    memory_held = 0;
    fail_code = IRON_CL_OUT_OF_RESOURCES;
    if (OPS->device_open(0, &device, &reason) != IRON_OK)
        return 0;
    api = writable_api();
    real = *api;
    assert_ok(iron__gpu_queue_create(device, &queue, &reason), &reason);
    api->clCreateBuffer = counted_create;
    api->clReleaseMemObject = counted_release;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (device) {
        assert_int_equal(memory_held, 0);
        *api = real;
        iron__gpu_queue_destroy(queue);
        OPS->device_close(device);
    }
    opencl_forget();
    folder_remove(&place);
    return 0;
}

static void assert_marked(const iron_error *err) {
    assert_int_equal(device->failure.status, err->status);
    assert_int_equal(device->failure.native, err->native);
    assert_string_equal(device->failure.text, err->text);
    device->failure = (iron_error){.status = IRON_OK};
}

static void assert_unmarked(void) { assert_int_equal(device->failure.status, IRON_OK); }

/* Which codes mark the device, after waiting and after only enqueuing a command. */
static void codes_that_mark_the_device(void **state) {
    static const struct {
        int32_t code;
        const char *name;
        iron_status status;
        bool waiting_marks, enqueuing_marks;
    } rows[] = {
        {-5, "CL_OUT_OF_RESOURCES", IRON_E_IO, true, false},
        {-2, "CL_DEVICE_NOT_AVAILABLE", IRON_E_IO, true, true},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", IRON_E_IO, true, true},
        {-36, "CL_INVALID_COMMAND_QUEUE", IRON_E_IO, true, true},
        {-9999, "unknown code -9999", IRON_E_IO, true, true},
        {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", IRON_E_NOMEM, false, false},
        {-6, "CL_OUT_OF_HOST_MEMORY", IRON_E_NOMEM, false, false},
        {-30, "CL_INVALID_VALUE", IRON_E_IO, false, false},
        {-59, "CL_INVALID_OPERATION", IRON_E_IO, false, false},
        {-54, "CL_INVALID_WORK_GROUP_SIZE", IRON_E_ARG, false, false},
    };
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, 64, &b, &err), &err);
    for (size_t k = 0; k < COUNT(rows); k++) {
        fail_code = rows[k].code;
        api->clFinish = fail_finish;
        assert_refused(iron__gpu_queue_wait(queue, &err), rows[k].status, &err);
        api->clFinish = real.clFinish;
        assert_says(&err, "opencl: clFinish failed: ");
        assert_says(&err, rows[k].name);
        assert_says(&err, "; ");
        assert_int_equal(err.native, rows[k].code);
        if (rows[k].waiting_marks)
            assert_marked(&err);
        assert_unmarked();
        api->clEnqueueFillBuffer = fail_fill;
        assert_refused(iron__gpu_clear(queue, b, 0, 64, &err), rows[k].status, &err);
        api->clEnqueueFillBuffer = real.clEnqueueFillBuffer;
        assert_says(&err, rows[k].name);
        if (rows[k].enqueuing_marks)
            assert_marked(&err);
        assert_unmarked();
    }
    iron__gpu_buffer_destroy(b);
}

static void first_error_stays(void **state) {
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clFinish = fail_finish;
    assert_int_equal(iron__gpu_queue_wait(queue, NULL), IRON_E_IO);
    fail_code = IRON_CL_DEVICE_NOT_AVAILABLE;
    assert_refused(OPS->queue->wait(queue, &err), IRON_E_IO, &err);
    assert_int_equal(err.native, IRON_CL_DEVICE_NOT_AVAILABLE);
    assert_int_equal(device->failure.native, IRON_CL_OUT_OF_RESOURCES);
}

static void event_errors(void **state) {
    iron__gpu_event *event;
    double ms = 7;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron__gpu_event_create(device, &event, &err), &err);
    api->clFlush = fail_finish;
    assert_refused(iron__gpu_event_record(queue, event, &err), IRON_E_IO, &err);
    assert_unmarked();
    api->clFlush = real.clFlush;
    assert_ok(iron__gpu_event_record(queue, event, &err), &err);
    assert_ok(iron__gpu_event_wait(device, event, &err), &err);
    api->clGetEventProfilingInfo = fail_profiling_info;
    fail_code = IRON_CL_PROFILING_INFO_NOT_AVAILABLE;
    assert_refused(iron__gpu_event_elapsed(device, event, event, &ms, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "CL_PROFILING_INFO_NOT_AVAILABLE");
    fail_code = IRON_CL_SUCCESS; /* but the time is 0 */
    assert_refused(iron__gpu_event_elapsed(device, event, event, &ms, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_true(ms == 0);
    assert_unmarked();
    api->clWaitForEvents = fail_wait_for_events;
    fail_code = IRON_CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    assert_refused(iron__gpu_event_wait(device, event, &err), IRON_E_IO, &err);
    assert_marked(&err);
    iron__gpu_event_destroy(device, event);
}

static void assert_no_buffer(iron__gpu_memory memory, iron_status expected, const char *word) {
    iron__gpu_buffer *b = (iron__gpu_buffer *)&place;
    iron_error err;

    assert_refused(iron__gpu_buffer_create(device, memory, 12345, &b, &err), expected, &err);
    assert_null(b);
    assert_says(&err, word);
    if (expected == IRON_E_NOMEM)
        assert_says(&err, "12345 bytes");
    assert_int_equal(memory_held, 0);
}

static void out_of_memory(void **state) {
    static const iron__gpu_memory kinds[] = {IRON_GPU_MEMORY_DEVICE, IRON_GPU_MEMORY_PINNED,
                                             IRON_GPU_MEMORY_MAPPED};

    (void)state;
    NEED_DEVICE();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        fail_code = IRON_CL_MEM_OBJECT_ALLOCATION_FAILURE;
        api->clCreateBuffer = fail_create;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "clCreateBuffer failed: CL_MEM_OBJECT_ALLOC");
        fail_code = IRON_CL_INVALID_BUFFER_SIZE;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "CL_INVALID_BUFFER_SIZE");
        api->clCreateBuffer = counted_create;
        fail_code = IRON_CL_MEM_OBJECT_ALLOCATION_FAILURE; /* only when it is touched */
        api->clEnqueueFillBuffer = fail_fill;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "clEnqueueFillBuffer failed: CL_MEM_OBJECT_ALLOC");
        fail_code = IRON_CL_OUT_OF_RESOURCES; /* a small buffer works, so memory is the reason */
        api->clEnqueueFillBuffer = fail_fill_once;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "CL_OUT_OF_RESOURCES");
        api->clEnqueueFillBuffer = real.clEnqueueFillBuffer;
        assert_unmarked();
    }
    fail_code = IRON_CL_MAP_FAILURE;
    api->clEnqueueMapBuffer = fail_map;
    assert_no_buffer(IRON_GPU_MEMORY_PINNED, IRON_E_NOMEM, "CL_MAP_FAILURE");
    assert_unmarked();
}

static void crashed_device(void **state) {
    (void)state;
    NEED_DEVICE();
    api->clEnqueueFillBuffer = fail_fill; /* even a small buffer fails */
    assert_no_buffer(IRON_GPU_MEMORY_DEVICE, IRON_E_IO, "CL_OUT_OF_RESOURCES");
    assert_int_equal(device->failure.status, IRON_E_IO);
}

static void host_access_errors(void **state) {
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_MAPPED, 64, &b, &err), &err);
    fail_code = IRON_CL_MAP_FAILURE;
    api->clEnqueueMapBuffer = fail_map;
    assert_refused(iron__gpu_host_begin(queue, b, &err), IRON_E_NOMEM, &err);
    assert_null(b->host);
    assert_unmarked();
    fail_code = IRON_CL_OUT_OF_RESOURCES; /* it waited for a crashed kernel */
    assert_refused(iron__gpu_host_begin(queue, b, &err), IRON_E_IO, &err);
    assert_null(b->host);
    assert_marked(&err);
    iron__gpu_buffer_destroy(b);
}

static void missing_svm(void **state) {
    iron__gpu_buffer *b;
    iron__gpu_info info;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clEnqueueSVMMigrateMem = NULL;
    assert_ok(OPS->describe(0, &info, &err), &err);
    assert_true(info.lacks[IRON_GPU_UVM_PREFETCH][0] != '\0');
    api->clEnqueueSVMMap = NULL;
    assert_ok(OPS->describe(0, &info, &err), &err);
    assert_string_equal(info.lacks[IRON_GPU_UVM], "the device has no shared virtual memory");
    if (!device->info.lacks[IRON_GPU_UVM][0]) {
        api->clSVMAlloc = fail_svm_alloc;
        assert_no_buffer(IRON_GPU_MEMORY_MANAGED, IRON_E_NOMEM, "clSVMAlloc");
    }
    device->info = info;
    assert_refused(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_MANAGED, 64, &b, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "the device has no shared virtual memory");
    assert_null(b);
    assert_unmarked();
}

static void device_and_queue_errors(void **state) {
    iron__gpu_device *other = (iron__gpu_device *)&place;
    iron__gpu_queue *q = (iron__gpu_queue *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    iron__gpu_queue_destroy(queue); /* while the device is open, it has a context */
    OPS->device_close(device);
    fail_code = IRON_CL_OUT_OF_HOST_MEMORY;
    api->clCreateContext = fail_context;
    assert_refused(OPS->device_open(0, &other, &err), IRON_E_NOMEM, &err);
    assert_says(&err, "clCreateContext");
    assert_null(other);
    fail_code = IRON_CL_DEVICE_NOT_AVAILABLE; /* lost before there is a context */
    assert_refused(OPS->device_open(0, &other, &err), IRON_E_IO, &err);
    assert_null(other);
    api->clCreateContext = real.clCreateContext;
    assert_ok(OPS->device_open(0, &device, &err), &err);
    assert_ok(iron__gpu_queue_create(device, &queue, &err), &err);
    if (real.clCreateCommandQueueWithProperties && device->info.version >= 200) {
        fail_code = IRON_CL_DEVICE_NOT_AVAILABLE;
        api->clCreateCommandQueueWithProperties = fail_create_queue;
        assert_refused(OPS->device_open(0, &other, &err), IRON_E_IO, &err);
        assert_null(other);
        assert_unmarked();
        assert_refused(iron__gpu_queue_create(device, &q, &err), IRON_E_IO, &err);
        assert_null(q);
        assert_marked(&err);
    }
    api->clCreateCommandQueueWithProperties = NULL; /* the older function works too */
    assert_ok(iron__gpu_queue_create(device, &q, &err), &err);
    assert_ok(iron__gpu_queue_wait(q, &err), &err);
    iron__gpu_queue_destroy(q);
}

#define FAULT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FAULT_TEST(codes_that_mark_the_device),
        FAULT_TEST(first_error_stays),
        FAULT_TEST(event_errors),
        FAULT_TEST(out_of_memory),
        FAULT_TEST(crashed_device),
        FAULT_TEST(host_access_errors),
        FAULT_TEST(missing_svm),
        FAULT_TEST(device_and_queue_errors),
    };

    return cmocka_run_group_tests_name("opencl_faults", tests, NULL, NULL);
}
