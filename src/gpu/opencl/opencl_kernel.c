/* SPDX-License-Identifier: MIT */
/*
 * opencl_kernel.c: the kernels of a program, found once and kept with it: the same name is the same
 * kernel; and what OpenCL tells of one, which is little.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"

#include <string.h>

static void destroy_kernel(const iron__opencl_api *cl, iron__gpu_kernel *kernel) {
    if (kernel->native)
        cl->clReleaseKernel(kernel->native);
    iron__opencl_delete(kernel);
}

void iron__opencl_kernels_destroy(iron__gpu_program *program) {
    while (program->kernels) {
        iron__gpu_kernel *kernel = program->kernels;

        program->kernels = kernel->next;
        destroy_kernel(program->device->api, kernel);
    }
}

/* Arguments count as soon as they are set, so a kernel is asked while it is new: then it tells of
 * its own local memory alone. Not to tell is no failure. */
static void ask_local(const iron__opencl_device *d, iron__gpu_kernel *kernel) {
    uint64_t bytes = 0;

    kernel->tells_local = d->api->clGetKernelWorkGroupInfo(
                              kernel->native, d->entry->id, IRON_CL_KERNEL_LOCAL_MEM_SIZE,
                              sizeof bytes, &bytes, NULL) == IRON_CL_SUCCESS;
    kernel->local_bytes = kernel->tells_local ? bytes : 0;
}

iron_status iron__opencl_kernel_renew(iron__opencl_device *device, iron__gpu_kernel *kernel,
                                      iron_error *err) {
    const iron__opencl_api *cl = device->api;
    int32_t code = IRON_CL_SUCCESS;
    iron__cl_kernel *native = cl->clCreateKernel(kernel->program, kernel->name, &code);

    IRON_TRY(iron__opencl_check(&device->base, code, "clCreateKernel", err));
    if (kernel->native)
        cl->clReleaseKernel(kernel->native);
    kernel->native = native;
    kernel->shared_args = 0;
    ask_local(device, kernel);
    code = cl->clGetKernelInfo(native, IRON_CL_KERNEL_NUM_ARGS, sizeof kernel->arg_count,
                               &kernel->arg_count, NULL);
    return iron__opencl_check(&device->base, code, "clGetKernelInfo", err);
}

static iron_status make_kernel(iron__gpu_program *program, const char *name, iron__gpu_kernel **out,
                               iron_error *err) {
    size_t name_bytes = strlen(name) + 1;
    iron__gpu_kernel *kernel =
        iron__opencl_new(sizeof *kernel + name_bytes, "an OpenCL kernel", err);
    iron_status status;

    if (!kernel)
        return IRON_E_NOMEM;
    kernel->program = program->native;
    memcpy(kernel->name, name, name_bytes);
    status = iron__opencl_kernel_renew(program->device, kernel, err);
    if (status == IRON_OK) {
        kernel->next = program->kernels;
        program->kernels = kernel;
        *out = kernel;
        return IRON_OK;
    }
    destroy_kernel(program->device->api, kernel);
    if (status == IRON_E_ARG)
        return iron__fail(err, IRON_E_ARG, IRON_CL_INVALID_KERNEL_NAME,
                          "opencl: clCreateKernel failed: CL_INVALID_KERNEL_NAME; '%s' has no "
                          "kernel '%.80s'",
                          program->name, name);
    return status;
}

iron_status iron__opencl_kernel_find(iron__gpu_program *program, const char *name,
                                     iron__gpu_kernel **out, iron_error *err) {
    *out = NULL;
    for (iron__gpu_kernel *kernel = program->kernels; kernel; kernel = kernel->next)
        if (strcmp(kernel->name, name) == 0) {
            *out = kernel;
            return IRON_OK;
        }
    return make_kernel(program, name, out, err);
}

const char *iron__opencl_kernel_name(const iron__gpu_kernel *kernel) { return kernel->name; }

/* OpenCL tells nothing of registers, and what it calls a thread's private memory need not be what
 * did not fit into them. How many groups a unit holds it does not tell either. */
iron_status iron__opencl_kernel_facts(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                      uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                      iron_error *err) {
    (void)device;
    (void)threads;
    (void)err;
    *out = (iron__gpu_facts){.local_bytes =
                                 kernel->tells_local ? kernel->local_bytes + local_bytes : 0};
    return IRON_OK;
}
