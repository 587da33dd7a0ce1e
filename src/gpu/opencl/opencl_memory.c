/* SPDX-License-Identifier: MIT */
/*
 * opencl_memory.c: buffers of the four kinds, and the host's turns at those it may write.
 *
 *   device    a buffer
 *   pinned    a buffer in host memory, mapped as long as it lives; to copies it is host memory
 *   mapped    a buffer in host memory, mapped while the host writes; kernels read it in between
 *   managed   coarse-grained shared virtual memory; the same turns
 *
 * OpenCL may put off taking memory until a command needs it. So each new buffer is touched: one
 * byte of it is filled and waited for, and a lack of memory shows here instead of in the middle of
 * work. Drivers answer such a lack with a lack of "resources" at times, as they do after a crash; a
 * second, small buffer tells the two apart.
 *
 * A map keeps what was in the buffer, since the host may write a part only. On an H200 that costs a
 * copy back, 4.9 ms for 256 MiB; there such memory is no window across the bus either: the driver
 * copies it when the host's turn ends. Shared memory is not watched by the driver: destroy it when
 * no queue uses it any more.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"

#include <inttypes.h>

#define BLOCKING 1u

static int32_t touch(const iron__opencl_device *d, iron__cl_memory *memory) {
    static const unsigned char zero = 0;
    int32_t code = d->api->clEnqueueFillBuffer(d->service, memory, &zero, 1, 0, 1, 0, NULL, NULL);

    return code == IRON_CL_SUCCESS ? d->api->clFinish(d->service) : code;
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

static iron_status check_memory(iron__opencl_device *d, int32_t code, const char *call,
                                size_t bytes, iron_error *err) {
    if (code == IRON_CL_OUT_OF_RESOURCES && !is_alive(d))
        return iron__opencl_check_wait(&d->base, code, call, err);
    return iron__opencl_check_memory(&d->base, code, call, bytes, err);
}

static iron_status check_size(const iron__opencl_device *d, iron__gpu_memory memory, size_t bytes,
                              iron_error *err) {
    const iron__gpu_info *info = &d->base.info;

    IRON_FAIL_IF(bytes == 0, err, IRON_E_ARG, "opencl: a buffer of 0 bytes; ask for 1 at least");
    IRON_FAIL_IF(bytes > d->allocation_bytes_max, err, IRON_E_NOMEM,
                 "opencl: a buffer of %zu bytes; %s allows %" PRIu64 " in one buffer, of %" PRIu64
                 " in all; ask for less",
                 bytes, info->name, d->allocation_bytes_max, info->memory_bytes);
    if (memory != IRON_GPU_MEMORY_MANAGED)
        return IRON_OK;
    IRON_FAIL_IF(info->lacks[IRON_GPU_UVM][0], err, IRON_E_UNSUPPORTED,
                 "opencl: no managed memory: %s; use another kind", info->lacks[IRON_GPU_UVM]);
    IRON_FAIL_IF(bytes > info->memory_bytes / 2, err, IRON_E_NOMEM,
                 "opencl: %zu bytes of managed memory; at most half of the device's %" PRIu64
                 " bytes; ask for less",
                 bytes, info->memory_bytes);
    return IRON_OK;
}

static iron_status create_memory(iron__opencl_device *d, iron__opencl_buffer *b, uint64_t flags,
                                 iron_error *err) {
    int32_t code = IRON_CL_SUCCESS;
    size_t bytes = b->base.bytes;

    b->base.native = (uintptr_t)d->api->clCreateBuffer(d->context, IRON_CL_MEM_READ_WRITE | flags,
                                                       bytes, NULL, &code);
    IRON_TRY(check_memory(d, code, "clCreateBuffer", bytes, err));
    code = touch(d, iron__opencl_memory_of(&b->base));
    return check_memory(d, code, "clEnqueueFillBuffer", bytes, err);
}

static int32_t unmap(const iron__opencl_device *d, iron__cl_queue *queue,
                     const iron__gpu_buffer *b) {
    if (b->memory == IRON_GPU_MEMORY_MANAGED)
        return d->api->clEnqueueSVMUnmap(queue, b->host, 0, NULL, NULL);
    return d->api->clEnqueueUnmapMemObject(queue, iron__opencl_memory_of(b), b->host, 0, NULL,
                                           NULL);
}

static iron_status create_pinned(iron__opencl_device *d, iron__opencl_buffer *b, iron_error *err) {
    int32_t code = IRON_CL_SUCCESS;
    size_t bytes = b->base.bytes;

    IRON_TRY(create_memory(d, b, IRON_CL_MEM_ALLOC_HOST_PTR, err));
    b->base.host = d->api->clEnqueueMapBuffer(d->service, iron__opencl_memory_of(&b->base),
                                              BLOCKING, IRON_CL_MAP_READ | IRON_CL_MAP_WRITE, 0,
                                              bytes, 0, NULL, NULL, &code);
    return check_memory(d, code, "clEnqueueMapBuffer", bytes, err);
}

/* The host's side of it may come with the first map alone: 100 ms for 256 MiB on an H200. */
static iron_status create_mapped(iron__opencl_device *d, iron__opencl_buffer *b, iron_error *err) {
    int32_t code;

    IRON_TRY(create_pinned(d, b, err));
    code = unmap(d, d->service, &b->base);
    if (code == IRON_CL_SUCCESS)
        code = d->api->clFinish(d->service);
    b->base.host = NULL;
    return check_memory(d, code, "clEnqueueUnmapMemObject", b->base.bytes, err);
}

