/* SPDX-License-Identifier: MIT */
/*
 * cuda_launch.c: kernels into a queue.
 *
 * The driver copies the arguments during the call, so a launch stands on the stack and allocates
 * nothing. A plain one goes the old way, which every driver has; what the flags ask for are
 * attributes of the newer one:
 *
 *     OVERLAP    programmatic stream serialization: the kernel may begin when the one ahead allows
 *                it, and waits for that one's results where it must
 *     TOGETHER   a cooperative launch: all groups at once, or an error
 *
 * and so is what a launch wants to be kept in the cache (cuda_keep.c). A launch that is too large
 * is the caller's mistake and leaves the device good. What would fit is said with it; the driver
 * says only that it did not.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

#include <stdio.h>

#define ARGS_MAX 16

typedef struct request {
    iron__cu_launch_config config;
    iron__cu_launch_attribute attributes[3];
    uintptr_t pointers[ARGS_MAX]; /* of buffers */
    void *values[ARGS_MAX];       /* where each argument lies */
} request;

static iron_status fill_shape(const iron__cuda_device *d, const iron__gpu_launch *launch,
                              iron__cu_launch_config *config, iron_error *err) {
    const char *name = launch->kernel->name;
    uint32_t groups_y = launch->groups[1] ? launch->groups[1] : 1;
    uint32_t threads_y = launch->threads[1] ? launch->threads[1] : 1;
    unsigned long long threads = (unsigned long long)launch->threads[0] * threads_y;

    IRON_FAIL_IF(launch->groups[0] == 0 || launch->groups[0] > INT32_MAX || groups_y > UINT16_MAX,
                 err, IRON_E_ARG,
                 "cuda: kernel '%s' in %u x %u groups; 1 to 2^31-1 x 1 to 65535 are possible", name,
                 launch->groups[0], groups_y);
    IRON_FAIL_IF(threads == 0 || threads > d->base.info.group_threads_max, err, IRON_E_ARG,
                 "cuda: kernel '%s' with %llu threads a group; 1 to %u are possible", name, threads,
                 d->base.info.group_threads_max);
    config->grid_x = launch->groups[0];
    config->grid_y = groups_y;
    config->grid_z = 1;
    config->block_x = launch->threads[0];
    config->block_y = threads_y;
    config->block_z = 1;
    return IRON_OK;
}

/* The driver refuses what its own and the launch's local memory come to together: says both. */
static iron_status fail_local(iron__cuda_device *d, const iron__gpu_launch *launch,
                              iron__cu_result code, iron_error *err) {
    uint32_t own_bytes = 0;

    if (code != IRON_CUDA_ERROR_INVALID_VALUE ||
        !iron__cuda_static_local(d, launch->kernel, &own_bytes))
        return iron__cuda_check(d, err, "cuFuncSetAttribute", code);
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "cuda: kernel '%s' with %zu bytes of local memory a group beside %u of its "
                      "own (CUDA_ERROR_INVALID_VALUE); the device has %llu",
                      launch->kernel->name, launch->local_bytes, own_bytes,
                      (unsigned long long)d->base.info.local_bytes_max);
}

/* More local memory than every card has must be asked for before. */
static iron_status fill_local(iron__cuda_device *d, const iron__gpu_launch *launch,
                              iron__cu_launch_config *config, iron_error *err) {
    size_t bytes = launch->local_bytes;
    iron__cu_result code;

    IRON_FAIL_IF(bytes > d->base.info.local_bytes_max, err, IRON_E_UNSUPPORTED,
                 "cuda: kernel '%s' with %zu bytes of local memory a group; the device has %llu",
                 launch->kernel->name, bytes, (unsigned long long)d->base.info.local_bytes_max);
    config->shared_bytes = (unsigned)bytes;
    code = iron__cuda_allow_local(d, launch->kernel, bytes);
    return code == IRON_CUDA_SUCCESS ? IRON_OK : fail_local(d, launch, code, err);
}

