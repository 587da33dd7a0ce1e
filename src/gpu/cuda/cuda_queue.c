/* SPDX-License-Identifier: MIT */
/*
 * cuda_queue.c: streams, events, copies, and graphs.
 *
 * Our streams do not synchronize with the legacy default stream: commands of other libraries in it
 * would delay ours. A caller that wraps the default stream (0) gets its rules. All events record
 * times; one kind serves both ordering and timing.
 *
 * Ranges are checked against the buffers: beyond their end the card would silently overwrite other
 * memory. A copy has one or two device sides. A page-locked buffer counts as host memory; the
 * driver recognizes its address and copies faster.
 *
 * A graph saves the host's share of each launch, which matters for small batches. Recording affects
 * this thread only (THREAD_LOCAL): other threads may allocate memory meanwhile. Only the executable
 * graph is kept. After a failed recording the stream is an ordinary stream again.
 */
#include "gpu/cuda/cuda_internal.h"

#include "core/fail.h"
#include "core/memory.h"

/* Commands in the stream still complete; the driver frees it after them. */
static void queue_destroy(iron__gpu_queue *queue) {
    if (!queue->is_borrowed)
        IRON_CU_RELEASE(iron__cuda_device_of(queue->device), cuStreamDestroy_v2,
                        iron__cuda_stream_of(queue));
}

static iron_status queue_create(iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = NULL;
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    status = IRON_CU(d, err, cuStreamCreate, &stream, IRON_CU_STREAM_NON_BLOCKING);
    queue->native = (uintptr_t)stream;
    return iron__cuda_leave(d, status, err);
}

static iron_status queue_wait(iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, IRON_CU(d, err, cuStreamSynchronize, iron__cuda_stream_of(queue)),
                            err);
}

static iron_status check_range(const iron__gpu_buffer *buffer, size_t offset, size_t bytes,
                               const char *what, iron_error *err) {
    IRON_FAIL_IF(offset > buffer->bytes || bytes > buffer->bytes - offset, err, IRON_E_ARG,
                 "cuda: %s of %zu bytes at %zu exceeds a buffer of %zu bytes", what, bytes, offset,
                 buffer->bytes);
    return IRON_OK;
}

static iron_status clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                         size_t bytes, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);

    IRON_FAIL_IF(offset % 4 != 0 || bytes % 4 != 0, err, IRON_E_ARG,
                 "cuda: clearing %zu bytes at %zu: both must be multiples of 4", bytes, offset);
    IRON_FAIL_IF(!buffer->native, err, IRON_E_ARG,
                 "cuda: clearing page-locked memory; clear it on the host");
    IRON_TRY(check_range(buffer, offset, bytes, "clearing", err));
    if (bytes == 0)
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d,
                            IRON_CU(d, err, cuMemsetD32Async, iron__cuda_address_of(buffer, offset),
                                    0, bytes / 4, iron__cuda_stream_of(queue)),
                            err);
}

/* One side of a copy: an address on the device or on the host. */
typedef struct side {
    iron__cu_pointer device;
    void *host;
} side;

static iron_status find_side(const iron__gpu_buffer *buffer, void *host, size_t offset,
                             size_t bytes, side *out, iron_error *err) {
    *out = (side){0};
    IRON_FAIL_IF(!buffer == !host, err, IRON_E_ARG,
                 "cuda: each side of a copy is either a buffer or host memory; pass one of them");
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

static iron_status copy_bytes(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    size_t bytes = copy->bytes;
    side from, to;
    iron_status status;

    IRON_TRY(find_side(copy->from, (void *)copy->from_host, copy->from_offset, bytes, &from, err));
    IRON_TRY(find_side(copy->to, copy->to_host, copy->to_offset, bytes, &to, err));
    IRON_FAIL_IF(!from.device && !to.device, err, IRON_E_ARG,
                 "cuda: a copy from host memory to host memory; use memcpy");
    if (bytes == 0)
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    if (!to.device)
        status = IRON_CU(d, err, cuMemcpyDtoHAsync_v2, to.host, from.device, bytes, stream);
    else if (!from.device)
        status = IRON_CU(d, err, cuMemcpyHtoDAsync_v2, to.device, from.host, bytes, stream);
    else
        status = IRON_CU(d, err, cuMemcpyDtoDAsync_v2, to.device, from.device, bytes, stream);
    return iron__cuda_leave(d, status, err);
}

static iron_status prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                            iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    const char *lacks = d->base.info.lacks[IRON_GPU_UVM_PREFETCH];
    iron__cu_location where = {IRON_CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal};
    iron__cu_pointer memory = iron__cuda_address_of(buffer, 0);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    iron_status status;

    IRON_FAIL_IF(buffer->memory != IRON_GPU_MEMORY_MANAGED, err, IRON_E_ARG,
                 "cuda: only managed memory can be prefetched");
    IRON_FAIL_IF(lacks[0], err, IRON_E_UNSUPPORTED, "cuda: %s; use uvm without prefetch", lacks);
    IRON_TRY(check_range(buffer, 0, bytes, "a prefetch", err));
    if (bytes == 0)
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    if (d->driver->cuMemPrefetchAsync_v2) /* since CUDA 12.2; takes a location, not a device */
        status = IRON_CU(d, err, cuMemPrefetchAsync_v2, memory, bytes, where, 0, stream);
    else
        status = IRON_CU(d, err, cuMemPrefetchAsync, memory, bytes, d->ordinal, stream);
    return iron__cuda_leave(d, status, err);
}

