/* SPDX-License-Identifier: MIT */
/*
 * cuda_keep.c: a part of the L2 cache that is set aside, and the windows of memory that launches
 * want to find in it again.
 *
 * The limit belongs to the context, which all who have the card open share; the last to set it
 * wins. A driver may grant less than it was asked for, or, where it serves several processes, not
 * move the limit at all: what counts is what it says afterwards. A window that is larger than what
 * is set aside would push its own lines out again before they are read a second time; so only such
 * a share of its lines is to be kept as fits.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

/* The cache as it was; what cannot be undone now goes with the context. */
static void put_back(iron__cuda_device *d) {
    d->driver->cuCtxSetLimit(IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
    d->kept_bytes = 0;
}

static iron_status set_aside(iron__cuda_device *d, size_t bytes, iron_error *err) {
    size_t granted = 0;
    iron_status status;
    int window_max = 0;

    IRON_TRY(IRON_CU(d, err, cuDeviceGetAttribute, &window_max,
                     IRON_CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, d->ordinal));
    IRON_TRY(IRON_CU(d, err, cuCtxSetLimit, IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, bytes));
    status = IRON_CU(d, err, cuCtxGetLimit, &granted, IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    if (status == IRON_OK && (granted == 0 || window_max <= 0))
        status = iron__fail(err, IRON_E_UNSUPPORTED, 0,
                            "cuda: the driver has set %zu of %zu bytes of the cache aside, for "
                            "windows of at most %d; it keeps nothing here",
                            granted, bytes, window_max);
    if (status != IRON_OK) {
        put_back(d);
        return status;
    }
    d->kept_bytes = granted;
    d->window_bytes_max = (size_t)window_max;
    return IRON_OK;
}

static iron_status let_go(iron__cuda_device *d, iron_error *err) {
    IRON_TRY(IRON_CU(d, err, cuCtxSetLimit, IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
    d->kept_bytes = 0;
    return IRON_CU(d, err, cuCtxResetPersistingL2Cache);
}

iron_status iron__cuda_keep(iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(device);

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(d, bytes ? set_aside(d, (size_t)bytes, err) : let_go(d, err), err);
}

iron_status iron__cuda_window(const iron__cuda_device *d, const iron__gpu_launch *launch,
                              iron__cu_window *out, iron_error *err) {
    const iron__gpu_buffer *kept = launch->kept;
    size_t bytes = launch->kept_bytes;

    *out = (iron__cu_window){.bytes = 0};
    if (!kept || bytes == 0)
        return IRON_OK;
    IRON_FAIL_IF(!kept->native || bytes > kept->bytes, err, IRON_E_ARG,
                 "cuda: kernel '%s' is to keep %zu bytes of a buffer that has %zu on the device",
                 launch->kernel->name, bytes, kept->native ? kept->bytes : 0);
    if (d->kept_bytes == 0)
        return IRON_OK;
    out->start = (void *)iron__cuda_address_of(kept, 0);
    out->bytes = bytes < d->window_bytes_max ? bytes : d->window_bytes_max;
    out->hit_ratio = out->bytes > d->kept_bytes ? (float)d->kept_bytes / (float)out->bytes : 1.0F;
    out->hit = IRON_CU_ACCESS_PROPERTY_PERSISTING;
    out->miss = IRON_CU_ACCESS_PROPERTY_STREAMING;
    return IRON_OK;
}
