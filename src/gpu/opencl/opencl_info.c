/* SPDX-License-Identifier: MIT */
/*
 * opencl_info.c: what a device says of itself, as an iron__gpu_info.
 *
 * A property that cannot be had is 0 or "": describing never fails. Threads that run in step are
 * known where NVIDIA's extension tells them; OpenCL 1.2 itself has no word for them. Shared virtual
 * memory counts when the device has the coarse-grained kind and the library every function for it:
 * a loader of OpenCL 2 in front of a driver of 1.2 has the functions, but they lead nowhere.
 */
#include "gpu/opencl/opencl_device.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA_EXTENSION "cl_nv_device_attribute_query"

static char *trimmed(char *text) {
    size_t skip = 0, length;

    while (isspace((unsigned char)text[skip]))
        skip++;
    length = strlen(text + skip);
    while (length > 0 && isspace((unsigned char)text[skip + length - 1]))
        length--;
    memmove(text, text + skip, length);
    text[length] = '\0';
    return text;
}

char *iron__opencl_device_text(const iron__opencl_api *api, iron__cl_device *id, uint32_t what) {
    size_t bytes = 0;
    char *text;

    if (api->clGetDeviceInfo(id, what, 0, NULL, &bytes) != IRON_CL_SUCCESS)
        bytes = 0;
    text = calloc(1, bytes + 1);
    if (text && bytes && api->clGetDeviceInfo(id, what, bytes, text, NULL) != IRON_CL_SUCCESS)
        text[0] = '\0';
    return text ? trimmed(text) : NULL;
}

char *iron__opencl_platform_text(const iron__opencl_api *api, iron__cl_platform *id,
                                 uint32_t what) {
    size_t bytes = 0;
    char *text;

    if (api->clGetPlatformInfo(id, what, 0, NULL, &bytes) != IRON_CL_SUCCESS)
        bytes = 0;
    text = calloc(1, bytes + 1);
    if (text && bytes && api->clGetPlatformInfo(id, what, bytes, text, NULL) != IRON_CL_SUCCESS)
        text[0] = '\0';
    return text ? trimmed(text) : NULL;
}

/* Properties are 4 or 8 bytes; the device says which. */
uint64_t iron__opencl_device_number(const iron__opencl_api *api, iron__cl_device *id,
                                    uint32_t what) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    size_t bytes = 0;

    if (api->clGetDeviceInfo(id, what, sizeof wide, &wide, &bytes) != IRON_CL_SUCCESS)
        return 0;
    if (bytes == sizeof wide)
        return wide;
    memcpy(&narrow, &wide, sizeof narrow);
    return narrow;
}

/* The list is words with blanks between them; one may be the beginning of another. */
static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);

    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

bool iron__opencl_has_extension(const iron__opencl_api *api, iron__cl_device *id,
                                const char *extension) {
    char *list = iron__opencl_device_text(api, id, IRON_CL_DEVICE_EXTENSIONS);
    bool has = list && has_word(list, extension);

    free(list);
    return has;
}

static uint32_t capped(uint64_t value) { return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX; }

static uint32_t subgroup(const iron__opencl_api *api, iron__cl_device *id) {
    uint64_t threads = 0;

    if (iron__opencl_has_extension(api, id, NVIDIA_EXTENSION))
        threads = iron__opencl_device_number(api, id, IRON_CL_DEVICE_WARP_SIZE_NV);
    return threads ? capped(threads) : 1;
}

/* Drivers tell the size of some cache. NVIDIA's is of the first level, 32 KiB a unit, so 4 MiB on
 * an H200 whose last level has 60: worse than not to know. */
static uint64_t last_cache(const iron__opencl_api *api, iron__cl_device *id) {
    if (iron__opencl_has_extension(api, id, NVIDIA_EXTENSION))
        return 0;
    return iron__opencl_device_number(api, id, IRON_CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
}

static bool has_shared_memory(const iron__opencl_api *api, const iron__opencl_entry *entry) {
    return entry->version >= 200 && api->clSVMAlloc && api->clSVMFree && api->clEnqueueSVMMap &&
           api->clEnqueueSVMUnmap && api->clEnqueueSVMMemcpy && api->clEnqueueSVMMemFill &&
           api->clSetKernelArgSVMPointer &&
           iron__opencl_device_number(api, entry->id, IRON_CL_DEVICE_SVM_CAPABILITIES) &
               IRON_CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}

static void name_lacks(const iron__opencl_api *api, const iron__opencl_entry *entry,
                       iron__gpu_info *info) {
    static const char no_shared[] = "the device has no shared virtual memory";
    static const char no_ahead[] = "the driver cannot send shared memory ahead (OpenCL 2.1 can)";
    bool has_shared = has_shared_memory(api, entry);

    if (!has_shared)
        memcpy(info->lacks[IRON_GPU_UVM], no_shared, sizeof no_shared);
    if (!has_shared)
        memcpy(info->lacks[IRON_GPU_UVM_PREFETCH], no_shared, sizeof no_shared);
    else if (entry->version < 210 || !api->clEnqueueSVMMigrateMem)
        memcpy(info->lacks[IRON_GPU_UVM_PREFETCH], no_ahead, sizeof no_ahead);
}

/* "NVIDIA CUDA, OpenCL 3.0, driver 580.159.04" */
static void name_device(const iron__opencl_api *api, const iron__opencl_entry *entry,
                        iron__gpu_info *info) {
    char *name = iron__opencl_device_text(api, entry->id, IRON_CL_DEVICE_NAME);
    char *platform = iron__opencl_platform_text(api, entry->platform, IRON_CL_PLATFORM_NAME);
    char *driver = iron__opencl_device_text(api, entry->id, IRON_CL_DRIVER_VERSION);

    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1,
             name && name[0] ? name : "a device without a name");
    snprintf(info->driver, sizeof info->driver,
             "%.36s, OpenCL %" PRIu32 ".%" PRIu32 ", driver %.30s", platform ? platform : "",
             entry->version / 100, entry->version / 10 % 10, driver ? driver : "");
    free(name);
    free(platform);
    free(driver);
}

/* What a launch may ask for: a driver may need a little of it for itself. */
static uint64_t local_bytes(const iron__opencl_api *api, iron__cl_device *id) {
    uint64_t bytes = iron__opencl_device_number(api, id, IRON_CL_DEVICE_LOCAL_MEM_SIZE);

    return bytes > IRON_OPENCL_LOCAL_RESERVE ? bytes - IRON_OPENCL_LOCAL_RESERVE : 0;
}

void iron__opencl_describe(const iron__opencl_library *library, const iron__opencl_entry *entry,
                           iron__gpu_info *info) {
    const iron__opencl_api *api = &library->api;
    iron__cl_device *id = entry->id;

    *info = (iron__gpu_info){
        .is_gpu = entry->is_gpu,
        .units = capped(iron__opencl_device_number(api, id, IRON_CL_DEVICE_MAX_COMPUTE_UNITS)),
        .group_threads_max =
            capped(iron__opencl_device_number(api, id, IRON_CL_DEVICE_MAX_WORK_GROUP_SIZE)),
        .subgroup = subgroup(api, id),
        .has_f64 = iron__opencl_has_extension(api, id, "cl_khr_fp64"),
        .local_bytes_max = local_bytes(api, id),
        .memory_bytes = iron__opencl_device_number(api, id, IRON_CL_DEVICE_GLOBAL_MEM_SIZE),
        .cache_bytes = last_cache(api, id),
        .version = entry->version,
    };
    name_device(api, entry, info);
    name_lacks(api, entry, info);
}
