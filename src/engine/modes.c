/* SPDX-License-Identifier: MIT */
/*
 * modes.c: from names to a registry row, and the lists that `iron info` and error messages show.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

/* Backends that iron knows, and why one is not in this build. */
static const struct {
    const char *name;
    const char *absent; /* "" when it is there */
} backends[] = {
    {"cpu", ""},
    {"cuda", "not part of this build"},
    {"opencl", "not part of this build"},
};

#define BACKEND_COUNT (sizeof backends / sizeof backends[0])

static int is_cpu(const char *backend) { return backend && strcmp(backend, "cpu") == 0; }

size_t iron_backend_count(void) { return BACKEND_COUNT; }

iron_status iron_backend_at(size_t index, iron_backend_info *info, iron_error *err) {
    IRON_FAIL_IF(!info || info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_backend_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    IRON_FAIL_IF(index >= BACKEND_COUNT, err, IRON_E_ARG, "backend %zu of %zu does not exist",
                 index, BACKEND_COUNT);
    info->name = backends[index].name;
    info->reason = backends[index].absent;
    info->is_available = backends[index].absent[0] == '\0';
    return IRON_OK;
}

size_t iron_mode_count(const char *backend) {
    size_t count = 0;

    while (is_cpu(backend) && iron__tokens_mode_at(count))
        count++;
    return count;
}

static void describe_row(const iron__tokens_variant *row, iron_mode_info *info) {
    info->is_available = iron__tokens_variant_runs_here(row);
    info->name = row->mode;
    info->variant = row->name;
    info->idea = row->idea;
}

static iron_status check_mode_info(const iron_mode_info *info, iron_error *err) {
    IRON_FAIL_IF(!info || info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_mode_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    return IRON_OK;
}

iron_status iron_mode_at(const char *backend, size_t index, iron_mode_info *info, iron_error *err) {
    IRON_TRY(check_mode_info(info, err));
    IRON_FAIL_IF(index >= iron_mode_count(backend), err, IRON_E_ARG,
                 "mode %zu of backend %.20s does not exist", index, backend ? backend : "NULL");
    describe_row(iron__tokens_variant_find(iron__tokens_mode_at(index)), info);
    return IRON_OK;
}

size_t iron_variant_count(const char *backend) {
    return is_cpu(backend) ? iron__tokens_variant_count() : 0;
}

iron_status iron_variant_at(const char *backend, size_t index, iron_mode_info *info,
                            iron_error *err) {
    IRON_TRY(check_mode_info(info, err));
    IRON_FAIL_IF(index >= iron_variant_count(backend), err, IRON_E_ARG,
                 "variant %zu of backend %.20s does not exist", index, backend ? backend : "NULL");
    describe_row(iron__tokens_variant_at(index), info);
    return IRON_OK;
}

static iron_status check_backend(const iron_config *config, iron_error *err) {
    const char *name = config->backend;

    if (!name || strcmp(name, "auto") == 0 || is_cpu(name)) {
        IRON_FAIL_IF(config->device != 0, err, IRON_E_ARG,
                     "device %u does not exist; backend cpu has device 0 alone", config->device);
        return IRON_OK;
    }
    for (size_t k = 0; k < BACKEND_COUNT; k++)
        IRON_FAIL_IF(strcmp(name, backends[k].name) == 0, err, IRON_E_UNSUPPORTED,
                     "backend %s is %s; use --backend cpu", name, backends[k].absent);
    IRON_FAIL(err, IRON_E_ARG, "unknown backend '%.40s'; use auto, cpu, cuda or opencl", name);
}

static void list_modes(char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "auto");

    for (size_t k = 0; iron__tokens_mode_at(k) && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, " %s", iron__tokens_mode_at(k));
}

/* On the CPU there is little to weigh: the vector code, on as many threads as are allowed. */
static const iron__tokens_variant *choose_auto(const iron_config *config, char *reason,
                                               size_t bytes) {
    uint32_t threads = config->threads ? config->threads : iron__cpu_threads();
    const char *mode = threads > 1 ? "champion" : "vector";
    const iron__tokens_variant *row = iron__tokens_variant_find(mode);

    snprintf(reason, bytes, "auto: %s, the fastest code for this processor, on %u thread%s",
             row->name, threads, threads > 1 ? "s" : "");
    return row;
}

iron_status iron__mode_choose(const iron_config *config, const iron__tokens_variant **variant,
                              char *reason, size_t reason_bytes, iron_error *err) {
    const char *mode = config->mode;
    char modes[120];

    IRON_TRY(check_backend(config, err));
    if (!mode || strcmp(mode, "auto") == 0) {
        *variant = choose_auto(config, reason, reason_bytes);
        return IRON_OK;
    }
    *variant = iron__tokens_variant_find(mode);
    list_modes(modes, sizeof modes);
    IRON_FAIL_IF(!*variant, err, IRON_E_ARG, "backend cpu has no mode '%.40s'; use one of: %s",
                 mode, modes);
    snprintf(reason, reason_bytes, "asked for: %s", (*variant)->name);
    return IRON_OK;
}
