/* SPDX-License-Identifier: MIT */
/*
 * info.h: what `iron info` has found before it prints: backends, their devices and, where it was
 * asked to measure, what their memory gives.
 */
#ifndef APPS_IRON_INFO_H
#define APPS_IRON_INFO_H

#include "command.h"

#include <iron/iron_arena.h>

typedef struct info_device {
    iron_device_info info;
    bool is_measured;
    iron_device_ceilings ceilings;
    bool is_calibrated;
    char reason[240]; /* measured, and yet not calibrated: why */
} info_device;

typedef struct info_backend {
    const char *name;
    bool is_available;
    char reason[240]; /* why not, or "" */
    info_device *devices;
    size_t device_count;
} info_backend;

typedef struct inventory {
    iron_cpu_info cpu;
    bool is_cpu_measured;
    iron_ceilings ceilings;
    info_backend *backends;
    size_t backend_count;
    char cache_folder[4096]; /* "": none */
} inventory;

/* Finds the backends, or the one named and nothing of the others. */
iron_status inventory_init(inventory *v, const char *backend, iron_error *err);
void inventory_deinit(inventory *v);

/* The CPU on so many threads (0: all) and every GPU; or, of the backend named, one device that it
 * has, whatever it is. */
iron_status inventory_measure(inventory *v, const char *backend, uint64_t device, uint64_t threads,
                              iron_error *err);

void info_print_text(const inventory *v);
void info_print_json(const inventory *v);

#endif
