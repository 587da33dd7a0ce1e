/* SPDX-License-Identifier: MIT */
/*
 * fake_memory.c: memory of the pretended driver: all of it the host's, but found by address, with a
 * kind, an owner and an end. What reaches beyond an allocation is an invalid value here, where the
 * real driver might say nothing.
 */
#include "fake_state.h"

static fake_object *memory_at(uintptr_t address, size_t bytes) {
    for (fake_object *o = fake_objects; o; o = o->next)
        if (o->kind == FAKE_MEMORY && address >= (uintptr_t)o->start &&
            address + bytes <= (uintptr_t)o->start + o->bytes)
            return o;
    return NULL;
}

bool fake_is_on_device(uintptr_t address, size_t bytes) {
    const fake_object *o = memory_at(address, bytes);

    return o && (o->type == IRON_CU_MEMORYTYPE_DEVICE || o->is_mapped);
}

static size_t free_bytes(unsigned type) {
    size_t used = 0;

    for (fake_object *o = fake_objects; o; o = o->next)
        if (o->kind == FAKE_MEMORY && o->type == type && o->context == fake_stack[fake_depth - 1])
            used += o->bytes;
    return fake.memory_bytes - used;
}

static int allocate(size_t bytes, unsigned type, fake_object **out) {
    fake_object *o;

    REQUIRE(bytes > 0, IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(bytes <= free_bytes(type), IRON_CUDA_ERROR_OUT_OF_MEMORY);
    o = fake_add(FAKE_MEMORY);
    o->allocated = aligned_alloc(FAKE_TEXTURE_ALIGNMENT,
                                 (bytes + fake.misalignment + FAKE_TEXTURE_ALIGNMENT - 1) /
                                     FAKE_TEXTURE_ALIGNMENT * FAKE_TEXTURE_ALIGNMENT);
    if (!o->allocated)
        abort();
    memset(o->allocated, 0xA5, bytes);
    o->start = (char *)o->allocated + fake.misalignment;
    o->bytes = bytes;
    o->type = type;
    *out = o;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemGetInfo_v2(size_t *available, size_t *total) {
    ARRIVE_IN_CONTEXT();
    *available = free_bytes(IRON_CU_MEMORYTYPE_DEVICE);
    *total = fake.memory_bytes;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemAlloc_v2(iron__cu_pointer *pointer, size_t bytes) {
    fake_object *o = NULL;
    int code;

    ARRIVE_IN_CONTEXT();
    code = allocate(bytes, IRON_CU_MEMORYTYPE_DEVICE, &o);
    if (code == IRON_CUDA_SUCCESS)
        *pointer = (uintptr_t)o->start;
    return code;
}

iron__cu_result cuMemAllocManaged(iron__cu_pointer *pointer, size_t bytes, unsigned flags) {
    fake_object *o = NULL;
    int code;

    ARRIVE_IN_CONTEXT();
    REQUIRE(flags == IRON_CU_MEM_ATTACH_GLOBAL, IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(fake.has_managed, IRON_CUDA_ERROR_NOT_SUPPORTED);
    code = allocate(bytes, IRON_CU_MEMORYTYPE_DEVICE, &o);
    if (code != IRON_CUDA_SUCCESS)
        return code;
    o->is_managed = 1;
    *pointer = (uintptr_t)o->start;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemFree_v2(iron__cu_pointer pointer) {
    fake_object *o = memory_at(pointer, 1);

    return fake_give_back(__func__, o && o->type == IRON_CU_MEMORYTYPE_DEVICE ? o : NULL);
}

iron__cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    fake_object *o = NULL;
    int code;

    ARRIVE_IN_CONTEXT();
    REQUIRE(flags & IRON_CU_MEMHOSTALLOC_PORTABLE, IRON_CUDA_ERROR_INVALID_VALUE);
    code = allocate(bytes, IRON_CU_MEMORYTYPE_HOST, &o);
    if (code != IRON_CUDA_SUCCESS)
        return code;
    o->is_mapped = flags & IRON_CU_MEMHOSTALLOC_DEVICEMAP;
    *memory = o->start;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemFreeHost(void *memory) {
    fake_object *o = memory_at((uintptr_t)memory, 1);

    return fake_give_back(__func__, o && o->type == IRON_CU_MEMORYTYPE_HOST ? o : NULL);
}

iron__cu_result cuMemHostGetDevicePointer_v2(iron__cu_pointer *pointer, void *host,
                                             unsigned flags) {
    const fake_object *o = memory_at((uintptr_t)host, 1);

    ARRIVE_IN_CONTEXT();
    REQUIRE(o && o->is_mapped && flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    *pointer = (uintptr_t)host;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuPointerGetAttribute(void *data, iron__cu_pointer_attribute attribute,
                                      iron__cu_pointer pointer) {
    const fake_object *o = memory_at(pointer, 1);

    ARRIVE_IN_CONTEXT();
    REQUIRE(o, IRON_CUDA_ERROR_INVALID_VALUE);
    if (attribute == IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)data = o->type;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)data = o->is_managed;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *(int *)data = o->context->device;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(uintptr_t *)data = (uintptr_t)o->start;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)data = o->bytes;
    else
        return IRON_CUDA_ERROR_INVALID_VALUE;
    return IRON_CUDA_SUCCESS;
}

/* Unlike the singular, an unknown address is no error: what is asked stays 0. */
iron__cu_result cuPointerGetAttributes(unsigned count, iron__cu_pointer_attribute *attributes,
                                       void **data, iron__cu_pointer pointer) {
    const fake_object *o = memory_at(pointer, 1);

    ARRIVE_IN_CONTEXT();
    REQUIRE(count == 1 && attributes[0] == IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            IRON_CUDA_ERROR_INVALID_VALUE);
    *(unsigned *)data[0] = o ? o->type : 0;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemsetD32Async(iron__cu_pointer to, unsigned value, size_t count,
                                 iron__cu_stream *stream) {
    const fake_node n = {.kind = SET, .to = (char *)to, .bytes = count * 4};

    ARRIVE_IN_CONTEXT();
    REQUIRE(value == 0 && fake_is_on_device(to, n.bytes), IRON_CUDA_ERROR_INVALID_VALUE);
    return fake_submit(stream, &n);
}

static int copy(char *to, const void *from, size_t bytes, const iron__cu_stream *stream) {
    const fake_node n = {.kind = COPY, .to = to, .from = from, .bytes = bytes};

    return fake_submit(stream, &n);
}

iron__cu_result cuMemcpyHtoDAsync_v2(iron__cu_pointer to, const void *from, size_t bytes,
                                     iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(fake_is_on_device(to, bytes), IRON_CUDA_ERROR_INVALID_VALUE);
    return copy((char *)to, from, bytes, stream);
}

iron__cu_result cuMemcpyDtoHAsync_v2(void *to, iron__cu_pointer from, size_t bytes,
                                     iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(fake_is_on_device(from, bytes), IRON_CUDA_ERROR_INVALID_VALUE);
    return copy(to, (const void *)from, bytes, stream);
}

iron__cu_result cuMemcpyDtoDAsync_v2(iron__cu_pointer to, iron__cu_pointer from, size_t bytes,
                                     iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(fake_is_on_device(to, bytes) && fake_is_on_device(from, bytes),
            IRON_CUDA_ERROR_INVALID_VALUE);
    return copy((char *)to, (const void *)from, bytes, stream);
}

static int prefetch(iron__cu_pointer memory, size_t bytes, int device, const void *stream) {
    const fake_object *o = memory_at(memory, bytes);

    REQUIRE(o && o->is_managed, IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(fake_find(FAKE_STREAM, stream) || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(device >= 0 && device < fake.devices, IRON_CUDA_ERROR_INVALID_DEVICE);
    fake.prefetches++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemPrefetchAsync_v2(iron__cu_pointer memory, size_t bytes,
                                      iron__cu_location where, unsigned flags,
                                      iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(where.type == IRON_CU_MEM_LOCATION_TYPE_DEVICE && flags == 0,
            IRON_CUDA_ERROR_INVALID_VALUE);
    return prefetch(memory, bytes, where.id, stream);
}

iron__cu_result cuMemPrefetchAsync(iron__cu_pointer memory, size_t bytes, iron__cu_device where,
                                   iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    return prefetch(memory, bytes, where, stream);
}
