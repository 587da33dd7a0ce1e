/* SPDX-License-Identifier: MIT */
/*
 * opencl_error.h: what OpenCL's codes are called, which status they become, what to do about them,
 * and which of them mean that the device can no longer be used.
 */
#ifndef IRON_GPU_OPENCL_OPENCL_ERROR_H
#define IRON_GPU_OPENCL_OPENCL_ERROR_H

#include "gpu/gpu.h"

/* What becomes of a driver's own errors; the library has no status for devices alone. */
#define IRON_OPENCL_DRIVER_STATUS IRON_E_IO

typedef struct iron__opencl_name {
    char text[52];
} iron__opencl_name;

/* "CL_OUT_OF_RESOURCES", or "the unknown code -9999". */
iron__opencl_name iron__opencl_error_name(int32_t code);

/* The answer of a call that only asked for something: IRON_OK for 0, else "opencl: <call> failed:
 * <name>; <what to do>". Where the code says that the device is lost, marks it, and retires its
 * context (opencl_shared.h). */
iron_status iron__opencl_check(iron__gpu_device *device, int32_t code, const char *call,
                               iron_error *err);

/* The same for a call that waited for the device's work: a lack of resources is then a crash. */
iron_status iron__opencl_check_wait(iron__gpu_device *device, int32_t code, const char *call,
                                    iron_error *err);

/* The same for a call that asked for memory, of a device that is known to live: how much, and what
 * the device has, is said too, and a lack of resources is a lack of memory. */
iron_status iron__opencl_check_memory(iron__gpu_device *device, int32_t code, const char *call,
                                      size_t bytes, iron_error *err);

#endif
