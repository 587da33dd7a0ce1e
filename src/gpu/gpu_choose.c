/* SPDX-License-Identifier: MIT */
/*
 * gpu_choose.c: from what a user asks for to a backend: a name, or `auto`, and a device's number.
 */
#include "core/fail.h"
#include "gpu/gpu.h"

#include <string.h>

bool iron__gpu_is_auto(const char *name) { return !name || strcmp(name, "auto") == 0; }

iron_status iron__gpu_check(size_t backend, uint32_t device, iron_error *err) {
    const char *name = iron__gpu_backend_name(backend);
    iron_error why = {0};
    size_t devices;

    if (iron__gpu_probe(backend, &devices, &why) != IRON_OK)
        IRON_FAIL(err, IRON_E_UNSUPPORTED, "backend %s is absent: %.160s; use --backend cpu", name,
                  why.text);
    IRON_FAIL_IF(device >= devices, err, IRON_E_ARG,
                 "device %u does not exist; backend %s has %zu, counted from 0", device, name,
                 devices);
    return IRON_OK;
}

bool iron__gpu_is_for_auto(size_t backend, uint32_t device) {
    iron__gpu_info info;
    size_t devices;

    return iron__gpu_probe(backend, &devices, NULL) == IRON_OK && device < devices &&
           iron__gpu_describe(backend, device, &info, NULL) == IRON_OK && info.is_gpu;
}

iron_status iron__gpu_choose(const char *name, uint32_t device, size_t *backend, iron_error *err) {
    *backend = iron__gpu_backend_count();
    if (name && strcmp(name, "cpu") == 0) {
        IRON_FAIL_IF(device != 0, err, IRON_E_ARG,
                     "device %u does not exist; backend cpu has device 0 alone", device);
        return IRON_OK;
    }
    if (!iron__gpu_is_auto(name)) {
        *backend = iron__gpu_backend_find(name);
        IRON_FAIL_IF(*backend == iron__gpu_backend_count(), err, IRON_E_ARG,
                     "unknown backend '%.40s'; use auto, cpu, cuda or opencl", name);
        return iron__gpu_check(*backend, device, err);
    }
    for (size_t k = 0; k < iron__gpu_backend_count(); k++)
        if (iron__gpu_is_for_auto(k, device)) {
            *backend = k;
            return IRON_OK;
        }
    IRON_FAIL_IF(device != 0, err, IRON_E_ARG, "device %u does not exist: no GPU has that number",
                 device);
    return IRON_OK;
}
