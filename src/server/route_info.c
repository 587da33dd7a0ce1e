/* SPDX-License-Identifier: MIT */
/*
 * route_info.c: GET /v1/info: what this server is and how it is: version, since when, what is on
 * its disk, backends, devices, limits in force.
 */
#include "server/route.h"
#include "server/route_text.h"

#include "core/clock.h"
#include "engine/engine.h"

#include <sys/statvfs.h>

static void write_backends(iron__json_writer *j) {
    iron__json_write_open(j, "backends", '[');
    for (size_t k = 0; k < iron_backend_count(); k++) {
        iron_backend_info info = {.struct_size = sizeof info};

        if (iron_backend_at(k, &info, NULL) != IRON_OK)
            continue;
        iron__json_write_open(j, NULL, '{');
        iron__json_write_text(j, "name", info.name);
        iron__json_write_bool(j, "is_available", info.is_available);
        iron__json_write_text(j, "reason", info.reason[0] ? info.reason : NULL);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

static void write_device(iron__json_writer *j, const char *backend, uint64_t device,
                         const iron_device_info *info) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "backend", backend);
    iron__json_write_whole(j, "device", device);
    iron__json_write_text(j, "name", info->name);
    iron__json_write_whole(j, "units", info->units);
    iron__json_write_whole(j, "memory_bytes", info->memory_bytes);
    iron__json_write_close(j, '}');
}

static void write_cpu(iron__json_writer *j) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    iron_device_info info = {0};

    if (iron_cpu_describe(&cpu, NULL) != IRON_OK)
        return;
    snprintf(info.name, sizeof info.name, "%s", cpu.name);
    info.units = cpu.threads;
    info.memory_bytes = cpu.memory_bytes;
    write_device(j, "cpu", 0, &info);
}

static void write_devices(iron__json_writer *j) {
    static const char *const backends[] = {"cuda", "opencl"};

    iron__json_write_open(j, "devices", '[');
    write_cpu(j);
    for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++) {
        size_t count = iron_device_count(backends[b]);

        for (size_t k = 0; k < count; k++) {
            iron_device_info info = {.struct_size = sizeof info};

            if (iron_device_at(backends[b], k, &info, NULL) == IRON_OK)
                write_device(j, backends[b], k, &info);
        }
    }
    iron__json_write_close(j, ']');
}

static void write_limits(iron__json_writer *j, const iron_server_options *o) {
    iron__json_write_open(j, "limits", '{');
    iron__json_write_whole(j, "max_body", o->max_body);
    iron__json_write_whole(j, "max_json_body", IRON_JSON_BODY_MAX);
    iron__json_write_whole(j, "max_engines", o->max_engines);
    iron__json_write_whole(j, "max_nodes", IRON_NODES_MAX);
    iron__json_write_whole(j, "max_connections", o->max_connections);
    iron__json_write_whole(j, "max_per_address", o->max_per_address);
    iron__json_write_whole(j, "max_uploads", o->max_uploads);
    iron__json_write_whole(j, "header_seconds", o->header_seconds);
    iron__json_write_whole(j, "request_seconds", o->request_seconds);
    iron__json_write_whole(j, "grace_seconds", o->grace_seconds);
    iron__json_write_whole(j, "min_body_rate", o->min_body_rate);
    iron__json_write_close(j, '}');
}

static void write_since(iron__json_writer *j, const iron__site *site) {
    char started[IRON_TIME_TEXT];

    iron__time_text(site->started_ms, started);
    iron__json_write_text(j, "started", started);
    iron__json_write_whole(j, "uptime_seconds",
                           (iron__clock_ns() - site->started_ns) / UINT64_C(1000000000));
}

static void write_data(iron__json_writer *j, const iron__site *site) {
    struct statvfs disk;

    iron__json_write_whole(j, "data_format", IRON_STORE_FORMAT);
    if (statvfs(site->options.data, &disk) == 0)
        iron__json_write_whole(j, "data_free_bytes", (uint64_t)disk.f_bavail * disk.f_frsize);
    else
        iron__json_write_null(j, "data_free_bytes");
    iron__json_write_bool(j, "is_writable", iron__store_failure(site->store, NULL) == IRON_OK);
    iron__json_write_whole(j, "engines", iron__store_list(site->store, NULL, 0));
}

void iron__route_info(iron__exchange *x) {
    iron__json_writer *j = iron__answer_json(x);

    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "name", "iron");
    iron__json_write_text(j, "version", iron_version());
    write_since(j, x->site);
    write_data(j, x->site);
    iron__json_write_whole(j, "connections", atomic_load(&x->site->connections));
    iron__json_write_bool(j, "is_token_needed", x->site->options.token_file != NULL);
    iron__json_write_bool(j, "report", x->site->report != NULL);
    write_backends(j);
    write_devices(j);
    write_limits(j, &x->site->options);
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 200);
}
