/* SPDX-License-Identifier: MIT */
/*
 * cuda_facts.c: what a kernel takes of a unit, as the driver tells it; and the leave that a kernel
 * needs to take more local memory than every card has, which the driver's answer depends on.
 *
 * Facts are for people who want to understand a time. A driver that does not tell one leaves a 0,
 * and nothing that is asked here marks the device: an error of earlier work comes back from the
 * next call that has to work.
 */
#include "gpu/cuda/cuda_backend.h"

iron__cu_result iron__cuda_allow_local(const iron__cuda_device *d, iron__gpu_kernel *kernel,
                                       size_t bytes) {
    iron__cu_result code;

    if (bytes <= kernel->dynamic_bytes)
        return IRON_CUDA_SUCCESS;
    code = d->driver->cuFuncSetAttribute(
        kernel->function, IRON_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
    if (code == IRON_CUDA_SUCCESS)
        kernel->dynamic_bytes = bytes;
    return code;
}

/* False: the driver does not tell it. */
static bool ask(const iron__cuda_device *d, const iron__gpu_kernel *kernel,
                iron__cu_function_attribute attribute, uint32_t *out) {
    int value = 0;

    if (d->driver->cuFuncGetAttribute(&value, attribute, kernel->function) != IRON_CUDA_SUCCESS ||
        value < 0)
        return false;
    *out = (uint32_t)value;
    return true;
}

bool iron__cuda_static_local(const iron__cuda_device *d, const iron__gpu_kernel *kernel,
                             uint32_t *bytes) {
    return ask(d, kernel, IRON_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, bytes);
}

static void ask_room(const iron__cuda_device *d, iron__gpu_kernel *kernel, uint32_t threads,
                     size_t local_bytes, iron__gpu_facts *out) {
    int groups = 0, threads_max = 0;

    if (iron__cuda_allow_local(d, kernel, local_bytes) != IRON_CUDA_SUCCESS ||
        d->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &groups, kernel->function, (int)threads, local_bytes) != IRON_CUDA_SUCCESS ||
        groups < 0)
        return;
    out->groups = (uint32_t)groups;
    if (d->driver->cuDeviceGetAttribute(&threads_max,
                                        IRON_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                        d->ordinal) == IRON_CUDA_SUCCESS &&
        threads_max > 0)
        out->occupancy = (double)groups * threads / threads_max;
}

iron_status iron__cuda_kernel_facts(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                    uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                    iron_error *err) {
    const iron__cuda_device *d = iron__cuda_device_of(device);
    iron__cu_context *popped = NULL;
    uint32_t own_bytes = 0;

    (void)err;
    *out = (iron__gpu_facts){.registers = 0};
    if (d->driver->cuCtxPushCurrent_v2(d->context) != IRON_CUDA_SUCCESS)
        return IRON_OK;
    (void)ask(d, kernel, IRON_CU_FUNC_ATTRIBUTE_NUM_REGS, &out->registers);
    (void)ask(d, kernel, IRON_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &out->spill_bytes);
    if (iron__cuda_static_local(d, kernel, &own_bytes))
        out->local_bytes = own_bytes + (uint64_t)local_bytes;
    /* what launches may ask for is noted with the kernel, and no part of what it is */
    if (local_bytes <= d->base.info.local_bytes_max && threads <= d->base.info.group_threads_max)
        ask_room(d, (iron__gpu_kernel *)kernel, threads, local_bytes, out);
    (void)d->driver->cuCtxPopCurrent_v2(&popped);
    return IRON_OK;
}
