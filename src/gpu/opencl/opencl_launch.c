/* SPDX-License-Identifier: MIT */
/*
 * opencl_launch.c: a kernel with its arguments, put into a queue.
 *
 * OpenCL copies values when they are set and takes buffers as objects, or as pointers where they
 * are shared memory. Kernels see one dimension unless a second is asked for. A buffer that is the
 * host's at the moment must not be read by a kernel; OpenCL would not notice, so it is refused
 * here. So are too few arguments: OpenCL would take those of the last launch for the rest. What a
 * launch wants to be kept in a cache is without effect: OpenCL has no word for it.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"

#define ARGS_MAX 16u

static iron_status set_buffer(iron__opencl_device *d, iron__gpu_kernel *kernel, uint32_t index,
                              const iron__gpu_buffer *buffer, iron_error *err) {
    iron__cl_memory *memory = iron__opencl_memory_of(buffer);
    int32_t code;

    IRON_FAIL_IF(buffer->memory == IRON_GPU_MEMORY_PINNED, err, IRON_E_ARG,
                 "opencl: %s: argument %u is page-locked memory; kernels read mapped memory",
                 kernel->name, index);
    IRON_FAIL_IF(iron__opencl_is_open(buffer), err, IRON_E_STATE,
                 "opencl: %s: the buffer of argument %u is the host's; call host_end first",
                 kernel->name, index);
    if (buffer->memory == IRON_GPU_MEMORY_MANAGED) {
        code = d->api->clSetKernelArgSVMPointer(kernel->native, index, (void *)buffer->native);
        kernel->shared_args |= UINT32_C(1) << index;
        return iron__opencl_check(&d->base, code, "clSetKernelArgSVMPointer", err);
    }
    code = d->api->clSetKernelArg(kernel->native, index, sizeof(iron__cl_memory *),
                                  (const void *)&memory);
    return iron__opencl_check(&d->base, code, "clSetKernelArg", err);
}

/* NVIDIA's driver (580) answers CL_INVALID_KERNEL_ARGS to every launch once an argument that was
 * shared memory is a buffer again; a new kernel object has no such past. */
static iron_status leave_shared(iron__opencl_device *d, const iron__gpu_launch *launch,
                                iron_error *err) {
    for (uint32_t k = 0; k < launch->arg_count; k++) {
        const iron__gpu_buffer *buffer = launch->args[k].buffer;

        if (buffer && buffer->memory != IRON_GPU_MEMORY_MANAGED &&
            launch->kernel->shared_args >> k & 1)
            return iron__opencl_kernel_renew(d, launch->kernel, err);
    }
    return IRON_OK;
}

/* Dynamic local memory is the last parameter, after all arguments. */
static iron_status set_local(iron__opencl_device *d, const iron__gpu_launch *launch,
                             iron_error *err) {
    iron__gpu_kernel *kernel = launch->kernel;
    uint64_t most = d->base.info.local_bytes_max;
    uint64_t own = kernel->local_bytes > IRON_OPENCL_LOCAL_RESERVE ? kernel->local_bytes : 0;

    if (launch->local_bytes == 0)
        return IRON_OK;
    IRON_FAIL_IF(
        launch->local_bytes > most || own > most - launch->local_bytes, err, IRON_E_UNSUPPORTED,
        "opencl: %s: %zu bytes of local memory a group beside %llu of its own; the device "
        "has %llu",
        kernel->name, launch->local_bytes, (unsigned long long)own, (unsigned long long)most);
    return iron__opencl_check(&d->base,
                              d->api->clSetKernelArg(kernel->native, (uint32_t)launch->arg_count,
                                                     launch->local_bytes, NULL),
                              "clSetKernelArg", err);
}

static iron_status set_args(iron__opencl_device *d, const iron__gpu_launch *launch,
                            iron_error *err) {
    iron__gpu_kernel *kernel = launch->kernel;
    size_t given = launch->arg_count + (launch->local_bytes > 0);

    IRON_FAIL_IF(given > ARGS_MAX || given != kernel->arg_count, err, IRON_E_ARG,
                 "opencl: %s: %zu arguments for %u parameters; %u at most", kernel->name, given,
                 kernel->arg_count, ARGS_MAX);
    IRON_TRY(leave_shared(d, launch, err));
    for (uint32_t k = 0; k < launch->arg_count; k++) {
        const iron__gpu_arg *arg = &launch->args[k];
        int32_t code;

        if (arg->buffer) {
            IRON_TRY(set_buffer(d, kernel, k, arg->buffer, err));
            continue;
        }
        IRON_FAIL_IF(!arg->value || arg->bytes == 0, err, IRON_E_ARG,
                     "opencl: %s: argument %u is neither a buffer nor a value; give one",
                     kernel->name, k);
        code = d->api->clSetKernelArg(kernel->native, k, arg->bytes, arg->value);
        IRON_TRY(iron__opencl_check(&d->base, code, "clSetKernelArg", err));
    }
    return set_local(d, launch, err);
}

static iron_status check_shape(const iron__opencl_device *d, const iron__gpu_launch *launch,
                               const size_t groups[2], const size_t threads[2], iron_error *err) {
    const char *name = launch->kernel->name;

    IRON_FAIL_IF(launch->flags & IRON_GPU_LAUNCH_TOGETHER, err, IRON_E_UNSUPPORTED,
                 "opencl: %s: groups that wait for each other; OpenCL does not promise to run them "
                 "at the same time",
                 name);
    IRON_FAIL_IF(groups[0] == 0 || threads[0] == 0, err, IRON_E_ARG,
                 "opencl: %s: %zu groups of %zu threads; give 1 at least", name, groups[0],
                 threads[0]);
    IRON_FAIL_IF(threads[0] * threads[1] > d->base.info.group_threads_max, err, IRON_E_ARG,
                 "opencl: %s: %zu threads in a group; the device has %u at most", name,
                 threads[0] * threads[1], d->base.info.group_threads_max);
    return IRON_OK;
}

iron_status iron__opencl_launch(iron__gpu_queue *queue, const iron__gpu_launch *launch,
                                iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(queue->device);
    size_t groups[2] = {launch->groups[0], launch->groups[1] ? launch->groups[1] : 1};
    size_t threads[2] = {launch->threads[0], launch->threads[1] ? launch->threads[1] : 1};
    size_t all[2] = {groups[0] * threads[0], groups[1] * threads[1]};
    int32_t code;

    IRON_TRY(check_shape(d, launch, groups, threads, err));
    IRON_TRY(set_args(d, launch, err));
    code = d->api->clEnqueueNDRangeKernel(iron__opencl_queue_of(queue), launch->kernel->native,
                                          all[1] > 1 ? 2 : 1, NULL, all, threads, 0, NULL, NULL);
    IRON_TRY(iron__opencl_check(queue->device, code, "clEnqueueNDRangeKernel", err));
    return iron__opencl_queue_flush(queue, err);
}
