/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_faults.c: drivers that fail. Functions of the loader's table are replaced by ones
 * that answer with a code; the error must carry that code's name, become the right status, leave
 * nothing behind, and mark the device exactly when the code means that it is lost.
 *
 * Every test opens a device of its own: a mark stays. Without a device the tests are skipped with
 * the reason.
 */
#include "opencl_planted.h"
#include "opencl_support.h"

#include "gpu/opencl/opencl_loader.h"

static iron__opencl_api *api, real;
static iron__gpu_queue *queue;
static size_t memory_held; /* buffers created and not released */

static int32_t bad_queue_call(iron__cl_queue *q) {
    (void)q;
    return planted;
}

static int32_t bad_wait(uint32_t count, iron__cl_event *const *events) {
    (void)count;
    (void)events;
    return planted;
}

static int32_t bad_times(iron__cl_event *event, uint32_t what, size_t room, void *out,
                         size_t *needed) {
    (void)event;
    (void)what;
    (void)needed;
    memset(out, 0, room);
    return planted;
}

static int32_t bad_fill(iron__cl_queue *q, iron__cl_memory *memory, const void *pattern,
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
    return planted;
}

/* Fails once: the device itself lives. */
static int32_t bad_fill_once(iron__cl_queue *q, iron__cl_memory *memory, const void *pattern,
                             size_t pattern_bytes, size_t offset, size_t bytes, uint32_t count,
                             iron__cl_event *const *events, iron__cl_event **event) {
    api->clEnqueueFillBuffer = real.clEnqueueFillBuffer;
    return bad_fill(q, memory, pattern, pattern_bytes, offset, bytes, count, events, event);
}

