/* SPDX-License-Identifier: MIT */
/*
 * opencl_internal.h: what the files of the OpenCL backend share: the loaded library, the structs
 * behind the objects of gpu.h, and the conversion of result codes to errors.
 *
 * A device and its objects are used by one thread at a time and are not locked. Handles of the same
 * device share a context (iron__opencl_shared_context), which is locked. Managed and mapped buffers
 * have a host address only between host_begin and host_end; meanwhile the device must not use them.
 * Driver errors are IRON_E_IO: there is no status for devices alone.
 *
 * Environment:
 *   IRON_OPENCL_LIBRARY   library to load instead of libOpenCL.so.1
 *   IRON_OPENCL_CACHE     0: do not cache built programs on disk
 *   IRON_CACHE_DIR        where to cache them; else $XDG_CACHE_HOME/iron, else $HOME/.cache/iron
 */
#ifndef IRON_GPU_OPENCL_OPENCL_INTERNAL_H
#define IRON_GPU_OPENCL_OPENCL_INTERNAL_H

#include "gpu/gpu.h"
#include "gpu/opencl/opencl_abi.h"

#include <pthread.h>

typedef struct iron__opencl_api {
/* Declarators take no more parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define IRON_CL_REQUIRED(result, name, parameters) result(*name) parameters;
#define IRON_CL_OPTIONAL(result, name, parameters) result(*name) parameters;
#include "gpu/opencl/opencl_symbols.def"
    /* NOLINTEND(bugprone-macro-parentheses) */
} iron__opencl_api;

typedef struct iron__opencl_entry {
    iron__cl_platform *platform;
    iron__cl_device *id;
    uint32_t version; /* major * 100 + minor * 10 */
    bool is_gpu;
} iron__opencl_entry;

/* Lists the devices that can build OpenCL 1.2 kernels from source: GPUs of all platforms first,
 * then accelerators, then CPUs; within a kind in the order of the platforms. */
typedef struct iron__opencl_library {
    iron__opencl_api api;
    iron__opencl_entry *entries;
    size_t count; /* not 0 */
} iron__opencl_library;

typedef struct iron__opencl_built_program {
    struct iron__opencl_built_program *next;
    iron__cl_program *native;
    char key[];
} iron__opencl_built_program;

/* The context of a device, shared by all handles that have it open, with the programs built in it.
 * Creating one takes a driver a tenth of a second. CUDA's primary context is the same idea. */
typedef struct iron__opencl_shared_context {
    struct iron__opencl_shared_context *next;
    iron__cl_device *id;
    iron__cl_context *native;
    size_t users;
    pthread_mutex_t programs_lock;
    iron__opencl_built_program *programs;
} iron__opencl_shared_context;

typedef struct iron__opencl_device {
    iron__gpu_device base;
    const iron__opencl_api *api;
    const iron__opencl_entry *entry;
    iron__opencl_shared_context *shared;
    iron__cl_context *context;     /* shared->native */
    iron__gpu_queue *memory_queue; /* for mapping and touching new buffers */
    char *identity; /* device, driver and platform, for cache keys; NULL: out of memory */
    uint64_t allocation_bytes_max;
    bool has_u64_atomics;
    bool has_register_limit; /* the compiler accepts -cl-nv-maxrregcount */
} iron__opencl_device;

/* Local memory not offered to launches: NVIDIA's driver adds a byte of its own to kernels that get
 * local memory through an argument. */
#define IRON_OPENCL_LOCAL_RESERVE 256u

static inline iron__opencl_device *iron__opencl_device_of(iron__gpu_device *device) {
    return (iron__opencl_device *)device;
}

static inline iron__cl_queue *iron__opencl_queue_of(const iron__gpu_queue *queue) {
    return (iron__cl_queue *)queue->native;
}

static inline iron__cl_memory *iron__opencl_memory_of(const iron__gpu_buffer *buffer) {
    return (iron__cl_memory *)buffer->native;
}

typedef struct iron__opencl_name {
    char text[52];
} iron__opencl_name;

/* "CL_OUT_OF_RESOURCES", or "unknown code -9999". opencl_device.c */
iron__opencl_name iron__opencl_error_name(int32_t code);

/* The kind of call decides what CL_OUT_OF_RESOURCES means. */
typedef enum iron__opencl_call {
    IRON_OPENCL_ENQUEUE, /* the command needs too much; a driver error */
    IRON_OPENCL_WAIT,    /* a kernel crashed; the device is lost */
    IRON_OPENCL_ALLOCATE /* out of memory */
} iron__opencl_call;

/* Converts a result code to a status. On failure err is "opencl: FUNCTION failed: NAME<detail>;
 * advice". A code that means that the device is lost marks it as failed and retires its context:
 * handles in it keep it, and the next one to open the device gets a new context. */
iron_status iron__opencl_check_as(iron__gpu_device *device, int32_t code, iron__opencl_call call,
                                  const char *function, const char *detail, iron_error *err);

static inline iron_status iron__opencl_check(iron__gpu_device *device, int32_t code,
                                             const char *function, iron_error *err) {
    return iron__opencl_check_as(device, code, IRON_OPENCL_ENQUEUE, function, "", err);
}

/* Calls a function that returns a code, and checks it; WAIT: one that waits for commands. */
#define IRON_CL(device, err, function, ...) IRON_CL_AS(ENQUEUE, device, err, function, __VA_ARGS__)
#define IRON_CL_WAIT(device, err, function, ...)                                                   \
    IRON_CL_AS(WAIT, device, err, function, __VA_ARGS__)
#define IRON_CL_AS(call, device, err, function, ...)                                               \
    iron__opencl_check_as((device), iron__opencl_device_of(device)->api->function(__VA_ARGS__),    \
                          IRON_OPENCL_##call, #function, "", (err))

/* Submits queued commands, so that they start without waiting for more. opencl_queue.c */
iron_status iron__opencl_flush(iron__gpu_queue *queue, iron_error *err);

extern const iron__gpu_program_ops iron__opencl_program_ops; /* opencl_program.c */
extern const iron__gpu_memory_ops iron__opencl_memory_ops;   /* opencl_memory.c */
extern const iron__gpu_queue_ops iron__opencl_queue_ops;     /* opencl_queue.c */

#endif
