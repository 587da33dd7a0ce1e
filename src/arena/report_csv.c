/* SPDX-License-Identifier: MIT */
/*
 * report_csv.c: the report as RFC 4180 wants it: one line a row and scope, the same fields in each,
 * names in the first. A row without figures has one line with an empty scope. Cold turns stand in
 * fields of their own beside the warm ones, ceilings and samples in the JSON alone. Of the kernels
 * the main one is there. The fields are the same for every race, but for the parameters of its
 * cases: each name that any row has is a field at the end, params.NAME as in the JSON.
 */
#include "arena/report_words.h"

#include <inttypes.h>
#include <string.h>

static const char header[] =
    "op,contender,backend,memory,device,size,size_name,dtype,vocab,nodes,streams,threads,peer,"
    "useful_bytes,cache_resident,status,reason,verified,baseline,rank,operations,passes,scope,"
    "median_ms,mean_ms,min_ms,p95_ms,low_ms,high_ms,noise_percent,gb_s,percent_of_ceiling,speedup,"
    "samples,stopped_by,dropped,cold_median_ms,cold_gb_s,cold_samples,kernel,groups,threads_a_"
    "group,"
    "registers,local_bytes,spill_bytes,groups_per_unit,occupancy_percent";

/* Quotes only where they are needed; a quote inside is doubled. */
static void put_text(FILE *to, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
    } else {
        fputc('"', to);
        for (; *text; text++) {
            if (*text == '"')
                fputc('"', to);
            fputc(*text, to);
        }
        fputc('"', to);
    }
    fputc(',', to);
}

/* Parameters that an op or a memory does not have are 0 in the model, and empty here. */
static void put_whole(FILE *to, uint64_t value) {
    if (value)
        fprintf(to, "%" PRIu64, value);
    fputc(',', to);
}

/* Unknown, which the model calls 0, is an empty field. */
static void put_real(FILE *to, double value) {
    if (value > 0 && value < 1e300)
        fprintf(to, "%.9g", value);
    fputc(',', to);
}

static void put_bool(FILE *to, bool value) { fputs(value ? "true," : "false,", to); }

static void put_row(FILE *to, const iron__report_row *row) {
    put_text(to, row->op);
    put_text(to, row->contender);
    put_text(to, row->backend);
    put_text(to, iron__row_memory(row));
    put_text(to, row->device);
    put_text(to, row->size);
    put_text(to, row->size_name);
    put_text(to, row->dtype);
    put_whole(to, row->vocab);
    put_whole(to, row->nodes);
    put_whole(to, row->streams);
    put_whole(to, row->threads);
    put_bool(to, row->is_peer);
    put_whole(to, row->useful_bytes);
    put_bool(to, row->is_cache_resident);
    put_text(to, iron__row_status_name(row->status));
    put_text(to, row->reason);
    put_bool(to, row->is_verified);
    put_text(to, row->baseline);
    put_whole(to, row->rank);
    put_real(to, row->operations);
    put_real(to, row->passes);
}

static void put_scope(FILE *to, iron__scope which, const iron__report_scope *scope) {
    put_text(to, iron__scope_name(which));
    put_real(to, scope->warm.median);
    put_real(to, scope->warm.mean);
    put_real(to, scope->warm.min);
    put_real(to, scope->warm.p95);
    put_real(to, scope->warm.low);
    put_real(to, scope->warm.high);
    fprintf(to, "%.9g,", scope->warm.noise_percent);
    put_real(to, scope->gb_s);
    put_real(to, scope->percent_of_ceiling);
    put_real(to, scope->speedup);
    put_whole(to, scope->warm.count);
    put_text(to, scope->samples ? iron__stop_name(scope->samples->stop) : "");
    fprintf(to, "%u,", scope->samples ? scope->samples->dropped : 0);
    put_real(to, scope->cold.median);
    put_real(to, scope->cold_gb_s);
    put_whole(to, scope->cold.count);
}

/* Of a kernel 0 is a figure; what is not told is negative. */
static void put_told(FILE *to, double value) {
    if (value >= 0)
        fprintf(to, "%.9g", value);
    fputc(',', to);
}

static void put_kernel(FILE *to, const iron__gpu_sighting *kernel) {
    iron__kernel_figures f = iron__kernel_figures_of(kernel);

    put_text(to, kernel ? kernel->kernel : "");
    put_whole(to, kernel ? kernel->groups : 0);
    put_whole(to, kernel ? kernel->threads : 0);
    put_told(to, f.registers);
    put_told(to, f.local_bytes);
    put_told(to, f.spill_bytes);
    put_told(to, f.groups_per_unit);
    if (f.occupancy_percent >= 0)
        fprintf(to, "%.9g", f.occupancy_percent);
}

/* The names of all parameters of a report, each once. */
typedef struct names {
    const char *list[64];
    size_t count;
} names;

static void add_name(names *all, const char *name) {
    for (size_t k = 0; k < all->count; k++)
        if (strcmp(all->list[k], name) == 0)
            return;
    if (all->count < sizeof all->list / sizeof all->list[0])
        all->list[all->count++] = name;
}

static names names_of(const iron__report *report) {
    names all = {.count = 0};

    for (size_t k = 0; k < report->row_count; k++)
        for (size_t p = 0; p < report->rows[k].params.count; p++)
            add_name(&all, report->rows[k].params.list[p].name);
    return all;
}

/* A comma before each: they follow the last field, whose line they end. */
static void put_params(FILE *to, const names *all, const iron__params *params) {
    for (size_t k = 0; k < all->count; k++) {
        fputc(',', to);
        for (size_t p = 0; p < params->count; p++)
            if (strcmp(params->list[p].name, all->list[k]) == 0)
                fputs(iron__param_text(&params->list[p]).text, to);
    }
    fputs("\r\n", to);
}

static void put_line(FILE *to, const names *all, const iron__report_row *row, iron__scope which,
                     const iron__report_scope *scope) {
    put_row(to, row);
    if (scope)
        put_scope(to, which, scope);
    else
        fputs(",,,,,,,,,,,,,,,,,", to);
    put_kernel(to, iron__kernels_main(row->kernels));
    put_params(to, all, &row->params);
}

void iron__report_csv(const iron__report *report, FILE *to) {
    names all = names_of(report);

    fputs(header, to);
    for (size_t k = 0; k < all.count; k++)
        fprintf(to, ",params.%s", all.list[k]);
    fputs("\r\n", to);
    for (size_t k = 0; k < report->row_count; k++) {
        bool has_figures = false;

        for (iron__scope s = 0; s < IRON_SCOPES; s++) {
            const iron__report_scope *scope = iron__row_scope(&report->rows[k], s);

            if (!scope)
                continue;
            put_line(to, &all, &report->rows[k], s, scope);
            has_figures = true;
        }
        if (!has_figures)
            put_line(to, &all, &report->rows[k], IRON_SCOPES, NULL);
    }
}
