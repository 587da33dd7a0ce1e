/* SPDX-License-Identifier: MIT */
/*
 * modes.c: from a backend's and a mode's name to a registry row, and the lists that `iron info` and
 * error messages show.
 *
 * Backends are counted: 0 is the CPU, the others are those of gpu/gpu.h in their order. `auto` is
 * the first of those with a GPU that has the mode, else the CPU; asking for the CPU looks at
 * nothing else.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "engine/calibration.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

static bool is_cpu(const char *backend) { return backend && strcmp(backend, "cpu") == 0; }

static bool is_gpu(const char *backend) {
    return backend && iron__gpu_backend_find(backend) < iron__gpu_backend_count();
}

size_t iron_backend_count(void) { return 1 + iron__gpu_backend_count(); }

iron_status iron_backend_at(size_t index, iron_backend_info *info, iron_error *err) {
    iron_error why = {0};
    size_t devices;

    IRON_FAIL_IF(!info || info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_backend_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    IRON_FAIL_IF(index >= iron_backend_count(), err, IRON_E_ARG,
                 "backend %zu of %zu does not exist", index, iron_backend_count());
    *info = (iron_backend_info){.struct_size = sizeof *info, .name = "cpu", .is_available = 1};
    if (index == 0)
        return IRON_OK;
    info->name = iron__gpu_backend_name(index - 1);
    info->is_available = iron__gpu_probe(index - 1, &devices, &why) == IRON_OK;
    snprintf(info->reason, sizeof info->reason, "%s", info->is_available ? "" : why.text);
    return IRON_OK;
}

size_t iron_device_count(const char *backend) {
    size_t count = 0;

    if (is_gpu(backend))
        (void)iron__gpu_probe(iron__gpu_backend_find(backend), &count, NULL);
    return count;
}

static void list_strategies(const iron__gpu_info *gpu, char *text, size_t size) {
    size_t used = 0;

    text[0] = '\0';
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES && used < size; k++)
        if (!gpu->lacks[k][0])
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "",
                                     iron__gpu_strategy_name(k));
}

iron_status iron_device_at(const char *backend, size_t index, iron_device_info *info,
                           iron_error *err) {
    iron__gpu_info gpu;

    IRON_FAIL_IF(!info || info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_device_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    IRON_FAIL_IF(!is_gpu(backend), err, IRON_E_ARG, "backend %.20s has no devices",
                 backend ? backend : "NULL");
    IRON_TRY(iron__gpu_describe(iron__gpu_backend_find(backend), index, &gpu, err));
    *info = (iron_device_info){.struct_size = sizeof *info,
                               .is_gpu = gpu.is_gpu,
                               .units = gpu.units,
                               .version = gpu.version,
                               .memory_bytes = gpu.memory_bytes,
                               .cache_bytes = gpu.cache_bytes};
    memcpy(info->name, gpu.name, sizeof info->name);
    memcpy(info->driver, gpu.driver, sizeof info->driver);
    list_strategies(&gpu, info->memory, sizeof info->memory);
    return IRON_OK;
}

size_t iron_mode_count(const char *backend) {
    size_t count = 0;

    while (is_cpu(backend) ? iron__tokens_mode_at(count) != NULL
                           : is_gpu(backend) && iron__tokens_gpu_row_at(count) != NULL)
        count++;
    return count;
}

static void describe_row(const iron__tokens_variant *row, iron_mode_info *info) {
    info->is_available = iron__tokens_variant_runs_here(row);
    info->name = row->mode;
    info->variant = row->name;
    info->idea = row->idea;
}

static void describe_gpu_row(const char *backend, size_t index, iron_mode_info *info) {
    const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(index);

    info->is_available = iron_device_count(backend) > 0;
    info->name = row->mode;
    info->variant = row->names[iron__gpu_backend_find(backend)];
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
    if (is_cpu(backend))
        describe_row(iron__tokens_variant_find(iron__tokens_mode_at(index)), info);
    else
        describe_gpu_row(backend, index, info);
    return IRON_OK;
}

size_t iron_variant_count(const char *backend) {
    return is_cpu(backend) ? iron__tokens_variant_count() : iron_mode_count(backend);
}

iron_status iron_variant_at(const char *backend, size_t index, iron_mode_info *info,
                            iron_error *err) {
    IRON_TRY(check_mode_info(info, err));
    IRON_FAIL_IF(index >= iron_variant_count(backend), err, IRON_E_ARG,
                 "variant %zu of backend %.20s does not exist", index, backend ? backend : "NULL");
    if (is_cpu(backend))
        describe_row(iron__tokens_variant_at(index), info);
    else
        describe_gpu_row(backend, index, info);
    return IRON_OK;
}

static void list_modes(const char *backend, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "auto");

    for (size_t k = 0; k < iron_mode_count(backend) && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 is_cpu(backend) ? iron__tokens_mode_at(k)
                                                 : iron__tokens_gpu_row_at(k)->mode);
}

static iron_status no_such_mode(const char *backend, const char *mode, iron_error *err) {
    char modes[160];

    list_modes(backend, modes, sizeof modes);
    IRON_FAIL(err, IRON_E_ARG, "backend %s has no mode '%.40s'; use one of: %s", backend, mode,
              modes);
}

/* On the CPU there is little to weigh: the vector code, on as many threads as are allowed. */
static void choose_fastest_on_cpu(const iron_config *config, iron__mode_choice *choice) {
    uint32_t threads = config->threads ? config->threads : iron__cpu_threads();
    const char *mode = threads > 1 ? "champion" : "vector";

    choice->variant = iron__tokens_variant_find(mode);
    snprintf(choice->reason, sizeof choice->reason,
             "auto: %s, the fastest code for this processor, on %u thread%s", choice->variant->name,
             threads, threads > 1 ? "s" : "");
}

