/* SPDX-License-Identifier: MIT */
/*
 * opencl_queue.c: queues, events, and copies.
 *
 * All queues execute in order. Our own record times, so that events can be compared; a wrapped
 * queue may not, and is retained while its wrapper exists. OpenCL may hold commands back until a
 * flush, so functions that enqueue commands others wait for flush.
 *
 * An event of gpu.h can be recorded repeatedly; an OpenCL event is created by its command. So ours
 * holds the marker of its last record. Waiting for an event that was never recorded returns at
 * once. Durations come from the ends of the markers. A queue without profiling, or a driver that
 * records no times of markers, gives IRON_E_UNSUPPORTED.
 *
 * A side of a copy is host memory (the caller's, a pinned buffer, or a buffer that the host has
 * access to), a buffer, or shared virtual memory (SVM):
 *
 *   from \ to   host          buffer               SVM
 *   host        refused       write                SVM copy
 *   buffer      read          copy                 map, read, unmap
 *   SVM         SVM copy      map, write, unmap    SVM copy
 */
#include "gpu/opencl/opencl_internal.h"

#include "core/fail.h"

static const iron__opencl_api *api_of(const iron__gpu_queue *queue) {
    return iron__opencl_device_of(queue->device)->api;
}

/* The OpenCL 2.0 function needs a 2.0 driver too: the loader alone may have it. */
static iron_status queue_create(iron__gpu_queue *queue, iron_error *err) {
    static const uint64_t properties[] = {IRON_CL_QUEUE_PROPERTIES, IRON_CL_QUEUE_PROFILING_ENABLE,
                                          0};
    iron__opencl_device *d = iron__opencl_device_of(queue->device);
    int32_t code = IRON_CL_SUCCESS;
    iron__cl_queue *native;

    if (d->api->clCreateCommandQueueWithProperties && d->entry->version >= 200)
        native =
            d->api->clCreateCommandQueueWithProperties(d->context, d->entry->id, properties, &code);
    else
        native = d->api->clCreateCommandQueue(d->context, d->entry->id,
                                              IRON_CL_QUEUE_PROFILING_ENABLE, &code);
    IRON_TRY(iron__opencl_check(queue->device, code, "clCreateCommandQueue", err));
    queue->native = (uintptr_t)native;
    return IRON_OK;
}

static iron_status queue_wrap(iron__gpu_device *device, uintptr_t native, iron_error *err) {
    const iron__opencl_device *d = iron__opencl_device_of(device);
    iron__cl_queue *theirs = (iron__cl_queue *)native;
    iron__cl_context *context = NULL;
    iron__cl_device *id = NULL;
    int32_t (*get)(iron__cl_queue *, uint32_t, size_t, void *, size_t *) =
        d->api->clGetCommandQueueInfo;
    uint64_t properties = 0;
    int32_t code;

    IRON_FAIL_IF(!native, err, IRON_E_ARG,
                 "opencl: the queue is 0, and OpenCL has no default queue; pass a "
                 "cl_command_queue");
    if ((code = get(theirs, IRON_CL_QUEUE_CONTEXT, sizeof(void *), (void *)&context, NULL)) ||
        (code = get(theirs, IRON_CL_QUEUE_DEVICE, sizeof(void *), (void *)&id, NULL)) ||
        (code = get(theirs, IRON_CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL)))
        return iron__fail(err, IRON_E_ARG, code,
                          "opencl: not a cl_command_queue: clGetCommandQueueInfo returned %s",
                          iron__opencl_error_name(code).text);
    IRON_FAIL_IF(context != d->context || id != d->entry->id, err, IRON_E_ARG,
                 "opencl: the queue belongs to another OpenCL context; create it in "
                 "iron_engine_native_context");
    IRON_FAIL_IF(properties & IRON_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, err, IRON_E_ARG,
                 "opencl: the queue executes out of order; create an in-order queue");
    return IRON_CL(device, err, clRetainCommandQueue, theirs);
}

