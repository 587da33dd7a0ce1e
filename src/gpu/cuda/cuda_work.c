/* SPDX-License-Identifier: MIT */
/*
 * cuda_work.c: work on memory that is put into a queue: zeros, copies, pages sent ahead. Ranges are
 * checked here, against the buffers: past their end the card would write into a neighbour and say
 * nothing.
 *
 * A copy has a device's side or two. A buffer of page-locked memory is a host's side like any other
 * host memory, only faster: the driver sees that from its address.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

static iron_status check_range(const iron__gpu_buffer *buffer, size_t offset, size_t bytes,
                               const char *what, iron_error *err) {
    IRON_FAIL_IF(offset > buffer->bytes || bytes > buffer->bytes - offset, err, IRON_E_ARG,
                 "cuda: %s of %zu bytes at %zu reaches beyond a buffer of %zu", what, bytes, offset,
                 buffer->bytes);
    return IRON_OK;
}

iron_status iron__cuda_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                             size_t bytes, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);

    IRON_FAIL_IF(offset % 4 != 0 || bytes % 4 != 0, err, IRON_E_ARG,
                 "cuda: clearing %zu bytes at %zu: both must be multiples of 4", bytes, offset);
    IRON_FAIL_IF(!buffer->native, err, IRON_E_ARG,
                 "cuda: page-locked memory is the host's to clear");
    IRON_TRY(check_range(buffer, offset, bytes, "clearing", err));
    if (bytes == 0)
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d,
                            IRON_CU(d, err, cuMemsetD32Async, iron__cuda_address_of(buffer, offset),
                                    0, bytes / 4, iron__cuda_stream_of(queue)),
                            err);
}

/* One side of a copy: an address on the device, or one on the host. */
typedef struct side {
    iron__cu_pointer device;
    void *host;
} side;

static iron_status find_side(const iron__gpu_buffer *buffer, void *host, size_t offset,
                             size_t bytes, side *out, iron_error *err) {
    *out = (side){0};
    IRON_FAIL_IF(!buffer == !host, err, IRON_E_ARG,
                 "cuda: a side of a copy is either a buffer or host memory, and one of them");
    if (!buffer) {
        out->host = (char *)host + offset;
        return IRON_OK;
    }
    IRON_TRY(check_range(buffer, offset, bytes, "a copy", err));
    if (buffer->memory == IRON_GPU_MEMORY_PINNED || buffer->memory == IRON_GPU_MEMORY_MAPPED)
        out->host = (char *)buffer->host + offset;
    else
        out->device = iron__cuda_address_of(buffer, offset);
    return IRON_OK;
}

static iron_status submit_copy(iron__cuda_device *d, const side *to, const side *from, size_t bytes,
                               iron__cu_stream *stream, iron_error *err) {
    if (!to->device)
        return IRON_CU(d, err, cuMemcpyDtoHAsync_v2, to->host, from->device, bytes, stream);
    if (!from->device)
        return IRON_CU(d, err, cuMemcpyHtoDAsync_v2, to->device, from->host, bytes, stream);
    return IRON_CU(d, err, cuMemcpyDtoDAsync_v2, to->device, from->device, bytes, stream);
}

iron_status iron__cuda_copy(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    side from, to;
    iron_status status;

    IRON_TRY(
        find_side(copy->from, (void *)copy->from_host, copy->from_offset, copy->bytes, &from, err));
    IRON_TRY(find_side(copy->to, copy->to_host, copy->to_offset, copy->bytes, &to, err));
    IRON_FAIL_IF(!from.device && !to.device, err, IRON_E_ARG,
                 "cuda: a copy from host memory to host memory is the host's to make");
    if (copy->bytes == 0)
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    status = submit_copy(d, &to, &from, copy->bytes, iron__cuda_stream_of(queue), err);
    return iron__cuda_leave(d, status, err);
}

/* CUDA 12.2 has given the function a place instead of a device; older drivers have the old one. */
static iron_status send_ahead(iron__cuda_device *d, const iron__gpu_buffer *buffer, size_t bytes,
                              iron__cu_stream *stream, iron_error *err) {
    iron__cu_location where = {IRON_CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal};
    iron__cu_pointer memory = iron__cuda_address_of(buffer, 0);

    if (d->driver->cuMemPrefetchAsync_v2)
        return IRON_CU(d, err, cuMemPrefetchAsync_v2, memory, bytes, where, 0, stream);
    return IRON_CU(d, err, cuMemPrefetchAsync, memory, bytes, d->ordinal, stream);
}

iron_status iron__cuda_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                                iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    const char *lacks = d->base.info.lacks[IRON_GPU_UVM_PREFETCH];

    IRON_FAIL_IF(buffer->memory != IRON_GPU_MEMORY_MANAGED, err, IRON_E_ARG,
                 "cuda: only managed memory can be sent ahead");
    IRON_FAIL_IF(lacks[0], err, IRON_E_UNSUPPORTED, "cuda: %s; use uvm without prefetch", lacks);
    IRON_TRY(check_range(buffer, 0, bytes, "a prefetch", err));
    if (bytes == 0)
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, send_ahead(d, buffer, bytes, iron__cuda_stream_of(queue), err), err);
}