static void *bad_map(iron__cl_queue *q, iron__cl_memory *memory, uint32_t is_blocking,
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
    *code = planted;
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

static iron__cl_memory *bad_create(iron__cl_context *context, uint64_t flags, size_t bytes,
                                   void *host, int32_t *code) {
    (void)context;
    (void)flags;
    (void)bytes;
    (void)host;
    *code = planted;
    return NULL;
}

static void *no_shared_memory(iron__cl_context *context, uint64_t flags, size_t bytes,
                              uint32_t alignment) {
    (void)context;
    (void)flags;
    (void)bytes;
    (void)alignment;
    return NULL;
}

static iron__cl_queue *bad_queue(iron__cl_context *context, iron__cl_device *id,
                                 const uint64_t *properties, int32_t *code) {
    (void)context;
    (void)id;
    (void)properties;
    *code = planted;
    return NULL;
}

static int set_up(void **state) {
    const iron__opencl_library *library;

    (void)state;
    folder_make(&place);
    setenv("POCL_CACHE_DIR", place.path, 0); /* PoCL's own, out of the user's home */
    device = NULL;
    queue = NULL;
    memory_held = 0;
    planted = IRON_CL_OUT_OF_RESOURCES;
    if (OPS->device_open(0, &device, &reason) != IRON_OK)
        return 0;
    assert_ok(iron__opencl_load(&library, &reason), &reason);
    api = (iron__opencl_api *)&library->api;
    real = *api;
    assert_ok(OPS->queue_create(device, &queue, &reason), &reason);
    api->clCreateBuffer = counted_create;
    api->clReleaseMemObject = counted_release;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (device) {
        assert_int_equal(memory_held, 0);
        *api = real;
        OPS->queue_destroy(queue);
        OPS->device_close(device);
    }
    iron__opencl_forget();
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

/* Which codes are the end, when work was waited for and when it was only put into a queue. */
static void codes_mark_the_device_or_not(void **state) {
    static const struct {
        int32_t code;
        const char *name;
        iron_status status;
        bool waiting_marks, asking_marks;
    } rows[] = {
        {-5, "CL_OUT_OF_RESOURCES", IRON_E_IO, true, false},
        {-2, "CL_DEVICE_NOT_AVAILABLE", IRON_E_IO, true, true},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", IRON_E_IO, true, true},
        {-36, "CL_INVALID_COMMAND_QUEUE", IRON_E_IO, true, true},
        {-9999, "the unknown code -9999", IRON_E_IO, true, true},
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
    assert_ok(OPS->buffer_create(device, IRON_GPU_MEMORY_DEVICE, 64, &b, &err), &err);
    for (size_t k = 0; k < COUNT(rows); k++) {
        planted = rows[k].code;
        api->clFinish = bad_queue_call;
        assert_refused(OPS->queue_wait(queue, &err), rows[k].status, &err);
        api->clFinish = real.clFinish;
        assert_says(&err, "opencl: clFinish failed: ");
        assert_says(&err, rows[k].name);
        assert_says(&err, "; ");
        assert_int_equal(err.native, rows[k].code);
        if (rows[k].waiting_marks)
            assert_marked(&err);
        assert_unmarked();
        api->clEnqueueFillBuffer = bad_fill;
        assert_refused(OPS->clear(queue, b, 0, 64, &err), rows[k].status, &err);
        api->clEnqueueFillBuffer = real.clEnqueueFillBuffer;
        assert_says(&err, rows[k].name);
        if (rows[k].asking_marks)
            assert_marked(&err);
        assert_unmarked();
    }
    OPS->buffer_destroy(b);
}

static void the_first_mark_stays(void **state) {
    iron_error err;

    (void)state;
    NEED_DEVICE();
    api->clFinish = bad_queue_call;
    assert_int_equal(OPS->queue_wait(queue, NULL), IRON_E_IO);
    planted = IRON_CL_DEVICE_NOT_AVAILABLE;
    assert_refused(OPS->queue_wait(queue, &err), IRON_E_IO, &err);
    assert_int_equal(err.native, IRON_CL_DEVICE_NOT_AVAILABLE);
    assert_int_equal(device->failure.native, IRON_CL_OUT_OF_RESOURCES);
}

static void events_that_fail(void **state) {
    iron__gpu_event *event;
    double ms = 7;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(OPS->event_create(device, &event, &err), &err);
    api->clFlush = bad_queue_call;
    assert_refused(OPS->event_record(queue, event, &err), IRON_E_IO, &err);
    assert_unmarked();
    api->clFlush = real.clFlush;
    assert_ok(OPS->event_record(queue, event, &err), &err);
    assert_ok(OPS->event_wait(event, &err), &err);
    api->clGetEventProfilingInfo = bad_times;
    planted = IRON_CL_PROFILING_INFO_NOT_AVAILABLE;
    assert_refused(OPS->event_elapsed(event, event, &ms, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "CL_PROFILING_INFO_NOT_AVAILABLE");
    planted = IRON_CL_SUCCESS; /* but a time of 0 */
    assert_refused(OPS->event_elapsed(event, event, &ms, &err), IRON_E_UNSUPPORTED, &err);
    assert_true(ms == 0);
    assert_unmarked();
    api->clWaitForEvents = bad_wait;
    planted = IRON_CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    assert_refused(OPS->event_wait(event, &err), IRON_E_IO, &err);
    assert_marked(&err);
    OPS->event_destroy(event);
}

static void assert_no_buffer(iron__gpu_memory memory, iron_status expected, const char *word) {
    iron__gpu_buffer *b = (iron__gpu_buffer *)&place;
    iron_error err;

    assert_refused(OPS->buffer_create(device, memory, 12345, &b, &err), expected, &err);
    assert_null(b);
    assert_says(&err, word);
    if (expected == IRON_E_NOMEM)
        assert_says(&err, "12345 bytes");
    assert_int_equal(memory_held, 0);
}

static void memory_that_is_not_there(void **state) {
    static const iron__gpu_memory kinds[] = {IRON_GPU_MEMORY_DEVICE, IRON_GPU_MEMORY_PINNED,
                                             IRON_GPU_MEMORY_MAPPED};

    (void)state;
    NEED_DEVICE();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        planted = IRON_CL_MEM_OBJECT_ALLOCATION_FAILURE;
        api->clCreateBuffer = bad_create;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "clCreateBuffer failed: CL_MEM_OBJECT_ALLOC");
        planted = IRON_CL_INVALID_BUFFER_SIZE;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "CL_INVALID_BUFFER_SIZE");
        api->clCreateBuffer = counted_create;
        planted = IRON_CL_MEM_OBJECT_ALLOCATION_FAILURE; /* only once it is touched */
        api->clEnqueueFillBuffer = bad_fill;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "clEnqueueFillBuffer failed: CL_MEM_OBJECT_ALLOC");
        planted = IRON_CL_OUT_OF_RESOURCES; /* a small one works: it is the memory */
        api->clEnqueueFillBuffer = bad_fill_once;
        assert_no_buffer(kinds[k], IRON_E_NOMEM, "CL_OUT_OF_RESOURCES");
        api->clEnqueueFillBuffer = real.clEnqueueFillBuffer;
        assert_unmarked();
    }
    planted = IRON_CL_MAP_FAILURE;
    api->clEnqueueMapBuffer = bad_map;
    assert_no_buffer(IRON_GPU_MEMORY_PINNED, IRON_E_NOMEM, "CL_MAP_FAILURE");
    assert_unmarked();
}

