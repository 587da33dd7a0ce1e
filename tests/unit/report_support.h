/* SPDX-License-Identifier: MIT */
/*
 * report_support.h: a synthetic report that looks like one of a real race: a CPU, a CUDA and an
 * OpenCL device, three ops, sizes, parameters, peers, memory strategies, cold samples, kernels
 * about which a driver reports everything, something or nothing, rows that are wrong, failed and
 * skipped, and text that needs escaping. It is the same in every run.
 */
#ifndef TESTS_UNIT_REPORT_SUPPORT_H
#define TESTS_UNIT_REPORT_SUPPORT_H

#include "support.h"

#include "arena/arena_internal.h"

#define HOSTILE "</script><b onclick=\"x\">'&, <!-- \xE2\x80\xA8 \\ \x1b[31m\nnext line \xFF|"

#define SAMPLE_ROWS  128u
#define SAMPLE_POOLS (SAMPLE_ROWS * 5u)
#define SAMPLE_COUNT 40u

typedef enum sample_kind { SAMPLE_WIDE, SAMPLE_USUAL, SAMPLE_TINY } sample_kind;

/* A synthetic contender: the fraction of its device's read ceiling that it reaches, and its
 * memory. */
typedef struct sample_entry {
    const char *op, *backend, *contender, *memory;
    double fraction;
    const char *idea;
    double passes; /* over the big input */
    bool is_peer;
    iron__row_status status;
    const char *reason;
} sample_entry;

typedef struct sample_size {
    const char *op, *size, *name;
    double bytes;
    const char *data; /* a parameter; NULL: the op has none */
} sample_size;

typedef struct sample {
    iron__report report;
    iron__report_device devices[4];
    iron__report_ceiling ceilings[16];
    iron__report_row rows[SAMPLE_ROWS];
    iron__kernels kernels[SAMPLE_ROWS];
    iron__samples pools[SAMPLE_POOLS];
    double times[SAMPLE_POOLS][SAMPLE_COUNT];
    size_t pool_count;
    rng r;
} sample;

/* The first are on the CPU: a tiny report takes two of them. */
static const sample_entry sample_entries[] = {
    {"tokens", "cpu", "scalar", "", 0.11, "one token at a time", 1, false, 0, ""},
    {"tokens", "cpu", "champion", "", 0.97, "groups of 64, prefetched", 1, false, 0, ""},
    {"tokens", "cpu", "threads", "", 0.71, "scalar, all threads", 1, false, 0, ""},
    {"tokens", "cpu", "xxh3", "", 0.62, "XXH3 of the same bytes", 1, true, 0, ""},
    {"tokens", "cuda", "reduce", "pinned", 0.43, "one word a thread", 1, false, 0, ""},
    {"tokens", "cuda", "champion", "pinned", 0.99, "128-bit loads, one wave", 1, false, 0, ""},
    {"tokens", "cuda", "champion", "streams", 0.985, "128-bit loads, one wave", 1, false, 0, ""},
    {"tokens", "cuda", "champion", "zero-copy", 0.012, "128-bit loads", 1, false, 0, ""},
    {"tokens", "cuda", "cub", "pinned", 0.88, "DeviceReduce", 1, true, 0, ""},
    {"tokens", "cuda", "tiled", "pinned", 0, "tiles in shared memory", 1, false, IRON_ROW_WRONG,
     "element 4095: 0x9f3a0001, should be 0x9f3a0000"},
    {"tokens", "opencl", "reduce", "pageable", 0.55, "one word a thread", 1, false, 0, ""},
    {"tokens", "opencl", "champion", "pageable", 0.93, "wide loads", 1, false, 0, ""},
    {"tokens", "opencl", "champion", "uvm", 0, "wide loads", 1, false, IRON_ROW_SKIPPED,
     "the device has no shared virtual memory"},
    {"atax", "cpu", "naive", "", 0.08, "two loops, column by column", 2, false, 0, ""},
    {"atax", "cpu", "rows", "", 0.44, "both passes by rows", 2, false, 0, ""},
    {"atax", "cpu", "single-pass", "", 0.91, "a row is used twice while it is hot", 1, false, 0,
     ""},
    {"atax", "cpu", "openblas", "", 0.47, "two calls of gemv", 2, true, 0, ""},
    {"atax", "cuda", "naive", "pageable", 0.21, "a thread a row", 2, false, 0, ""},
    {"atax", "cuda", "single-pass", "pageable", 0.955, "rows in registers", 1, false, 0, ""},
    {"atax", "cuda", "single-pass", "pinned", 0.957, "rows in registers", 1, false, 0, ""},
    {"atax", "cuda", "single-pass", "streams", 0.95, "rows in registers", 1, false, 0, ""},
    {"atax", "cuda", "single-pass", "uvm-prefetch", 0.90, "rows in registers", 1, false, 0, ""},
    {"atax", "cuda", "cublas", "pinned", 0.48, "two calls of gemv", 2, true, 0, ""},
    {"atax", "cuda", "transposed", "pinned", 0, "a transposed copy", 2, false, IRON_ROW_FAILED,
     HOSTILE},
    {"atax", "cuda", "single-pass", "uvm", 0, "rows in registers", 1, false, IRON_ROW_SKIPPED,
     "managed memory would take more than half of what is free"},
    {"atax", "opencl", "naive", "pageable", 0.10, "a work item a row", 2, false, 0, ""},
    {"atax", "opencl", "single-pass", "uvm", 0, "rows in registers", 1, false, IRON_ROW_SKIPPED,
     "the device has no shared virtual memory"},
    {"histogram", "cpu", "naive", "", 0.2, "one table", 1, false, 0, ""},
    {"histogram", "cuda", "global", "pageable", 0.04, "atomics in memory", 1, false, 0, ""},
    {"histogram", "cuda", "local", "pageable", 0.94, "a table a group", 1, false, 0, ""},
};