static iron_status fill_arguments(const iron__gpu_launch *launch, request *r, iron_error *err) {
    IRON_FAIL_IF(launch->arg_count > ARGS_MAX, err, IRON_E_ARG,
                 "cuda: kernel '%s' with %zu arguments; %d are possible", launch->kernel->name,
                 launch->arg_count, ARGS_MAX);
    for (size_t k = 0; k < launch->arg_count; k++) {
        const iron__gpu_arg *arg = &launch->args[k];

        if (!arg->buffer) {
            r->values[k] = (void *)arg->value; /* the driver only reads it */
            continue;
        }
        IRON_FAIL_IF(!arg->buffer->native, err, IRON_E_ARG,
                     "cuda: argument %zu of kernel '%s' is host memory that the device does not "
                     "see; give mapped memory",
                     k, launch->kernel->name);
        r->pointers[k] = arg->buffer->native;
        r->values[k] = &r->pointers[k];
    }
    return IRON_OK;
}

static iron_status fill_attributes(const iron__cuda_device *d, const iron__gpu_launch *launch,
                                   request *r, iron_error *err) {
    uint32_t flags = launch->flags;
    iron__cu_window window;
    unsigned count = 0;

    IRON_TRY(iron__cuda_window(d, launch, &window, err));
    IRON_FAIL_IF(flags & IRON_GPU_LAUNCH_TOGETHER && !d->base.info.can_gather, err,
                 IRON_E_UNSUPPORTED,
                 "cuda: this device or driver does not launch groups that wait for each other");
    if (flags & IRON_GPU_LAUNCH_TOGETHER) {
        r->attributes[count].id = IRON_CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        r->attributes[count++].value.is_cooperative = 1;
    }
    if (flags & IRON_GPU_LAUNCH_OVERLAP && d->base.info.can_overlap) {
        r->attributes[count].id = IRON_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        r->attributes[count++].value.may_overlap = 1;
    }
    if (window.bytes > 0) {
        r->attributes[count].id = IRON_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
        r->attributes[count++].value.window = window;
    }
    r->config.attributes = r->attributes;
    r->config.attribute_count = count;
    return IRON_OK;
}

/* All groups at once were asked for and do not fit: says how many would. */
static iron_status fail_together(iron__cuda_device *d, const iron__gpu_kernel *kernel,
                                 const iron__cu_launch_config *c, iron__cu_result code,
                                 iron_error *err) {
    unsigned threads = c->block_x * c->block_y;
    unsigned long long groups = (unsigned long long)c->grid_x * c->grid_y, fit;
    int per_unit = 0;

    IRON_TRY(IRON_CU(d, err, cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_unit,
                     kernel->function, (int)threads, c->shared_bytes));
    fit = (unsigned long long)per_unit * d->base.info.units;
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "cuda: kernel '%s': %llu groups of %u threads do not fit on the device at "
                      "once (CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE); launch at most %llu",
                      kernel->name, groups, threads, fit);
}

static iron_status submit(iron__cuda_device *d, const iron__gpu_kernel *kernel, request *r,
                          iron_error *err) {
    const iron__cu_launch_config *c = &r->config;
    bool is_plain = c->attribute_count == 0;
    iron__cu_result code;
    char what[96];

    if (is_plain)
        code = d->driver->cuLaunchKernel(kernel->function, c->grid_x, c->grid_y, c->grid_z,
                                         c->block_x, c->block_y, c->block_z, c->shared_bytes,
                                         c->stream, r->values, NULL);
    else
        code = d->driver->cuLaunchKernelEx(c, kernel->function, r->values, NULL);
    if (code == IRON_CUDA_SUCCESS)
        return IRON_OK;
    if (code == IRON_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
        return fail_together(d, kernel, c, code, err);
    snprintf(what, sizeof what, "%s of '%.40s'", is_plain ? "cuLaunchKernel" : "cuLaunchKernelEx",
             kernel->name);
    return iron__cuda_check(d, err, what, code);
}

iron_status iron__cuda_launch(iron__gpu_queue *queue, const iron__gpu_launch *launch,
                              iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    request r = {.config = {.stream = iron__cuda_stream_of(queue)}};
    iron_status status;

    IRON_TRY(fill_shape(d, launch, &r.config, err));
    IRON_TRY(fill_arguments(launch, &r, err));
    IRON_TRY(fill_attributes(d, launch, &r, err));
    IRON_TRY(iron__cuda_enter(d, err));
    status = fill_local(d, launch, &r.config, err);
    if (status == IRON_OK)
        status = submit(d, launch->kernel, &r, err);
    return iron__cuda_leave(d, status, err);
}
