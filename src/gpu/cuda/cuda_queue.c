/* SPDX-License-Identifier: MIT */
/*
 * cuda_queue.c: streams, events, copies, and graphs.
 *
 * Our streams do not synchronize with the legacy default stream: commands of other libraries in it
 * would delay ours. A caller that wraps the default stream (0) gets its rules. All events record
 * times; one kind serves both ordering and timing.
 *
 * A copy has one or two device sides. A page-locked buffer counts as host memory; the driver
 * recognizes its address and copies faster.
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
        IRON_CU_RELEASE(queue->device, cuStreamDestroy_v2, iron__cuda_stream_of(queue));
}

static iron_status queue_create(iron__gpu_queue *queue, iron_error *err) {
    iron__cu_stream *stream = NULL;
    iron_status status =
        IRON_CU_ON(queue->device, err, cuStreamCreate, &stream, IRON_CU_STREAM_NON_BLOCKING);

    queue->native = (uintptr_t)stream;
    return status;
}

static iron_status queue_wait(iron__gpu_queue *queue, iron_error *err) {
    return IRON_CU_ON(queue->device, err, cuStreamSynchronize, iron__cuda_stream_of(queue));
}

static iron_status clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                         size_t bytes, iron_error *err) {
    IRON_FAIL_IF(!buffer->native, err, IRON_E_ARG,
                 "cuda: clearing page-locked memory; clear it on the host");
    return IRON_CU_ON(queue->device, err, cuMemsetD32Async, iron__cuda_address_of(buffer, offset),
                      0, bytes / 4, iron__cuda_stream_of(queue));
}

/* One side of a copy: an address on the device or on the host. */
typedef struct side {
    iron__cu_pointer device;
    void *host;
} side;

static side side_of(const iron__gpu_buffer *buffer, void *host, size_t offset) {
    if (buffer && buffer->memory != IRON_GPU_MEMORY_PINNED &&
        buffer->memory != IRON_GPU_MEMORY_MAPPED)
        return (side){.device = iron__cuda_address_of(buffer, offset)};
    return (side){.host = (char *)(buffer ? buffer->host : host) + offset};
}

static iron_status copy_bytes(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err) {
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    side from = side_of(copy->from, (void *)copy->from_host, copy->from_offset);
    side to = side_of(copy->to, copy->to_host, copy->to_offset);
    size_t bytes = copy->bytes;

    IRON_FAIL_IF(!from.device && !to.device, err, IRON_E_ARG,
                 "cuda: a copy from host memory to host memory; use memcpy");
    if (!to.device)
        return IRON_CU_ON(queue->device, err, cuMemcpyDtoHAsync_v2, to.host, from.device, bytes,
                          stream);
    if (!from.device)
        return IRON_CU_ON(queue->device, err, cuMemcpyHtoDAsync_v2, to.device, from.host, bytes,
                          stream);
    return IRON_CU_ON(queue->device, err, cuMemcpyDtoDAsync_v2, to.device, from.device, bytes,
                      stream);
}

static iron_status prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                            iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_location where = {IRON_CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal};
    iron__cu_pointer memory = iron__cuda_address_of(buffer, 0);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);

    if (d->driver->cuMemPrefetchAsync_v2) /* since CUDA 12.2; takes a location, not a device */
        return IRON_CU(d, err, cuMemPrefetchAsync_v2, memory, bytes, where, 0, stream);
    return IRON_CU(d, err, cuMemPrefetchAsync, memory, bytes, d->ordinal, stream);
}

static void event_destroy(iron__gpu_event *event) {
    IRON_CU_RELEASE(event->device, cuEventDestroy_v2, event->native);
}

static iron_status event_create(iron__gpu_event *event, iron_error *err) {
    iron__cu_event *native = NULL;
    iron_status status =
        IRON_CU_ON(event->device, err, cuEventCreate, &native, IRON_CU_EVENT_DEFAULT);

    event->native = native;
    return status;
}

static iron_status event_record(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err) {
    return IRON_CU_ON(event->device, err, cuEventRecord, event->native,
                      iron__cuda_stream_of(queue));
}

static iron_status queue_wait_event(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err) {
    return IRON_CU_ON(event->device, err, cuStreamWaitEvent, iron__cuda_stream_of(queue),
                      event->native, IRON_CU_EVENT_WAIT_DEFAULT);
}

static iron_status event_wait(iron__gpu_event *event, iron_error *err) {
    return IRON_CU_ON(event->device, err, cuEventSynchronize, event->native);
}

static iron_status event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                 iron_error *err) {
    float elapsed = 0;

    IRON_TRY(IRON_CU_ON(from->device, err, cuEventElapsedTime, &elapsed, from->native, to->native));
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
    return IRON_CU_ON(queue->device, err, cuStreamBeginCapture_v2, iron__cuda_stream_of(queue),
                      IRON_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static void graph_destroy(iron__gpu_graph *graph) {
    if (graph->native)
        IRON_CU_RELEASE(graph->device, cuGraphExecDestroy, graph->native);
    iron__release(iron__allocator_default(), graph);
}

static iron_status graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    iron__cu_graph_exec *exec = NULL;
    iron__cu_graph *recorded = NULL;
    iron_status status, destroyed;

    *out = iron__allocate(iron__allocator_default(), 1, sizeof **out, "a graph", err);
    if (!*out) {
        abandon(d, stream);
        return IRON_E_NOMEM;
    }
    (*out)->device = queue->device;
    /* Ends the recording and makes it executable. On failure the stream no longer records. */
    status = IRON_CU(d, err, cuStreamEndCapture, stream, &recorded);
    if (status != IRON_OK) {
        if (recorded)
            d->driver->cuGraphDestroy(recorded);
        abandon(d, stream);
        return status;
    }
    status = IRON_CU(d, err, cuGraphInstantiateWithFlags, &exec, recorded, 0);
    (*out)->native = exec;
    destroyed = IRON_CU(d, status == IRON_OK ? err : NULL, cuGraphDestroy, recorded);
    return status == IRON_OK ? destroyed : status;
}

static iron_status graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue, iron_error *err) {
    return IRON_CU_ON(graph->device, err, cuGraphLaunch, graph->native,
                      iron__cuda_stream_of(queue));
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
