/* SPDX-License-Identifier: MIT */
/*
 * cuda_memory.c: buffers, wrapped memory, constant memory and textures.
 *
 *     DEVICE    cuMemAlloc            native: address for kernels
 *     PINNED    cuMemHostAlloc        host address only; never passed to kernels
 *     MAPPED    cuMemHostAlloc        host address, and the address at which kernels read it
 *     MANAGED   cuMemAllocManaged     one address for both
 *
 * Page-locked memory is portable, that is, pinned for all contexts of the process, so it is fast
 * for a second device too. An out-of-memory error states how much was free and leaves the device
 * usable. Managed memory could be larger than the card, but page faults would then move it back and
 * forth; requests for more than half of the free memory are refused.
 *
 * A texture is a second path to a buffer through the texture units: one-dimensional, one u32 per
 * element, read by index, without filtering or scaling.
 */
#include "gpu/cuda/cuda_internal.h"

#include "core/fail.h"

#include <unistd.h>

static bool is_host_memory(iron__gpu_memory memory) {
    return memory == IRON_GPU_MEMORY_PINNED || memory == IRON_GPU_MEMORY_MAPPED;
}

/* Free bytes where this kind of memory is allocated; 0: unknown. */
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
    if (code != IRON_CUDA_ERROR_OUT_OF_MEMORY)
        return iron__cuda_check(d, err, function, code);
    return iron__fail(err, IRON_E_NOMEM, code,
                      "cuda: %s failed: %s: %zu bytes requested, %zu free%s; request less",
                      function, iron__cuda_error_text(code).text, buffer->bytes,
                      free_bytes(d, buffer->memory),
                      is_host_memory(buffer->memory) ? " on the host" : " on the device");
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

static iron_status buffer_create(iron__gpu_buffer *buffer, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(buffer->device);

    if (is_host_memory(buffer->memory))
        IRON_TRY(allocate_host(d, buffer, err));
    else if (buffer->memory == IRON_GPU_MEMORY_MANAGED) {
        size_t available = 0, total = 0;

        IRON_FAIL_IF(d->base.info.lacks[IRON_GPU_UVM][0], err, IRON_E_UNSUPPORTED,
                     "cuda: %s; use pinned memory", d->base.info.lacks[IRON_GPU_UVM]);
        IRON_TRY(IRON_CU(d, err, cuMemGetInfo_v2, &available, &total));
        IRON_FAIL_IF(
            buffer->bytes > available / 2, err, IRON_E_NOMEM,
            "cuda: %zu bytes of managed memory requested, more than half of the %zu free on "
            "the device; request less",
            buffer->bytes, available);
        IRON_TRY(check_allocation(
            d, buffer, "cuMemAllocManaged",
            d->driver->cuMemAllocManaged(&buffer->native, buffer->bytes, IRON_CU_MEM_ATTACH_GLOBAL),
            err));
        buffer->host = (void *)buffer->native;
    } else
        /* Bulk copies read whole vectors of 16 bytes, so the last one must be whole. */
        IRON_TRY(check_allocation(
            d, buffer, "cuMemAlloc_v2",
            d->driver->cuMemAlloc_v2(&buffer->native, (buffer->bytes + 15) / 16 * 16), err));
    IRON_FAIL_IF(buffer->native % IRON_GPU_ALIGNMENT != 0, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver returned memory at 0x%zx, not a multiple of %u; update the "
                 "NVIDIA driver",
                 (size_t)buffer->native, IRON_GPU_ALIGNMENT);
    return IRON_OK;
}

static void buffer_destroy(iron__gpu_buffer *buffer) {
    if (buffer->is_borrowed)
        return;
    if (is_host_memory(buffer->memory) && buffer->host)
        IRON_CU_RELEASE(buffer->device, cuMemFreeHost, buffer->host);
    else if (buffer->native)
        IRON_CU_RELEASE(buffer->device, cuMemFree_v2, buffer->native);
}

/* What the driver knows about an address. Unknown values stay as they were. */
typedef struct origin {
    unsigned type, is_managed;
    int ordinal;
    uintptr_t start;
    size_t bytes;
} origin;

