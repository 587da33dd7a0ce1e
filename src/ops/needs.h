/* SPDX-License-Identifier: MIT */
/*
 * needs.h: what a contender needs of a device, said once: groups of so many threads, local memory
 * of so many bytes, doubles. Each is IRON_E_UNSUPPORTED where the device has less, in a sentence
 * with both numbers.
 */
#ifndef IRON_OPS_NEEDS_H
#define IRON_OPS_NEEDS_H

#include "ops/op.h"

iron_status iron__needs_threads(const iron__gpu_device *device, uint32_t threads, iron_error *err);
iron_status iron__needs_local(const iron__gpu_device *device, uint64_t bytes, iron_error *err);
/* Where the case's elements are doubles. */
iron_status iron__needs_element(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err);

#endif
