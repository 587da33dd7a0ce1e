/* SPDX-License-Identifier: MIT */
/*
 * opencl_queue.c: queues of our own and the caller's.
 *
 * All of them work in order. Our own keep times, so that events can be compared; a caller's queue
 * may not, and is held for as long as its wrap lives. OpenCL is free to hold work back until it is
 * flushed: whoever puts in work that others wait for flushes.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"

/* The newer call only where the driver is new, too: a loader may have it alone. */
iron__cl_queue *iron__opencl_queue_new(const iron__opencl_device *device, int32_t *code) {
    static const uint64_t properties[] = {IRON_CL_QUEUE_PROPERTIES, IRON_CL_QUEUE_PROFILING_ENABLE,
                                          0};
    const iron__opencl_api *cl = device->api;

    *code = IRON_CL_SUCCESS;
    if (cl->clCreateCommandQueueWithProperties && device->entry->version >= 200)
        return cl->clCreateCommandQueueWithProperties(device->context, device->entry->id,
                                                      properties, code);
    return cl->clCreateCommandQueue(device->context, device->entry->id,
                                    IRON_CL_QUEUE_PROFILING_ENABLE, code);
}

static iron__gpu_queue *new_queue(iron__gpu_device *device, iron_error *err) {
    iron__gpu_queue *queue = iron__opencl_new(sizeof *queue, "an OpenCL queue", err);

    if (queue)
        queue->device = device;
    return queue;
}

iron_status iron__opencl_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                      iron_error *err) {
    iron__gpu_queue *queue = new_queue(device, err);
    int32_t code;

    *out = NULL;
    if (!queue)
        return IRON_E_NOMEM;
    queue->native = (uintptr_t)iron__opencl_queue_new(iron__opencl_device_of(device), &code);
    if (code != IRON_CL_SUCCESS) {
        iron__opencl_delete(queue);
        return iron__opencl_check(device, code, "clCreateCommandQueue", err);
    }
    *out = queue;
    return IRON_OK;
}

static iron_status check_foreign(const iron__opencl_device *d, iron__cl_queue *queue,
                                 iron_error *err) {
    iron__cl_context *context = NULL;
    iron__cl_device *id = NULL;
    uint64_t properties = 0;
    int32_t code = d->api->clGetCommandQueueInfo(
        queue, IRON_CL_QUEUE_CONTEXT, sizeof(iron__cl_context *), (void *)&context, NULL);

    if (code == IRON_CL_SUCCESS)
        code = d->api->clGetCommandQueueInfo(queue, IRON_CL_QUEUE_DEVICE, sizeof(iron__cl_device *),
                                             (void *)&id, NULL);
    if (code == IRON_CL_SUCCESS)
        code = d->api->clGetCommandQueueInfo(queue, IRON_CL_QUEUE_PROPERTIES, sizeof properties,
                                             &properties, NULL);
    if (code != IRON_CL_SUCCESS)
        return iron__fail(err, IRON_E_ARG, code,
                          "opencl: not a cl_command_queue: clGetCommandQueueInfo says %s",
                          iron__opencl_error_name(code).text);
    IRON_FAIL_IF(context != d->context || id != d->entry->id, err, IRON_E_ARG,
                 "opencl: the queue belongs to another OpenCL context; make it in the engine's: "
                 "iron_engine_native_context");
    IRON_FAIL_IF(properties & IRON_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, err, IRON_E_ARG,
                 "opencl: the queue works out of order; make one that works in order");
    return IRON_OK;
}

iron_status iron__opencl_queue_wrap(iron__gpu_device *device, uintptr_t native,
                                    iron__gpu_queue **out, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(device);
    iron__cl_queue *theirs = (iron__cl_queue *)native;
    iron__gpu_queue *queue;
    int32_t code;

    *out = NULL;
    IRON_FAIL_IF(!native, err, IRON_E_ARG,
                 "opencl: the queue is 0, and OpenCL has no default one; give a cl_command_queue");
    IRON_TRY(check_foreign(d, theirs, err));
    queue = new_queue(device, err);
    if (!queue)
        return IRON_E_NOMEM;
    code = d->api->clRetainCommandQueue(theirs);
    if (code != IRON_CL_SUCCESS) {
        iron__opencl_delete(queue);
        return iron__opencl_check(device, code, "clRetainCommandQueue", err);
    }
    queue->native = native;
    queue->is_borrowed = true;
    *out = queue;
    return IRON_OK;
}

void iron__opencl_queue_destroy(iron__gpu_queue *queue) {
    const iron__opencl_api *cl;

    if (!queue)
        return;
    cl = iron__opencl_device_of(queue->device)->api;
    if (!queue->is_borrowed)
        cl->clFinish(iron__opencl_queue_of(queue));
    cl->clReleaseCommandQueue(iron__opencl_queue_of(queue));
    iron__opencl_delete(queue);
}

iron_status iron__opencl_queue_wait(iron__gpu_queue *queue, iron_error *err) {
    int32_t code =
        iron__opencl_device_of(queue->device)->api->clFinish(iron__opencl_queue_of(queue));

    return iron__opencl_check_wait(queue->device, code, "clFinish", err);
}

iron_status iron__opencl_queue_flush(iron__gpu_queue *queue, iron_error *err) {
    int32_t code =
        iron__opencl_device_of(queue->device)->api->clFlush(iron__opencl_queue_of(queue));

    return iron__opencl_check(queue->device, code, "clFlush", err);
}
