/* SPDX-License-Identifier: MIT */
/* info_json.c: what `iron info` has found, as one JSON document. */
#include "info.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

static void put_ceiling(json *j, const char *name, iron_ceiling c) {
    json_open(j, name, '{');
    json_real(j, "one_thread_gb_s", "%.3f", c.one_thread_gb_s);
    json_real(j, "all_threads_gb_s", "%.3f", c.all_threads_gb_s);
    json_close(j, '}');
}

static void put_ceilings(json *j, const iron_ceilings *c) {
    json_open(j, "ceilings", '{');
    json_number(j, "threads", c->threads);
    json_number(j, "passes", c->passes);
    json_number(j, "buffer_bytes", c->buffer_bytes);
    put_ceiling(j, "read", c->read);
    put_ceiling(j, "write", c->write);
    put_ceiling(j, "copy", c->copy);
    json_close(j, '}');
}

static void put_cpu(json *j, const iron_cpu_info *cpu) {
    json_open(j, NULL, '{');
    json_text(j, "name", cpu->name);
    json_number(j, "threads", cpu->threads);
    json_text(j, "features", cpu->features);
    json_open(j, "caches", '{');
    json_number(j, "l1d_bytes", cpu->l1d_bytes);
    json_number(j, "l2_bytes", cpu->l2_bytes);
    json_number(j, "l3_bytes", cpu->l3_bytes);
    json_close(j, '}');
    json_number(j, "memory_bytes", cpu->memory_bytes);
    json_close(j, '}');
}

static void put_device_ceilings(json *j, const iron_device_ceilings *c) {
    json_open(j, "ceilings", '{');
    json_number(j, "passes", c->passes);
    json_number(j, "buffer_bytes", c->buffer_bytes);
    json_real(j, "read_gb_s", "%.3f", c->read_gb_s);
    json_text(j, "read_shape", c->read_shape);
    json_real(j, "write_gb_s", "%.3f", c->write_gb_s);
    json_real(j, "copy_gb_s", "%.3f", c->copy_gb_s);
    json_real(j, "to_device_pageable_gb_s", "%.3f", c->to_device_pageable_gb_s);
    json_real(j, "to_device_pinned_gb_s", "%.3f", c->to_device_pinned_gb_s);
    json_real(j, "from_device_pinned_gb_s", "%.3f", c->from_device_pinned_gb_s);
    json_real(j, "zero_copy_gb_s", "%.3f", c->zero_copy_gb_s);
    json_close(j, '}');
}

static void put_calibration(json *j, const inventory *v, const info_device *d) {
    json_open(j, "calibration", '{');
    json_bool(j, "kept", d->is_calibrated);
    if (d->is_calibrated)
        json_text(j, "folder", v->cache_folder);
    else
        json_text(j, "reason", d->reason);
    json_close(j, '}');
}

/* The words of a list with blanks between them. */
static void put_words(json *j, const char *name, const char *list) {
    json_open(j, name, '[');
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, " ");
        char word[64];

        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (length > 0)
            json_text(j, NULL, word);
        at += length + (at[length] == ' ');
    }
    json_close(j, ']');
}

static void put_device(json *j, const inventory *v, const info_device *d, size_t index) {
    const iron_device_info *i = &d->info;
    char version[32];

    snprintf(version, sizeof version, "%u.%u", i->version / 100, i->version / 10 % 10);
    json_open(j, NULL, '{');
    json_number(j, "index", index);
    json_text(j, "name", i->name);
    json_text(j, "driver", i->driver);
    json_number(j, "units", i->units);
    json_text(j, "version", version);
    json_number(j, "memory_bytes", i->memory_bytes);
    json_number(j, "cache_bytes", i->cache_bytes);
    json_bool(j, "is_gpu", i->is_gpu);
    put_words(j, "memory", i->memory);
    if (d->is_measured) {
        put_device_ceilings(j, &d->ceilings);
        put_calibration(j, v, d);
    }
    json_close(j, '}');
}

static void put_modes(json *j, const char *backend) {
    json_open(j, "modes", '[');
    for (size_t k = 0; k < iron_mode_count(backend); k++) {
        iron_mode_info mode = {.struct_size = sizeof mode};

        if (iron_mode_at(backend, k, &mode, NULL) != IRON_OK)
            continue;
        json_open(j, NULL, '{');
        json_text(j, "name", mode.name);
        json_text(j, "variant", mode.variant);
        json_text(j, "idea", mode.idea);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_backend(json *j, const inventory *v, const info_backend *b) {
    json_open(j, NULL, '{');
    json_text(j, "name", b->name);
    json_bool(j, "available", b->is_available);
    json_text(j, "reason", b->reason);
    json_open(j, "devices", '[');
    if (strcmp(b->name, "cpu") == 0)
        put_cpu(j, &v->cpu);
    for (size_t k = 0; k < b->device_count; k++)
        put_device(j, v, &b->devices[k], k);
    json_close(j, ']');
    put_modes(j, b->name);
    json_close(j, '}');
}

void info_print_json(const inventory *v) {
    json j = {0};

    json_open(&j, NULL, '{');
    json_text(&j, "iron", iron_version());
    json_open(&j, "backends", '[');
    for (size_t k = 0; k < v->backend_count; k++)
        put_backend(&j, v, &v->backends[k]);
    json_close(&j, ']');
    json_text(&j, "cache_folder", v->cache_folder);
    if (v->is_cpu_measured)
        put_ceilings(&j, &v->ceilings);
    json_close(&j, '}');
    json_end(&j);
}