static const sample_size sample_sizes[] = {
    {"tokens", "4194304", "talk:SMALL", 16777216, NULL},
    {"tokens", "268435456", "talk:STANDARD", 1073741824, NULL},
    {"tokens", "2147483648", "talk:LARGE", 8589934592, NULL},
    {"atax", "2000x2000", "polybench:LARGE", 16016000, NULL},
    {"atax", "8192x8192", "talk:STANDARD", 268500992, NULL},
    {"atax", "40000x40000", "acc:LARGE", 6400320000, NULL},
    {"histogram", "4294967296", "", 4294967296, "uniform"},
    {"histogram", "4294967296", "", 4294967296, "zipf"},
};

/* The op of the sample, for its description. */
static const char *const sample_words[] = {"uniform", "zipf"};
static const iron__axis sample_axes[] = {
    {.name = "data", .about = "how the values are spread", .words = sample_words, .count = 2}};

static inline bool sample_contender_at(size_t index, iron__contender *out) {
    *out = (iron__contender){.name = "local",
                             .idea = "a table a group " HOSTILE,
                             .beats = "global",
                             .backends = IRON_ON_GPU};
    return index == 0;
}

static const iron__op sample_op = {.name = "histogram",
                                   .contract = "how often each value occurs",
                                   .why = "Two paragraphs.\n\n" HOSTILE,
                                   .traffic = "Every value once.",
                                   .unless = "With one value alone.",
                                   .used = "Nowhere.",
                                   .axes = sample_axes,
                                   .axis_count = 1,
                                   .contender_at = sample_contender_at};

typedef struct sample_backend {
    const char *name, *device;
    double read, copy, bus, latency_ms;
    uint64_t cache_bytes;
} sample_backend;

static const sample_backend sample_backends[] = {
    {"cpu", "Xeon Platinum 8480C", 271.3, 214.8, 0, 0.004, UINT64_C(110100480)},
    {"cuda", "NVIDIA H200", 4451.9, 4107.3, 54.9, 0.0045, UINT64_C(62914560)},
    {"opencl", "pthread-Xeon " HOSTILE, 182.6, 140.2, 21.7, 0.062, UINT64_C(110100480)},
};

static inline const sample_backend *sample_backend_of(const char *name) {
    for (size_t k = 0; k < COUNT(sample_backends); k++)
        if (strcmp(sample_backends[k].name, name) == 0)
            return &sample_backends[k];
    return NULL;
}

static inline int sample_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Samples around ms with a tail to the right, as real ones have, and their statistics. */
static inline const iron__samples *sample_times(sample *s, double ms, size_t count,
                                                iron__statistics *out) {
    iron__samples *pool = &s->pools[s->pool_count];
    double *at = s->times[s->pool_count++], sorted[SAMPLE_COUNT], sum = 0;

    assert_true(s->pool_count <= SAMPLE_POOLS && count <= SAMPLE_COUNT);
    for (size_t k = 0; k < count; k++) {
        double u = (double)rng_below(&s->r, 1000) / 1000;

        at[k] = sorted[k] = ms * (0.995 + 0.01 * u + (rng_below(&s->r, 12) == 0 ? 0.06 * u : 0));
        sum += at[k];
    }
    qsort(sorted, count, sizeof sorted[0], sample_order);
    *pool = (iron__samples){.ms = at,
                            .count = (uint32_t)count,
                            .room = SAMPLE_COUNT,
                            .dropped = count % 7 == 0,
                            .passes = ms < 0.1 ? 16 : 1,
                            .stop = count > 30 ? IRON_STOP_TIME : IRON_STOP_PRECISION};
    *out = (iron__statistics){.count = count,
                              .median = sorted[count / 2],
                              .mean = sum / (double)count,
                              .min = sorted[0],
                              .max = sorted[count - 1],
                              .p95 = sorted[count * 95 / 100],
                              .noise_percent = 0.4};
    if (count >= IRON_SAMPLES_FOR_INTERVAL) {
        out->coverage = 0.96;
        out->low = sorted[count / 3];
        out->high = sorted[2 * count / 3];
    }
    return pool;
}

