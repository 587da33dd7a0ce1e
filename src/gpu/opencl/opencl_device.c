/* SPDX-License-Identifier: MIT */
/*
 * opencl_device.c: the OpenCL library, errors, shared contexts, device properties, opening and
 * closing devices, and the backend's table.
 *
 * libOpenCL.so.1 (or IRON_OPENCL_LIBRARY), its functions as listed in opencl_symbols.def, and the
 * devices of all platforms are one state per process, behind a mutex: the first caller loads, the
 * others get what it found. A missing library, symbol, platform or device is not an error but a
 * reason; it is stored and returned to every caller. A device is listed if it is available, has a
 * compiler, OpenCL 1.2 and the host's byte order; others cannot run our kernels. The library is
 * never unloaded: drivers start threads that would continue in unmapped code.
 *
 * Errors: the table below lists the codes with a meaning of their own; all others are driver errors
 * that leave the device usable. A device is lost if the code says so, if waiting for commands ran
 * out of resources (drivers report a crashed kernel this way; at a launch the same code only means
 * that the kernel needs too much), and if the code is not in the standard: vendors use such codes
 * for faults in kernels.
 *
 * An open device is a handle on a context with one device in it, plus a queue for operations on
 * memory. OpenCL has no graphs, no launches that overlap within a queue, no texture handles, no
 * cache control, and no guarantee that all groups of a kernel run concurrently; those optional
 * entries stay NULL.
 *
 * Contexts are created under the lock, because two threads that open a device at the same time want
 * the same one. They are destroyed outside of it, because that takes long. A retired context is no
 * longer in the list; the last of its users destroys it.
 */
#include "core/fail.h"
#include "core/library.h"
#include "core/memory.h"
#include "gpu/opencl/opencl_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iron__once library_once = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static iron__opencl_library the_library;

static const iron__symbol symbols[] = {
#define IRON_CL_REQUIRED(result, name, parameters) {#name, offsetof(iron__opencl_api, name), true},
#define IRON_CL_OPTIONAL(result, name, parameters) {#name, offsetof(iron__opencl_api, name), false},
#include "gpu/opencl/opencl_symbols.def"
};

static iron_status load_library(iron_error *err) {
    static const char *const usual[] = {"libOpenCL.so.1", NULL};
    iron__library l = iron__library_open("IRON_OPENCL_LIBRARY", usual, symbols,
                                         sizeof symbols / sizeof symbols[0], &the_library.api);

    IRON_FAIL_IF(!l.handle, err, IRON_E_UNSUPPORTED,
                 "opencl: no library: %.130s; install an OpenCL loader, or set IRON_OPENCL_LIBRARY",
                 l.fault);
    if (l.missing)
        iron__library_close(&l); /* none of its code has run yet */
    IRON_FAIL_IF(l.missing, err, IRON_E_UNSUPPORTED,
                 "opencl: %.120s has no %s; install a library for OpenCL 1.2 or later", l.path,
                 l.missing);
    return IRON_OK;
}

/* Properties. One that cannot be read is 0 or "": describing a device never fails. */

static int32_t get_info(const iron__opencl_entry *entry, uint32_t what, size_t room, void *out,
                        size_t *bytes) {
    if (what == IRON_CL_PLATFORM_NAME || what == IRON_CL_PLATFORM_VERSION)
        return the_library.api.clGetPlatformInfo(entry->platform, what, room, out, bytes);
    return the_library.api.clGetDeviceInfo(entry->id, what, room, out, bytes);
}

/* A property of the device or its platform, without surrounding blanks; free() it. NULL: out of
 * memory. */
static char *text_of(const iron__opencl_entry *entry, uint32_t what) {
    size_t bytes = 0, skip = 0;
    char *text;

    if (get_info(entry, what, 0, NULL, &bytes) != IRON_CL_SUCCESS)
        bytes = 0;
    text = calloc(1, bytes + 1);
    if (!text)
        return NULL;
    if (bytes && get_info(entry, what, bytes, text, NULL) != IRON_CL_SUCCESS)
        text[0] = '\0';
    while (isspace((unsigned char)text[skip]))
        skip++;
    bytes = strlen(text + skip);
    while (bytes > 0 && isspace((unsigned char)text[skip + bytes - 1]))
        bytes--;
    memmove(text, text + skip, bytes);
    text[bytes] = '\0';
    return text;
}

