/* SPDX-License-Identifier: MIT */
/*
 * cmd_info.c: `iron info`: the backends, devices, caches and modes of this machine, the libraries
 * for compressed and remote files, and with --measure the bandwidth of its memory.
 *
 * Everything is collected and measured before the first line is printed. Looking at a backend
 * loads its driver, so a backend that was not asked for is not looked at. Text output has at most
 * 100 columns, however long the names and messages of drivers are.
 */
#include "command.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH       100u
#define TEXT_COLUMN 11u /* where descriptions of backends start */

typedef struct info_options {
    bool wants_measure, wants_json, has_device;
    uint32_t threads, device;
    const char *backend; /* NULL: all */
} info_options;

static const option info_table[] = {
    OPTION("measure", OPTION_FLAG, NULL, info_options, wants_measure,
           "measure read, write and copy bandwidth of memory, the limit for every other rate: on "
           "the CPU with one thread and with all, and on every GPU. GPUs are calibrated as well, "
           "for --mode auto"),
    OPTION("backend", OPTION_TEXT, "B", info_options, backend,
           "show one backend; auto shows all. --measure then measures one of its devices, even if "
           "it is not a GPU. With cpu no driver is loaded",
           .choices = "auto cpu cuda opencl", .standard = "auto"),
    OPTION("device", OPTION_NUMBER, "K", info_options, device,
           "device to measure, counted from 0; needs --backend", .standard = "0",
           GIVEN(info_options, has_device)),
    OPTION("threads", OPTION_NUMBER, "T", info_options, threads,
           "number of CPU threads for --measure", .min = 1, .max = 1024,
           .standard = "all available CPUs"),
    OPTION("json", OPTION_FLAG, NULL, info_options, wants_json, JSON_HELP),
};

typedef struct info_device {
    iron_device_info info;
    bool is_measured;
    iron_device_ceilings ceilings;
    bool is_calibrated;
    char reason[240]; /* why a measured device is not calibrated */
} info_device;

