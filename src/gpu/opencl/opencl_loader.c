/* SPDX-License-Identifier: MIT */
/*
 * opencl_loader.c: finds libOpenCL.so.1 (or what IRON_OPENCL_LIBRARY names), its functions by the
 * table in opencl_symbols.def, and the devices of all platforms.
 *
 * One state for the process, behind a mutex: the first caller loads, the others get what it found.
 * An absent library, symbol, platform or device is no error but an answer; its words are kept and
 * given to everybody who asks. A device is listed when it is available, compiles, has OpenCL 1.2
 * and stores numbers as the host does; others could not run one kernel of ours.
 */
#include "gpu/opencl/opencl_loader.h"

#include "core/fail.h"
#include "gpu/opencl/opencl.h"
#include "gpu/opencl/opencl_error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_NAME     "libOpenCL.so.1"
#define LIBRARY_VARIABLE "IRON_OPENCL_LIBRARY"

static struct {
    pthread_mutex_t mutex;
    bool is_tried;
    iron_error reason; /* status IRON_OK when the library can be used */
    iron__opencl_library library;
} loader = {.mutex = PTHREAD_MUTEX_INITIALIZER};

typedef struct symbol {
    const char *name;
    size_t offset; /* in iron__opencl_api */
    bool is_required;
} symbol;

static const symbol symbols[] = {
#define IRON_CL_REQUIRED(result, name, parameters) {#name, offsetof(iron__opencl_api, name), true},
#define IRON_CL_OPTIONAL(result, name, parameters) {#name, offsetof(iron__opencl_api, name), false},
#include "gpu/opencl/opencl_symbols.def"
};

/* The environment of a program that runs with another user's rights names no code to load. */
static const char *library_name(void) {
    const char *name = secure_getenv(LIBRARY_VARIABLE);

    return name && name[0] ? name : LIBRARY_NAME;
}

static iron_status load_symbols(void *handle, const char *library, iron__opencl_api *api,
                                iron_error *err) {
    for (size_t k = 0; k < sizeof symbols / sizeof symbols[0]; k++) {
        void *address = dlsym(handle, symbols[k].name);

        IRON_FAIL_IF(!address && symbols[k].is_required, err, IRON_E_UNSUPPORTED,
                     "opencl: %.120s has no %s; install a library of OpenCL 1.2 or later", library,
                     symbols[k].name);
        memcpy((char *)api + symbols[k].offset, &address, sizeof address);
    }
    return IRON_OK;
}

static iron_status load_library(iron__opencl_api *api, iron_error *err) {
    const char *name = library_name();
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    iron_status status;

    if (!handle) {
        const char *reason = dlerror();

        IRON_FAIL(err, IRON_E_UNSUPPORTED,
                  "opencl: no library: %.130s; install an OpenCL loader, or name one in "
                  "%s",
                  reason ? reason : name, LIBRARY_VARIABLE);
    }
    status = load_symbols(handle, name, api, err);
    if (status != IRON_OK)
        dlclose(handle); /* nothing of it has run yet */
    return status;
}

uint32_t iron__opencl_version(const char *text) {
    static const char start[] = "OpenCL ";
    unsigned long major, minor;
    char *end;

    if (strncmp(text, start, sizeof start - 1) != 0)
        return 0;
    major = strtoul(text + sizeof start - 1, &end, 10);
    if (*end != '.' || major > 99)
        return 0;
    minor = strtoul(end + 1, &end, 10);
    return minor > 9 ? 0 : (uint32_t)(major * 100 + minor * 10);
}

static bool has_flag(const iron__opencl_api *cl, iron__cl_device *id, uint32_t what) {
    uint32_t flag = 0;

    return cl->clGetDeviceInfo(id, what, sizeof flag, &flag, NULL) == IRON_CL_SUCCESS && flag;
}

static uint32_t device_version(const iron__opencl_api *cl, iron__cl_device *id) {
    char text[1024] = "";

    if (cl->clGetDeviceInfo(id, IRON_CL_DEVICE_VERSION, sizeof text, text, NULL) != IRON_CL_SUCCESS)
        return 0;
    text[sizeof text - 1] = '\0';
    return iron__opencl_version(text);
}

static bool is_usable(const iron__opencl_api *cl, iron__cl_device *id, uint32_t version) {
    return version >= 120 && has_flag(cl, id, IRON_CL_DEVICE_AVAILABLE) &&
           has_flag(cl, id, IRON_CL_DEVICE_COMPILER_AVAILABLE) &&
           has_flag(cl, id, IRON_CL_DEVICE_ENDIAN_LITTLE);
}

static bool is_listed(const iron__opencl_library *library, const iron__cl_device *id) {
    for (size_t k = 0; k < library->count; k++)
        if (library->entries[k].id == id)
            return true;
    return false;
}

static iron_status no_memory(iron_error *err) {
    return iron__fail(err, IRON_E_NOMEM, 0, "out of memory while listing OpenCL devices");
}

