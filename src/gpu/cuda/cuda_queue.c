/* SPDX-License-Identifier: MIT */
/*
 * cuda_queue.c: queues are streams, events are events.
 *
 * Our streams do not wait for the legacy default stream, nor it for them: somebody else's work in
 * it would put ours in a row behind it. A caller who wraps that stream (0) gets its rules. Events
 * take the time, since the two uses of them, order and time, are too close to need two kinds.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"
#include "core/memory.h"

struct iron__gpu_event {
    iron__cuda_device *device;
    iron__cu_event *native;
};

static iron_status open_stream(iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = NULL;
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    status = IRON_CU(d, err, cuStreamCreate, &stream, IRON_CU_STREAM_NON_BLOCKING);
    queue->native = (uintptr_t)stream;
    return iron__cuda_leave(d, status, err);
}

iron_status iron__cuda_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                    iron_error *err) {
    iron__gpu_queue *queue;
    iron_status status;

    *out = NULL;
    queue = iron__allocate(iron__allocator_default(), 1, sizeof *queue, "a queue", err);
    if (!queue)
        return IRON_E_NOMEM;
    queue->device = device;
    status = open_stream(queue, err);
    if (status != IRON_OK) {
        iron__cuda_queue_destroy(queue);
        return status;
    }
    *out = queue;
    return IRON_OK;
}

iron_status iron__cuda_queue_wrap(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                                  iron_error *err) {
    iron__gpu_queue *queue;

    *out = NULL;
    queue = iron__allocate(iron__allocator_default(), 1, sizeof *queue, "a queue", err);
    if (!queue)
        return IRON_E_NOMEM;
    queue->device = device;
    queue->native = native;
    queue->is_borrowed = true;
    *out = queue;
    return IRON_OK;
}

/* Work in it still ends; the driver frees the stream after it. */
void iron__cuda_queue_destroy(iron__gpu_queue *queue) {
    if (!queue)
        return;
    if (!queue->is_borrowed && queue->native)
        IRON_CU_DROP(iron__cuda_device_of(queue->device), cuStreamDestroy_v2,
                     iron__cuda_stream_of(queue));
    iron__release(iron__allocator_default(), queue);
}

iron_status iron__cuda_queue_wait(iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, IRON_CU(d, err, cuStreamSynchronize, iron__cuda_stream_of(queue)),
                            err);
}

static iron_status open_event(iron__gpu_event *event, iron_error *err) {
    iron__cuda_device *d = event->device;

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(
        d, IRON_CU(d, err, cuEventCreate, &event->native, IRON_CU_EVENT_DEFAULT), err);
}

iron_status iron__cuda_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                    iron_error *err) {
    iron__gpu_event *event;
    iron_status status;

    *out = NULL;
    event = iron__allocate(iron__allocator_default(), 1, sizeof *event, "an event", err);
    if (!event)
        return IRON_E_NOMEM;
    event->device = iron__cuda_device_of(device);
    status = open_event(event, err);
    if (status != IRON_OK) {
        iron__cuda_event_destroy(event);
        return status;
    }
    *out = event;
    return IRON_OK;
}

void iron__cuda_event_destroy(iron__gpu_event *event) {
    if (!event)
        return;
    if (event->native)
        IRON_CU_DROP(event->device, cuEventDestroy_v2, event->native);
    iron__release(iron__allocator_default(), event);
}

iron_status iron__cuda_event_record(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err) {
    iron__cuda_device *d = event->device;

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(
        d, IRON_CU(d, err, cuEventRecord, event->native, iron__cuda_stream_of(queue)), err);
}

iron_status iron__cuda_event_follow(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err) {
    iron__cuda_device *d = event->device;

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d,
                            IRON_CU(d, err, cuStreamWaitEvent, iron__cuda_stream_of(queue),
                                    event->native, IRON_CU_EVENT_WAIT_DEFAULT),
                            err);
}

iron_status iron__cuda_event_wait(iron__gpu_event *event, iron_error *err) {
    iron__cuda_device *d = event->device;

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, IRON_CU(d, err, cuEventSynchronize, event->native), err);
}

iron_status iron__cuda_event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                     iron_error *err) {
    iron__cuda_device *d = from->device;
    iron_status status;
    float elapsed = 0;

    *ms = 0;
    IRON_TRY(iron__cuda_enter(d, err));
    status = IRON_CU(d, err, cuEventElapsedTime, &elapsed, from->native, to->native);
    IRON_TRY(iron__cuda_leave(d, status, err));
    *ms = (double)elapsed;
    return IRON_OK;
}
