/* SPDX-License-Identifier: MIT */
/* plan_devices.h: the devices of a plan. */
#ifndef IRON_ARENA_PLAN_DEVICES_H
#define IRON_ARENA_PLAN_DEVICES_H

#include "arena/plan.h"

/* Fills devices and returns how many there are: the CPU first, then one a GPU backend, whether it
 * can be used or not. */
size_t iron__plan_devices(const iron_arena_options *o,
                          iron__plan_device devices[IRON_PLAN_DEVICES]);

#endif