/* One platform's devices of one kind; *seen counts those that cannot be used, too. */
static iron_status list_devices(iron__opencl_library *library, iron__cl_platform *platform,
                                uint64_t kind, size_t *seen, iron_error *err) {
    const iron__opencl_api *cl = &library->api;
    iron__opencl_entry *entries;
    iron__cl_device **ids;
    uint32_t count = 0;

    if (cl->clGetDeviceIDs(platform, kind, 0, NULL, &count) != IRON_CL_SUCCESS || count == 0)
        return IRON_OK; /* CL_DEVICE_NOT_FOUND, or a platform in trouble: others may have some */
    ids = calloc(count, sizeof(iron__cl_device *));
    entries = realloc(library->entries, (library->count + count) * sizeof *entries);
    if (entries)
        library->entries = entries;
    if (!ids || !entries) {
        free(ids);
        return no_memory(err);
    }
    if (cl->clGetDeviceIDs(platform, kind, count, ids, NULL) != IRON_CL_SUCCESS)
        count = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t version = device_version(cl, ids[k]);

        ++*seen;
        if (is_usable(cl, ids[k], version) && !is_listed(library, ids[k]))
            entries[library->count++] = (iron__opencl_entry){
                .platform = platform,
                .id = ids[k],
                .version = version,
                .is_gpu = kind == IRON_CL_DEVICE_TYPE_GPU,
            };
    }
    free(ids);
    return IRON_OK;
}

static iron_status list_platforms(iron__opencl_library *library,
                                  iron__cl_platform *const *platforms, uint32_t count,
                                  iron_error *err) {
    static const uint64_t kinds[] = {IRON_CL_DEVICE_TYPE_GPU, IRON_CL_DEVICE_TYPE_ACCELERATOR,
                                     IRON_CL_DEVICE_TYPE_CPU};
    size_t seen = 0;

    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (uint32_t k = 0; k < count; k++)
            IRON_TRY(list_devices(library, platforms[k], kinds[kind], &seen, err));
    IRON_FAIL_IF(
        seen == 0, err, IRON_E_UNSUPPORTED,
        "opencl: no device: the drivers (%u) tell of none; check that this user may use it", count);
    IRON_FAIL_IF(library->count == 0, err, IRON_E_UNSUPPORTED,
                 "opencl: no device that can be used: none of %zu is available with OpenCL 1.2, a "
                 "compiler and little-endian numbers; update the driver",
                 seen);
    return IRON_OK;
}

static iron_status find_devices(iron__opencl_library *library, iron_error *err) {
    const iron__opencl_api *cl = &library->api;
    iron__cl_platform **platforms;
    uint32_t count = 0;
    int32_t code = cl->clGetPlatformIDs(0, NULL, &count);
    iron_status status;

    IRON_FAIL_IF(code == IRON_CL_PLATFORM_NOT_FOUND_KHR || (code == IRON_CL_SUCCESS && count == 0),
                 err, IRON_E_UNSUPPORTED,
                 "opencl: no platform: the library is there, a driver is not; install one (it is "
                 "registered in /etc/OpenCL/vendors)");
    if (code == IRON_CL_SUCCESS) {
        platforms = calloc(count, sizeof(iron__cl_platform *));
        if (!platforms)
            return no_memory(err);
        code = cl->clGetPlatformIDs(count, platforms, NULL);
        status = code == IRON_CL_SUCCESS ? list_platforms(library, platforms, count, err) : IRON_OK;
        free(platforms);
        if (code == IRON_CL_SUCCESS)
            return status;
    }
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "opencl: clGetPlatformIDs failed: %s; reinstall the driver",
                      iron__opencl_error_name(code).text);
}

static void drop_entries(void) {
    free(loader.library.entries);
    loader.library = (iron__opencl_library){0};
}

static iron_status load(iron_error *err) {
    iron_status status = load_library(&loader.library.api, err);

    if (status == IRON_OK)
        status = find_devices(&loader.library, err);
    if (status != IRON_OK)
        drop_entries();
    return status;
}

iron_status iron__opencl_load(const iron__opencl_library **out, iron_error *err) {
    iron_status status;

    *out = NULL;
    pthread_mutex_lock(&loader.mutex);
    if (!loader.is_tried) {
        loader.reason = (iron_error){.status = IRON_OK};
        /* memory may be there the next time; the other reasons stay as they are */
        loader.is_tried = load(&loader.reason) != IRON_E_NOMEM;
    }
    status = loader.reason.status;
    if (status == IRON_OK)
        *out = &loader.library;
    else if (err)
        *err = loader.reason;
    pthread_mutex_unlock(&loader.mutex);
    return status;
}

void iron__opencl_forget(void) {
    pthread_mutex_lock(&loader.mutex);
    drop_entries();
    loader.is_tried = false;
    pthread_mutex_unlock(&loader.mutex);
}
