/* SPDX-License-Identifier: MIT */
/* cmd_info.c: `iron info`: what is here, and with --measure what its memory can give. */
#include "command.h"
#include "json.h"
#include "progress.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KIB 1024.0
#define GIB (1024.0 * 1024 * 1024)

static void print_cpu(const iron_cpu_info *cpu) {
    printf("  %-8s %s, %u thread%s%s%s\n", "cpu", cpu->name, cpu->threads,
           cpu->threads == 1 ? "" : "s", cpu->features[0] ? ", " : "", cpu->features);
    printf("  %-8s L1d %.0f KiB, L2 %.0f KiB, L3 %.0f KiB, memory %.1f GiB\n", "",
           (double)cpu->l1d_bytes / KIB, (double)cpu->l2_bytes / KIB, (double)cpu->l3_bytes / KIB,
           (double)cpu->memory_bytes / GIB);
}

static void print_modes(void) {
    printf("\nmodes of cpu\n");
    for (size_t k = 0; k < iron_mode_count("cpu"); k++) {
        iron_mode_info mode = {.struct_size = sizeof mode};

        if (iron_mode_at("cpu", k, &mode, NULL) == IRON_OK)
            printf("  %-9s %-27s %s\n", mode.name, mode.variant, mode.idea);
    }
}

static void print_ceilings(const iron_ceilings *c) {
    const struct {
        const char *name;
        const iron_ceiling *ceiling;
    } rows[] = {{"read", &c->read}, {"write", &c->write}, {"copy", &c->copy}};

    printf("\nceilings: medians of %u passes over %" PRIu64 " MiB; copy counts read + written\n",
           c->passes, c->buffer_bytes >> 20);
    printf("  %-8s %10s   %3u threads\n", "", "1 thread", c->threads);
    for (size_t k = 0; k < COUNT(rows); k++)
        printf("  %-8s %5.1f GB/s   %6.1f GB/s\n", rows[k].name, rows[k].ceiling->one_thread_gb_s,
               rows[k].ceiling->all_threads_gb_s);
}

static void print_text(const iron_cpu_info *cpu, const iron_ceilings *ceilings) {
    printf("iron %s\n\nbackends\n", iron_version());
    for (size_t k = 0; k < iron_backend_count(); k++) {
        iron_backend_info backend = {.struct_size = sizeof backend};

        if (iron_backend_at(k, &backend, NULL) != IRON_OK)
            continue;
        if (strcmp(backend.name, "cpu") == 0)
            print_cpu(cpu);
        else
            printf("  %-8s absent: %s\n", backend.name, backend.reason);
    }
    print_modes();
    if (ceilings)
        print_ceilings(ceilings);
}

static void json_ceiling(json *j, const char *name, iron_ceiling c) {
    json_open(j, name, '{');
    json_real(j, "one_thread_gb_s", "%.3f", c.one_thread_gb_s);
    json_real(j, "all_threads_gb_s", "%.3f", c.all_threads_gb_s);
    json_close(j, '}');
}

static void json_ceilings(json *j, const iron_ceilings *c) {
    json_open(j, "ceilings", '{');
    json_number(j, "threads", c->threads);
    json_number(j, "passes", c->passes);
    json_number(j, "buffer_bytes", c->buffer_bytes);
    json_ceiling(j, "read", c->read);
    json_ceiling(j, "write", c->write);
    json_ceiling(j, "copy", c->copy);
    json_close(j, '}');
}

static void json_cpu_device(json *j, const iron_cpu_info *cpu) {
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

static void json_modes(json *j, const char *backend) {
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

static void json_backend(json *j, const iron_backend_info *b, const iron_cpu_info *cpu) {
    json_open(j, NULL, '{');
    json_text(j, "name", b->name);
    json_bool(j, "available", b->is_available);
    json_text(j, "reason", b->reason);
    json_open(j, "devices", '[');
    if (strcmp(b->name, "cpu") == 0)
        json_cpu_device(j, cpu);
    json_close(j, ']');
    json_modes(j, b->name);
    json_close(j, '}');
}

static void print_json(const iron_cpu_info *cpu, const iron_ceilings *ceilings) {
    json j = {0};

    json_open(&j, NULL, '{');
    json_text(&j, "iron", iron_version());
    json_open(&j, "backends", '[');
    for (size_t k = 0; k < iron_backend_count(); k++) {
        iron_backend_info backend = {.struct_size = sizeof backend};

        if (iron_backend_at(k, &backend, NULL) == IRON_OK)
            json_backend(&j, &backend, cpu);
    }
    json_close(&j, ']');
    if (ceilings)
        json_ceilings(&j, ceilings);
    json_close(&j, '}');
    json_end(&j);
}

static iron_status measure(iron_ceilings *ceilings, uint64_t threads, iron_error *err) {
    progress p = progress_start(0);
    iron_measure_options options = {
        .threads = (uint32_t)threads, .progress = progress_tell, .context = &p};
    iron_status status = iron_measure_ceilings(&options, ceilings, err);

    progress_clear(&p);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    bool wants_measure = false, wants_json = false, has_threads = false, is_done;
    uint64_t threads = 0;
    const option options[] = {
        {"measure", OPTION_FLAG, &wants_measure, NULL},
        {"json", OPTION_FLAG, &wants_json, NULL},
        {"threads", OPTION_NUMBER, &threads, &has_threads},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    iron_ceilings ceilings;
    iron_status status = command_args(&command_info, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count > 0)
        return usage(err, "info takes no argument '%.60s'", a.values[0]);
    if (has_threads && (threads < 1 || threads > 1024))
        return usage(err, "threads is %" PRIu64 "; it must be 1 to 1024", threads);
    if ((status = iron_cpu_describe(&cpu, err)) != IRON_OK)
        return status;
    if (wants_measure && (status = measure(&ceilings, threads, err)) != IRON_OK)
        return status;
    if (wants_json)
        print_json(&cpu, wants_measure ? &ceilings : NULL);
    else
        print_text(&cpu, wants_measure ? &ceilings : NULL);
    return IRON_OK;
}

const command command_info = {
    "info", "devices, caches and modes; with --measure the memory's ceilings",
    "usage: iron info [--measure] [--threads T] [--json]\n\n"
    "Tells which backends are here and why one is absent, the processor's caches, and the "
    "modes.\n\n"
    "  --measure     also the rates at which memory is read, written and copied, by one thread\n"
    "                and by all: the limit that every other figure should be seen against\n"
    "  --threads T   what `all` means (default: every CPU this process may use)\n"
    "  --json        one JSON document\n\n"
    "example: iron info --measure\n",
    run};
