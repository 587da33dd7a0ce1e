/* SPDX-License-Identifier: MIT */
/*
 * report_csv.c: the report as RFC 4180 wants it: one line a row and scope, the same fields in each,
 * names in the first. A row without figures has one line with an empty scope. Cold turns stand in
 * fields of their own beside the warm ones, ceilings and samples in the JSON alone.
 */
#include "arena/report_words.h"

#include <inttypes.h>
#include <string.h>

static const char header[] =
    "op,contender,backend,memory,device,size,size_name,dtype,vocab,nodes,streams,threads,peer,"
    "useful_bytes,cache_resident,status,reason,verified,baseline,rank,operations,passes,scope,"
    "median_ms,mean_ms,min_ms,p95_ms,low_ms,high_ms,noise_percent,gb_s,percent_of_ceiling,speedup,"
    "samples,stopped_by,dropped,cold_median_ms,cold_gb_s,cold_samples\r\n";

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
    if (scope->cold.count)
        fprintf(to, "%zu", scope->cold.count);
    fputs("\r\n", to);
}

void iron__report_csv(const iron__report *report, FILE *to) {
    fputs(header, to);
    for (size_t k = 0; k < report->row_count; k++) {
        bool has_figures = false;

        for (iron__scope s = 0; s < IRON_SCOPES; s++) {
            const iron__report_scope *scope = iron__row_scope(&report->rows[k], s);

            if (!scope)
                continue;
            put_row(to, &report->rows[k]);
            put_scope(to, s, scope);
            has_figures = true;
        }
        if (!has_figures) {
            put_row(to, &report->rows[k]);
            fputs(",,,,,,,,,,,,,,,,\r\n", to);
        }
    }
}
