/* SPDX-License-Identifier: MIT */
/*
 * opencl_memory.c: buffers of the four kinds, and the host's access to them.
 *
 *   device    a buffer
 *   pinned    a buffer in host memory, mapped while it exists; copies treat it as host memory
 *   mapped    a buffer in host memory, mapped while the host writes; kernels read it otherwise
 *   managed   coarse-grained shared virtual memory (SVM), mapped while the host writes
 *
 * OpenCL may defer an allocation until a command needs it. So every new buffer is touched: one byte
 * is filled and waited for, and a lack of memory shows here instead of in the middle of a run. Some
 * drivers report a lack of memory as CL_OUT_OF_RESOURCES, as they do after a crash; a second, small
 * buffer tells the two apart.
 *
 * Mapping keeps the contents, because the host may write only part of them. On an H200 that costs a
 * copy back, 4.9 ms for 256 MiB. Mapped memory is not read across the bus there: the driver copies
 * it when the host is done. The driver does not track SVM: destroy it when no queue uses it.
 */
#include "gpu/opencl/opencl_internal.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>

#define BLOCKING 1u

/* The queue for operations without a queue of the caller. */
static iron__cl_queue *own_queue(const iron__opencl_device *d) {
    return iron__opencl_queue_of(d->memory_queue);
}

/* Waits for a command in that queue, if it could be put there. */
static int32_t finish(const iron__opencl_device *d, int32_t code) {
    return code == IRON_CL_SUCCESS ? d->api->clFinish(own_queue(d)) : code;
}

static int32_t touch(const iron__opencl_device *d, iron__cl_memory *memory) {
    static const unsigned char zero = 0;

    return finish(d,
                  d->api->clEnqueueFillBuffer(own_queue(d), memory, &zero, 1, 0, 1, 0, NULL, NULL));
}

static bool is_alive(const iron__opencl_device *d) {
    int32_t code = IRON_CL_SUCCESS;
    iron__cl_memory *memory =
        d->api->clCreateBuffer(d->context, IRON_CL_MEM_READ_WRITE, IRON_GPU_ALIGNMENT, NULL, &code);

    if (code == IRON_CL_SUCCESS) {
        code = touch(d, memory);
        d->api->clReleaseMemObject(memory);
    }
    return code == IRON_CL_SUCCESS;
}

static iron_status check_memory(iron__opencl_device *d, int32_t code, const char *function,
                                size_t bytes, iron_error *err) {
    char detail[96];

    if (code == IRON_CL_OUT_OF_RESOURCES && !is_alive(d))
        return iron__opencl_check_as(&d->base, code, IRON_OPENCL_WAIT, function, "", err);
    snprintf(detail, sizeof detail, " for %zu bytes (the device has %" PRIu64 ")", bytes,
             d->base.info.memory_bytes);
    return iron__opencl_check_as(&d->base, code, IRON_OPENCL_ALLOCATE, function, detail, err);
}

static iron_status check_size(const iron__opencl_device *d, iron__gpu_memory memory, size_t bytes,
                              iron_error *err) {
    const iron__gpu_info *info = &d->base.info;

    IRON_FAIL_IF(bytes > d->allocation_bytes_max, err, IRON_E_NOMEM,
                 "opencl: a buffer of %zu bytes; %s allows %" PRIu64 " per buffer, %" PRIu64
                 " in total; request less",
                 bytes, info->name, d->allocation_bytes_max, info->memory_bytes);
    if (memory != IRON_GPU_MEMORY_MANAGED)
        return IRON_OK;
    IRON_FAIL_IF(info->lacks[IRON_GPU_UVM][0], err, IRON_E_UNSUPPORTED,
                 "opencl: no managed memory: %s; use another kind", info->lacks[IRON_GPU_UVM]);
    IRON_FAIL_IF(bytes > info->memory_bytes / 2, err, IRON_E_NOMEM,
                 "opencl: %zu bytes of managed memory, more than half of the device's %" PRIu64
                 " bytes; request less",
                 bytes, info->memory_bytes);
    return IRON_OK;
}