static iron_status check_origin(iron__cuda_device *d, uintptr_t address, size_t bytes, origin *o,
                                iron_error *err) {
    const iron__cuda_driver *driver = d->driver;
    iron__cu_result code =
        driver->cuPointerGetAttribute(&o->type, IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);

    if (code == IRON_CUDA_ERROR_INVALID_VALUE)
        return iron__fail(err, IRON_E_ARG, code,
                          "cuda: 0x%zx is not a CUDA address (CUDA_ERROR_INVALID_VALUE); "
                          "pass device memory",
                          (size_t)address);
    IRON_TRY(iron__cuda_check(d, err, "cuPointerGetAttribute", code));
    driver->cuPointerGetAttribute(&o->is_managed, IRON_CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    driver->cuPointerGetAttribute(&o->ordinal, IRON_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (driver->cuPointerGetAttribute(&o->start, IRON_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                      address) != IRON_CUDA_SUCCESS ||
        driver->cuPointerGetAttribute(&o->bytes, IRON_CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) !=
            IRON_CUDA_SUCCESS)
        o->bytes = 0;
    if (o->is_managed == 0) {
        IRON_FAIL_IF(o->type != IRON_CU_MEMORYTYPE_DEVICE, err, IRON_E_ARG,
                     "cuda: 0x%zx is host memory; pass device memory", (size_t)address);
        IRON_FAIL_IF(o->ordinal != d->ordinal, err, IRON_E_ARG,
                     "cuda: 0x%zx belongs to device %d, not to device %d", (size_t)address,
                     o->ordinal, d->ordinal);
    }
    IRON_FAIL_IF(o->bytes && bytes > o->bytes - (address - o->start), err, IRON_E_ARG,
                 "cuda: %zu bytes at 0x%zx exceed the allocation, which has %zu bytes from there",
                 bytes, (size_t)address, o->bytes - (address - o->start));
    return IRON_OK;
}

static iron_status buffer_wrap(iron__gpu_buffer *buffer, uintptr_t native, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(buffer->device);
    origin o = {.ordinal = d->ordinal};

    IRON_FAIL_IF(native % 4 != 0, err, IRON_E_ARG,
                 "cuda: the address 0x%zx is not a multiple of 4; align it", (size_t)native);
    IRON_TRY(check_origin(d, native, buffer->bytes, &o, err));
    /* Kernels load 16 bytes at a time; allocations start at multiples of 16. */
    buffer->native_offset = native % 16;
    buffer->native = native - buffer->native_offset;
    if (o.is_managed) {
        buffer->memory = IRON_GPU_MEMORY_MANAGED;
        buffer->host = (void *)native;
    }
    return IRON_OK;
}

/* The buffer points into the module, so destroying it frees nothing. */
static iron_status constant_find(iron__gpu_program *program, const char *name,
                                 iron__gpu_buffer *buffer, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(program->device);
    size_t block_bytes = 0;
    iron__cu_result code;

    buffer->is_borrowed = true;
    code = d->driver->cuModuleGetGlobal_v2(&buffer->native, &block_bytes, program->native, name);
    if (code == IRON_CUDA_ERROR_NOT_FOUND)
        return iron__fail(err, IRON_E_ARG, code,
                          "cuda: program '%s' has no constant memory '%.60s' "
                          "(CUDA_ERROR_NOT_FOUND)",
                          program->name, name);
    IRON_TRY(iron__cuda_check(d, err, "cuModuleGetGlobal_v2", code));
    IRON_FAIL_IF(block_bytes < buffer->bytes, err, IRON_E_ARG,
                 "cuda: '%.60s' of program '%s' has %zu bytes, not %zu", name, program->name,
                 block_bytes, buffer->bytes);
    return IRON_OK;
}

/* Where host and device cannot use managed memory at the same time, the process crashes if the host
 * touches it while any kernel runs, so the host waits for all of them. Elsewhere pages migrate on
 * demand. */
static iron_status host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);

    if (buffer->memory != IRON_GPU_MEMORY_MANAGED ||
        d->base.info.lacks[IRON_GPU_UVM_PREFETCH][0] == '\0')
        return IRON_OK;
    return IRON_CU(d, err, cuCtxSynchronize);
}

