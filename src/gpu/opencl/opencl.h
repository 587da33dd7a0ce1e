/* SPDX-License-Identifier: MIT */
/*
 * opencl.h: the OpenCL backend, as the table of gpu.h. Environment:
 *
 *   IRON_OPENCL_LIBRARY   the library to load instead of libOpenCL.so.1
 *   IRON_OPENCL_CACHE     0: built programs are not kept on disk
 *   IRON_CACHE_DIR        where they are kept; else $XDG_CACHE_HOME/iron, else $HOME/.cache/iron
 */
#ifndef IRON_GPU_OPENCL_OPENCL_H
#define IRON_GPU_OPENCL_OPENCL_H

#include "gpu/gpu.h"

extern const iron__gpu_ops iron__opencl_ops;

/* The cl_context of an opened device of this backend: what a caller's own buffers and queues must
 * be made in, the same for all who have the device open. Borrowed; it lives as long as the device
 * is open. */
uintptr_t iron__opencl_context(iron__gpu_device *device);

/* For tests: the next probe looks for library and devices anew. No device may be open. */
void iron__opencl_forget(void);

#endif
