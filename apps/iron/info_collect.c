/* SPDX-License-Identifier: MIT */
/*
 * info_collect.c: finds what `iron info` tells, and measures it.
 *
 * Looking at a backend loads its driver; so one that was not asked for is not looked at.
 */
#include "info.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_cpu(const char *backend) { return strcmp(backend, "cpu") == 0; }

static iron_status no_memory(iron_error *err) {
    err->status = IRON_E_NOMEM;
    snprintf(err->text, sizeof err->text, "out of memory for a list of devices");
    return IRON_E_NOMEM;
}

static iron_status find_devices(info_backend *b, iron_error *err) {
    size_t count = iron_device_count(b->name);

    b->devices = calloc(count + 1, sizeof *b->devices);
    if (!b->devices)
        return no_memory(err);
    for (size_t k = 0; k < count; k++) {
        iron_device_info *info = &b->devices[k].info;
        iron_error why = {IRON_OK, 0, ""};

        info->struct_size = sizeof *info;
        if (iron_device_at(b->name, k, info, &why) != IRON_OK)
            snprintf(info->name, sizeof info->name, "%.95s", why.text);
        b->device_count++;
    }
    return IRON_OK;
}

static iron_status find_all(inventory *v, iron_error *err) {
    size_t count = iron_backend_count();
    iron_status status = IRON_OK;

    v->backends = calloc(count, sizeof *v->backends);
    if (!v->backends)
        return no_memory(err);
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        iron_backend_info info = {.struct_size = sizeof info};
        info_backend *b = &v->backends[k];

        if ((status = iron_backend_at(k, &info, err)) != IRON_OK)
            break;
        b->name = info.name;
        b->is_available = info.is_available;
        memcpy(b->reason, info.reason, sizeof b->reason);
        v->backend_count++;
        if (!is_cpu(b->name))
            status = find_devices(b, err);
    }
    return status;
}

/* iron_backend_at would look at those before it, too. */
static iron_status find_one(inventory *v, const char *name, iron_error *err) {
    iron_device_info first = {.struct_size = sizeof first};
    iron_error why = {IRON_OK, 0, ""};
    info_backend *b;

    if (iron_mode_count(name) == 0)
        return usage(err, "unknown backend '%.40s'; use auto, cpu, cuda or opencl", name);
    b = v->backends = calloc(1, sizeof *v->backends);
    if (!b)
        return no_memory(err);
    v->backend_count = 1;
    b->name = name;
    b->is_available = is_cpu(name) || iron_device_at(name, 0, &first, &why) == IRON_OK;
    memcpy(b->reason, why.text, sizeof b->reason);
    return is_cpu(name) ? IRON_OK : find_devices(b, err);
}

iron_status inventory_init(inventory *v, const char *backend, iron_error *err) {
    iron_status status;

    *v = (inventory){.cpu = {.struct_size = sizeof v->cpu}};
    (void)iron_cache_folder(v->cache_folder, sizeof v->cache_folder, NULL); /* "" says it all */
    if ((status = iron_cpu_describe(&v->cpu, err)) != IRON_OK)
        return status;
    return backend ? find_one(v, backend, err) : find_all(v, err);
}

void inventory_deinit(inventory *v) {
    for (size_t k = 0; k < v->backend_count; k++)
        free(v->backends[k].devices);
    free(v->backends);
}

static iron_status measure_cpu(inventory *v, uint64_t threads, iron_error *err) {
    progress p = progress_start(0);
    iron_measure_options options = {
        .threads = (uint32_t)threads, .progress = progress_tell, .context = &p};
    iron_status status = iron_measure_ceilings(&options, &v->ceilings, err);

    progress_clear(&p);
    v->is_cpu_measured = status == IRON_OK;
    return status;
}

/* One line, whatever a driver has said. */
static void note(const char *what, const info_backend *b, size_t index, const char *why) {
    fprintf(stderr, "iron: note: %s %s device %zu: ", what, b->name, index);
    for (; *why; why++)
        fputc((unsigned char)*why < 0x20 ? ' ' : *why, stderr);
    fputc('\n', stderr);
}

/* A calibration that cannot be kept is a pity, no failure. */
static iron_status calibrate(const inventory *v, const info_backend *b, size_t index,
                             iron_error *err) {
    info_device *d = &b->devices[index];
    iron_error why = {IRON_OK, 0, "there is no folder for it; set IRON_CACHE_DIR to one"};
    iron_status status = IRON_E_IO;

    if (v->cache_folder[0]) {
        progress p = progress_start(0);

        status = iron_calibrate(b->name, (uint32_t)index, progress_tell, &p, &why);
        progress_clear(&p);
    }
    d->is_calibrated = status == IRON_OK;
    if (status == IRON_E_IO) {
        memcpy(d->reason, why.text, sizeof d->reason);
        note("no calibration is kept of", b, index, d->reason);
        return IRON_OK;
    }
    if (status != IRON_OK)
        *err = why;
    return status;
}

static iron_status measure_device(const inventory *v, const info_backend *b, size_t index,
                                  iron_error *err) {
    info_device *d = &b->devices[index];
    progress p = progress_start(0);
    iron_measure_options options = {.progress = progress_tell, .context = &p};
    iron_status status = iron_measure_device(b->name, (uint32_t)index, &options, &d->ceilings, err);

    progress_clear(&p);
    d->is_measured = status == IRON_OK;
    return status == IRON_OK ? calibrate(v, b, index, err) : status;
}

/* Real GPUs; one that cannot be measured does not keep the others from it. */
static iron_status measure_gpus(const inventory *v, const info_backend *b, iron_error *err) {
    for (size_t k = 0; k < b->device_count; k++) {
        iron_status status = IRON_OK;

        if (b->devices[k].info.is_gpu)
            status = measure_device(v, b, k, err);
        if (status == IRON_E_UNSUPPORTED)
            note("nothing is measured on", b, k, err->text);
        else if (status != IRON_OK)
            return status;
    }
    return IRON_OK;
}

static iron_status measure_one(inventory *v, uint64_t device, iron_error *err) {
    const info_backend *b = &v->backends[0];

    if (!b->is_available)
        return usage(err, "backend %s is absent: %.180s", b->name, b->reason);
    return measure_device(v, b, (size_t)device, err);
}

iron_status inventory_measure(inventory *v, const char *backend, uint64_t device, uint64_t threads,
                              iron_error *err) {
    iron_status status = IRON_OK;

    if (backend && !is_cpu(backend))
        return measure_one(v, device, err);
    status = measure_cpu(v, threads, err);
    for (size_t k = 0; k < v->backend_count && status == IRON_OK; k++)
        status = measure_gpus(v, &v->backends[k], err);
    return status;
}
