/* SPDX-License-Identifier: MIT */
/*
 * opencl_shared.h: what all who have a device open at the same time share: its context, which takes
 * a driver a tenth of a second to make, and the programs built in it. CUDA's primary context is the
 * same idea. It goes when the last one closes the device.
 *
 * A crash takes a context along, for everyone who is in it. Whoever learns of it retires the
 * context: those in it stay there until they close, and the next to open the device gets a fresh
 * one.
 */
#ifndef IRON_GPU_OPENCL_OPENCL_SHARED_H
#define IRON_GPU_OPENCL_OPENCL_SHARED_H

#include "gpu/opencl/opencl_device.h"

/* Fills device->shared and device->context, making them if nobody has the device open. */
iron_status iron__opencl_shared_take(iron__opencl_device *device, iron_error *err);
/* Gives them back; takes a device that has none. */
void iron__opencl_shared_give(iron__opencl_device *device);
/* Nobody else gets this context any more; takes a device that has none, and any number of calls. */
void iron__opencl_shared_retire(const iron__opencl_device *device);

/* A program that was kept under this key, retained for the caller; NULL: none. */
iron__cl_program *iron__opencl_shared_program(iron__opencl_device *device, const char *key);
/* Keeps a built program, unless there is one of this key, or no memory for it. */
void iron__opencl_shared_keep(iron__opencl_device *device, const char *key,
                              iron__cl_program *program);

#endif