static void queue_destroy(iron__gpu_queue *queue) {
    if (!queue->is_borrowed)
        api_of(queue)->clFinish(iron__opencl_queue_of(queue));
    api_of(queue)->clReleaseCommandQueue(iron__opencl_queue_of(queue));
}

static iron_status queue_wait(iron__gpu_queue *queue, iron_error *err) {
    return IRON_CL_WAIT(queue->device, err, clFinish, iron__opencl_queue_of(queue));
}

iron_status iron__opencl_flush(iron__gpu_queue *queue, iron_error *err) {
    return IRON_CL(queue->device, err, clFlush, iron__opencl_queue_of(queue));
}

typedef enum place { PLACE_HOST, PLACE_BUFFER, PLACE_SVM } place;

typedef struct side {
    place place;
    iron__cl_memory *memory; /* PLACE_BUFFER */
    size_t offset;
    void *address; /* the others; includes the offset */
} side;

static side side_of(const iron__gpu_buffer *buffer, void *host, size_t offset) {
    if (!buffer || buffer->host)
        return (side){.place = PLACE_HOST,
                      .address = (char *)(buffer ? buffer->host : host) + offset};
    if (buffer->memory == IRON_GPU_MEMORY_MANAGED)
        return (side){.place = PLACE_SVM, .address = (void *)(buffer->native + offset)};
    return (side){
        .place = PLACE_BUFFER, .memory = iron__opencl_memory_of(buffer), .offset = offset};
}

/* Between SVM and a buffer, SVM is mapped, and so host memory. The queue keeps the three commands
 * in order: the host does not wait. */
static iron_status enqueue_copy(iron__gpu_queue *queue, const side *from, const side *to,
                                size_t bytes, iron_error *err) {
    bool is_from_buffer = from->place == PLACE_BUFFER, is_to_buffer = to->place == PLACE_BUFFER;
    const side *mapped = is_from_buffer ? to : from;
    iron__cl_queue *native = iron__opencl_queue_of(queue);
    iron_status status, unmapped;

    IRON_FAIL_IF(from->place == PLACE_HOST && to->place == PLACE_HOST, err, IRON_E_ARG,
                 "opencl: a copy from host memory to host memory; use memcpy");
    if (is_from_buffer && is_to_buffer)
        return IRON_CL(queue->device, err, clEnqueueCopyBuffer, native, from->memory, to->memory,
                       from->offset, to->offset, bytes, 0, NULL, NULL);
    if (!is_from_buffer && !is_to_buffer)
        return IRON_CL(queue->device, err, clEnqueueSVMMemcpy, native, 0, to->address,
                       from->address, bytes, 0, NULL, NULL);
    if (mapped->place == PLACE_SVM)
        IRON_TRY(IRON_CL(queue->device, err, clEnqueueSVMMap, native, 0,
                         is_from_buffer ? IRON_CL_MAP_WRITE : IRON_CL_MAP_READ, mapped->address,
                         bytes, 0, NULL, NULL));
    if (is_from_buffer)
        status = IRON_CL(queue->device, err, clEnqueueReadBuffer, native, from->memory, 0,
                         from->offset, bytes, to->address, 0, NULL, NULL);
    else
        status = IRON_CL(queue->device, err, clEnqueueWriteBuffer, native, to->memory, 0,
                         to->offset, bytes, from->address, 0, NULL, NULL);
    if (mapped->place != PLACE_SVM)
        return status;
    unmapped = IRON_CL(queue->device, status == IRON_OK ? err : NULL, clEnqueueSVMUnmap, native,
                       mapped->address, 0, NULL, NULL);
    return status == IRON_OK ? unmapped : status;
}

static iron_status copy_bytes(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err) {
    /* OpenCL only reads from_host; `side` also holds addresses that are written */
    side from = side_of(copy->from, (void *)(uintptr_t)copy->from_host, copy->from_offset);
    side to = side_of(copy->to, copy->to_host, copy->to_offset);

    IRON_TRY(enqueue_copy(queue, &from, &to, copy->bytes, err));
    return iron__opencl_flush(queue, err);
}

