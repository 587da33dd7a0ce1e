/* SPDX-License-Identifier: MIT */
/*
 * opencl_copy.c: zeros, copies and sending ahead, all of it put into a queue and not waited for.
 *
 * A side of a copy is one of three things to OpenCL: host memory (the caller's, a pinned buffer's,
 * or a buffer's that is the host's at the moment), a buffer, or shared virtual memory.
 *
 *   from \ to   host           buffer                    shared
 *   host        -              write                     copy of shared memory
 *   buffer      read           copy                      map, read, unmap
 *   shared      copy of sh.m.  map, write, unmap         copy of shared memory
 *
 * From host to host there is nothing for a device to do; it is refused.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"

typedef enum place { PLACE_HOST, PLACE_BUFFER, PLACE_SHARED } place;

typedef struct side {
    place place;
    iron__cl_memory *memory; /* PLACE_BUFFER */
    size_t offset;
    void *address; /* the others, with the offset in it */
} side;

static iron_status check_range(const iron__gpu_buffer *buffer, size_t offset, size_t bytes,
                               iron_error *err) {
    IRON_FAIL_IF(offset > buffer->bytes || bytes > buffer->bytes - offset, err, IRON_E_ARG,
                 "opencl: %zu bytes at %zu leave a buffer of %zu bytes", bytes, offset,
                 buffer->bytes);
    return IRON_OK;
}

static iron_status find_side(const iron__gpu_buffer *buffer, void *host, size_t offset,
                             size_t bytes, side *out, iron_error *err) {
    IRON_FAIL_IF(!buffer == !host, err, IRON_E_ARG,
                 "opencl: a side of a copy is a buffer or host memory; give one of them");
    if (!buffer) {
        *out = (side){.place = PLACE_HOST, .address = (char *)host + offset};
        return IRON_OK;
    }
    IRON_TRY(check_range(buffer, offset, bytes, err));
    if (buffer->host)
        *out = (side){.place = PLACE_HOST, .address = (char *)buffer->host + offset};
    else if (buffer->memory == IRON_GPU_MEMORY_MANAGED)
        *out = (side){.place = PLACE_SHARED, .address = (void *)(buffer->native + offset)};
    else
        *out = (side){
            .place = PLACE_BUFFER, .memory = iron__opencl_memory_of(buffer), .offset = offset};
    return IRON_OK;
}

static iron_status write_buffer(iron__gpu_queue *queue, const side *from, const side *to,
                                size_t bytes, iron_error *err) {
    int32_t code = iron__opencl_device_of(queue->device)
                       ->api->clEnqueueWriteBuffer(iron__opencl_queue_of(queue), to->memory, 0,
                                                   to->offset, bytes, from->address, 0, NULL, NULL);

    return iron__opencl_check(queue->device, code, "clEnqueueWriteBuffer", err);
}

static iron_status read_buffer(iron__gpu_queue *queue, const side *from, const side *to,
                               size_t bytes, iron_error *err) {
    int32_t code = iron__opencl_device_of(queue->device)
                       ->api->clEnqueueReadBuffer(iron__opencl_queue_of(queue), from->memory, 0,
                                                  from->offset, bytes, to->address, 0, NULL, NULL);

    return iron__opencl_check(queue->device, code, "clEnqueueReadBuffer", err);
}

static iron_status copy_buffer(iron__gpu_queue *queue, const side *from, const side *to,
                               size_t bytes, iron_error *err) {
    int32_t code =
        iron__opencl_device_of(queue->device)
            ->api->clEnqueueCopyBuffer(iron__opencl_queue_of(queue), from->memory, to->memory,
                                       from->offset, to->offset, bytes, 0, NULL, NULL);

    return iron__opencl_check(queue->device, code, "clEnqueueCopyBuffer", err);
}

static iron_status copy_shared(iron__gpu_queue *queue, const side *from, const side *to,
                               size_t bytes, iron_error *err) {
    int32_t code = iron__opencl_device_of(queue->device)
                       ->api->clEnqueueSVMMemcpy(iron__opencl_queue_of(queue), 0, to->address,
                                                 from->address, bytes, 0, NULL, NULL);

    return iron__opencl_check(queue->device, code, "clEnqueueSVMMemcpy", err);
}

/* Between shared memory and a buffer: mapped, shared memory is host memory. The queue keeps the
 * three in order, so the host waits for none. */