static inline void sample_scope(sample *s, iron__report_scope *to, double ms, double bytes,
                                double ceiling) {
    to->is_measured = true;
    /* some have too few samples for an interval */
    to->samples =
        sample_times(s, ms, s->pool_count % 11 ? 12 + rng_below(&s->r, 28) : 4, &to->warm);
    to->gb_s = bytes / 1e6 / to->warm.median;
    to->percent_of_ceiling = ceiling > 0 ? 100 * to->gb_s / ceiling : 0;
}

static inline void sample_gpu_scopes(sample *s, iron__report_row *row, const sample_backend *b,
                                     double bytes, double kernel_ms) {
    double share = strcmp(row->memory, "pageable") == 0 ? 0.45 : 0.97;
    double copy_ms = bytes / 1e6 / (b->bus * share);
    bool is_overlapped = strcmp(row->memory, "streams") == 0;

    sample_scope(s, &row->scopes[IRON_SCOPE_PREPARE], 0.3 + bytes / 4e8, 0, 0);
    row->scopes[IRON_SCOPE_PREPARE].gb_s = 0;
    sample_scope(s, &row->scopes[IRON_SCOPE_TRANSFER], copy_ms, bytes, b->bus);
    sample_scope(s, &row->scopes[IRON_SCOPE_END_TO_END],
                 is_overlapped ? copy_ms * 1.02 : copy_ms + kernel_ms, bytes, 0);
}

static inline void sample_figures(sample *s, iron__report_row *row, const sample_entry *e,
                                  double bytes) {
    const sample_backend *b = sample_backend_of(e->backend);
    /* Data in the cache is read faster; for small data the launch takes most of the time. */
    double rate = b->read * e->fraction * (row->is_cache_resident ? 1.6 : 1);
    double ms = bytes / 1e6 / rate + b->latency_ms;
    iron__report_scope *kernel = &row->scopes[IRON_SCOPE_KERNEL];

    sample_scope(s, kernel, ms, bytes, b->read);
    if (e->fraction > 0.3) {
        kernel->cold_samples = sample_times(s, ms * 1.07 + b->latency_ms, 9, &kernel->cold);
        kernel->cold_gb_s = bytes / 1e6 / kernel->cold.median;
    }
    if (strcmp(e->backend, "cuda") == 0 && !e->is_peer)
        row->energy = (iron__energy){
            .source = "nvml",
            .joules_per_gb = 412.5 / kernel->gb_s,
            .watts = 412.5,
            .clocks = {
                .core_mhz = 1755, .memory_mhz = 3201, .celsius = 58, .reasons = "power cap"}};
    if (strcmp(e->backend, "cpu") != 0)
        sample_gpu_scopes(s, row, b, bytes, ms);
}

/* CUDA's driver reports everything, OpenCL's only local memory, and peers nothing. */
static inline const iron__kernels *sample_kernels(sample *s, const sample_entry *e) {
    iron__kernels *all = &s->kernels[s->report.row_count - 1];
    iron__gpu_launch_log *w = &all->answer;
    bool is_cuda = strcmp(e->backend, "cuda") == 0;
    iron__gpu_resources facts = {32, strcmp(e->contender, "naive") == 0 ? 8 : 0, 0, 8, 1};

    if (strcmp(e->backend, "cpu") == 0 || e->is_peer || e->status == IRON_ROW_SKIPPED)
        return NULL;
    all->prepare =
        (iron__gpu_launch_log){.count = 2,
                               .seen = {{.kernel = "turn", .groups = 99999, .threads = 256},
                                        {.kernel = "clear", .groups = 99999, .threads = 256}}};
    *w = (iron__gpu_launch_log){.count = 2,
                                .seen = {{.kernel = "clear", .groups = 1, .threads = 256}}};
    w->seen[1] = (iron__gpu_launch_record){.groups = 1056, .threads = 256};
    snprintf(w->seen[1].kernel, sizeof w->seen[1].kernel, "%s_%s", e->op, e->contender);
    if (is_cuda)
        w->seen[1].resources = facts;
    if (strcmp(e->contender, "local") == 0)
        w->seen[1].resources = (iron__gpu_resources){40, 0, 49152, 4, 0.5};
    if (!is_cuda && strcmp(e->contender, "champion") == 0)
        w->seen[1].resources.local_bytes = 1024;
    return all;
}