/* cuPointerGetAttributes returns type 0 for ordinary memory. cuPointerGetAttribute would return an
 * error, which tools such as compute-sanitizer report. */
static bool is_host_address(const iron__cuda_device *d, uintptr_t address) {
    iron__cu_pointer_attribute attribute = IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    unsigned type = 0;
    void *value = &type;

    return d->driver->cuPointerGetAttributes(1, &attribute, &value, address) == IRON_CUDA_SUCCESS &&
           type == IRON_CU_MEMORYTYPE_HOST;
}

static bool is_pinned(iron__gpu_device *device, const void *memory, size_t bytes) {
    iron__cuda_device *d = iron__cuda_device_of(device);
    uintptr_t first = (uintptr_t)memory;

    return is_host_address(d, first) && is_host_address(d, first + bytes - 1);
}

#define ELEMENT_BYTES sizeof(uint32_t)

/* Checks length and alignment first: the driver would only report an invalid value, or a misaligned
 * address, which marks the device as failed. */
static iron_status check_texture(iron__cuda_device *d, const iron__gpu_buffer *buffer,
                                 iron_error *err) {
    size_t count = buffer->bytes / ELEMENT_BYTES, count_max = 0;
    iron__cu_pointer start = iron__cuda_address_of(buffer, 0);
    int alignment = 0;

    IRON_TRY(IRON_CU(d, err, cuDeviceGetTexture1DLinearMaxWidth, &count_max,
                     IRON_CU_AD_FORMAT_UNSIGNED_INT32, 1, d->ordinal));
    IRON_FAIL_IF(count > count_max, err, IRON_E_UNSUPPORTED,
                 "cuda: a texture of %zu elements; the device supports at most %zu", count,
                 count_max);
    IRON_TRY(IRON_CU(d, err, cuDeviceGetAttribute, &alignment,
                     IRON_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, d->ordinal));
    IRON_FAIL_IF(alignment > 0 && start % (unsigned)alignment != 0, err, IRON_E_ARG,
                 "cuda: a texture at 0x%zx, not a multiple of %d; align the memory", (size_t)start,
                 alignment);
    return IRON_OK;
}

static void texture_destroy(iron__gpu_device *device, uint64_t handle) {
    IRON_CU_RELEASE(device, cuTexObjectDestroy, handle);
}

static iron_status texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                  iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(buffer->device);
    const iron__cu_resource resource = {
        .type = IRON_CU_RESOURCE_TYPE_LINEAR,
        .of.linear = {.start = iron__cuda_address_of(buffer, 0),
                      .format = IRON_CU_AD_FORMAT_UNSIGNED_INT32,
                      .channels = 1,
                      .bytes = buffer->bytes / ELEMENT_BYTES * ELEMENT_BYTES}};
    const iron__cu_reading reading = {.flags = IRON_CU_TRSF_READ_AS_INTEGER};
    iron__cu_texture texture = 0;

    IRON_FAIL_IF(!buffer->native || buffer->bytes < ELEMENT_BYTES, err, IRON_E_ARG,
                 "cuda: a texture of %zu bytes of device memory; pass at least %zu",
                 buffer->native ? buffer->bytes : 0, ELEMENT_BYTES);
    IRON_TRY(check_texture(d, buffer, err));
    IRON_TRY(IRON_CU(d, err, cuTexObjectCreate, &texture, &resource, &reading, NULL));
    *handle = texture;
    return IRON_OK;
}

const iron__gpu_memory_ops iron__cuda_memory_ops = {
    .buffer_create = buffer_create,
    .buffer_wrap = buffer_wrap,
    .buffer_destroy = buffer_destroy,
    .constant_find = constant_find,
    .host_begin = host_begin,
    .is_pinned = is_pinned,
    .texture_create = texture_create,
    .texture_destroy = texture_destroy,
};