static iron_status copy_mapped(iron__gpu_queue *queue, const side *from, const side *to,
                               size_t bytes, iron_error *err) {
    const iron__opencl_api *cl = iron__opencl_device_of(queue->device)->api;
    iron__cl_queue *native = iron__opencl_queue_of(queue);
    bool is_reading = to->place == PLACE_SHARED;
    void *address = is_reading ? to->address : from->address;
    int32_t code = cl->clEnqueueSVMMap(native, 0, is_reading ? IRON_CL_MAP_WRITE : IRON_CL_MAP_READ,
                                       address, bytes, 0, NULL, NULL);
    iron_status status = iron__opencl_check(queue->device, code, "clEnqueueSVMMap", err);

    if (status != IRON_OK)
        return status;
    status = is_reading ? read_buffer(queue, from, to, bytes, err)
                        : write_buffer(queue, from, to, bytes, err);
    code = cl->clEnqueueSVMUnmap(native, address, 0, NULL, NULL);
    if (status == IRON_OK)
        status = iron__opencl_check(queue->device, code, "clEnqueueSVMUnmap", err);
    return status;
}

static iron_status enqueue(iron__gpu_queue *queue, const side *from, const side *to, size_t bytes,
                           iron_error *err) {
    bool is_from_buffer = from->place == PLACE_BUFFER, is_to_buffer = to->place == PLACE_BUFFER;

    IRON_FAIL_IF(from->place == PLACE_HOST && to->place == PLACE_HOST, err, IRON_E_ARG,
                 "opencl: a copy within the host's memory; use memcpy");
    if (is_from_buffer && is_to_buffer)
        return copy_buffer(queue, from, to, bytes, err);
    if (from->place == PLACE_HOST && is_to_buffer)
        return write_buffer(queue, from, to, bytes, err);
    if (is_from_buffer && to->place == PLACE_HOST)
        return read_buffer(queue, from, to, bytes, err);
    if (is_from_buffer || is_to_buffer)
        return copy_mapped(queue, from, to, bytes, err);
    return copy_shared(queue, from, to, bytes, err);
}

iron_status iron__opencl_copy(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err) {
    /* OpenCL only reads from_host; it shares a struct with addresses that are written */
    void *from_host = (void *)(uintptr_t)copy->from_host;
    side from = {0}, to = {0};

    IRON_TRY(find_side(copy->from, from_host, copy->from_offset, copy->bytes, &from, err));
    IRON_TRY(find_side(copy->to, copy->to_host, copy->to_offset, copy->bytes, &to, err));
    if (copy->bytes == 0)
        return IRON_OK;
    IRON_TRY(enqueue(queue, &from, &to, copy->bytes, err));
    return iron__opencl_queue_flush(queue, err);
}

iron_status iron__opencl_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                               size_t bytes, iron_error *err) {
    static const uint32_t zero = 0;
    const iron__opencl_api *cl = iron__opencl_device_of(queue->device)->api;
    iron__cl_queue *native = iron__opencl_queue_of(queue);
    int32_t code;
    side at = {0};

    IRON_FAIL_IF(offset % sizeof zero || bytes % sizeof zero, err, IRON_E_ARG,
                 "opencl: %zu bytes to clear at %zu; give multiples of 4", bytes, offset);
    IRON_TRY(find_side(buffer, NULL, offset, bytes, &at, err));
    IRON_FAIL_IF(at.place == PLACE_HOST, err,
                 buffer->memory == IRON_GPU_MEMORY_PINNED ? IRON_E_ARG : IRON_E_STATE,
                 "opencl: the buffer to clear is the host's; clear it there");
    if (bytes == 0)
        return IRON_OK;
    if (at.place == PLACE_SHARED) {
        code =
            cl->clEnqueueSVMMemFill(native, at.address, &zero, sizeof zero, bytes, 0, NULL, NULL);
        return iron__opencl_check(queue->device, code, "clEnqueueSVMMemFill", err);
    }
    code = cl->clEnqueueFillBuffer(native, at.memory, &zero, sizeof zero, offset, bytes, 0, NULL,
                                   NULL);
    return iron__opencl_check(queue->device, code, "clEnqueueFillBuffer", err);
}

iron_status iron__opencl_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                                  iron_error *err) {
    const char *lack = queue->device->info.lacks[IRON_GPU_UVM_PREFETCH];
    const void *address = (const void *)buffer->native;
    int32_t code;

    IRON_FAIL_IF(buffer->memory != IRON_GPU_MEMORY_MANAGED, err, IRON_E_ARG,
                 "opencl: only managed memory can be sent ahead; copy the others");
    IRON_FAIL_IF(lack[0], err, IRON_E_UNSUPPORTED, "opencl: %s; use uvm without prefetch", lack);
    IRON_FAIL_IF(iron__opencl_is_open(buffer), err, IRON_E_STATE,
                 "opencl: the buffer to send ahead is the host's; call host_end first");
    IRON_TRY(check_range(buffer, 0, bytes, err));
    if (bytes == 0)
        return IRON_OK;
    code = iron__opencl_device_of(queue->device)
               ->api->clEnqueueSVMMigrateMem(iron__opencl_queue_of(queue), 1, &address, &bytes, 0,
                                             0, NULL, NULL);
    IRON_TRY(iron__opencl_check(queue->device, code, "clEnqueueSVMMigrateMem", err));
    return iron__opencl_queue_flush(queue, err);
}