/* The largest alignment that may be asked for is the device's secret: take more, and round up. */
static iron_status create_shared(iron__opencl_device *d, iron__opencl_buffer *b, iron_error *err) {
    static const unsigned char zero = 0;
    size_t bytes = b->base.bytes;
    uintptr_t mask = IRON_GPU_ALIGNMENT - 1;
    int32_t code;

    b->allocation = d->api->clSVMAlloc(d->context, IRON_CL_MEM_READ_WRITE, bytes + mask, 0);
    IRON_FAIL_IF(!b->allocation, err, IRON_E_NOMEM,
                 "opencl: clSVMAlloc gave no %zu bytes (the device has %" PRIu64
                 "); free memory of the device, or ask for less",
                 bytes, d->base.info.memory_bytes);
    b->base.native = ((uintptr_t)b->allocation + mask) & ~mask;
    code =
        d->api->clEnqueueSVMMemFill(d->service, (void *)b->base.native, &zero, 1, 1, 0, NULL, NULL);
    if (code == IRON_CL_SUCCESS)
        code = d->api->clFinish(d->service);
    return check_memory(d, code, "clEnqueueSVMMemFill", bytes, err);
}

static iron_status create(iron__opencl_device *d, iron__opencl_buffer *b, iron_error *err) {
    switch (b->base.memory) {
    case IRON_GPU_MEMORY_DEVICE:
        return create_memory(d, b, 0, err);
    case IRON_GPU_MEMORY_PINNED:
        return create_pinned(d, b, err);
    case IRON_GPU_MEMORY_MANAGED:
        return create_shared(d, b, err);
    case IRON_GPU_MEMORY_MAPPED:
        return create_mapped(d, b, err);
    default:
        IRON_FAIL(err, IRON_E_ARG, "opencl: no kind of memory has the number %d",
                  (int)b->base.memory);
    }
}

static iron__opencl_buffer *new_buffer(iron__gpu_device *device, iron__gpu_memory memory,
                                       size_t bytes, iron_error *err) {
    iron__opencl_buffer *b = iron__opencl_new(sizeof *b, "an OpenCL buffer", err);

    if (b)
        b->base = (iron__gpu_buffer){.device = device, .memory = memory, .bytes = bytes};
    return b;
}

iron_status iron__opencl_buffer_create(iron__gpu_device *device, iron__gpu_memory memory,
                                       size_t bytes, iron__gpu_buffer **out, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(device);
    iron__opencl_buffer *b;
    iron_status status;

    *out = NULL;
    IRON_TRY(check_size(d, memory, bytes, err));
    b = new_buffer(device, memory, bytes, err);
    if (!b)
        return IRON_E_NOMEM;
    status = create(d, b, err);
    if (status != IRON_OK) {
        iron__opencl_buffer_destroy(&b->base);
        return status;
    }
    *out = &b->base;
    return IRON_OK;
}

static iron_status check_foreign(const iron__opencl_device *d, iron__cl_memory *memory,
                                 size_t bytes, iron_error *err) {
    iron__cl_context *context = NULL;
    uint32_t type = 0;
    size_t size = 0;
    int32_t code = d->api->clGetMemObjectInfo(memory, IRON_CL_MEM_CONTEXT,
                                              sizeof(iron__cl_context *), (void *)&context, NULL);

    if (code == IRON_CL_SUCCESS)
        code = d->api->clGetMemObjectInfo(memory, IRON_CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code == IRON_CL_SUCCESS)
        code = d->api->clGetMemObjectInfo(memory, IRON_CL_MEM_SIZE, sizeof size, &size, NULL);
    if (code != IRON_CL_SUCCESS)
        return iron__fail(err, IRON_E_ARG, code, "opencl: not a cl_mem: clGetMemObjectInfo says %s",
                          iron__opencl_error_name(code).text);
    IRON_FAIL_IF(context != d->context, err, IRON_E_ARG,
                 "opencl: the buffer belongs to another OpenCL context; make it in the engine's: "
                 "iron_engine_native_context");
    IRON_FAIL_IF(type != IRON_CL_MEM_OBJECT_BUFFER, err, IRON_E_ARG,
                 "opencl: the cl_mem is an image or a pipe; give a buffer");
    IRON_FAIL_IF(size < bytes, err, IRON_E_ARG,
                 "opencl: the buffer has %zu bytes, not %zu; give its own size", size, bytes);
    return IRON_OK;
}