typedef struct info_backend {
    const char *name;
    bool is_available;
    char reason[240]; /* why it is not available, or "" */
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

static bool is_cpu(const char *backend) { return strcmp(backend, "cpu") == 0; }

/* Finds all backends, or only the one named. */
static iron_status inventory_init(inventory *v, const char *only, iron_error *err) {
    size_t count = only ? 1 : iron_backend_count(), devices;

    *v = (inventory){.cpu = {.struct_size = sizeof v->cpu}};
    (void)iron_cache_folder(v->cache_folder, sizeof v->cache_folder, NULL); /* "" if it fails */
    IRON_TRY(iron_cpu_describe(&v->cpu, err));
    if (only && iron_mode_count(only) == 0)
        return usage(err, "unknown backend '%.40s'; use auto, cpu, cuda or opencl", only);
    v->backends = calloc(count, sizeof *v->backends);
    if (!v->backends)
        return usage(err, "out of memory for a list of devices");
    do {
        iron_backend_info info = {.struct_size = sizeof info, .name = only, .is_available = 1};
        iron_device_info first = {.struct_size = sizeof first};
        iron_error why = {IRON_OK, 0, ""};
        info_backend *b = &v->backends[v->backend_count];

        if (!only)
            IRON_TRY(iron_backend_at(v->backend_count, &info, err));
        else if (!is_cpu(only)) /* iron_backend_at would load the drivers of those before it */
            info.is_available = iron_device_at(only, 0, &first, &why) == IRON_OK;
        b->name = info.name;
        b->is_available = info.is_available;
        memcpy(b->reason, only ? why.text : info.reason, sizeof b->reason);
        v->backend_count++;
        devices = is_cpu(b->name) ? 0 : iron_device_count(b->name);
        b->devices = calloc(devices + 1, sizeof *b->devices);
        if (!b->devices)
            return usage(err, "out of memory for a list of devices");
        for (; b->device_count < devices; b->device_count++) {
            iron_device_info *d = &b->devices[b->device_count].info;

            d->struct_size = sizeof *d;
            if (iron_device_at(b->name, b->device_count, d, &why) != IRON_OK)
                snprintf(d->name, sizeof d->name, "%.95s", why.text);
        }
    } while (v->backend_count < count); /* there is always the CPU */
    return IRON_OK;
}

/* One line, even if the driver's message has several. */
static void note(const char *what, const info_backend *b, size_t index, const char *why) {
    fprintf(stderr, "iron: note: %s %s device %zu: ", what, b->name, index);
    for (; *why; why++)
        fputc((unsigned char)*why < 0x20 ? ' ' : *why, stderr);
    fputc('\n', stderr);
}

/* Measures and calibrates a device. A calibration that cannot be saved is not a failure. */
static iron_status measure_device(const inventory *v, const info_backend *b, size_t index,
                                  iron_error *err) {
    info_device *d = &b->devices[index];
    progress p = progress_start(0);
    iron_measure_options options = {.progress = progress_update, .context = &p};
    iron_error why = {IRON_E_IO, 0, "there is no cache folder; set IRON_CACHE_DIR"};
    iron_status status = iron_measure_device(b->name, (uint32_t)index, &options, &d->ceilings, err);

    progress_clear(&p);
    d->is_measured = status == IRON_OK;
    IRON_TRY(status);
    if (v->cache_folder[0]) {
        p = progress_start(0);
        why.status = iron_calibrate(b->name, (uint32_t)index, progress_update, &p, &why);
        progress_clear(&p);
    }
    d->is_calibrated = why.status == IRON_OK;
    if (why.status == IRON_E_IO) {
        memcpy(d->reason, why.text, sizeof d->reason);
        note("calibration not saved for", b, index, d->reason);
    } else if (why.status != IRON_OK) {
        *err = why;
        return why.status;
    }
    return IRON_OK;
}

/* Prints a line that starts at a column; line breaks in driver messages become blanks. */
static void __attribute__((format(printf, 3, 4)))
print_text(size_t column, size_t indent, const char *format, ...) {
    char line[5000];
    size_t used = 0;
    va_list list;

    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    for (const char *at = line; *at; at++) {
        bool is_blank = *at == ' ' || *at == '\t' || *at == '\n';

        if (!is_blank || (used > 0 && line[used - 1] != ' '))
            line[used++] = is_blank ? ' ' : *at;
    }
    while (used > 0 && line[used - 1] == ' ')
        used--;
    line[used] = '\0';
    print_wrapped(stdout, line, column, indent, WIDTH);
}

/* The description of a backend or a device, and a further line of it. */
#define PRINT_DESCRIPTION(...) print_text(TEXT_COLUMN, TEXT_COLUMN, __VA_ARGS__)
#define PRINT_LINE(...)        (printf("%*s", (int)TEXT_COLUMN, ""), PRINT_DESCRIPTION(__VA_ARGS__))

typedef struct size_text {
    char text[32];
} size_text;

static size_text size_of(uint64_t bytes) {
    double kib = (double)bytes / 1024;
    size_text s;

    if (kib >= 1024 * 1024)
        snprintf(s.text, sizeof s.text, "%.1f GiB", kib / 1024 / 1024);
    else
        snprintf(s.text, sizeof s.text, "%.4g %s", kib >= 1024 ? kib / 1024 : kib,
                 kib >= 1024 ? "MiB" : "KiB");
    return s;
}

/* Unknown in a container without /sys. */
static size_text cache_of(uint64_t bytes) {
    return bytes ? size_of(bytes) : (size_text){"unknown"};
}

static void print_backend(const inventory *v, const info_backend *b) {
    const iron_cpu_info *cpu = &v->cpu;
    const char *reason = b->reason;
    size_t length = strlen(b->name);
    /* what the version number means */
    const char *version = strcmp(b->name, "cuda") == 0     ? "compute capability"
                          : strcmp(b->name, "opencl") == 0 ? "OpenCL"
                                                           : "version";

    printf("  %-8s ", b->name);
    if (is_cpu(b->name)) {
        PRINT_DESCRIPTION("%s, %u thread%s%s%s", cpu->name, cpu->threads, plural_s(cpu->threads),
                          cpu->features[0] ? ", " : "", cpu->features);
        PRINT_LINE("L1d %s, L2 %s, L3 %s, memory %s", cache_of(cpu->l1d_bytes).text,
                   cache_of(cpu->l2_bytes).text, cache_of(cpu->l3_bytes).text,
                   size_of(cpu->memory_bytes).text);
    } else if (!b->is_available) {
        if (strncmp(reason, b->name, length) == 0 && reason[length] == ':')
            reason += length + 1; /* the line already starts with the name */
        PRINT_DESCRIPTION("absent: %s", reason + strspn(reason, " "));
    } else {
        printf("%zu device%s\n", b->device_count, plural_s(b->device_count));
        for (size_t k = 0; k < b->device_count; k++) {
            const iron_device_info *d = &b->devices[k].info;

            printf("    %-6zu ", k);
            PRINT_DESCRIPTION("%s%s", d->name,
                              d->is_gpu ? "" : " (not a GPU: --backend auto skips it)");
            PRINT_LINE("%s", d->driver);
            PRINT_LINE("%s %u.%u, %u unit%s%s%s, memory %s", version, d->version / 100,
                       d->version / 10 % 10, d->units, plural_s(d->units),
                       d->cache_bytes ? ", cache " : "",
                       d->cache_bytes ? size_of(d->cache_bytes).text : "",
                       size_of(d->memory_bytes).text);
            PRINT_LINE("memory strategies: %s", d->memory);
        }
    }
}

/* All GPU backends have the same modes: they are printed once, under the names of all. */
static void print_modes(const inventory *v, bool wants_cpu) {
    const char *first = NULL;

    for (size_t k = 0; k < v->backend_count; k++) {
        const info_backend *b = &v->backends[k];

        if (!b->is_available || is_cpu(b->name) != wants_cpu)
            continue;
        printf(first ? " and %s" : "\nmodes of %s", b->name);
        first = first ? first : b->name;
    }
    if (first)
        putchar('\n');
    for (size_t k = 0; first && k < iron_mode_count(first); k++) {
        iron_mode_info mode = {.struct_size = sizeof mode};
        size_t column = wants_cpu ? 40 : 17;

        if (iron_mode_at(first, k, &mode, NULL) != IRON_OK)
            continue;
        if (wants_cpu)
            printf("  %-9s %-27s ", mode.name, mode.variant);
        else
            printf("  %-14s ", mode.name);
        print_text(column, column, "%s", mode.idea);
    }
}

static void print_device_ceilings(const inventory *v, const char *backend, size_t index,
                                  const info_device *d) {
    const iron_device_ceilings *c = &d->ceilings;
    const struct {
        const char *name;
        double gb_s;
        const char *remark;
    } rows[] = {{"read", c->read_gb_s, c->read_shape},
                {"write", c->write_gb_s, ""},
                {"copy", c->copy_gb_s, "read + written"},
                {"to the device", c->to_device_pageable_gb_s, "from pageable memory"},
                {"", c->to_device_pinned_gb_s, "from pinned memory"},
                {"from the device", c->from_device_pinned_gb_s, "to pinned memory"},
                {"zero-copy", c->zero_copy_gb_s, "kernels that read host memory"}};
    putchar('\n');
    print_text(0, 2, "ceilings of %s device %zu, %s: medians of %u passes over %s", backend, index,
               d->info.name, c->passes, size_of(c->buffer_bytes).text);
    for (size_t k = 0; k < COUNT(rows); k++)
        if (rows[k].gb_s > 0)
            printf("  %-15s %7.1f GB/s%s%s\n", rows[k].name, rows[k].gb_s,
                   rows[k].remark[0] ? "   " : "", rows[k].remark);
    printf("  %-15s ", "calibration");
    if (d->is_calibrated)
        print_text(18, 18, "saved in %s; --mode auto uses it", v->cache_folder);
    else
        print_text(18, 18, "not saved: %s", d->reason);
}

/* A library for compressed files; the last one is for remote files. False after it. */
static bool library_at(size_t index, iron_library_info *info) {
    *info = (iron_library_info){.struct_size = sizeof *info};
    return (index < iron_codec_count() ? iron_codec_at(index, info, NULL)
                                       : iron_remote_describe(info, NULL)) == IRON_OK &&
           index <= iron_codec_count();
}

static void print_inventory(const inventory *v) {
    const iron_ceilings *c = &v->ceilings;
    const struct {
        const char *name;
        const iron_ceiling *ceiling;
    } rows[] = {{"read", &c->read}, {"write", &c->write}, {"copy", &c->copy}, {"triad", &c->triad}};
    iron_library_info library;

    printf("iron %s\n\nbackends\n", iron_version());
    for (size_t k = 0; k < v->backend_count; k++)
        print_backend(v, &v->backends[k]);
    print_modes(v, true);
    print_modes(v, false);
    printf("\ncompressed and remote files\n");
    for (size_t k = 0; library_at(k, &library); k++)
        if (library.is_available)
            printf("  %-8s %s\n", library.name,
                   library.version ? library.version : library.library);
        else
            printf("  %-8s absent: install %s (%s)\n", library.name, library.package,
                   library.library);
    printf("\ncache folder: %s\n",
           v->cache_folder[0] ? v->cache_folder : "none; set IRON_CACHE_DIR to use one");
    if (v->is_cpu_measured) {
        printf(
            "\nceilings of cpu: the fastest of %u passes over %s; bytes read and written count\n",
            c->passes, size_of(c->buffer_bytes).text);
        printf("  %-8s %10s   %3u thread%s\n", "", "1 thread", c->threads, plural_s(c->threads));
    }
    for (size_t k = 0; v->is_cpu_measured && k < COUNT(rows); k++)
        printf("  %-8s %5.1f GB/s   %6.1f GB/s   %s\n", rows[k].name,
               rows[k].ceiling->one_thread_gb_s, rows[k].ceiling->all_threads_gb_s,
               rows[k].ceiling->shape);
    for (const info_backend *b = v->backends; b < v->backends + v->backend_count; b++)
        for (size_t k = 0; k < b->device_count; k++)
            if (b->devices[k].is_measured)
                print_device_ceilings(v, b->name, k, &b->devices[k]);
}

static void put_device(iron_json_writer *j, const inventory *v, const info_device *d,
                       size_t index) {
    const iron_device_info *i = &d->info;
    const iron_device_ceilings *c = &d->ceilings;
    char version[32], word[64];
    size_t length;

    snprintf(version, sizeof version, "%u.%u", i->version / 100, i->version / 10 % 10);
    iron_json_open(j, NULL, '{');
    JSON_PUT(j, NUMBER("index", index), TEXT("name", i->name), TEXT("driver", i->driver),
             NUMBER("units", i->units), TEXT("version", version),
             NUMBER("memory_bytes", i->memory_bytes), NUMBER("cache_bytes", i->cache_bytes),
             BOOL("is_gpu", i->is_gpu));
    iron_json_open(j, "memory", '[');
    for (const char *at = i->memory; *at; at += length, at += strspn(at, " ")) {
        length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        iron_json_text(j, NULL, word);
    }
    iron_json_close(j, ']');
    if (d->is_measured) /* and whether it was calibrated */
        JSON_PUT(j,
                 OBJECT("ceilings", NUMBER("passes", c->passes),
                        NUMBER("buffer_bytes", c->buffer_bytes),
                        REAL("read_gb_s", "%.3f", c->read_gb_s), TEXT("read_shape", c->read_shape),
                        REAL("write_gb_s", "%.3f", c->write_gb_s),
                        REAL("copy_gb_s", "%.3f", c->copy_gb_s),
                        REAL("to_device_pageable_gb_s", "%.3f", c->to_device_pageable_gb_s),
                        REAL("to_device_pinned_gb_s", "%.3f", c->to_device_pinned_gb_s),
                        REAL("from_device_pinned_gb_s", "%.3f", c->from_device_pinned_gb_s),
                        REAL("zero_copy_gb_s", "%.3f", c->zero_copy_gb_s)),
                 OBJECT("calibration", BOOL("kept", d->is_calibrated),
                        TEXT(d->is_calibrated ? "folder" : "reason",
                             d->is_calibrated ? v->cache_folder : d->reason)));
    iron_json_close(j, '}');
}

static void print_json(const inventory *v) {
    iron_mode_info mode = {.struct_size = sizeof mode};
    const iron_cpu_info *cpu = &v->cpu;
    iron_library_info library;
    const iron_ceilings *c = &v->ceilings;
    iron_json_writer j = json_begin('{');

    iron_json_text(&j, "iron", iron_version());
    iron_json_open(&j, "backends", '[');
    for (const info_backend *b = v->backends; b < v->backends + v->backend_count; b++) {
        iron_json_open(&j, NULL, '{');
        JSON_PUT(&j, TEXT("name", b->name), BOOL("available", b->is_available),
                 TEXT("reason", b->reason));
        iron_json_open(&j, "devices", '[');
        if (is_cpu(b->name))
            JSON_PUT(&j, OBJECT(NULL, TEXT("name", cpu->name), NUMBER("threads", cpu->threads),
                                TEXT("features", cpu->features),
                                OBJECT("caches", NUMBER("l1d_bytes", cpu->l1d_bytes),
                                       NUMBER("l2_bytes", cpu->l2_bytes),
                                       NUMBER("l3_bytes", cpu->l3_bytes)),
                                NUMBER("memory_bytes", cpu->memory_bytes)));
        for (size_t k = 0; k < b->device_count; k++)
            put_device(&j, v, &b->devices[k], k);
        iron_json_close(&j, ']');
        iron_json_open(&j, "modes", '[');
        for (size_t k = 0; k < iron_mode_count(b->name); k++)
            if (iron_mode_at(b->name, k, &mode, NULL) == IRON_OK)
                JSON_PUT(&j, OBJECT(NULL, TEXT("name", mode.name), TEXT("variant", mode.variant),
                                    TEXT("idea", mode.idea)));
        iron_json_close(&j, ']');
        iron_json_close(&j, '}');
    }
    iron_json_close(&j, ']');
    iron_json_open(&j, "codecs", '[');
    for (size_t k = 0; library_at(k, &library); k++) {
        if (k == iron_codec_count())
            iron_json_close(&j, ']');
        iron_json_open(&j, k == iron_codec_count() ? "remote" : NULL, '{');
        JSON_PUT(&j, TEXT("name", library.name), TEXT("library", library.library),
                 BOOL("available", library.is_available), TEXT("package", library.package));
        if (library.version)
            iron_json_text(&j, "version", library.version);
        iron_json_close(&j, '}');
    }
    iron_json_text(&j, "cache_folder", v->cache_folder);
#define CEILING(name)                                                                              \
    OBJECT(#name, REAL("one_thread_gb_s", "%.3f", c->name.one_thread_gb_s),                        \
           REAL("all_threads_gb_s", "%.3f", c->name.all_threads_gb_s),                             \
           TEXT("shape", c->name.shape))
    if (v->is_cpu_measured)
        JSON_PUT(&j, OBJECT("ceilings", NUMBER("threads", c->threads), NUMBER("passes", c->passes),
                            NUMBER("buffer_bytes", c->buffer_bytes), CEILING(read), CEILING(write),
                            CEILING(copy), CEILING(triad)));
#undef CEILING
    json_end(&j, '}');
}

static iron_status run(void *options, args *a, iron_error *err) {
    info_options *o = options;
    const info_backend *b;
    inventory v;
    progress p;
    iron_measure_options measured = {
        .threads = o->threads, .progress = progress_update, .context = &p};
    iron_status status;

    if (a->value_count > 0)
        return usage(err, "info takes no argument '%.60s'", a->values[0]);
    if (o->backend && strcmp(o->backend, "auto") == 0)
        o->backend = NULL;
    if (o->has_device && !o->backend)
        return usage(err, "--device %" PRIu32 " needs a backend; add --backend cuda or opencl",
                     o->device);
    status = inventory_init(&v, o->backend, err);
    b = v.backends;
    if (status == IRON_OK && o->device > 0 && is_cpu(b->name))
        status = usage(err, "device %" PRIu32 " does not exist; backend cpu has only device 0",
                       o->device);
    /* an absent backend has no devices to compare with */
    if (status == IRON_OK && b->device_count > 0 && o->device >= b->device_count)
        status = usage(err, "device %" PRIu32 " does not exist; backend %s has %zu, counted from 0",
                       o->device, b->name, b->device_count);
    /* measures one device of the backend that is named, or the CPU and every real GPU */
    if (status == IRON_OK && o->wants_measure && o->backend && !is_cpu(o->backend)) {
        status = b->is_available ? measure_device(&v, b, o->device, err)
                                 : usage(err, "backend %s is absent: %.180s", b->name, b->reason);
    } else if (status == IRON_OK && o->wants_measure) {
        p = progress_start(0);
        status = iron_measure_ceilings(&measured, &v.ceilings, err);
        progress_clear(&p);
        v.is_cpu_measured = status == IRON_OK;
        for (; b < v.backends + v.backend_count; b++)
            for (size_t k = 0; k < b->device_count && status == IRON_OK; k++) {
                if (b->devices[k].info.is_gpu)
                    status = measure_device(&v, b, k, err);
                if (status == IRON_E_UNSUPPORTED) { /* does not stop the others */
                    note("cannot measure", b, k, err->text);
                    status = IRON_OK;
                }
            }
    }
    if (status == IRON_OK)
        (o->wants_json ? print_json : print_inventory)(&v);
    for (size_t k = 0; k < v.backend_count; k++)
        free(v.backends[k].devices);
    free(v.backends);
    return status;
}

const command command_info = {
    .name = "info",
    .summary = "shows devices, caches and modes; --measure measures memory bandwidth",
    .synopsis = "[--measure] [--backend B [--device K]] [--threads T] [--json]",
    .description =
        "Shows the available backends and why others are absent, their devices, the caches of the "
        "processor, the modes, the libraries that compressed and remote files are read with (for a "
        "missing one, its package), and the folder where compiled kernels and calibrations are "
        "saved.",
    .groups = {{NULL, info_table, COUNT(info_table), 0}},
    .environment = DRIVER_VARIABLES,
    .examples = "iron info --measure",
    .options_bytes = sizeof(info_options),
    .run = run,
};
