/* SPDX-License-Identifier: MIT */
/*
 * opencl.c: the backend's table, and devices: probing, describing, opening, closing.
 *
 * An open device is one context with one device in it, shared by all who have the device open
 * (opencl_shared.c), and one queue of its own for what callers name no queue for. OpenCL has no
 * graphs and no launches that overlap within a queue, no texture that a kernel could be given by a
 * number, no say in what a cache keeps, and promises nowhere that all groups of a kernel run at the
 * same time; so the optional entries are left out.
 */
#include "gpu/opencl/opencl.h"

#include "core/fail.h"
#include "core/memory.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"
#include "gpu/opencl/opencl_shared.h"

void *iron__opencl_new(size_t bytes, const char *what, iron_error *err) {
    return iron__allocate(iron__allocator_default(), 1, bytes, what, err);
}

void iron__opencl_delete(void *object) { iron__release(iron__allocator_default(), object); }

static iron_status probe(size_t *count, iron_error *err) {
    const iron__opencl_library *library;

    *count = 0;
    IRON_TRY(iron__opencl_load(&library, err));
    *count = library->count;
    return IRON_OK;
}

/* NULL: *status says why. */
static const iron__opencl_entry *find_entry(size_t index, const iron__opencl_library **library,
                                            iron_status *status, iron_error *err) {
    *status = iron__opencl_load(library, err);
    if (!*library)
        return NULL;
    if (index < (*library)->count)
        return &(*library)->entries[index];
    *status = iron__fail(err, IRON_E_ARG, 0, "opencl: there is no device %zu; the last one is %zu",
                         index, (*library)->count - 1);
    return NULL;
}

static iron_status describe(size_t index, iron__gpu_info *info, iron_error *err) {
    const iron__opencl_library *library;
    iron_status status;
    const iron__opencl_entry *entry = find_entry(index, &library, &status, err);

    if (!entry)
        return status;
    iron__opencl_describe(library, entry, info);
    return IRON_OK;
}

static void device_close(iron__gpu_device *base) {
    iron__opencl_device *d;

    if (!base)
        return;
    d = iron__opencl_device_of(base);
    if (d->service)
        d->api->clReleaseCommandQueue(d->service);
    iron__opencl_shared_give(d);
    iron__opencl_delete(d);
}

/* A context that gives no queue may have died without anyone's knowing: the next to open the device
 * tries a fresh one. */
static iron_status take_context(iron__opencl_device *d, iron_error *err) {
    int32_t code = IRON_CL_SUCCESS;

    IRON_TRY(iron__opencl_shared_take(d, err));
    d->service = iron__opencl_queue_new(d, &code);
    if (code != IRON_CL_SUCCESS) {
        d->service = NULL;
        iron__opencl_shared_retire(d);
    }
    return iron__opencl_check(&d->base, code, "clCreateCommandQueue", err);
}

static iron_status device_open(size_t index, iron__gpu_device **out, iron_error *err) {
    const iron__opencl_library *library;
    iron_status status;
    const iron__opencl_entry *entry = find_entry(index, &library, &status, err);
    iron__opencl_device *d;

    *out = NULL;
    if (!entry)
        return status;
    d = iron__opencl_new(sizeof *d, "an OpenCL device", err);
    if (!d)
        return IRON_E_NOMEM;
    d->base.ops = &iron__opencl_ops;
    d->api = &library->api;
    d->entry = entry;
    iron__opencl_describe(library, entry, &d->base.info);
    d->allocation_bytes_max =
        iron__opencl_device_number(d->api, entry->id, IRON_CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    d->has_u64_atomics = iron__opencl_has_extension(d->api, entry->id, "cl_khr_int64_base_atomics");
    d->has_register_limit = iron__opencl_has_extension(d->api, entry->id, "cl_nv_compiler_options");
    status = take_context(d, err);
    if (status != IRON_OK) {
        device_close(&d->base);
        return status;
    }
    *out = &d->base;
    return IRON_OK;
}

uintptr_t iron__opencl_context(iron__gpu_device *device) {
    return (uintptr_t)iron__opencl_device_of(device)->context;
}

const iron__gpu_ops iron__opencl_ops = {
    .name = "opencl",
    .probe = probe,
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .context = iron__opencl_context,
    .program_load = iron__opencl_program_load,
    .program_unload = iron__opencl_program_unload,
    .kernel_find = iron__opencl_kernel_find,
    .kernel_name = iron__opencl_kernel_name,
    .constant_find = iron__opencl_constant_find,
    .kernel_facts = iron__opencl_kernel_facts,
    .buffer_create = iron__opencl_buffer_create,
    .buffer_wrap = iron__opencl_buffer_wrap,
    .buffer_destroy = iron__opencl_buffer_destroy,
    .host_begin = iron__opencl_host_begin,
    .host_end = iron__opencl_host_end,
    .queue_create = iron__opencl_queue_create,
    .queue_wrap = iron__opencl_queue_wrap,
    .queue_destroy = iron__opencl_queue_destroy,
    .queue_wait = iron__opencl_queue_wait,
    .clear = iron__opencl_clear,
    .copy = iron__opencl_copy,
    .prefetch = iron__opencl_prefetch,
    .launch = iron__opencl_launch,
    .event_create = iron__opencl_event_create,
    .event_destroy = iron__opencl_event_destroy,
    .event_record = iron__opencl_event_record,
    .event_follow = iron__opencl_event_follow,
    .event_wait = iron__opencl_event_wait,
    .event_elapsed = iron__opencl_event_elapsed,
};