static void a_device_that_has_crashed_before(void **state) {
    (void)state;
    NEED_DEVICE();
    api->clEnqueueFillBuffer = bad_fill; /* not even a small buffer works */
    assert_no_buffer(IRON_GPU_MEMORY_DEVICE, IRON_E_IO, "CL_OUT_OF_RESOURCES");
    assert_int_equal(device->failure.status, IRON_E_IO);
}

static void turns_that_fail(void **state) {
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(OPS->buffer_create(device, IRON_GPU_MEMORY_MAPPED, 64, &b, &err), &err);
    planted = IRON_CL_MAP_FAILURE;
    api->clEnqueueMapBuffer = bad_map;
    assert_refused(OPS->host_begin(queue, b, &err), IRON_E_NOMEM, &err);
    assert_null(b->host);
    assert_unmarked();
    planted = IRON_CL_OUT_OF_RESOURCES; /* it waited for a kernel that crashed */
    assert_refused(OPS->host_begin(queue, b, &err), IRON_E_IO, &err);
    assert_null(b->host);
    assert_marked(&err);
    OPS->buffer_destroy(b);
}

static void shared_memory_that_is_not_there(void **state) {
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
        api->clSVMAlloc = no_shared_memory;
        assert_no_buffer(IRON_GPU_MEMORY_MANAGED, IRON_E_NOMEM, "clSVMAlloc");
    }
    device->info = info;
    assert_refused(OPS->buffer_create(device, IRON_GPU_MEMORY_MANAGED, 64, &b, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "the device has no shared virtual memory");
    assert_null(b);
    assert_unmarked();
}

static void devices_and_queues_that_cannot_be(void **state) {
    iron__gpu_device *other = (iron__gpu_device *)&place;
    iron__gpu_queue *q = (iron__gpu_queue *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    OPS->queue_destroy(queue); /* as long as the device is open, there is a context */
    OPS->device_close(device);
    planted = IRON_CL_OUT_OF_HOST_MEMORY;
    api->clCreateContext = bad_context;
    assert_refused(OPS->device_open(0, &other, &err), IRON_E_NOMEM, &err);
    assert_says(&err, "clCreateContext");
    assert_null(other);
    planted = IRON_CL_DEVICE_NOT_AVAILABLE; /* lost before there is a context to retire */
    assert_refused(OPS->device_open(0, &other, &err), IRON_E_IO, &err);
    assert_null(other);
    api->clCreateContext = real.clCreateContext;
    assert_ok(OPS->device_open(0, &device, &err), &err);
    assert_ok(OPS->queue_create(device, &queue, &err), &err);
    if (real.clCreateCommandQueueWithProperties && device->info.version >= 200) {
        planted = IRON_CL_DEVICE_NOT_AVAILABLE;
        api->clCreateCommandQueueWithProperties = bad_queue;
        assert_refused(OPS->device_open(0, &other, &err), IRON_E_IO, &err);
        assert_null(other);
        assert_unmarked();
        assert_refused(OPS->queue_create(device, &q, &err), IRON_E_IO, &err);
        assert_null(q);
        assert_marked(&err);
    }
    api->clCreateCommandQueueWithProperties = NULL; /* the old way is as good */
    assert_ok(OPS->queue_create(device, &q, &err), &err);
    assert_ok(OPS->queue_wait(q, &err), &err);
    OPS->queue_destroy(q);
}

#define FAULT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FAULT_TEST(codes_mark_the_device_or_not),
        FAULT_TEST(the_first_mark_stays),
        FAULT_TEST(events_that_fail),
        FAULT_TEST(memory_that_is_not_there),
        FAULT_TEST(a_device_that_has_crashed_before),
        FAULT_TEST(turns_that_fail),
        FAULT_TEST(shared_memory_that_is_not_there),
        FAULT_TEST(devices_and_queues_that_cannot_be),
    };

    return cmocka_run_group_tests_name("opencl_faults", tests, NULL, NULL);
}