iron_status iron__opencl_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                     iron__gpu_buffer **out, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(device);
    iron__cl_memory *memory = (iron__cl_memory *)native;
    iron__opencl_buffer *b;
    int32_t code;

    *out = NULL;
    IRON_FAIL_IF(!native, err, IRON_E_ARG, "opencl: the buffer is 0; give a cl_mem");
    IRON_FAIL_IF(bytes == 0, err, IRON_E_ARG, "opencl: a buffer of 0 bytes; give 1 at least");
    IRON_TRY(check_foreign(d, memory, bytes, err));
    b = new_buffer(device, IRON_GPU_MEMORY_DEVICE, bytes, err);
    if (!b)
        return IRON_E_NOMEM;
    code = d->api->clRetainMemObject(memory);
    if (code != IRON_CL_SUCCESS) {
        iron__opencl_delete(b);
        return iron__opencl_check(device, code, "clRetainMemObject", err);
    }
    b->base.native = native;
    b->base.is_borrowed = true;
    *out = &b->base;
    return IRON_OK;
}

void iron__opencl_buffer_destroy(iron__gpu_buffer *buffer) {
    iron__opencl_buffer *b = (iron__opencl_buffer *)buffer;
    iron__opencl_device *d;

    if (!b)
        return;
    d = iron__opencl_device_of(buffer->device);
    if (buffer->host) {
        unmap(d, d->service, buffer);
        d->api->clFinish(d->service);
    }
    if (b->allocation)
        d->api->clSVMFree(d->context, b->allocation);
    else if (buffer->native)
        d->api->clReleaseMemObject(iron__opencl_memory_of(buffer));
    iron__opencl_delete(b);
}

static iron_status check_turn(const iron__gpu_buffer *buffer, bool is_open, iron_error *err) {
    IRON_FAIL_IF(buffer->memory == IRON_GPU_MEMORY_DEVICE, err, IRON_E_ARG,
                 "opencl: the host does not see device memory; copy to it");
    IRON_FAIL_IF(iron__opencl_is_open(buffer) != is_open, err, IRON_E_STATE,
                 is_open ? "opencl: the buffer is not the host's; call host_begin first"
                         : "opencl: the buffer is the host's already; call host_end first");
    return IRON_OK;
}

iron_status iron__opencl_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                    iron_error *err) {
    const iron__opencl_api *cl = iron__opencl_device_of(queue->device)->api;
    iron__cl_queue *native = iron__opencl_queue_of(queue);
    int32_t code = IRON_CL_SUCCESS;

    if (buffer->memory == IRON_GPU_MEMORY_PINNED)
        return IRON_OK; /* always the host's */
    IRON_TRY(check_turn(buffer, false, err));
    if (buffer->memory == IRON_GPU_MEMORY_MANAGED) {
        void *address = (void *)buffer->native;

        code = cl->clEnqueueSVMMap(native, BLOCKING, IRON_CL_MAP_WRITE, address, buffer->bytes, 0,
                                   NULL, NULL);
        IRON_TRY(iron__opencl_check_wait(queue->device, code, "clEnqueueSVMMap", err));
        buffer->host = address;
        return IRON_OK;
    }
    buffer->host =
        cl->clEnqueueMapBuffer(native, iron__opencl_memory_of(buffer), BLOCKING, IRON_CL_MAP_WRITE,
                               0, buffer->bytes, 0, NULL, NULL, &code);
    if (code != IRON_CL_SUCCESS)
        buffer->host = NULL;
    return iron__opencl_check_wait(queue->device, code, "clEnqueueMapBuffer", err);
}

iron_status iron__opencl_host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                  iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(queue->device);
    int32_t code;

    if (buffer->memory == IRON_GPU_MEMORY_PINNED)
        return IRON_OK;
    IRON_TRY(check_turn(buffer, true, err));
    code = unmap(d, iron__opencl_queue_of(queue), buffer);
    IRON_TRY(iron__opencl_check(queue->device, code, "clEnqueueUnmapMemObject", err));
    buffer->host = NULL;
    return iron__opencl_queue_flush(queue, err);
}