static inline void sample_param(iron__report_row *row, const char *data) {
    if (!data)
        return;
    row->params = (iron__params){
        .count = 2, .list = {{.name = "data", .is_axis = true}, {.name = "bins", .number = 256}}};
    snprintf(row->params.list[0].word, sizeof row->params.list[0].word, "%s", data);
}

static inline void sample_row(sample *s, const sample_entry *e, const sample_size *size) {
    iron__report_row *row = &s->rows[s->report.row_count++];
    const sample_backend *b = sample_backend_of(e->backend);
    bool is_cpu = strcmp(e->backend, "cpu") == 0, is_tokens = strcmp(e->op, "tokens") == 0;

    assert_true(s->report.row_count <= SAMPLE_ROWS);
    snprintf(row->op, sizeof row->op, "%s", e->op);
    snprintf(row->contender, sizeof row->contender, "%s", e->contender);
    snprintf(row->backend, sizeof row->backend, "%s", e->backend);
    snprintf(row->memory, sizeof row->memory, "%s", e->memory[0] ? e->memory : "host");
    snprintf(row->device, sizeof row->device, "%s", b->device);
    snprintf(row->size, sizeof row->size, "%s", size->size);
    snprintf(row->size_name, sizeof row->size_name, "%s", size->name);
    snprintf(row->dtype, sizeof row->dtype, "%s", is_tokens ? "u32" : size->data ? "u8" : "f32");
    row->kernels = sample_kernels(s, e);
    sample_param(row, size->data);
    snprintf(row->reason, sizeof row->reason, "%s", e->reason);
    snprintf(row->baseline, sizeof row->baseline, "%s",
             size->data && !is_cpu ? "global"
             : !is_tokens          ? "naive"
             : is_cpu              ? "scalar"
                                   : "reduce");
    row->vocab = is_tokens ? 50257 : 0;
    row->nodes = is_tokens ? 4096 : 0;
    row->streams = strcmp(e->memory, "streams") == 0 ? 4 : 0;
    row->threads = is_cpu ? 56 : 0;
    row->idea = e->idea;
    row->is_peer = e->is_peer;
    row->useful_bytes = (uint64_t)size->bytes;
    row->is_cache_resident = row->useful_bytes < b->cache_bytes;
    row->operations = size->bytes / 4 * (is_tokens ? 9 : 4);
    row->passes = e->passes;
    row->status = e->status;
    row->is_verified = e->status == IRON_ROW_OK;
    if (e->status == IRON_ROW_OK)
        sample_figures(s, row, e, size->bytes);
}

/* Ranked rows by the kernel's median, then the wrong, skipped and failed rows. */
static inline int sample_row_order(const void *a, const void *b) {
    const iron__report_row *x = a, *y = b;

    if (x->status != y->status)
        return x->status > y->status ? 1 : -1;
    return sample_order(&x->scopes[IRON_SCOPE_KERNEL].warm.median,
                        &y->scopes[IRON_SCOPE_KERNEL].warm.median);
}

static inline double sample_baseline_ms(const iron__report_row *rows, size_t count,
                                        const iron__report_row *of) {
    for (size_t k = 0; k < count; k++)
        if (strcmp(rows[k].backend, of->backend) == 0 &&
            strcmp(rows[k].contender, of->baseline) == 0)
            return rows[k].scopes[IRON_SCOPE_KERNEL].warm.median;
    return 0;
}

static inline void sample_rank(iron__report_row *rows, size_t count) {
    qsort(rows, count, sizeof rows[0], sample_row_order);
    for (size_t k = 0; k < count && rows[k].status == IRON_ROW_OK; k++) {
        iron__report_scope *kernel = &rows[k].scopes[IRON_SCOPE_KERNEL];

        rows[k].rank = (uint32_t)k + 1;
        rows[k].speedup = kernel->speedup =
            sample_baseline_ms(rows, count, &rows[k]) / kernel->warm.median;
    }
}

