/* SPDX-License-Identifier: MIT */
/*
 * info_text.c: what `iron info` has found, for people: at most 100 columns, whatever drivers call
 * their devices and however much they have to say.
 */
#include "info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WIDTH       100u
#define TEXT_COLUMN 11u /* of what is told about a backend */

#define KIB 1024.0
#define MIB (1024.0 * 1024)
#define GIB (1024.0 * 1024 * 1024)

/* Prints the words from the column on that the line has reached; further lines begin at `indent`.
 * Words are not cut, so one that is too long stands alone. */
static void put_wrapped(size_t column, size_t indent, const char *text) {
    bool is_first = true;

    for (const char *at = text + strspn(text, " \t\n"); *at; at += strspn(at, " \t\n")) {
        size_t length = strcspn(at, " \t\n");

        if (!is_first && column + 1 + length > WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first) {
            putchar(' ');
            column++;
        }
        fwrite(at, 1, length, stdout);
        column += length;
        at += length;
        is_first = false;
    }
    putchar('\n');
}

/* A line about a backend or a device. */
static void put_line(const char *text) {
    printf("%*s", (int)TEXT_COLUMN, "");
    put_wrapped(TEXT_COLUMN, TEXT_COLUMN, text);
}

typedef struct size_text {
    char text[32];
} size_text;

static size_text size_of(uint64_t bytes) {
    double size = (double)bytes;
    size_text s;

    if (size >= GIB)
        snprintf(s.text, sizeof s.text, "%.1f GiB", size / GIB);
    else if (size >= MIB)
        snprintf(s.text, sizeof s.text, "%.4g MiB", size / MIB);
    else
        snprintf(s.text, sizeof s.text, "%.4g KiB", size / KIB);
    return s;
}

/* A container without /sys does not tell. */
static size_text cache_of(uint64_t bytes) {
    return bytes ? size_of(bytes) : (size_text){"unknown"};
}

static void print_cpu(const iron_cpu_info *cpu) {
    char line[400];

    snprintf(line, sizeof line, "%s, %u thread%s%s%s", cpu->name, cpu->threads,
             cpu->threads == 1 ? "" : "s", cpu->features[0] ? ", " : "", cpu->features);
    printf("  %-8s ", "cpu");
    put_wrapped(TEXT_COLUMN, TEXT_COLUMN, line);
    snprintf(line, sizeof line, "L1d %s, L2 %s, L3 %s, memory %s", cache_of(cpu->l1d_bytes).text,
             cache_of(cpu->l2_bytes).text, cache_of(cpu->l3_bytes).text,
             size_of(cpu->memory_bytes).text);
    put_line(line);
}

/* What a backend's version number counts. */
static const char *version_word(const char *backend) {
    static const struct {
        const char *backend, *word;
    } words[] = {{"cuda", "compute capability"}, {"opencl", "OpenCL"}};

    for (size_t k = 0; k < COUNT(words); k++)
        if (strcmp(backend, words[k].backend) == 0)
            return words[k].word;
    return "version";
}

static void print_device(const char *backend, const iron_device_info *d, size_t index) {
    char line[400], cache[64] = "";

    snprintf(line, sizeof line, "%s%s", d->name,
             d->is_gpu ? "" : " (no GPU: --backend auto passes it over)");
    printf("    %-6zu ", index);
    put_wrapped(TEXT_COLUMN, TEXT_COLUMN, line);
    put_line(d->driver);
    if (d->cache_bytes)
        snprintf(cache, sizeof cache, ", cache %s", size_of(d->cache_bytes).text);
    snprintf(line, sizeof line, "%s %u.%u, %u unit%s%s, memory %s", version_word(backend),
             d->version / 100, d->version / 10 % 10, d->units, d->units == 1 ? "" : "s", cache,
             size_of(d->memory_bytes).text);
    put_line(line);
    snprintf(line, sizeof line, "memory strategies: %s", d->memory);
    put_line(line);
}

static void print_backend(const inventory *v, const info_backend *b) {
    const char *reason = b->reason;
    size_t length = strlen(b->name);
    char line[300];

    if (strcmp(b->name, "cpu") == 0) {
        print_cpu(&v->cpu);
        return;
    }
    printf("  %-8s ", b->name);
    if (!b->is_available) {
        if (strncmp(reason, b->name, length) == 0 && reason[length] == ':')
            reason += length + 1; /* the line begins with the name already */
        snprintf(line, sizeof line, "absent: %s", reason + strspn(reason, " "));
        put_wrapped(TEXT_COLUMN, TEXT_COLUMN, line);
        return;
    }
    printf("%zu device%s\n", b->device_count, b->device_count == 1 ? "" : "s");
    for (size_t k = 0; k < b->device_count; k++)
        print_device(b->name, &b->devices[k].info, k);
}

