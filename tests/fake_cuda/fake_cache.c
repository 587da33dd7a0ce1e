/* SPDX-License-Identifier: MIT */
/*
 * fake_cache.c: the pretended driver's cache, of which a part can be set aside, and textures, which
 * are other names of memory.
 */
#include "fake_state.h"

static int device_here(void) { return fake_stack[fake_depth - 1]->device; }

/* Giving it back is done whatever was ordered, as with objects. */
iron__cu_result cuCtxSetLimit(iron__cu_limit limit, size_t value) {
    int code = fake_arrive(__func__);

    REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(limit == IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE && value <= (size_t)fake.keep_max,
            IRON_CUDA_ERROR_INVALID_VALUE);
    if (code == IRON_CUDA_SUCCESS || value == 0)
        fake.set_aside[device_here()] = value < fake.grants ? value : fake.grants;
    return code;
}

iron__cu_result cuCtxGetLimit(size_t *value, iron__cu_limit limit) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(limit == IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, IRON_CUDA_ERROR_INVALID_VALUE);
    *value = fake.set_aside[device_here()];
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuCtxResetPersistingL2Cache(void) {
    ARRIVE_IN_CONTEXT();
    fake.let_go++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGetTexture1DLinearMaxWidth(size_t *count, iron__cu_array_format format,
                                                   unsigned channels, iron__cu_device device) {
    (void)device;
    ARRIVE();
    REQUIRE(format == IRON_CU_AD_FORMAT_UNSIGNED_INT32 && channels == 1,
            IRON_CUDA_ERROR_INVALID_VALUE);
    *count = fake.texture_max;
    return IRON_CUDA_SUCCESS;
}

/* The real one says of a bad address what ends a context: it must have been asked before. */
iron__cu_result cuTexObjectCreate(iron__cu_texture *texture, const iron__cu_resource *resource,
                                  const iron__cu_reading *reading, const iron__cu_view *view) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(resource->type == IRON_CU_RESOURCE_TYPE_LINEAR && resource->flags == 0 &&
                resource->of.linear.format == IRON_CU_AD_FORMAT_UNSIGNED_INT32 &&
                resource->of.linear.channels == 1 &&
                reading->flags == IRON_CU_TRSF_READ_AS_INTEGER && !view,
            IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(resource->of.linear.bytes % 4 == 0 &&
                resource->of.linear.bytes / 4 <= fake.texture_max &&
                fake_is_on_device(resource->of.linear.start, resource->of.linear.bytes),
            IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(resource->of.linear.start % FAKE_TEXTURE_ALIGNMENT == 0,
            IRON_CUDA_ERROR_ILLEGAL_ADDRESS);
    fake.texture_bytes = resource->of.linear.bytes;
    *texture = (uintptr_t)fake_add(FAKE_TEXTURE);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuTexObjectDestroy(iron__cu_texture texture) {
    return fake_give_back(__func__, fake_find(FAKE_TEXTURE, (const void *)(uintptr_t)texture));
}
