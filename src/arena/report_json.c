/* SPDX-License-Identifier: MIT */
/*
 * report_json.c: the report as a JSON document, the one that others are made from: the page draws
 * from it, comparisons read it, people keep it. docs/schema/arena-1.json says what it holds.
 *
 * Rules: every key stands in every object of its kind, so readers need not ask whether it is there
 * (params, scopes and kernels hold what applies). Text that does not apply is "", a figure that
 * does not apply or is unknown is null. All samples are kept: any other statistic can be made from
 * them.
 */
#include "arena/report_words.h"

/* The model says 0 where it knows nothing. */
static void put_known(iron__json_writer *j, const char *name, double value) {
    if (value > 0)
        iron__json_write_real(j, name, value);
    else
        iron__json_write_null(j, name);
}

static void put_samples(iron__json_writer *j, const iron__samples *samples) {
    iron__json_write_open(j, "samples", '[');
    for (uint32_t k = 0; samples && k < samples->count; k++)
        iron__json_write_real(j, NULL, samples->ms[k]);
    iron__json_write_close(j, ']');
}

typedef struct figures {
    const iron__statistics *times;
    const iron__samples *samples;
    double gb_s, percent, speedup;
} figures;

static void put_figures(iron__json_writer *j, const figures *f) {
    const iron__samples *s = f->samples;

    iron__json_write_real(j, "median_ms", f->times->median);
    iron__json_write_real(j, "mean_ms", f->times->mean);
    iron__json_write_real(j, "min_ms", f->times->min);
    iron__json_write_real(j, "p95_ms", f->times->p95);
    iron__json_write_real(j, "noise_percent", f->times->noise_percent);
    put_known(j, "gb_s", f->gb_s);
    put_known(j, "percent_of_ceiling", f->percent);
    put_samples(j, s);
    iron__json_write_real(j, "low_ms", f->times->low);
    iron__json_write_real(j, "high_ms", f->times->high);
    iron__json_write_text(j, "stopped_by", s ? iron__stop_name(s->stop) : "");
    iron__json_write_whole(j, "passes", s ? s->passes : 0);
    iron__json_write_whole(j, "dropped", s ? s->dropped : 0);
    put_known(j, "speedup", f->speedup);
}

static void put_warm(iron__json_writer *j, const iron__report_scope *scope) {
    put_figures(j, &(figures){.times = &scope->warm,
                              .samples = scope->samples,
                              .gb_s = scope->gb_s,
                              .percent = scope->percent_of_ceiling,
                              .speedup = scope->speedup});
}

static void put_cold(iron__json_writer *j, const iron__report_scope *scope) {
    if (scope->cold.count == 0)
        return;
    iron__json_write_open(j, "cold", '{');
    put_figures(j, &(figures){.times = &scope->cold,
                              .samples = scope->cold_samples,
                              .gb_s = scope->cold_gb_s,
                              .percent = iron__cold_percent(scope)});
    iron__json_write_close(j, '}');
}

static void put_scopes(iron__json_writer *j, const iron__report_row *row) {
    iron__json_write_open(j, "scopes", '{');
    for (iron__scope k = 0; k < IRON_SCOPES; k++) {
        const iron__report_scope *scope = iron__row_scope(row, k);

        if (!scope)
            continue;
        iron__json_write_open(j, iron__scope_name(k), '{');
        put_warm(j, scope);
        put_cold(j, scope);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, '}');
}

static void put_param(iron__json_writer *j, const char *name, uint32_t value) {
    if (value)
        iron__json_write_whole(j, name, value);
}

static void put_case_param(iron__json_writer *j, const iron__param *param) {
    if (param->word[0])
        iron__json_write_text(j, param->name, param->word);
    else if (param->number >= 0 && iron__number_is_whole(param->number))
        iron__json_write_whole(j, param->name, (uint64_t)param->number);
    else
        iron__json_write_real(j, param->name, param->number);
}

static void put_params(iron__json_writer *j, const iron__report_row *row) {
    iron__json_write_open(j, "params", '{');
    put_param(j, "vocab", row->vocab);
    for (size_t k = 0; k < row->params.count; k++)
        put_case_param(j, &row->params.list[k]);
    put_param(j, "nodes", row->nodes);
    put_param(j, "streams", row->streams);
    put_param(j, "threads", row->threads);
    if (row->size_name[0])
        iron__json_write_text(j, "size_name", row->size_name);
    iron__json_write_close(j, '}');
}

/* A figure that the driver does not tell is left out. */
static void put_told(iron__json_writer *j, const char *name, double value) {
    if (value >= 0)
        iron__json_write_real(j, name, value);
}