static int32_t unmap(const iron__opencl_device *d, iron__cl_queue *queue,
                     const iron__gpu_buffer *b) {
    if (b->memory == IRON_GPU_MEMORY_MANAGED)
        return d->api->clEnqueueSVMUnmap(queue, b->host, 0, NULL, NULL);
    return d->api->clEnqueueUnmapMemObject(queue, iron__opencl_memory_of(b), b->host, 0, NULL,
                                           NULL);
}

/* Mapped memory is mapped once, because the first map may allocate the host memory: 100 ms for
 * 256 MiB on an H200. */
static iron_status create_memory(iron__opencl_device *d, iron__gpu_buffer *b, iron_error *err) {
    int32_t code = IRON_CL_SUCCESS;
    size_t bytes = b->bytes;
    uint64_t flags = b->memory == IRON_GPU_MEMORY_DEVICE ? 0 : IRON_CL_MEM_ALLOC_HOST_PTR;
    iron__cl_memory *memory =
        d->api->clCreateBuffer(d->context, IRON_CL_MEM_READ_WRITE | flags, bytes, NULL, &code);

    b->native = (uintptr_t)memory;
    IRON_TRY(check_memory(d, code, "clCreateBuffer", bytes, err));
    IRON_TRY(check_memory(d, touch(d, memory), "clEnqueueFillBuffer", bytes, err));
    if (b->memory == IRON_GPU_MEMORY_DEVICE)
        return IRON_OK;
    b->host = d->api->clEnqueueMapBuffer(own_queue(d), memory, BLOCKING,
                                         IRON_CL_MAP_READ | IRON_CL_MAP_WRITE, 0, bytes, 0, NULL,
                                         NULL, &code);
    IRON_TRY(check_memory(d, code, "clEnqueueMapBuffer", bytes, err));
    if (b->memory == IRON_GPU_MEMORY_PINNED)
        return IRON_OK;
    code = finish(d, unmap(d, own_queue(d), b));
    b->host = NULL;
    return check_memory(d, code, "clEnqueueUnmapMemObject", bytes, err);
}

/* The maximum alignment argument is not known, so allocate more and round up. */
static iron_status create_svm(iron__opencl_device *d, iron__gpu_buffer *b, iron_error *err) {
    static const unsigned char zero = 0;
    size_t bytes = b->bytes;
    uintptr_t mask = IRON_GPU_ALIGNMENT - 1;
    int32_t code;

    b->allocation = d->api->clSVMAlloc(d->context, IRON_CL_MEM_READ_WRITE, bytes + mask, 0);
    IRON_FAIL_IF(!b->allocation, err, IRON_E_NOMEM,
                 "opencl: clSVMAlloc failed for %zu bytes (the device has %" PRIu64
                 "); free device memory or request less",
                 bytes, d->base.info.memory_bytes);
    b->native = ((uintptr_t)b->allocation + mask) & ~mask;
    code = d->api->clEnqueueSVMMemFill(own_queue(d), (void *)b->native, &zero, 1, 1, 0, NULL, NULL);
    return check_memory(d, finish(d, code), "clEnqueueSVMMemFill", bytes, err);
}

static iron_status buffer_create(iron__gpu_buffer *b, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(b->device);

    IRON_FAIL_IF(b->memory > IRON_GPU_MEMORY_MAPPED, err, IRON_E_ARG,
                 "opencl: unknown kind of memory %d", (int)b->memory);
    IRON_TRY(check_size(d, b->memory, b->bytes, err));
    return b->memory == IRON_GPU_MEMORY_MANAGED ? create_svm(d, b, err) : create_memory(d, b, err);
}

static void buffer_destroy(iron__gpu_buffer *buffer) {
    iron__opencl_device *d = iron__opencl_device_of(buffer->device);

    if (buffer->host)
        finish(d, unmap(d, own_queue(d), buffer));
    if (buffer->allocation)
        d->api->clSVMFree(d->context, buffer->allocation);
    else if (buffer->native)
        d->api->clReleaseMemObject(iron__opencl_memory_of(buffer));
}