/* Properties have 4 or 8 bytes; the device returns the size. */
static uint64_t number_of(const iron__opencl_entry *entry, uint32_t what) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    size_t bytes = 0;

    if (get_info(entry, what, sizeof wide, &wide, &bytes) != IRON_CL_SUCCESS)
        return 0;
    if (bytes == sizeof wide)
        return wide;
    memcpy(&narrow, &wide, sizeof narrow);
    return narrow;
}

/* "OpenCL 3.0 PoCL ..." is 300; 0 for anything else. */
static uint32_t parse_version(const char *text) {
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

/* Whether our kernels run on a device. */
static bool is_usable(const iron__opencl_entry *entry) {
    return entry->version >= 120 && number_of(entry, IRON_CL_DEVICE_AVAILABLE) &&
           number_of(entry, IRON_CL_DEVICE_COMPILER_AVAILABLE) &&
           number_of(entry, IRON_CL_DEVICE_ENDIAN_LITTLE);
}

/* Adds the usable devices of one kind of a platform. *seen counts all of them. */
static iron_status list_devices(iron__cl_platform *platform, uint64_t kind, size_t *seen,
                                iron_error *err) {
    iron__opencl_library *library = &the_library;
    const iron__opencl_api *cl = &library->api;
    iron__opencl_entry *entries;
    iron__cl_device **ids;
    uint32_t count = 0;

    if (cl->clGetDeviceIDs(platform, kind, 0, NULL, &count) != IRON_CL_SUCCESS || count == 0)
        return IRON_OK; /* CL_DEVICE_NOT_FOUND or a broken platform: others may have devices */
    entries = realloc(library->entries, (library->count + count) * sizeof *entries);
    if (!entries)
        return iron__no_memory(err, "a list of OpenCL devices");
    library->entries = entries;
    IRON_TRY(IRON_NEW(&ids, count, "a list of OpenCL devices", err));
    if (cl->clGetDeviceIDs(platform, kind, count, ids, NULL) != IRON_CL_SUCCESS)
        count = 0;
    *seen += count;
    for (uint32_t k = 0; k < count; k++) {
        iron__opencl_entry *e = &entries[library->count];
        char *version;
        size_t listed = 0;

        *e = (iron__opencl_entry){platform, ids[k], 0, kind == IRON_CL_DEVICE_TYPE_GPU};
        version = text_of(e, IRON_CL_DEVICE_VERSION);
        if (!version) {
            free(ids);
            return iron__no_memory(err, "a list of OpenCL devices");
        }
        e->version = parse_version(version);
        free(version);
        while (entries[listed].id != ids[k])
            listed++;
        library->count += listed == library->count && is_usable(e);
    }
    free(ids);
    return IRON_OK;
}

static iron_status list_platforms(iron__cl_platform *const *platforms, uint32_t count,
                                  iron_error *err) {
    static const uint64_t kinds[] = {IRON_CL_DEVICE_TYPE_GPU, IRON_CL_DEVICE_TYPE_ACCELERATOR,
                                     IRON_CL_DEVICE_TYPE_CPU};
    size_t seen = 0;

    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (uint32_t k = 0; k < count; k++)
            IRON_TRY(list_devices(platforms[k], kinds[kind], &seen, err));
    IRON_FAIL_IF(seen == 0, err, IRON_E_UNSUPPORTED,
                 "opencl: no device: none of %u drivers reports one; check this user's permissions",
                 count);
    IRON_FAIL_IF(
        the_library.count == 0, err, IRON_E_UNSUPPORTED,
        "opencl: no usable device: none of %zu is available with OpenCL 1.2, a compiler and "
        "little-endian numbers; update the driver",
        seen);
    return IRON_OK;
}

static iron_status find_devices(iron_error *err) {
    const iron__opencl_api *cl = &the_library.api;
    iron__cl_platform **platforms = NULL;
    uint32_t count = 0;
    int32_t code = cl->clGetPlatformIDs(0, NULL, &count);
    iron_status status;

    IRON_FAIL_IF(code == IRON_CL_PLATFORM_NOT_FOUND_KHR || (code == IRON_CL_SUCCESS && count == 0),
                 err, IRON_E_UNSUPPORTED,
                 "opencl: no platform: the library found no driver; install one (drivers are "
                 "registered in /etc/OpenCL/vendors)");
    if (code == IRON_CL_SUCCESS) {
        IRON_TRY(IRON_NEW(&platforms, count, "a list of OpenCL devices", err));
        code = cl->clGetPlatformIDs(count, platforms, NULL);
    }
    status = code == IRON_CL_SUCCESS
                 ? list_platforms(platforms, count, err)
                 : iron__fail(err, IRON_E_UNSUPPORTED, code,
                              "opencl: clGetPlatformIDs failed: %s; reinstall the driver",
                              iron__opencl_error_name(code).text);
    free(platforms);
    return status;
}

static void discard_devices(void) {
    free(the_library.entries);
    the_library = (iron__opencl_library){0};
}

static iron_status load_all(iron_error *err) {
    iron_status status = load_library(err);

    if (status == IRON_OK)
        status = find_devices(err);
    if (status != IRON_OK)
        discard_devices();
    return status;
}

/* Loads the_library at the first call and keeps the result. IRON_E_UNSUPPORTED with the reason: no
 * library, an old one, no platform, no device. */
static iron_status need_library(iron_error *err) {
    return iron__once_get(&library_once, load_all, err);
}

typedef enum error_kind {
    KIND_DRIVER,    /* the call failed; the device stays usable */
    KIND_LOST,      /* marks the device as failed */
    KIND_RESOURCES, /* DRIVER, LOST or MEMORY, depending on the call */
    KIND_MEMORY,
    KIND_UNSUPPORTED,
    KIND_ARGUMENT
} error_kind;

typedef struct error_row {
    int32_t code;
    error_kind kind;
    const char *advice;
} error_row;

#define RESTART     "restart the program to use this device"
#define FREE_DEVICE "free device memory or request less"
#define FREE_HOST   "free host memory or request less"

static const error_row error_rows[] = {
    {IRON_CL_OUT_OF_RESOURCES, KIND_RESOURCES,
     "a kernel crashed or needs more than the device has; " RESTART},
    {IRON_CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, KIND_LOST,
     "an earlier command in the queue failed; " RESTART},
    {IRON_CL_DEVICE_NOT_AVAILABLE, KIND_LOST, "the device is gone; " RESTART},
    {IRON_CL_INVALID_COMMAND_QUEUE, KIND_LOST, "an earlier fault destroyed the queue; " RESTART},
    {IRON_CL_CONTEXT_TERMINATED_KHR, KIND_LOST, "the driver ended the context; " RESTART},
    {IRON_CL_MEM_OBJECT_ALLOCATION_FAILURE, KIND_MEMORY, FREE_DEVICE},
    {IRON_CL_OUT_OF_HOST_MEMORY, KIND_MEMORY, FREE_HOST},
    {IRON_CL_INVALID_BUFFER_SIZE, KIND_MEMORY, "request less"},
    {IRON_CL_MAP_FAILURE, KIND_MEMORY, FREE_HOST},
    {IRON_CL_COMPILER_NOT_AVAILABLE, KIND_UNSUPPORTED, "install the driver's compiler"},
    {IRON_CL_PROFILING_INFO_NOT_AVAILABLE, KIND_UNSUPPORTED, "use the host's clock"},
    {IRON_CL_MEM_COPY_OVERLAP, KIND_ARGUMENT, "copy through another buffer"},
    {IRON_CL_INVALID_KERNEL_NAME, KIND_ARGUMENT, "check the name in the program's source"},
    {IRON_CL_INVALID_ARG_INDEX, KIND_ARGUMENT, "pass as many arguments as the kernel has"},
    {IRON_CL_INVALID_ARG_VALUE, KIND_ARGUMENT, "check the arguments against the parameters"},
    {IRON_CL_INVALID_ARG_SIZE, KIND_ARGUMENT, "check the arguments against the parameters"},
    {IRON_CL_INVALID_KERNEL_ARGS, KIND_ARGUMENT, "pass as many arguments as the kernel has"},
    {IRON_CL_INVALID_WORK_GROUP_SIZE, KIND_ARGUMENT, "launch fewer threads per group"},
    {IRON_CL_INVALID_WORK_ITEM_SIZE, KIND_ARGUMENT, "launch fewer threads per group"},
};

static const char *standard_name(int32_t code) {
    switch (code) {
#define ERROR_NAME(name, value)                                                                    \
    case value:                                                                                    \
        return "CL_" #name;
        IRON_CL_ERROR_MAP(ERROR_NAME)
#undef ERROR_NAME
    default:
        return NULL;
    }
}

static const error_row *classify(int32_t code) {
    static const error_row other = {0, KIND_DRIVER, "update the driver or use another device"};
    static const error_row vendor = {0, KIND_LOST, "a kernel probably crashed; " RESTART};

    for (size_t k = 0; k < sizeof error_rows / sizeof error_rows[0]; k++)
        if (error_rows[k].code == code)
            return &error_rows[k];
    return standard_name(code) ? &other : &vendor;
}

iron__opencl_name iron__opencl_error_name(int32_t code) {
    const char *name = standard_name(code);
    iron__opencl_name n;

    if (name)
        snprintf(n.text, sizeof n.text, "%s", name);
    else
        snprintf(n.text, sizeof n.text, "unknown code %" PRId32, code);
    return n;
}

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER; /* for the list and its users */
static iron__opencl_shared_context *contexts; /* at most one per device: the one to share */

/* Removes the context from the list, if it is there. */
static void unlist(const iron__opencl_shared_context *c) {
    iron__opencl_shared_context **at = &contexts;

    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
}

/* New handles no longer share the device's context. */
static void retire_context(const iron__opencl_device *device) {
    if (!device->shared)
        return;
    pthread_mutex_lock(&contexts_lock);
    unlist(device->shared);
    pthread_mutex_unlock(&contexts_lock);
}

iron_status iron__opencl_check_as(iron__gpu_device *device, int32_t code, iron__opencl_call call,
                                  const char *function, const char *detail, iron_error *err) {
    const error_row *row = classify(code);
    const char *advice = row->advice;
    error_kind kind = row->kind;
    iron_status status = IRON_E_IO;
    iron_error error;

    if (code == IRON_CL_SUCCESS)
        return IRON_OK;
    if (kind == KIND_RESOURCES) {
        kind = call == IRON_OPENCL_ALLOCATE ? KIND_MEMORY
               : call == IRON_OPENCL_WAIT   ? KIND_LOST
                                            : KIND_DRIVER;
        advice = call == IRON_OPENCL_ALLOCATE ? FREE_DEVICE : advice;
    }
    if (kind == KIND_MEMORY)
        status = IRON_E_NOMEM;
    else if (kind == KIND_UNSUPPORTED)
        status = IRON_E_UNSUPPORTED;
    else if (kind == KIND_ARGUMENT)
        status = IRON_E_ARG;
    iron__fail(&error, status, code, "opencl: %s failed: %s%s; %s", function,
               iron__opencl_error_name(code).text, detail, advice);
    if (kind == KIND_LOST) {
        if (device->failure.status == IRON_OK) /* the first error stays */
            device->failure = error;
        retire_context(iron__opencl_device_of(device));
    }
    if (err)
        *err = error;
    return status;
}

/* Fills device->shared and device->context, creating the context if no handle shares one. */
static iron_status acquire_context(iron__opencl_device *device, iron_error *err) {
    const intptr_t properties[] = {IRON_CL_CONTEXT_PLATFORM, (intptr_t)device->entry->platform, 0};
    iron__cl_device *id = device->entry->id;
    int32_t code = IRON_CL_SUCCESS;
    iron__opencl_shared_context *c;

    pthread_mutex_lock(&contexts_lock);
    for (c = contexts; c && c->id != id;)
        c = c->next;
    if (!c &&
        IRON_ALLOCATE(&c, iron__allocator_default(), 1, "an OpenCL context", err) == IRON_OK) {
        c->id = id;
        c->native = device->api->clCreateContext(properties, 1, &id, NULL, NULL, &code);
        if (code == IRON_CL_SUCCESS) {
            pthread_mutex_init(&c->programs_lock, NULL);
            c->next = contexts;
            contexts = c;
        } else {
            iron__release(iron__allocator_default(), c);
            c = NULL;
        }
    }
    if (c) {
        c->users++;
        device->shared = c;
        device->context = c->native;
    }
    pthread_mutex_unlock(&contexts_lock);
    if (code != IRON_CL_SUCCESS)
        return iron__opencl_check(&device->base, code, "clCreateContext", err);
    return c ? IRON_OK : IRON_E_NOMEM;
}

static void release_context(iron__opencl_device *device) {
    iron__opencl_shared_context *c = device->shared;
    bool is_last;

    if (!c)
        return;
    pthread_mutex_lock(&contexts_lock);
    is_last = --c->users == 0;
    if (is_last)
        unlist(c);
    pthread_mutex_unlock(&contexts_lock);
    device->shared = NULL;
    device->context = NULL;
    if (!is_last)
        return;
    while (c->programs) {
        iron__opencl_built_program *p = c->programs;

        c->programs = p->next;
        device->api->clReleaseProgram(p->native);
        iron__release(iron__allocator_default(), p);
    }
    device->api->clReleaseContext(c->native);
    pthread_mutex_destroy(&c->programs_lock);
    iron__release(iron__allocator_default(), c);
}

static uint32_t u32_of(const iron__opencl_entry *entry, uint32_t what) {
    uint64_t value = number_of(entry, what);

    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* The list is separated by blanks; one name may be a prefix of another. */
static bool has_extension(const iron__opencl_entry *entry, const char *extension) {
    char *list = text_of(entry, IRON_CL_DEVICE_EXTENSIONS), *rest = list, *word;

    bool has = false;

    while (!has && (word = strsep(&rest, " ")))
        has = strcmp(word, extension) == 0;
    free(list);
    return has;
}

/* Shared virtual memory needs the coarse-grained kind and every function for it. The device's
 * version counts too: an OpenCL 2 loader in front of a 1.2 driver has functions that lead
 * nowhere. */
static bool has_svm(const iron__opencl_entry *entry) {
    const iron__opencl_api *api = &the_library.api;

    return entry->version >= 200 && api->clSVMAlloc && api->clSVMFree && api->clEnqueueSVMMap &&
           api->clEnqueueSVMUnmap && api->clEnqueueSVMMemcpy && api->clEnqueueSVMMemFill &&
           api->clSetKernelArgSVMPointer &&
           number_of(entry, IRON_CL_DEVICE_SVM_CAPABILITIES) &
               IRON_CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}

static iron_status describe(size_t index, iron__gpu_info *info, iron_error *err) {
    static const char no_svm[] = "the device has no shared virtual memory";
    static const char no_prefetch[] = "the driver cannot prefetch shared memory (OpenCL 2.1 can)";
    const iron__opencl_entry *entry;
    char *name, *platform, *driver;
    uint64_t local_bytes;

    IRON_TRY(need_library(err));
    IRON_FAIL_IF(index >= the_library.count, err, IRON_E_ARG,
                 "opencl: no device %zu; the last one is %zu", index, the_library.count - 1);
    entry = &the_library.entries[index];
    name = text_of(entry, IRON_CL_DEVICE_NAME);
    platform = text_of(entry, IRON_CL_PLATFORM_NAME);
    driver = text_of(entry, IRON_CL_DRIVER_VERSION);
    local_bytes = number_of(entry, IRON_CL_DEVICE_LOCAL_MEM_SIZE);
    *info = (iron__gpu_info){
        .is_gpu = entry->is_gpu,
        .units = u32_of(entry, IRON_CL_DEVICE_MAX_COMPUTE_UNITS),
        .group_threads_max = u32_of(entry, IRON_CL_DEVICE_MAX_WORK_GROUP_SIZE),
        .has_f64 = has_extension(entry, "cl_khr_fp64"),
        .local_bytes_max =
            local_bytes > IRON_OPENCL_LOCAL_RESERVE ? local_bytes - IRON_OPENCL_LOCAL_RESERVE : 0,
        .memory_bytes = number_of(entry, IRON_CL_DEVICE_GLOBAL_MEM_SIZE),
        .version = entry->version,
    };
    /* NVIDIA reports the first-level cache, 32 KiB per unit: 4 MiB on an H200, whose last level has
     * 60 MiB. 0 (unknown) is better. */
    if (!has_extension(entry, "cl_nv_device_attribute_query"))
        info->cache_bytes = number_of(entry, IRON_CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1,
             name && name[0] ? name : "unnamed device");
    /* "NVIDIA CUDA, OpenCL 3.0, driver 580.159.04" */
    snprintf(info->driver, sizeof info->driver,
             "%.36s, OpenCL %" PRIu32 ".%" PRIu32 ", driver %.30s", platform ? platform : "",
             entry->version / 100, entry->version / 10 % 10, driver ? driver : "");
    if (!has_svm(entry)) {
        memcpy(info->lacks[IRON_GPU_UVM], no_svm, sizeof no_svm);
        memcpy(info->lacks[IRON_GPU_UVM_PREFETCH], no_svm, sizeof no_svm);
    } else if (entry->version < 210 || !the_library.api.clEnqueueSVMMigrateMem) {
        memcpy(info->lacks[IRON_GPU_UVM_PREFETCH], no_prefetch, sizeof no_prefetch);
    }
    free(name);
    free(platform);
    free(driver);
    return IRON_OK;
}

static iron_status probe(size_t *count, iron_error *err) {
    *count = 0;
    IRON_TRY(need_library(err));
    *count = the_library.count;
    return IRON_OK;
}

static void device_close(iron__gpu_device *base) {
    iron__opencl_device *d = iron__opencl_device_of(base);

    iron__gpu_queue_destroy(d->memory_queue);
    release_context(d);
    free(d->identity);
    iron__release(iron__allocator_default(), d);
}

/* Everything about device and driver that decides the result of a build; free() it. NULL: out of
 * memory. */
static char *identify(const iron__opencl_entry *entry) {
    static const struct {
        const char *name;
        uint32_t what;
    } properties[] = {{"device", IRON_CL_DEVICE_NAME},
                      {"vendor", IRON_CL_DEVICE_VENDOR},
                      {"version", IRON_CL_DEVICE_VERSION},
                      {"driver", IRON_CL_DRIVER_VERSION},
                      {"platform", IRON_CL_PLATFORM_VERSION}};
    char *identity = strdup("");

    for (size_t k = 0; identity && k < sizeof properties / sizeof properties[0]; k++) {
        char *text = text_of(entry, properties[k].what), *before = identity;

        identity = text ? iron__print("%s%s %s\n", before, properties[k].name, text) : NULL;
        free(before);
        free(text);
    }
    return identity;
}

static iron_status device_open(size_t index, iron__gpu_device **out, iron_error *err) {
    const iron__opencl_entry *entry;
    iron__gpu_info info;
    iron__opencl_device *d;
    iron_status status;

    *out = NULL;
    IRON_TRY(describe(index, &info, err));
    IRON_TRY(IRON_ALLOCATE(&d, iron__allocator_default(), 1, "an OpenCL device", err));
    entry = &the_library.entries[index];
    d->base.ops = &iron__opencl_ops;
    d->base.info = info;
    d->api = &the_library.api;
    d->entry = entry;
    d->identity = identify(entry);
    d->allocation_bytes_max = number_of(entry, IRON_CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    d->has_u64_atomics = has_extension(entry, "cl_khr_int64_base_atomics");
    d->has_register_limit = has_extension(entry, "cl_nv_compiler_options");
    status = acquire_context(d, err);
    if (status == IRON_OK) {
        status = iron__gpu_queue_create(&d->base, &d->memory_queue, err);
        if (status != IRON_OK)
            retire_context(d); /* it may be dead; the next handle tries a new one */
    }
    if (status != IRON_OK)
        device_close(&d->base);
    else
        *out = &d->base;
    return status;
}

static uintptr_t context_of(iron__gpu_device *device) {
    return (uintptr_t)iron__opencl_device_of(device)->context;
}

const iron__gpu_ops iron__opencl_ops = {
    .name = "opencl",
    .probe = probe,
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .context = context_of,
    .program = &iron__opencl_program_ops,
    .memory = &iron__opencl_memory_ops,
    .queue = &iron__opencl_queue_ops,
};
