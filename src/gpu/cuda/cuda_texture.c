/* SPDX-License-Identifier: MIT */
/*
 * cuda_texture.c: a buffer's u32 as a texture: another way to the same memory, through the cards'
 * texture units. Memory without dimensions, one whole number an element, read by its index: nothing
 * is filtered or scaled.
 *
 * How long one may be and where it may begin is asked before, for the driver's own answer would be
 * that a value is invalid or an address misaligned, and the latter would mark the device.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

#define ELEMENT_BYTES sizeof(uint32_t)

static iron_status check_place(iron__cuda_device *d, const iron__gpu_buffer *buffer,
                               iron_error *err) {
    size_t count = buffer->bytes / ELEMENT_BYTES, count_max = 0;
    iron__cu_pointer start = iron__cuda_address_of(buffer, 0);
    int alignment = 0;

    IRON_TRY(IRON_CU(d, err, cuDeviceGetTexture1DLinearMaxWidth, &count_max,
                     IRON_CU_AD_FORMAT_UNSIGNED_INT32, 1, d->ordinal));
    IRON_FAIL_IF(count > count_max, err, IRON_E_UNSUPPORTED,
                 "cuda: a texture of %zu elements; the device has them up to %zu", count,
                 count_max);
    IRON_TRY(IRON_CU(d, err, cuDeviceGetAttribute, &alignment,
                     IRON_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, d->ordinal));
    IRON_FAIL_IF(alignment > 0 && start % (unsigned)alignment != 0, err, IRON_E_ARG,
                 "cuda: a texture at 0x%zx, no multiple of %d; align the memory", (size_t)start,
                 alignment);
    return IRON_OK;
}

static iron_status make(iron__cuda_device *d, const iron__gpu_buffer *buffer, uint64_t *handle,
                        iron_error *err) {
    const iron__cu_resource resource = {
        .type = IRON_CU_RESOURCE_TYPE_LINEAR,
        .of.linear = {.start = iron__cuda_address_of(buffer, 0),
                      .format = IRON_CU_AD_FORMAT_UNSIGNED_INT32,
                      .channels = 1,
                      .bytes = buffer->bytes / ELEMENT_BYTES * ELEMENT_BYTES}};
    const iron__cu_reading reading = {.flags = IRON_CU_TRSF_READ_AS_INTEGER};
    iron__cu_texture texture = 0;

    IRON_TRY(check_place(d, buffer, err));
    IRON_TRY(IRON_CU(d, err, cuTexObjectCreate, &texture, &resource, &reading, NULL));
    *handle = texture;
    return IRON_OK;
}

iron_status iron__cuda_texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                      iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(buffer->device);
    iron_status status;

    *handle = 0;
    IRON_FAIL_IF(!buffer->native || buffer->bytes < ELEMENT_BYTES, err, IRON_E_ARG,
                 "cuda: a texture of %zu bytes on the device; give at least %zu",
                 buffer->native ? buffer->bytes : 0, ELEMENT_BYTES);
    IRON_TRY(iron__cuda_enter(d, err));
    status = iron__cuda_leave(d, make(d, buffer, handle, err), err);
    if (status != IRON_OK && *handle) {
        iron__cuda_texture_destroy(&d->base, *handle);
        *handle = 0;
    }
    return status;
}

void iron__cuda_texture_destroy(iron__gpu_device *device, uint64_t handle) {
    if (handle)
        IRON_CU_DROP(iron__cuda_device_of(device), cuTexObjectDestroy, handle);
}
