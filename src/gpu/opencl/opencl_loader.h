/* SPDX-License-Identifier: MIT */
/*
 * opencl_loader.h: the OpenCL library found at run time: its functions and its devices.
 *
 * Loaded once, at the first question; what was found, or the reason why nothing was, stays. The
 * library is never unloaded: drivers start threads that would run on in unmapped code.
 */
#ifndef IRON_GPU_OPENCL_OPENCL_LOADER_H
#define IRON_GPU_OPENCL_OPENCL_LOADER_H

#include "gpu/opencl/opencl_abi.h"

#include <iron/iron.h>

#include <stdbool.h>

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

/* Devices that can run kernels of OpenCL 1.2 built from source: GPUs of all platforms first, then
 * accelerators, then CPUs; within a kind in the order the platforms tell them. */
typedef struct iron__opencl_library {
    iron__opencl_api api;
    iron__opencl_entry *entries;
    size_t count; /* not 0 */
} iron__opencl_library;

/* From any thread. IRON_E_UNSUPPORTED with the reason: no library, an old one, no platform, no
 * device. *out stays valid until iron__opencl_forget. */
iron_status iron__opencl_load(const iron__opencl_library **out, iron_error *err);

/* "OpenCL 3.0 PoCL ..." is 300; 0 for anything else. */
uint32_t iron__opencl_version(const char *text);

#endif