static inline void sample_group(sample *s, sample_kind kind, const sample_size *size) {
    size_t first = s->report.row_count;

    for (size_t k = 0; k < COUNT(sample_entries); k++)
        if (strcmp(sample_entries[k].op, size->op) == 0 && (kind != SAMPLE_TINY || k < 2))
            sample_row(s, &sample_entries[k], size);
    sample_rank(&s->rows[first], s->report.row_count - first);
}

static inline void sample_ceiling(sample *s, const sample_backend *b, const char *name, double gb_s,
                                  const char *shape) {
    iron__report_ceiling *c = &s->ceilings[s->report.ceiling_count++];

    snprintf(c->backend, sizeof c->backend, "%s", b->name);
    snprintf(c->device, sizeof c->device, "%s", b->device);
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->shape, sizeof c->shape, "%s", shape);
    c->bytes = UINT64_C(1) << 30;
    c->measurements = 3;
    c->low_gb_s = 0.97 * gb_s;
    c->peak_gb_s = strcmp(b->name, "cuda") == 0 && strcmp(name, "read") == 0 ? 4800 : 0;
    sample_scope(s, &c->figures, (double)c->bytes / 1e6 / gb_s, (double)c->bytes, 0);
}

static inline void sample_device(sample *s, const sample_backend *b, const char *driver) {
    iron__report_device *d = &s->devices[s->report.device_count++];
    bool is_cpu = strcmp(b->name, "cpu") == 0;

    snprintf(d->backend, sizeof d->backend, "%s", b->name);
    snprintf(d->name, sizeof d->name, "%s", b->device);
    snprintf(d->driver, sizeof d->driver, "%s", driver);
    d->units = is_cpu ? 56 : 132;
    d->memory_bytes = UINT64_C(150754820096);
    d->cache_bytes = b->cache_bytes;
    d->is_available = true;
    d->clock_min = strcmp(b->name, "cuda") == 0 ? 1755 : 0;
    d->clock_max = strcmp(b->name, "cuda") == 0 ? 1980 : 0;
    d->memory_clock = strcmp(b->name, "cuda") == 0 ? 3201 : 0;
    sample_ceiling(s, b, "read", b->read, "4 x 256 threads a unit, contiguous");
    sample_ceiling(s, b, "copy", b->copy, "all threads");
    if (!is_cpu) {
        sample_ceiling(s, b, "to_device_pageable", b->bus * 0.45, "one copy");
        sample_ceiling(s, b, "to_device_pinned", b->bus, "one copy");
    }
}

static inline void sample_machine(sample *s, sample_kind kind) {
    static const iron__report_host host = {
        .name = "bench-7",
        .cpu = "Xeon Platinum 8480C",
        .features = "avx2 avx512",
        .kernel = "Linux 6.1.0",
        .compiler = "GCC 12.2.0",
        .flags = "-O3 -g",
        .commit = "962e8ca8fa8b",
        .date = "2026-11-15T08:13:27Z",
        .threads = 56,
        .memory_bytes = UINT64_C(1082331758592),
        .cache_bytes = UINT64_C(110100480),
    };

    s->report.host = host;
    snprintf(s->report.version, sizeof s->report.version, "0.1.0");
    snprintf(s->report.command, sizeof s->report.command,
             "iron arena 'tokens.*' 'atax.*' --time 60");
    s->report.seconds = 61.3;
    sample_device(s, &sample_backends[0], "");
    if (kind == SAMPLE_TINY)
        return;
    sample_device(s, &sample_backends[1], "CUDA 13.0, driver 580.159.04");
    sample_device(s, &sample_backends[2], "OpenCL 3.0 PoCL 3.1");
    s->devices[3] = (iron__report_device){.backend = "opencl",
                                          .index = 1,
                                          .name = "an FPGA",
                                          .reason = "the driver offers no compiler"};
    s->report.device_count++;
}

/* WIDE: three sizes of each op; USUAL: one; both: a case for each word of the third op; TINY: two
 * rows of one op on the CPU. */
static inline sample *sample_make(sample_kind kind) {
    sample *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->r = (rng){20261115};
    s->report.devices = s->devices;
    s->report.ceilings = s->ceilings;
    s->report.rows = s->rows;
    s->report.ops[s->report.op_count++] = iron__op_find("tokens");
    assert_non_null(s->report.ops[0]);
    if (kind != SAMPLE_TINY)
        s->report.ops[s->report.op_count++] = &sample_op;
    sample_machine(s, kind);
    for (size_t k = 0; k < COUNT(sample_sizes); k++)
        if (kind == SAMPLE_WIDE || k == 1 || (kind == SAMPLE_USUAL && (k == 4 || k > 5)))
            sample_group(s, kind, &sample_sizes[k]);
    return s;
}

#endif
