/* SPDX-License-Identifier: MIT */
/*
 * cuda_device.c: devices, from the probe to the close; the step into a device's context and out of
 * it; and the table through which all of the backend is called.
 *
 * An opened device holds one reference to the card's primary context, and maybe a part of the
 * card's cache, and nothing else of the driver's. The driver counts references, so a device may be
 * opened more than once.
 */
#include "gpu/cuda/cuda.h"
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"
#include "core/memory.h"

static iron_status probe(size_t *count, iron_error *err) {
    const iron__cuda_driver *driver = NULL;
    iron__cu_result code;
    int found = 0;

    *count = 0;
    IRON_TRY(iron__cuda_load(&driver, err));
    code = driver->cuDeviceGetCount(&found);
    if (code != IRON_CUDA_SUCCESS) {
        char words[160];

        iron__cuda_words(driver, code, words, sizeof words);
        return iron__fail(err, IRON_E_UNSUPPORTED, code,
                          "cuda: cuDeviceGetCount failed: %s; see what nvidia-smi says", words);
    }
    IRON_FAIL_IF(found <= 0, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver has no device; see what nvidia-smi and CUDA_VISIBLE_DEVICES "
                 "say");
    *count = (size_t)found;
    return IRON_OK;
}

static void device_close(iron__gpu_device *device) {
    iron__cuda_device *d = iron__cuda_device_of(device);

    if (!d)
        return;
    if (d->kept_bytes)
        iron__cuda_keep(device, 0, NULL); /* the context may live on without us */
    if (d->context)
        d->driver->cuDevicePrimaryCtxRelease_v2(d->ordinal);
    iron__release(iron__allocator_default(), d);
}

static uintptr_t context_of(iron__gpu_device *device) {
    return (uintptr_t)iron__cuda_device_of(device)->context;
}

static iron_status retain(iron__cuda_device *d, size_t index, iron_error *err) {
    IRON_TRY(iron__cuda_load(&d->driver, err));
    IRON_TRY(iron__cuda_describe(index, &d->base.info, err));
    IRON_TRY(IRON_CU(d, err, cuDeviceGet, &d->ordinal, (int)index));
    return IRON_CU(d, err, cuDevicePrimaryCtxRetain, &d->context, d->ordinal);
}

static iron_status device_open(size_t index, iron__gpu_device **out, iron_error *err) {
    iron__cuda_device *d;
    iron_status status;

    *out = NULL;
    d = iron__allocate(iron__allocator_default(), 1, sizeof *d, "a CUDA device", err);
    if (!d)
        return IRON_E_NOMEM;
    d->base.ops = &iron__cuda_ops;
    status = retain(d, index, err);
    if (status != IRON_OK) {
        device_close(&d->base);
        return status;
    }
    *out = &d->base;
    return IRON_OK;
}

iron_status iron__cuda_enter(iron__cuda_device *device, iron_error *err) {
    return IRON_CU(device, err, cuCtxPushCurrent_v2, device->context);
}

iron_status iron__cuda_leave(iron__cuda_device *device, iron_status status, iron_error *err) {
    iron__cu_context *popped = NULL;
    iron_status left = IRON_CU(device, status == IRON_OK ? err : NULL, cuCtxPopCurrent_v2, &popped);

    return status == IRON_OK ? left : status;
}

const iron__gpu_ops iron__cuda_ops = {
    .name = "cuda",
    .probe = probe,
    .describe = iron__cuda_describe,
    .device_open = device_open,
    .device_close = device_close,
    .context = context_of,
    .clocks = iron__cuda_clocks,
    .program_load = iron__cuda_program_load,
    .program_unload = iron__cuda_program_unload,
    .kernel_find = iron__cuda_kernel_find,
    .kernel_name = iron__cuda_kernel_name,
    .constant_find = iron__cuda_constant_find,
    .kernel_facts = iron__cuda_kernel_facts,
    .buffer_create = iron__cuda_buffer_create,
    .buffer_wrap = iron__cuda_buffer_wrap,
    .buffer_destroy = iron__cuda_buffer_destroy,
    .host_begin = iron__cuda_host_begin,
    .is_pinned = iron__cuda_is_pinned,
    .texture_create = iron__cuda_texture_create,
    .texture_destroy = iron__cuda_texture_destroy,
    .keep = iron__cuda_keep,
    .queue_create = iron__cuda_queue_create,
    .queue_wrap = iron__cuda_queue_wrap,
    .queue_destroy = iron__cuda_queue_destroy,
    .queue_wait = iron__cuda_queue_wait,
    .clear = iron__cuda_clear,
    .copy = iron__cuda_copy,
    .prefetch = iron__cuda_prefetch,
    .launch = iron__cuda_launch,
    .event_create = iron__cuda_event_create,
    .event_destroy = iron__cuda_event_destroy,
    .event_record = iron__cuda_event_record,
    .event_follow = iron__cuda_event_follow,
    .event_wait = iron__cuda_event_wait,
    .event_elapsed = iron__cuda_event_elapsed,
    .graph_begin = iron__cuda_graph_begin,
    .graph_end = iron__cuda_graph_end,
    .graph_replay = iron__cuda_graph_replay,
    .graph_destroy = iron__cuda_graph_destroy,
};