static iron_status check_cpu_memory(const char *memory, iron_error *err) {
    if (iron__gpu_is_auto(memory) || strcmp(memory, "pageable") == 0)
        return IRON_OK;
    IRON_FAIL_IF(iron__gpu_strategy_find(memory) < IRON_GPU_STRATEGIES, err, IRON_E_ARG,
                 "memory strategy %s is for GPUs; backend cpu has auto and pageable", memory);
    IRON_FAIL(err, IRON_E_ARG, "unknown memory strategy '%.40s'; use auto or pageable", memory);
}

static iron_status choose_on_cpu(const iron_config *config, iron__mode_choice *choice,
                                 iron_error *err) {
    IRON_FAIL_IF(config->device != 0, err, IRON_E_ARG,
                 "device %u does not exist; backend cpu has device 0 alone", config->device);
    IRON_TRY(check_cpu_memory(config->memory, err));
    if (iron__gpu_is_auto(config->mode)) {
        choose_fastest_on_cpu(config, choice);
        return IRON_OK;
    }
    choice->variant = iron__tokens_variant_find(config->mode);
    if (!choice->variant)
        return no_such_mode("cpu", config->mode, err);
    snprintf(choice->reason, sizeof choice->reason, "asked for: %s", choice->variant->name);
    return IRON_OK;
}

static iron_status choose_on_gpu(const iron_config *config, size_t backend,
                                 iron__mode_choice *choice, iron_error *err) {
    IRON_TRY(iron__gpu_check(backend, config->device, err));
    choice->gpu_backend = backend;
    if (iron__gpu_is_auto(config->mode)) {
        iron__calibration_choose(config, backend, choice);
        return IRON_OK;
    }
    choice->gpu_row = iron__tokens_gpu_row_for(backend, config->mode);
    if (!choice->gpu_row)
        return no_such_mode(iron__gpu_backend_name(backend), config->mode, err);
    snprintf(choice->reason, sizeof choice->reason, "asked for: %s",
             choice->gpu_row->names[backend]);
    return IRON_OK;
}

/* Is there a GPU with that number, and such a mode? */
static bool is_for_auto(const iron_config *config, size_t backend) {
    return (iron__gpu_is_auto(config->mode) || iron__tokens_gpu_row_for(backend, config->mode)) &&
           iron__gpu_is_for_auto(backend, config->device);
}

iron_status iron__mode_choose(const iron_config *config, iron__mode_choice *choice,
                              iron_error *err) {
    size_t gpus = iron__gpu_backend_count();

    *choice = (iron__mode_choice){.variant = NULL};
    if (is_cpu(config->backend))
        return choose_on_cpu(config, choice, err);
    if (!iron__gpu_is_auto(config->backend)) {
        IRON_FAIL_IF(!is_gpu(config->backend), err, IRON_E_ARG,
                     "unknown backend '%.40s'; use auto, cpu, cuda or opencl", config->backend);
        return choose_on_gpu(config, iron__gpu_backend_find(config->backend), choice, err);
    }
    for (size_t k = 0; k < gpus; k++)
        if (is_for_auto(config, k))
            return choose_on_gpu(config, k, choice, err);
    return choose_on_cpu(config, choice, err);
}
