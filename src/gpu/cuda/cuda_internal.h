/* SPDX-License-Identifier: MIT */
/*
 * cuda_internal.h: what the files of the CUDA backend share: the struct behind iron__gpu_device,
 * and the way driver functions are called.
 *
 * Every entry of the backend runs in the device's primary context, which the process shares with
 * the CUDA runtime, so that pointers and streams of other libraries can be wrapped. The context is
 * pushed by `enter` and popped by `leave` in the backend's table: the caller's current context
 * never changes.
 */
#ifndef IRON_GPU_CUDA_INTERNAL_H
#define IRON_GPU_CUDA_INTERNAL_H

#include "gpu/cuda/cuda_abi.h"
#include "gpu/gpu.h"

typedef struct iron__cuda_device {
    iron__gpu_device base;
    const iron__cuda_driver *driver;
    iron__cu_device ordinal;
    iron__cu_context *context;
    struct iron__nvml_device *nvml; /* the same card in NVML; NULL until clocks are read */
    size_t reserved_bytes;          /* of L2 cache that the driver granted to this device */
    size_t window_bytes_max;        /* largest access window of a launch */
} iron__cuda_device;

static inline iron__cuda_device *iron__cuda_device_of(iron__gpu_device *device) {
    return (iron__cuda_device *)device;
}

static inline iron__cu_stream *iron__cuda_stream_of(const iron__gpu_queue *queue) {
    return (iron__cu_stream *)queue->native;
}

/* The device address of a byte of a buffer. */
static inline iron__cu_pointer iron__cuda_address_of(const iron__gpu_buffer *buffer,
                                                     size_t offset) {
    return buffer->native + buffer->native_offset + offset;
}

typedef struct iron__cuda_text {
    char text[160];
} iron__cuda_text;

/* "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)". */
iron__cuda_text iron__cuda_error_text(iron__cu_result code);

/* Converts a result code to a status. On failure err is "cuda: FUNCTION failed: NAME (text);
 * advice", and an error that outlasts the call marks the device (NULL: none is open yet) as
 * failed. */
iron_status iron__cuda_check(iron__cuda_device *device, iron_error *err, const char *function,
                             iron__cu_result code);

/* Calls a driver function and checks its result. */
#define IRON_CU(device, err, function, ...)                                                        \
    iron__cuda_check((device), (err), #function, (device)->driver->function(__VA_ARGS__))
/* The same with an iron__gpu_device. */
#define IRON_CU_ON(device, ...) IRON_CU(iron__cuda_device_of(device), __VA_ARGS__)

iron_status iron__cuda_enter(iron__gpu_device *device, iron_error *err);
iron_status iron__cuda_leave(iron__gpu_device *device, iron_status status, iron_error *err);

/* Releases a handle, even if the context cannot be entered. A failure only marks the device. */
#define IRON_CU_RELEASE(device, function, handle)                                                  \
    do {                                                                                           \
        iron_status entered_ = iron__cuda_enter((device), NULL);                                   \
        IRON_CU_ON((device), NULL, function, handle);                                              \
        if (entered_ == IRON_OK)                                                                   \
            iron__cuda_leave((device), IRON_OK, NULL);                                             \
    } while (0)

extern const iron__gpu_program_ops iron__cuda_program_ops; /* cuda_program.c */
extern const iron__gpu_memory_ops iron__cuda_memory_ops;   /* cuda_memory.c */
extern const iron__gpu_queue_ops iron__cuda_queue_ops;     /* cuda_queue.c */

#endif