static iron_status clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                         size_t bytes, iron_error *err) {
    static const uint32_t zero = 0;
    iron__cl_queue *native = iron__opencl_queue_of(queue);
    side at = side_of(buffer, NULL, offset);

    IRON_FAIL_IF(at.place == PLACE_HOST, err,
                 buffer->memory == IRON_GPU_MEMORY_PINNED ? IRON_E_ARG : IRON_E_STATE,
                 "opencl: clearing a buffer that the host has access to; clear it on the host");
    if (at.place == PLACE_SVM)
        return IRON_CL(queue->device, err, clEnqueueSVMMemFill, native, at.address, &zero,
                       sizeof zero, bytes, 0, NULL, NULL);
    return IRON_CL(queue->device, err, clEnqueueFillBuffer, native, at.memory, &zero, sizeof zero,
                   offset, bytes, 0, NULL, NULL);
}

static iron_status prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                            iron_error *err) {
    const void *address = (const void *)buffer->native;

    IRON_FAIL_IF(buffer->host, err, IRON_E_STATE,
                 "opencl: the host has access to the buffer to prefetch; call host_end first");
    IRON_TRY(IRON_CL(queue->device, err, clEnqueueSVMMigrateMem, iron__opencl_queue_of(queue), 1,
                     &address, &bytes, 0, 0, NULL, NULL));
    return iron__opencl_flush(queue, err);
}

/* event->native: the marker of the last record; NULL: never recorded */

static void event_destroy(iron__gpu_event *event) {
    iron__opencl_device_of(event->device)->api->clReleaseEvent(event->native);
}

static iron_status event_record(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err) {
    iron__cl_event *marker = NULL;

    IRON_TRY(IRON_CL(queue->device, err, clEnqueueMarkerWithWaitList, iron__opencl_queue_of(queue),
                     0, NULL, &marker));
    if (event->native)
        event_destroy(event);
    event->native = marker;
    return iron__opencl_flush(queue, err); /* other queues may wait for it */
}

static iron_status queue_wait_event(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err) {
    iron__cl_event *marker = event->native;

    if (!marker)
        return IRON_OK;
    return IRON_CL(queue->device, err, clEnqueueBarrierWithWaitList, iron__opencl_queue_of(queue),
                   1, &marker, NULL);
}

static iron_status event_wait(iron__gpu_event *event, iron_error *err) {
    iron__cl_event *marker = event->native;

    return marker ? IRON_CL_WAIT(event->device, err, clWaitForEvents, 1, &marker) : IRON_OK;
}

static iron_status end_ns(iron__gpu_event *event, uint64_t *ns, iron_error *err) {
    int32_t code;

    IRON_FAIL_IF(!event->native, err, IRON_E_STATE,
                 "opencl: the event was never recorded; record it before reading its time");
    *ns = 0;
    code = iron__opencl_device_of(event->device)
               ->api->clGetEventProfilingInfo(event->native, IRON_CL_PROFILING_COMMAND_END,
                                              sizeof *ns, ns, NULL);
    if (code == IRON_CL_SUCCESS && *ns == 0)
        code = IRON_CL_PROFILING_INFO_NOT_AVAILABLE; /* the driver records no times of markers */
    return iron__opencl_check(event->device, code, "clGetEventProfilingInfo", err);
}

static iron_status event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                 iron_error *err) {
    uint64_t begin = 0, end = 0;

    IRON_TRY(end_ns(from, &begin, err));
    IRON_TRY(end_ns(to, &end, err));
    *ms = end >= begin ? (double)(end - begin) * 1e-6 : -((double)(begin - end) * 1e-6);
    return IRON_OK;
}

const iron__gpu_queue_ops iron__opencl_queue_ops = {
    .create = queue_create,
    .wrap = queue_wrap,
    .destroy = queue_destroy,
    .wait = queue_wait,
    .wait_event = queue_wait_event,
    .clear = clear,
    .copy = copy_bytes,
    .prefetch = prefetch,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
};
