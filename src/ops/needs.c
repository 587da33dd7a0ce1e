/* SPDX-License-Identifier: MIT */
/*
 * needs.c: has a device what a contender needs? See needs.h.
 */
#include "ops/needs.h"

#include "core/fail.h"

#include <inttypes.h>

iron_status iron__needs_threads(const iron__gpu_device *device, uint32_t threads, iron_error *err) {
    uint32_t most = device->info.group_threads_max;

    IRON_FAIL_IF(most < threads, err, IRON_E_UNSUPPORTED,
                 "%s has groups of %" PRIu32 " threads at most; %" PRIu32 " are needed",
                 device->info.name, most, threads);
    return IRON_OK;
}

iron_status iron__needs_local(const iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    uint64_t most = device->info.local_bytes_max;

    IRON_FAIL_IF(most < bytes, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64 " bytes of local memory a group; %" PRIu64 " are needed",
                 device->info.name, most, bytes);
    return IRON_OK;
}

iron_status iron__needs_element(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err) {
    IRON_FAIL_IF(c->element == IRON_F64 && !device->info.has_f64, err, IRON_E_UNSUPPORTED,
                 "%s has no f64", device->info.name);
    return IRON_OK;
}
