/* SPDX-License-Identifier: MIT */
/*
 * cuda_memory.c: the four kinds of memory, memory that a caller brings, and what the driver knows
 * of an address.
 *
 *     DEVICE    cuMemAlloc            native: where kernels see it
 *     PINNED    cuMemHostAlloc        host only; kernels are never given it
 *     MAPPED    cuMemHostAlloc        host, and the address under which kernels read it
 *     MANAGED   cuMemAllocManaged     one address for both
 *
 * Page-locked memory is portable: pinned for all contexts of the process, so that it stays fast for
 * a second device. Running out of memory says how much there was and leaves the device as good as
 * before. Managed memory could be larger than the card, and would then be moved in and out again by
 * page faults; asking for more than half of what is free is refused instead.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"
#include "core/memory.h"

#include <unistd.h>

#define LOAD_BYTES 16

static bool is_host_memory(iron__gpu_memory memory) {
    return memory == IRON_GPU_MEMORY_PINNED || memory == IRON_GPU_MEMORY_MAPPED;
}

/* What is free where the buffer would have gone; 0: unknown. */
static size_t free_bytes(const iron__cuda_device *d, iron__gpu_memory memory) {
    size_t available = 0, total = 0;

    if (is_host_memory(memory)) {
        long pages = sysconf(_SC_AVPHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

        return pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : 0;
    }
    return d->driver->cuMemGetInfo_v2(&available, &total) == IRON_CUDA_SUCCESS ? available : 0;
}

static iron_status check_allocation(iron__cuda_device *d, const iron__gpu_buffer *buffer,
                                    const char *function, iron__cu_result code, iron_error *err) {
    char words[160];

    if (code != IRON_CUDA_ERROR_OUT_OF_MEMORY)
        return iron__cuda_check(d, err, function, code);
    iron__cuda_words(d->driver, code, words, sizeof words);
    return iron__fail(err, IRON_E_NOMEM, code,
                      "cuda: %s failed: %s: %zu bytes asked for, %zu free%s; ask for less",
                      function, words, buffer->bytes, free_bytes(d, buffer->memory),
                      is_host_memory(buffer->memory) ? " on the host" : " on the device");
}

static iron_status allocate_managed(iron__cuda_device *d, iron__gpu_buffer *buffer,
                                    iron_error *err) {
    size_t available = 0, total = 0;

    IRON_FAIL_IF(d->base.info.lacks[IRON_GPU_UVM][0], err, IRON_E_UNSUPPORTED,
                 "cuda: %s; use pinned memory", d->base.info.lacks[IRON_GPU_UVM]);
    IRON_TRY(IRON_CU(d, err, cuMemGetInfo_v2, &available, &total));
    IRON_FAIL_IF(buffer->bytes > available / 2, err, IRON_E_NOMEM,
                 "cuda: %zu bytes of managed memory asked for, more than half of the %zu free on "
                 "the device; ask for less",
                 buffer->bytes, available);
    IRON_TRY(check_allocation(
        d, buffer, "cuMemAllocManaged",
        d->driver->cuMemAllocManaged(&buffer->native, buffer->bytes, IRON_CU_MEM_ATTACH_GLOBAL),
        err));
    buffer->host = (void *)buffer->native;
    return IRON_OK;
}

static iron_status allocate_host(iron__cuda_device *d, iron__gpu_buffer *buffer, iron_error *err) {
    unsigned flags = IRON_CU_MEMHOSTALLOC_PORTABLE;
    bool is_mapped = buffer->memory == IRON_GPU_MEMORY_MAPPED;

    IRON_FAIL_IF(is_mapped && d->base.info.lacks[IRON_GPU_ZERO_COPY][0], err, IRON_E_UNSUPPORTED,
                 "cuda: %s; use pinned memory", d->base.info.lacks[IRON_GPU_ZERO_COPY]);
    if (is_mapped)
        flags |= IRON_CU_MEMHOSTALLOC_DEVICEMAP;
    IRON_TRY(check_allocation(d, buffer, "cuMemHostAlloc",
                              d->driver->cuMemHostAlloc(&buffer->host, buffer->bytes, flags), err));
    if (!is_mapped)
        return IRON_OK;
    return IRON_CU(d, err, cuMemHostGetDevicePointer_v2, &buffer->native, buffer->host, 0);
}

static iron_status allocate(iron__cuda_device *d, iron__gpu_buffer *buffer, iron_error *err) {
    if (is_host_memory(buffer->memory))
        return allocate_host(d, buffer, err);
    if (buffer->memory == IRON_GPU_MEMORY_MANAGED)
        return allocate_managed(d, buffer, err);
    return check_allocation(d, buffer, "cuMemAlloc_v2",
                            d->driver->cuMemAlloc_v2(&buffer->native, buffer->bytes), err);
}

static iron_status allocate_inside(iron__cuda_device *d, iron__gpu_buffer *buffer,
                                   iron_error *err) {
    IRON_TRY(iron__cuda_enter(d, err));
    IRON_TRY(iron__cuda_leave(d, allocate(d, buffer, err), err));
    IRON_FAIL_IF(buffer->native % IRON_GPU_ALIGNMENT != 0, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver gave memory at 0x%zx, no multiple of %u; update the NVIDIA "
                 "driver",
                 (size_t)buffer->native, IRON_GPU_ALIGNMENT);
    return IRON_OK;
}

iron__gpu_buffer *iron__cuda_buffer_new(iron__gpu_device *device, iron__gpu_memory memory,
                                        size_t bytes, iron_error *err) {
    iron__gpu_buffer *buffer =
        iron__allocate(iron__allocator_default(), 1, sizeof *buffer, "a buffer", err);

    if (buffer) {
        buffer->device = device;
        buffer->memory = memory;
        buffer->bytes = bytes;
    }
    return buffer;
}

iron_status iron__cuda_buffer_create(iron__gpu_device *device, iron__gpu_memory memory,
                                     size_t bytes, iron__gpu_buffer **out, iron_error *err) {
    iron__gpu_buffer *buffer;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(bytes == 0, err, IRON_E_ARG,
                 "cuda: a buffer of 0 bytes asked for; ask for at least 1");
    buffer = iron__cuda_buffer_new(device, memory, bytes, err);
    if (!buffer)
        return IRON_E_NOMEM;
    status = allocate_inside(iron__cuda_device_of(device), buffer, err);
    if (status != IRON_OK) {
        iron__cuda_buffer_destroy(buffer);
        return status;
    }
    *out = buffer;
    return IRON_OK;
}

void iron__cuda_buffer_destroy(iron__gpu_buffer *buffer) {
    if (!buffer)
        return;
    if (!buffer->is_borrowed) {
        iron__cuda_device *d = iron__cuda_device_of(buffer->device);

        if (is_host_memory(buffer->memory) && buffer->host)
            IRON_CU_DROP(d, cuMemFreeHost, buffer->host);
        else if (buffer->native)
            IRON_CU_DROP(d, cuMemFree_v2, buffer->native);
    }
    iron__release(iron__allocator_default(), buffer);
}

/* What the driver tells of an address; unknown numbers stay as they were. */
typedef struct origin {
    unsigned type, is_managed;
    int ordinal;
    uintptr_t start;
    size_t bytes;
} origin;

/* The code of the first question, which ordinary memory does not pass: CUDA_ERROR_INVALID_VALUE. */
static iron__cu_result ask_origin(const iron__cuda_device *d, uintptr_t address, origin *o) {
    const iron__cuda_driver *driver = d->driver;
    iron__cu_result code =
        driver->cuPointerGetAttribute(&o->type, IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);

    if (code != IRON_CUDA_SUCCESS)
        return code;
    driver->cuPointerGetAttribute(&o->is_managed, IRON_CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    driver->cuPointerGetAttribute(&o->ordinal, IRON_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (driver->cuPointerGetAttribute(&o->start, IRON_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                      address) != IRON_CUDA_SUCCESS ||
        driver->cuPointerGetAttribute(&o->bytes, IRON_CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) !=
            IRON_CUDA_SUCCESS)
        o->bytes = 0;
    return code;
}

static iron_status check_origin(iron__cuda_device *d, uintptr_t address, size_t bytes, origin *o,
                                iron_error *err) {
    iron__cu_result code = ask_origin(d, address, o);

    if (code == IRON_CUDA_ERROR_INVALID_VALUE)
        return iron__fail(err, IRON_E_ARG, code,
                          "cuda: 0x%zx is no address that CUDA knows (CUDA_ERROR_INVALID_VALUE); "
                          "give device memory",
                          (size_t)address);
    IRON_TRY(iron__cuda_check(d, err, "cuPointerGetAttribute", code));
    if (o->is_managed == 0) {
        IRON_FAIL_IF(o->type != IRON_CU_MEMORYTYPE_DEVICE, err, IRON_E_ARG,
                     "cuda: 0x%zx is memory of the host; give device memory", (size_t)address);
        IRON_FAIL_IF(o->ordinal != d->ordinal, err, IRON_E_ARG,
                     "cuda: 0x%zx belongs to device %d and not to device %d", (size_t)address,
                     o->ordinal, d->ordinal);
    }
    IRON_FAIL_IF(o->bytes && bytes > o->bytes - (address - o->start), err, IRON_E_ARG,
                 "cuda: %zu bytes at 0x%zx reach beyond their allocation, which has %zu there",
                 bytes, (size_t)address, o->bytes - (address - o->start));
    return IRON_OK;
}

iron_status iron__cuda_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                   iron__gpu_buffer **out, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(device);
    origin o = {.ordinal = d->ordinal};
    iron__gpu_buffer *buffer;

    *out = NULL;
    IRON_FAIL_IF(native == 0 || bytes == 0, err, IRON_E_ARG,
                 "cuda: %zu bytes at 0x%zx are no buffer; give device memory", bytes,
                 (size_t)native);
    IRON_FAIL_IF(native % 4 != 0, err, IRON_E_ARG,
                 "cuda: the address 0x%zx is no multiple of 4; align it", (size_t)native);
    IRON_TRY(iron__cuda_enter(d, err));
    IRON_TRY(iron__cuda_leave(d, check_origin(d, native, bytes, &o, err), err));
    buffer = iron__cuda_buffer_new(
        device, o.is_managed ? IRON_GPU_MEMORY_MANAGED : IRON_GPU_MEMORY_DEVICE, bytes, err);
    if (!buffer)
        return IRON_E_NOMEM;
    /* Kernels load 16 bytes at a time; an allocation begins at a multiple of that. */
    buffer->lead_bytes = native % LOAD_BYTES;
    buffer->native = native - buffer->lead_bytes;
    buffer->host = o.is_managed ? (void *)native : NULL;
    buffer->is_borrowed = true;
    *out = buffer;
    return IRON_OK;
}

/* Where host and device cannot use managed memory at the same time, the host dies of touching it
 * beside any kernel: so it waits for all of them. Elsewhere the pages come by themselves. */
iron_status iron__cuda_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                  iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);

    if (buffer->memory != IRON_GPU_MEMORY_MANAGED ||
        d->base.info.lacks[IRON_GPU_UVM_PREFETCH][0] == '\0')
        return IRON_OK;
    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, IRON_CU(d, err, cuCtxSynchronize), err);
}

static bool is_host_address(const iron__cuda_device *d, uintptr_t address) {
    iron__cu_pointer_attribute asked = IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    unsigned type = 0;
    void *answer = &type;

    return d->driver->cuPointerGetAttributes(1, &asked, &answer, address) == IRON_CUDA_SUCCESS &&
           type == IRON_CU_MEMORYTYPE_HOST;
}

/* Asked in the plural, the driver knows no type of ordinary memory; in the singular it would be an
 * error, which tools that watch the driver would report. */
bool iron__cuda_is_pinned(iron__gpu_device *device, const void *memory, size_t bytes) {
    iron__cuda_device *d = iron__cuda_device_of(device);
    uintptr_t first = (uintptr_t)memory;
    bool is_pinned;

    if (bytes == 0 || iron__cuda_enter(d, NULL) != IRON_OK)
        return false;
    is_pinned = is_host_address(d, first) && is_host_address(d, first + bytes - 1);
    iron__cuda_leave(d, IRON_OK, NULL);
    return is_pinned;
}
