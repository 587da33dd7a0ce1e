/* SPDX-License-Identifier: MIT */
/*
 * opencl_error.c: from OpenCL's codes to iron's errors.
 *
 * Names come from the list in opencl_abi.h. The table below holds the codes that mean something of
 * their own to a user; all others are a driver's error, not the end of the device. A device is lost
 * when the code says so, when work that was waited for lacked resources (that is how drivers report
 * a kernel that crashed; at a launch the same code only means that the kernel wants too much), and
 * when the code is none of the standard's: vendors use those for faults in kernels.
 */
#include "gpu/opencl/opencl_error.h"

#include "core/fail.h"
#include "gpu/opencl/opencl_abi.h"
#include "gpu/opencl/opencl_shared.h"

#include <inttypes.h>
#include <stdio.h>

typedef enum error_kind {
    KIND_DRIVER, /* the driver could not; the device lives */
    KIND_LOST,   /* marks the device */
    KIND_CRASH,  /* one of KIND_DRIVER, KIND_LOST, KIND_MEMORY: the call decides */
    KIND_MEMORY,
    KIND_ABSENT, /* cannot be had here */
    KIND_CALLER  /* we asked for the wrong thing */
} error_kind;

typedef struct meaning {
    int32_t code;
    error_kind kind;
    const char *advice;
} meaning;

#define RESTART   "start the program again to use this device"
#define FREE_SOME "free memory of the device, or ask for less"

static const meaning meanings[] = {
    {IRON_CL_OUT_OF_RESOURCES, KIND_CRASH,
     "a kernel crashed or wants more than the device has; " RESTART},
    {IRON_CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, KIND_LOST,
     "work put into the queue before failed; " RESTART},
    {IRON_CL_DEVICE_NOT_AVAILABLE, KIND_LOST, "the device is gone; " RESTART},
    {IRON_CL_INVALID_COMMAND_QUEUE, KIND_LOST, "an earlier fault took the queue along; " RESTART},
    {IRON_CL_CONTEXT_TERMINATED_KHR, KIND_LOST, "the driver gave up; " RESTART},
    {IRON_CL_MEM_OBJECT_ALLOCATION_FAILURE, KIND_MEMORY, FREE_SOME},
    {IRON_CL_OUT_OF_HOST_MEMORY, KIND_MEMORY, "free memory of the host, or ask for less"},
    {IRON_CL_INVALID_BUFFER_SIZE, KIND_MEMORY, "ask for less"},
    {IRON_CL_MAP_FAILURE, KIND_MEMORY, "free memory of the host, or ask for less"},
    {IRON_CL_COMPILER_NOT_AVAILABLE, KIND_ABSENT, "install the driver's compiler"},
    {IRON_CL_PROFILING_INFO_NOT_AVAILABLE, KIND_ABSENT, "time with the host's clock"},
    {IRON_CL_MEM_COPY_OVERLAP, KIND_CALLER, "copy through another buffer"},
    {IRON_CL_INVALID_KERNEL_NAME, KIND_CALLER, "look for the name in the program's text"},
    {IRON_CL_INVALID_ARG_INDEX, KIND_CALLER, "give the kernel as many arguments as it has"},
    {IRON_CL_INVALID_ARG_VALUE, KIND_CALLER, "compare the arguments with the kernel's parameters"},
    {IRON_CL_INVALID_ARG_SIZE, KIND_CALLER, "compare the arguments with the kernel's parameters"},
    {IRON_CL_INVALID_KERNEL_ARGS, KIND_CALLER, "give the kernel as many arguments as it has"},
    {IRON_CL_INVALID_WORK_GROUP_SIZE, KIND_CALLER, "launch with fewer threads a group"},
    {IRON_CL_INVALID_WORK_ITEM_SIZE, KIND_CALLER, "launch with fewer threads a group"},
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

static const meaning *meaning_of(int32_t code) {
    static const meaning other = {0, KIND_DRIVER, "update the driver, or use another device"};
    static const meaning vendors = {0, KIND_LOST, "a kernel crashed, most likely; " RESTART};

    for (size_t k = 0; k < sizeof meanings / sizeof meanings[0]; k++)
        if (meanings[k].code == code)
            return &meanings[k];
    return standard_name(code) ? &other : &vendors;
}

iron__opencl_name iron__opencl_error_name(int32_t code) {
    const char *name = standard_name(code);
    iron__opencl_name n;

    if (name)
        snprintf(n.text, sizeof n.text, "%s", name);
    else
        snprintf(n.text, sizeof n.text, "the unknown code %" PRId32, code);
    return n;
}

static iron_status status_of(error_kind kind) {
    switch (kind) {
    case KIND_MEMORY:
        return IRON_E_NOMEM;
    case KIND_ABSENT:
        return IRON_E_UNSUPPORTED;
    case KIND_CALLER:
        return IRON_E_ARG;
    default:
        return IRON_OPENCL_DRIVER_STATUS;
    }
}

/* Fills err and, where the device is lost, its failure (the first one stays); who opens the device
 * from now on is kept out of the lost context. */
static iron_status report(iron__gpu_device *device, int32_t code, error_kind kind, const char *call,
                          const char *detail, iron_error *err) {
    const meaning *m = meaning_of(code);
    const char *advice = m->kind == KIND_CRASH && kind == KIND_MEMORY ? FREE_SOME : m->advice;
    iron_error error;
    iron_status status = iron__fail(&error, status_of(kind), code, "opencl: %s failed: %s%s; %s",
                                    call, iron__opencl_error_name(code).text, detail, advice);

    if (kind == KIND_LOST) {
        if (device->failure.status == IRON_OK)
            device->failure = error;
        iron__opencl_shared_retire(iron__opencl_device_of(device));
    }
    if (err)
        *err = error;
    return status;
}

/* `crash` is what a lack of resources means for this call. */
static error_kind kind_of(int32_t code, error_kind crash) {
    error_kind kind = meaning_of(code)->kind;

    return kind == KIND_CRASH ? crash : kind;
}

iron_status iron__opencl_check(iron__gpu_device *device, int32_t code, const char *call,
                               iron_error *err) {
    if (code == IRON_CL_SUCCESS)
        return IRON_OK;
    return report(device, code, kind_of(code, KIND_DRIVER), call, "", err);
}

iron_status iron__opencl_check_wait(iron__gpu_device *device, int32_t code, const char *call,
                                    iron_error *err) {
    if (code == IRON_CL_SUCCESS)
        return IRON_OK;
    return report(device, code, kind_of(code, KIND_LOST), call, "", err);
}

iron_status iron__opencl_check_memory(iron__gpu_device *device, int32_t code, const char *call,
                                      size_t bytes, iron_error *err) {
    char detail[96];

    if (code == IRON_CL_SUCCESS)
        return IRON_OK;
    snprintf(detail, sizeof detail, " for %zu bytes (the device has %" PRIu64 ")", bytes,
             device->info.memory_bytes);
    return report(device, code, kind_of(code, KIND_MEMORY), call, detail, err);
}
