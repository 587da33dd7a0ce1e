/* SPDX-License-Identifier: MIT */
/*
 * cuda_info.c: what a card is and can do, asked of the driver without making a context, which would
 * take time and the card's memory: iron info describes cards that nobody uses.
 *
 * The driver's own version ("580.159.04") is not in CUDA's interface, which tells only the newest
 * CUDA that it knows; Linux shows it in /proc, and where it does not it is left out.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

#include <stdio.h>
#include <string.h>

#define MODULE_VERSION_FILE "/proc/driver/nvidia/version"

/* What is asked as a number. */
typedef struct facts {
    int threads_max, warp, units, maps_host, cache, major, minor;
    int has_managed, has_concurrent_managed, is_cooperative, shared_max, keep_max;
} facts;

static const struct {
    iron__cu_device_attribute attribute;
    size_t offset;
} questions[] = {
    {IRON_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, offsetof(facts, threads_max)},
    {IRON_CU_DEVICE_ATTRIBUTE_WARP_SIZE, offsetof(facts, warp)},
    {IRON_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, offsetof(facts, units)},
    {IRON_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, offsetof(facts, maps_host)},
    {IRON_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, offsetof(facts, cache)},
    {IRON_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, offsetof(facts, major)},
    {IRON_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, offsetof(facts, minor)},
    {IRON_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, offsetof(facts, has_managed)},
    {IRON_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, offsetof(facts, has_concurrent_managed)},
    {IRON_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, offsetof(facts, is_cooperative)},
    {IRON_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, offsetof(facts, shared_max)},
    {IRON_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, offsetof(facts, keep_max)},
};

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..." and the open module's "NVIDIA
 * UNIX Open Kernel Module for x86_64  580.95.05  ..." have in common that the version is the first
 * word of digits and dots. */
void iron__cuda_module_version(const char *line, char *version, size_t size) {
    version[0] = '\0';
    while (*line) {
        size_t length = strcspn(line, " \t\n"), number = strspn(line, "0123456789.");

        if (number == length && memchr(line, '.', length)) {
            snprintf(version, size, "%.*s", (int)length, line);
            return;
        }
        line += length + strspn(line + length, " \t\n");
    }
}

static void name_driver(const iron__cuda_driver *driver, char *text, size_t size) {
    FILE *file = fopen(MODULE_VERSION_FILE, "re");
    char line[256] = "", version[32];

    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    iron__cuda_module_version(line, version, sizeof version);
    snprintf(text, size, "CUDA %d.%d%s%s", driver->version / 1000, driver->version % 1000 / 10,
             version[0] ? ", driver " : "", version);
}

static void name_lacks(const iron__cuda_driver *driver, const facts *f, iron__gpu_info *info) {
    const size_t size = sizeof info->lacks[0];

    if (!f->has_managed) {
        snprintf(info->lacks[IRON_GPU_UVM], size, "the device has no managed memory");
        snprintf(info->lacks[IRON_GPU_UVM_PREFETCH], size, "the device has no managed memory");
    } else if (!f->has_concurrent_managed) {
        snprintf(info->lacks[IRON_GPU_UVM_PREFETCH], size,
                 "host and device cannot use managed memory at the same time");
    } else if (!driver->cuMemPrefetchAsync_v2 && !driver->cuMemPrefetchAsync) {
        snprintf(info->lacks[IRON_GPU_UVM_PREFETCH], size, "the driver has no cuMemPrefetchAsync");
    }
    if (!f->maps_host)
        snprintf(info->lacks[IRON_GPU_ZERO_COPY], size, "the device cannot map host memory");
}

static void fill_info(const iron__cuda_driver *driver, const facts *f, iron__gpu_info *info) {
    name_driver(driver, info->driver, sizeof info->driver);
    info->is_gpu = true;
    info->units = (uint32_t)f->units;
    info->group_threads_max = (uint32_t)f->threads_max;
    info->subgroup = (uint32_t)f->warp;
    info->has_f64 = true;
    info->local_bytes_max = (uint64_t)f->shared_max;
    info->cache_bytes = (uint64_t)f->cache;
    info->version = (uint32_t)(f->major * 100 + f->minor * 10);
    info->has_addresses = true;
    info->can_graph = true;
    /* Kernels can ask to begin early since Hopper. */
    info->can_overlap = driver->cuLaunchKernelEx && f->major >= 9;
    info->can_gather = driver->cuLaunchKernelEx && f->is_cooperative;
    info->has_textures = true;
    /* Without the newer launch nothing could be put there. */
    if (driver->cuLaunchKernelEx && f->keep_max > 0)
        info->keep_bytes_max = (uint64_t)f->keep_max;
    name_lacks(driver, f, info);
}

static iron_status ask(const iron__cuda_driver *driver, size_t index, iron__gpu_info *info,
                       iron_error *err) {
    iron__cu_device device = 0;
    size_t memory_bytes = 0;
    facts f = {0};

    IRON_TRY(
        iron__cuda_report(driver, err, "cuDeviceGet", driver->cuDeviceGet(&device, (int)index)));
    IRON_TRY(iron__cuda_report(driver, err, "cuDeviceGetName",
                               driver->cuDeviceGetName(info->name, sizeof info->name, device)));
    IRON_TRY(iron__cuda_report(driver, err, "cuDeviceTotalMem_v2",
                               driver->cuDeviceTotalMem_v2(&memory_bytes, device)));
    info->memory_bytes = memory_bytes;
    for (size_t k = 0; k < sizeof questions / sizeof questions[0]; k++) {
        int *answer = (int *)(void *)((char *)&f + questions[k].offset);

        IRON_TRY(iron__cuda_report(
            driver, err, "cuDeviceGetAttribute",
            driver->cuDeviceGetAttribute(answer, questions[k].attribute, device)));
    }
    fill_info(driver, &f, info);
    return IRON_OK;
}

iron_status iron__cuda_describe(size_t index, iron__gpu_info *info, iron_error *err) {
    const iron__cuda_driver *driver = NULL;
    int count = 0;

    memset(info, 0, sizeof *info);
    IRON_TRY(iron__cuda_load(&driver, err));
    IRON_TRY(iron__cuda_report(driver, err, "cuDeviceGetCount", driver->cuDeviceGetCount(&count)));
    IRON_FAIL_IF(index >= (size_t)count, err, IRON_E_ARG,
                 "cuda: there is no device %zu; there are %d, counted from 0", index, count);
    return ask(driver, index, info, err);
}