static void print_cpu_modes(void) {
    printf("\nmodes of cpu\n");
    for (size_t k = 0; k < iron_mode_count("cpu"); k++) {
        iron_mode_info mode = {.struct_size = sizeof mode};

        if (iron_mode_at("cpu", k, &mode, NULL) != IRON_OK)
            continue;
        printf("  %-9s %-27s ", mode.name, mode.variant);
        put_wrapped(40, 40, mode.idea);
    }
}

/* GPUs have the same modes, whatever drives them: once is enough. */
static void print_gpu_modes(const inventory *v) {
    const char *first = NULL;

    for (size_t k = 0; k < v->backend_count; k++) {
        const info_backend *b = &v->backends[k];

        if (!b->is_available || strcmp(b->name, "cpu") == 0)
            continue;
        printf(first ? " and %s" : "\nmodes of %s", b->name);
        first = first ? first : b->name;
    }
    if (first)
        putchar('\n');
    for (size_t k = 0; first && k < iron_mode_count(first); k++) {
        iron_mode_info mode = {.struct_size = sizeof mode};

        if (iron_mode_at(first, k, &mode, NULL) != IRON_OK)
            continue;
        printf("  %-14s ", mode.name);
        put_wrapped(17, 17, mode.idea);
    }
}

static void print_cpu_ceilings(const iron_ceilings *c) {
    const struct {
        const char *name;
        const iron_ceiling *ceiling;
    } rows[] = {{"read", &c->read}, {"write", &c->write}, {"copy", &c->copy}};

    printf("\nceilings of cpu: medians of %u passes over %s; copy counts read + written\n",
           c->passes, size_of(c->buffer_bytes).text);
    printf("  %-8s %10s   %3u thread%s\n", "", "1 thread", c->threads, c->threads == 1 ? "" : "s");
    for (size_t k = 0; k < COUNT(rows); k++)
        printf("  %-8s %5.1f GB/s   %6.1f GB/s\n", rows[k].name, rows[k].ceiling->one_thread_gb_s,
               rows[k].ceiling->all_threads_gb_s);
}

static void print_device_ceilings(const char *backend, size_t index, const info_device *d) {
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
                {"zero-copy", c->zero_copy_gb_s, "kernels that read the host's memory"}};
    char line[400];

    snprintf(line, sizeof line, "ceilings of %s device %zu, %s: medians of %u passes over %s",
             backend, index, d->info.name, c->passes, size_of(c->buffer_bytes).text);
    putchar('\n');
    put_wrapped(0, 2, line);
    for (size_t k = 0; k < COUNT(rows); k++)
        if (rows[k].gb_s > 0)
            printf("  %-15s %7.1f GB/s%s%s\n", rows[k].name, rows[k].gb_s,
                   rows[k].remark[0] ? "   " : "", rows[k].remark);
}

static void print_calibration(const inventory *v, const info_device *d) {
    char line[5000];

    if (d->is_calibrated)
        snprintf(line, sizeof line, "kept in %s; --mode auto uses it", v->cache_folder);
    else
        snprintf(line, sizeof line, "not kept: %s", d->reason);
    printf("  %-15s ", "calibration");
    put_wrapped(18, 18, line);
}

static void print_measured(const inventory *v, const info_backend *b) {
    for (size_t k = 0; k < b->device_count; k++) {
        if (!b->devices[k].is_measured)
            continue;
        print_device_ceilings(b->name, k, &b->devices[k]);
        print_calibration(v, &b->devices[k]);
    }
}

void info_print_text(const inventory *v) {
    bool has_cpu = false;

    printf("iron %s\n\nbackends\n", iron_version());
    for (size_t k = 0; k < v->backend_count; k++) {
        print_backend(v, &v->backends[k]);
        has_cpu = has_cpu || strcmp(v->backends[k].name, "cpu") == 0;
    }
    if (has_cpu)
        print_cpu_modes();
    print_gpu_modes(v);
    printf("\ncache folder: %s\n",
           v->cache_folder[0] ? v->cache_folder : "none; set IRON_CACHE_DIR to have one");
    if (v->is_cpu_measured)
        print_cpu_ceilings(&v->ceilings);
    for (size_t k = 0; k < v->backend_count; k++)
        print_measured(v, &v->backends[k]);
}
