/* SPDX-License-Identifier: MIT */
/*
 * cmd_info.c: `iron info`: what is here, and with --measure what its memory can give. Everything is
 * found and measured before the first line is printed.
 */
#include "info.h"

#include <inttypes.h>
#include <string.h>

typedef struct info_options {
    bool wants_measure, wants_json, has_threads, has_device;
    uint64_t threads, device;
    const char *backend; /* NULL: all */
} info_options;

static iron_status check(info_options *o, iron_error *err) {
    if (o->has_threads && (o->threads < 1 || o->threads > 1024))
        return usage(err, "threads is %" PRIu64 "; it must be 1 to 1024", o->threads);
    if (o->backend && strcmp(o->backend, "auto") == 0)
        o->backend = NULL;
    if (o->has_device && !o->backend)
        return usage(err, "--device %" PRIu64 " is of no backend; add --backend cuda or opencl",
                     o->device);
    return IRON_OK;
}

/* The backend may be absent: then it has no devices to count. */
static iron_status check_device(const info_options *o, const info_backend *b, iron_error *err) {
    if (o->has_device && o->device > 0 && strcmp(b->name, "cpu") == 0)
        return usage(err, "device %" PRIu64 " does not exist; backend cpu has device 0 alone",
                     o->device);
    if (o->has_device && b->device_count > 0 && o->device >= b->device_count)
        return usage(err, "device %" PRIu64 " does not exist; backend %s has %zu, counted from 0",
                     o->device, b->name, b->device_count);
    return IRON_OK;
}

static iron_status tell(const info_options *o, iron_error *err) {
    inventory v;
    iron_status status = inventory_init(&v, o->backend, err);

    if (status == IRON_OK)
        status = check_device(o, &v.backends[0], err);
    if (status == IRON_OK && o->wants_measure)
        status = inventory_measure(&v, o->backend, o->device, o->threads, err);
    if (status == IRON_OK)
        (o->wants_json ? info_print_json : info_print_text)(&v);
    inventory_deinit(&v);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    info_options o = {0};
    const option options[] = {
        {"measure", OPTION_FLAG, &o.wants_measure, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
        {"threads", OPTION_NUMBER, &o.threads, &o.has_threads},
        {"backend", OPTION_TEXT, &o.backend, NULL},
        {"device", OPTION_NUMBER, &o.device, &o.has_device},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    bool is_done;
    iron_status status = command_args(&command_info, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count > 0)
        return usage(err, "info takes no argument '%.60s'", a.values[0]);
    status = check(&o, err);
    return status == IRON_OK ? tell(&o, err) : status;
}

const command command_info = {
    "info", "devices, caches and modes; with --measure the memory's ceilings",
    "usage: iron info [--measure] [--backend B [--device K]] [--threads T] [--json]\n\n"
    "Tells which backends are here and why one is absent, their devices, the processor's caches,\n"
    "the modes, and the folder in which built kernels and calibrations are kept.\n\n"
    "  --measure     also the rates at which memory is read, written and copied: the limit that\n"
    "                every other figure should be seen against. On the CPU by one thread and by\n"
    "                all; on every GPU, which is calibrated as well: --mode auto uses that\n"
    "  --backend B   cpu, cuda or opencl alone (default auto: all of them). --measure then\n"
    "                measures one device of it, even if that is no GPU; with cpu no driver is\n"
    "                loaded\n"
    "  --device K    which one, counted from 0 (default 0)\n"
    "  --threads T   what `all` means (default: every CPU this process may use)\n"
    "  --json        one JSON document\n\n"
    "example: iron info --measure\n",
    run};
