/* SPDX-License-Identifier: MIT */
/*
 * opencl_event.c: points in queues. An event of gpu.h can be recorded again and again; one of
 * OpenCL is made by the command it stands for. So ours holds the marker of its last record, or none
 * yet: waiting for none, and following none, is done at once.
 *
 * Times come from the markers' ends, which a queue without profiling, or a driver that keeps no
 * times of markers, does not have: then the answer is that there are none.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"

struct iron__gpu_event {
    iron__gpu_device *device;
    iron__cl_event *marker; /* NULL: never recorded */
};

iron_status iron__opencl_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                      iron_error *err) {
    iron__gpu_event *event = iron__opencl_new(sizeof *event, "an OpenCL event", err);

    *out = event;
    if (!event)
        return IRON_E_NOMEM;
    event->device = device;
    return IRON_OK;
}

void iron__opencl_event_destroy(iron__gpu_event *event) {
    if (!event)
        return;
    if (event->marker)
        iron__opencl_device_of(event->device)->api->clReleaseEvent(event->marker);
    iron__opencl_delete(event);
}

/* Flushed, since other queues may wait for it. */
iron_status iron__opencl_event_record(iron__gpu_queue *queue, iron__gpu_event *event,
                                      iron_error *err) {
    const iron__opencl_api *cl = iron__opencl_device_of(queue->device)->api;
    iron__cl_event *marker = NULL;
    int32_t code = cl->clEnqueueMarkerWithWaitList(iron__opencl_queue_of(queue), 0, NULL, &marker);

    IRON_TRY(iron__opencl_check(queue->device, code, "clEnqueueMarkerWithWaitList", err));
    if (event->marker)
        cl->clReleaseEvent(event->marker);
    event->marker = marker;
    return iron__opencl_queue_flush(queue, err);
}

iron_status iron__opencl_event_follow(iron__gpu_queue *queue, iron__gpu_event *event,
                                      iron_error *err) {
    const iron__opencl_api *cl = iron__opencl_device_of(queue->device)->api;
    int32_t code;

    if (!event->marker)
        return IRON_OK;
    code = cl->clEnqueueBarrierWithWaitList(iron__opencl_queue_of(queue), 1, &event->marker, NULL);
    return iron__opencl_check(queue->device, code, "clEnqueueBarrierWithWaitList", err);
}

iron_status iron__opencl_event_wait(iron__gpu_event *event, iron_error *err) {
    int32_t code;

    if (!event->marker)
        return IRON_OK;
    code = iron__opencl_device_of(event->device)->api->clWaitForEvents(1, &event->marker);
    return iron__opencl_check_wait(event->device, code, "clWaitForEvents", err);
}

static iron_status end_ns(iron__gpu_event *event, uint64_t *ns, iron_error *err) {
    int32_t code;

    IRON_FAIL_IF(!event->marker, err, IRON_E_STATE,
                 "opencl: the event was never recorded; record it before asking for a time");
    *ns = 0;
    code = iron__opencl_device_of(event->device)
               ->api->clGetEventProfilingInfo(event->marker, IRON_CL_PROFILING_COMMAND_END,
                                              sizeof *ns, ns, NULL);
    if (code == IRON_CL_SUCCESS && *ns == 0)
        code = IRON_CL_PROFILING_INFO_NOT_AVAILABLE; /* a driver that leaves markers out */
    return iron__opencl_check(event->device, code, "clGetEventProfilingInfo", err);
}

iron_status iron__opencl_event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                       iron_error *err) {
    uint64_t begin = 0, end = 0;

    *ms = 0;
    IRON_TRY(end_ns(from, &begin, err));
    IRON_TRY(end_ns(to, &end, err));
    *ms = end >= begin ? (double)(end - begin) * 1e-6 : -((double)(begin - end) * 1e-6);
    return IRON_OK;
}