static iron_status buffer_wrap(iron__gpu_buffer *buffer, uintptr_t native, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(buffer->device);
    iron__cl_memory *memory = (iron__cl_memory *)native;
    iron__cl_context *context = NULL;
    int32_t (*get)(iron__cl_memory *, uint32_t, size_t, void *, size_t *) =
        d->api->clGetMemObjectInfo;
    uint32_t type = 0;
    size_t size = 0;
    int32_t code;

    if ((code = get(memory, IRON_CL_MEM_CONTEXT, sizeof(void *), (void *)&context, NULL)) ||
        (code = get(memory, IRON_CL_MEM_TYPE, sizeof type, &type, NULL)) ||
        (code = get(memory, IRON_CL_MEM_SIZE, sizeof size, &size, NULL)))
        return iron__fail(err, IRON_E_ARG, code,
                          "opencl: not a cl_mem: clGetMemObjectInfo returned %s",
                          iron__opencl_error_name(code).text);
    IRON_FAIL_IF(context != d->context, err, IRON_E_ARG,
                 "opencl: the buffer belongs to another OpenCL context; create it in "
                 "iron_engine_native_context");
    IRON_FAIL_IF(type != IRON_CL_MEM_OBJECT_BUFFER, err, IRON_E_ARG,
                 "opencl: the cl_mem is an image or a pipe; pass a buffer");
    IRON_FAIL_IF(size < buffer->bytes, err, IRON_E_ARG,
                 "opencl: the buffer has %zu bytes, not %zu; pass its size", size, buffer->bytes);
    IRON_TRY(IRON_CL(buffer->device, err, clRetainMemObject, memory));
    buffer->native = native;
    return IRON_OK;
}

static iron_status check_access(const iron__gpu_buffer *buffer, bool is_open, iron_error *err) {
    IRON_FAIL_IF(buffer->memory == IRON_GPU_MEMORY_DEVICE, err, IRON_E_ARG,
                 "opencl: the host cannot access device memory; copy to it");
    IRON_FAIL_IF((buffer->host != NULL) != is_open, err, IRON_E_STATE,
                 is_open
                     ? "opencl: the host does not have access to the buffer; call host_begin first"
                     : "opencl: the host already has access to the buffer; call host_end first");
    return IRON_OK;
}

static iron_status host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err) {
    const iron__opencl_api *cl = iron__opencl_device_of(queue->device)->api;
    iron__cl_queue *native = iron__opencl_queue_of(queue);
    int32_t code = IRON_CL_SUCCESS;

    if (buffer->memory == IRON_GPU_MEMORY_PINNED)
        return IRON_OK; /* always accessible */
    IRON_TRY(check_access(buffer, false, err));
    if (buffer->memory == IRON_GPU_MEMORY_MANAGED) {
        void *address = (void *)buffer->native;

        IRON_TRY(IRON_CL_WAIT(queue->device, err, clEnqueueSVMMap, native, BLOCKING,
                              IRON_CL_MAP_WRITE, address, buffer->bytes, 0, NULL, NULL));
        buffer->host = address;
        return IRON_OK;
    }
    buffer->host =
        cl->clEnqueueMapBuffer(native, iron__opencl_memory_of(buffer), BLOCKING, IRON_CL_MAP_WRITE,
                               0, buffer->bytes, 0, NULL, NULL, &code);
    if (code != IRON_CL_SUCCESS)
        buffer->host = NULL;
    return iron__opencl_check_as(queue->device, code, IRON_OPENCL_WAIT, "clEnqueueMapBuffer", "",
                                 err);
}

static iron_status host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(queue->device);
    int32_t code;

    if (buffer->memory == IRON_GPU_MEMORY_PINNED)
        return IRON_OK;
    IRON_TRY(check_access(buffer, true, err));
    code = unmap(d, iron__opencl_queue_of(queue), buffer);
    IRON_TRY(iron__opencl_check(queue->device, code, "clEnqueueUnmapMemObject", err));
    buffer->host = NULL;
    return iron__opencl_flush(queue, err);
}

/* OpenCL has no constant memory of a program that the host could write: kernels get a buffer and
 * read it as constant. */
static iron_status constant_find(iron__gpu_program *program, const char *name,
                                 iron__gpu_buffer *buffer, iron_error *err) {
    (void)program;
    (void)name;
    return buffer_create(buffer, err);
}

const iron__gpu_memory_ops iron__opencl_memory_ops = {
    .buffer_create = buffer_create,
    .buffer_wrap = buffer_wrap,
    .buffer_destroy = buffer_destroy,
    .constant_find = constant_find,
    .host_begin = host_begin,
    .host_end = host_end,
};