static void put_kernels(iron__json_writer *j, const iron__kernels *kernels) {
    const iron__gpu_sighting *kernel;
    bool is_prepare;

    iron__json_write_open(j, "kernels", '[');
    for (size_t k = 0; (kernel = iron__kernels_at(kernels, k, &is_prepare)); k++) {
        iron__kernel_figures f = iron__kernel_figures_of(kernel);

        iron__json_write_open(j, NULL, '{');
        iron__json_write_text(j, "name", kernel->kernel);
        iron__json_write_whole(j, "groups", kernel->groups);
        iron__json_write_whole(j, "threads", kernel->threads);
        put_told(j, "registers", f.registers);
        put_told(j, "local_bytes", f.local_bytes);
        put_told(j, "spill_bytes", f.spill_bytes);
        put_told(j, "groups_per_unit", f.groups_per_unit);
        put_told(j, "occupancy_percent", f.occupancy_percent);
        if (is_prepare)
            iron__json_write_bool(j, "prepare", true);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

static void put_row(iron__json_writer *j, const iron__report_row *row) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "op", row->op);
    iron__json_write_text(j, "contender", row->contender);
    iron__json_write_text(j, "backend", row->backend);
    iron__json_write_text(j, "memory", iron__row_memory(row));
    iron__json_write_text(j, "device", row->device);
    iron__json_write_text(j, "size", row->size);
    iron__json_write_text(j, "dtype", row->dtype);
    put_params(j, row);
    iron__json_write_bool(j, "peer", row->is_peer);
    iron__json_write_whole(j, "useful_bytes", row->useful_bytes);
    iron__json_write_bool(j, "cache_resident", row->is_cache_resident);
    iron__json_write_text(j, "status", iron__row_status_name(row->status));
    iron__json_write_text(j, "reason", row->reason);
    iron__json_write_bool(j, "verified", row->is_verified);
    iron__json_write_text(j, "baseline", row->baseline);
    put_known(j, "speedup", row->status == IRON_ROW_OK ? row->speedup : 0);
    put_scopes(j, row);
    iron__json_write_text(j, "idea", row->idea ? row->idea : "");
    put_known(j, "rank", row->rank);
    put_known(j, "operations", row->operations);
    put_known(j, "passes", row->passes);
    put_kernels(j, row->kernels);
    iron__json_write_close(j, '}');
}

static void put_ceiling(iron__json_writer *j, const iron__report_ceiling *ceiling) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "backend", ceiling->backend);
    iron__json_write_text(j, "device", ceiling->device);
    iron__json_write_text(j, "name", ceiling->name);
    iron__json_write_text(j, "shape", ceiling->shape);
    iron__json_write_whole(j, "bytes", ceiling->bytes);
    put_warm(j, &ceiling->figures);
    iron__json_write_close(j, '}');
}

static void put_device(iron__json_writer *j, const iron__report_device *device) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "backend", device->backend);
    iron__json_write_whole(j, "index", device->index);
    iron__json_write_text(j, "name", device->name);
    iron__json_write_text(j, "driver", device->driver);
    iron__json_write_whole(j, "units", device->units);
    iron__json_write_whole(j, "memory_bytes", device->memory_bytes);
    iron__json_write_whole(j, "cache_bytes", device->cache_bytes);
    iron__json_write_bool(j, "available", device->is_there);
    iron__json_write_text(j, "reason", device->reason);
    iron__json_write_open(j, "clocks", '{');
    put_known(j, "min_mhz", device->clock_min);
    put_known(j, "max_mhz", device->clock_max);
    put_known(j, "memory_mhz", device->memory_clock);
    iron__json_write_close(j, '}');
    iron__json_write_text(j, "throttle", device->throttle);
    iron__json_write_close(j, '}');
}

static void put_host(iron__json_writer *j, const iron__report *report) {
    const iron__report_host *host = &report->host;

    iron__json_write_open(j, "host", '{');
    iron__json_write_text(j, "name", host->name);
    iron__json_write_text(j, "cpu", host->cpu);
    iron__json_write_text(j, "features", host->features);
    iron__json_write_whole(j, "threads", host->threads);
    iron__json_write_whole(j, "memory_bytes", host->memory_bytes);
    iron__json_write_whole(j, "cache_bytes", host->cache_bytes);
    iron__json_write_text(j, "kernel", host->kernel);
    iron__json_write_text(j, "compiler", host->compiler);
    iron__json_write_text(j, "flags", host->flags);
    iron__json_write_text(j, "commit", host->commit);
    iron__json_write_text(j, "date", host->date);
    iron__json_write_text(j, "command", report->command);
    iron__json_write_real(j, "seconds", report->seconds);
    iron__json_write_close(j, '}');
}

void iron__report_document(const iron__report *report, iron__json_writer *j) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "schema", "iron.arena/1");
    iron__json_write_text(j, "iron", report->version);
    put_host(j, report);
    iron__json_write_open(j, "devices", '[');
    for (size_t k = 0; k < report->device_count; k++)
        put_device(j, &report->devices[k]);
    iron__json_write_close(j, ']');
    iron__json_write_open(j, "ceilings", '[');
    for (size_t k = 0; k < report->ceiling_count; k++)
        put_ceiling(j, &report->ceilings[k]);
    iron__json_write_close(j, ']');
    iron__json_write_open(j, "results", '[');
    for (size_t k = 0; k < report->row_count; k++)
        put_row(j, &report->rows[k]);
    iron__json_write_close(j, ']');
    iron__json_write_close(j, '}');
}

void iron__report_json(const iron__report *report, FILE *to) {
    iron__json_writer j = {.to = to};

    iron__report_document(report, &j);
    iron__json_write_end(&j);
}
