/* SPDX-License-Identifier: MIT */
/*
 * plan_devices.c: the devices that a race could use, each with the reason if it cannot.
 */
#include "arena/plan_devices.h"

#include "arena/select.h"
#include "core/cpu.h"

#include <stdio.h>
#include <string.h>

#define NO_GPU "%s has no GPU here, only %s; name %s in a glob to race on that"

static bool is_named(const iron_arena_options *o, const char *backend) {
    if (o->is_listing)
        return true;
    for (size_t k = 0; k < o->glob_count; k++)
        if (iron__select_names(o->globs[k], backend))
            return true;
    return false;
}

static void describe_cpu(iron__plan_device *d) {
    *d = (iron__plan_device){.on = IRON_ON_CPU, .is_cpu = true, .is_there = true};
    snprintf(d->backend, sizeof d->backend, "cpu");
    iron__cpu_name(d->info.name, sizeof d->info.name);
    d->cache_bytes = d->info.cache_bytes = iron__cpu_last_cache_bytes();
}

/* The first GPU; the first device of any kind when the backend is asked for by name. */
static bool find_device(iron__plan_device *d, size_t count, iron_error *err) {
    for (int wants_gpu = 1; wants_gpu >= 0; wants_gpu--) {
        for (uint32_t k = 0; k < count; k++) {
            if (iron__gpu_describe(d->gpu_backend, k, &d->info, err) != IRON_OK)
                continue;
            d->index = k;
            if (d->info.is_gpu || (!wants_gpu && d->is_named))
                return true;
        }
    }
    return false;
}

static void choose_device(iron__plan_device *d, const iron_arena_options *o) {
    iron_error err = {IRON_OK, 0, ""};
    size_t count = 0;

    if (iron__gpu_probe(d->gpu_backend, &count, &err) != IRON_OK) {
        snprintf(d->reason, sizeof d->reason, "%s", err.text);
        return;
    }
    if (o->has_device) {
        d->index = o->device;
        bool is_known = d->index < count &&
                        iron__gpu_describe(d->gpu_backend, d->index, &d->info, &err) == IRON_OK;

        d->is_there = is_known && (d->info.is_gpu || d->is_named);
        if (is_known)
            snprintf(d->reason, sizeof d->reason, NO_GPU, d->backend, d->info.name, d->backend);
        else
            snprintf(d->reason, sizeof d->reason, "%s has no device %u; it has %zu", d->backend,
                     o->device, count);
    } else {
        d->is_there = find_device(d, count, &err);
        snprintf(d->reason, sizeof d->reason, NO_GPU, d->backend,
                 d->info.name[0] ? d->info.name : "nothing", d->backend);
    }
    if (d->is_there)
        d->reason[0] = '\0';
    d->cache_bytes = d->info.cache_bytes;
}

size_t iron__plan_devices(const iron_arena_options *o,
                          iron__plan_device devices[IRON_PLAN_DEVICES]) {
    size_t count = 1;

    describe_cpu(&devices[0]);
    for (size_t k = 0; k < iron__gpu_backend_count() && count < IRON_PLAN_DEVICES; k++) {
        iron__plan_device *d = &devices[count++];

        *d = (iron__plan_device){.on = (uint32_t)IRON_ON_CUDA << k, .gpu_backend = k};
        snprintf(d->backend, sizeof d->backend, "%s", iron__gpu_backend_name(k));
        d->is_named = is_named(o, d->backend);
        choose_device(d, o);
    }
    return count;
}