static void event_destroy(iron__gpu_event *event) {
    IRON_CU_RELEASE(iron__cuda_device_of(event->device), cuEventDestroy_v2, event->native);
}

static iron_status event_create(iron__gpu_event *event, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(event->device);
    iron__cu_event *native = NULL;
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    status = IRON_CU(d, err, cuEventCreate, &native, IRON_CU_EVENT_DEFAULT);
    event->native = native;
    return iron__cuda_leave(d, status, err);
}

static iron_status event_record(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(event->device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(
        d, IRON_CU(d, err, cuEventRecord, event->native, iron__cuda_stream_of(queue)), err);
}

static iron_status queue_wait_event(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(event->device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d,
                            IRON_CU(d, err, cuStreamWaitEvent, iron__cuda_stream_of(queue),
                                    event->native, IRON_CU_EVENT_WAIT_DEFAULT),
                            err);
}

static iron_status event_wait(iron__gpu_event *event, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(event->device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, IRON_CU(d, err, cuEventSynchronize, event->native), err);
}

static iron_status event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                 iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(from->device);
    iron_status status;
    float elapsed = 0;

    *ms = 0;
    IRON_TRY(iron__cuda_enter(d, err));
    status = IRON_CU(d, err, cuEventElapsedTime, &elapsed, from->native, to->native);
    IRON_TRY(iron__cuda_leave(d, status, err));
    *ms = (double)elapsed;
    return IRON_OK;
}

/* Ends and discards a recording, if there is one. */
static void abandon(iron__cuda_device *d, iron__cu_stream *stream) {
    iron__cu_capture_status capture = IRON_CU_STREAM_CAPTURE_STATUS_NONE;
    iron__cu_graph *graph = NULL;

    d->driver->cuStreamIsCapturing(stream, &capture);
    if (capture != IRON_CU_STREAM_CAPTURE_STATUS_NONE)
        d->driver->cuStreamEndCapture(stream, &graph);
    if (graph)
        d->driver->cuGraphDestroy(graph);
}

static iron_status graph_begin(iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    status =
        IRON_CU(d, err, cuStreamBeginCapture_v2, stream, IRON_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (status != IRON_OK)
        return iron__cuda_leave(d, status, err);
    status = iron__cuda_leave(d, IRON_OK, err);
    if (status != IRON_OK && iron__cuda_enter(d, NULL) == IRON_OK) {
        abandon(d, stream);
        iron__cuda_leave(d, IRON_OK, NULL);
    }
    return status;
}

static void graph_destroy(iron__gpu_graph *graph) {
    if (!graph)
        return;
    if (graph->native)
        IRON_CU_RELEASE(iron__cuda_device_of(graph->device), cuGraphExecDestroy, graph->native);
    iron__release(iron__allocator_default(), graph);
}

/* Ends the recording and makes it executable. On failure the stream no longer records. */
static iron_status instantiate(iron__cuda_device *d, iron__cu_stream *stream,
                               iron__gpu_graph *graph, iron_error *err) {
    iron__cu_graph_exec *exec = NULL;
    iron__cu_graph *recorded = NULL;
    iron_status status = IRON_CU(d, err, cuStreamEndCapture, stream, &recorded), destroyed;

    if (status != IRON_OK) {
        if (recorded)
            d->driver->cuGraphDestroy(recorded);
        abandon(d, stream);
        return status;
    }
    status = IRON_CU(d, err, cuGraphInstantiateWithFlags, &exec, recorded, 0);
    graph->native = exec;
    destroyed = IRON_CU(d, status == IRON_OK ? err : NULL, cuGraphDestroy, recorded);
    return status == IRON_OK ? destroyed : status;
}

static iron_status graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    iron__gpu_graph *graph;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__cuda_enter(d, err));
    graph = iron__allocate(iron__allocator_default(), 1, sizeof *graph, "a graph", err);
    if (!graph) {
        abandon(d, stream);
        return iron__cuda_leave(d, IRON_E_NOMEM, err);
    }
    graph->device = queue->device;
    status = iron__cuda_leave(d, instantiate(d, stream, graph, err), err);
    if (status == IRON_OK)
        *out = graph;
    else
        graph_destroy(graph);
    return status;
}

static iron_status graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(graph->device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(
        d, IRON_CU(d, err, cuGraphLaunch, graph->native, iron__cuda_stream_of(queue)), err);
}

const iron__gpu_queue_ops iron__cuda_queue_ops = {
    .create = queue_create,
    .destroy = queue_destroy,
    .wait = queue_wait,
    .wait_event = queue_wait_event,
    .clear = clear,
    .copy = copy_bytes,
    .prefetch = prefetch,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .graph_begin = graph_begin,
    .graph_end = graph_end,
    .graph_replay = graph_replay,
    .graph_destroy = graph_destroy,
};
