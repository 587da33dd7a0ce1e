/* SPDX-License-Identifier: MIT */
/*
 * report_markdown.c: the report for a README or an issue: tables as GitHub draws them.
 *
 * Names and reasons are text, whatever they hold: the characters that Markdown or HTML would act on
 * are escaped, and a line break becomes a blank, since a table's row is a line.
 */
#include "arena/report_words.h"

#include <string.h>

static iron__words marked(const char *text) { return iron__plain(text, "\\`*_{}[]<>|#~!"); }

static void put_machine(const iron__report *report, FILE *to) {
    const iron__report_host *host = &report->host;

    fprintf(to, "# iron arena\n\niron %s on %s: %s, %u threads, %s; %s; %s (%s); commit %s; %s.\n",
            marked(report->version).text, marked(host->name).text, marked(host->cpu).text,
            host->threads, iron__bytes_words(host->memory_bytes).text, marked(host->kernel).text,
            marked(host->compiler).text, marked(host->flags).text, marked(host->commit).text,
            marked(host->date).text);
    fprintf(to, "\nAgain with: %s\n\n", marked(report->command).text);
}

static void put_devices(const iron__report *report, FILE *to) {
    for (size_t k = 0; k < report->device_count; k++) {
        const iron__report_device *d = &report->devices[k];

        fprintf(to, "- %s %u: ", marked(d->backend).text, d->index);
        if (!d->is_there) {
            fprintf(to, "not raced: %s\n", marked(d->reason).text);
            continue;
        }
        fprintf(to, "%s, %s%s%u units, %s", marked(d->name).text, marked(d->driver).text,
                d->driver[0] ? ", " : "", d->units, iron__bytes_words(d->memory_bytes).text);
        if (d->clock_max)
            fprintf(to, ", %u to %u MHz", d->clock_min, d->clock_max);
        fprintf(to, "%s%s\n", d->throttle[0] ? ", throttled: " : "", marked(d->throttle).text);
    }
}

static void put_ceilings(const iron__report *report, FILE *to) {
    if (report->ceiling_count == 0)
        return;
    fputs("\n## Ceilings\n\n| device | ceiling | GB/s | noise | how |\n|---|---|---:|---:|---|\n",
          to);
    for (size_t k = 0; k < report->ceiling_count; k++) {
        const iron__report_ceiling *c = &report->ceilings[k];

        fprintf(to, "| %s: %s | %s | %s | %s | %s |\n", marked(c->backend).text,
                marked(c->device).text, marked(c->name).text, iron__figure(c->figures.gb_s).text,
                iron__figure_of(c->figures.warm.noise_percent, 1, " %").text,
                marked(c->shape).text);
    }
}

static const char *median_of(const iron__report_row *row, iron__scope which, iron__words *w) {
    const iron__report_scope *scope = iron__row_scope(row, which);

    *w = iron__figure(scope ? scope->warm.median : 0);
    return w->text;
}

static void put_row(const iron__report_row *row, FILE *to) {
    const iron__report_scope *kernel = &row->scopes[IRON_SCOPE_KERNEL];
    iron__words w[4];

    fprintf(to, "| %u | %s%s%s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %zu, %s |\n",
            row->rank, marked(iron__row_name(row).text).text, row->is_peer ? " (peer)" : "",
            row->is_cache_resident ? " (cache-resident)" : "",
            median_of(row, IRON_SCOPE_KERNEL, &w[0]), iron__figure(kernel->gb_s).text,
            iron__figure_of(kernel->percent_of_ceiling, 1, " %").text,
            iron__figure(kernel->cold_gb_s).text, median_of(row, IRON_SCOPE_END_TO_END, &w[1]),
            median_of(row, IRON_SCOPE_TRANSFER, &w[2]), median_of(row, IRON_SCOPE_PREPARE, &w[3]),
            iron__figure_of(row->speedup, 2, "×").text,
            iron__figure_of(kernel->warm.noise_percent, 1, " %").text, kernel->warm.count,
            kernel->samples ? iron__stop_name(kernel->samples->stop) : "");
}

/* A limit, in the columns of the contenders. */
static void put_limit(const iron__report_ceiling *c, FILE *to) {
    fprintf(to, "| | *%s ceiling: %s* | %s | %s | 100.0 %% | | | | | | %s | %zu, runs |\n",
            marked(c->backend).text, marked(c->name).text,
            iron__figure(c->figures.warm.median).text, iron__figure(c->figures.gb_s).text,
            iron__figure_of(c->figures.warm.noise_percent, 1, " %").text, c->figures.warm.count);
}

static void put_titles(const iron__report *report, size_t first, size_t end, FILE *to) {
    fputs("\n| # | contender | kernel ms | GB/s | of ceiling | cold GB/s | end to end ms | "
          "transfer ms | prepare ms | speedup | noise | samples |\n"
          "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
          to);
    for (size_t k = 0; k < report->ceiling_count; k++)
        if (iron__group_has_ceiling(report, first, end, &report->ceilings[k]))
            put_limit(&report->ceilings[k], to);
}

static void put_group(const iron__report *report, size_t first, size_t end, FILE *to) {
    const iron__report_row *row = &report->rows[first];
    bool has_titles = false;

    fprintf(to, "\n## %s %s %s\n\n", marked(row->op).text,
            marked(row->size_name[0] ? row->size_name : row->size).text, marked(row->dtype).text);
    fprintf(to, "%s, %s of useful bytes.\n", marked(row->size).text,
            iron__bytes_words(row->useful_bytes).text);
    for (; first < end && report->rows[first].status == IRON_ROW_OK; first++) {
        if (!has_titles)
            put_titles(report, first, end, to);
        has_titles = true;
        put_row(&report->rows[first], to);
    }
    if (first < end)
        fputc('\n', to);
    for (; first < end; first++) {
        const iron__report_row *out = &report->rows[first];

        fprintf(to, "- %s%s%s %s: %s\n", out->status == IRON_ROW_WRONG ? "**" : "",
                out->status == IRON_ROW_WRONG ? "WRONG" : iron__row_status_name(out->status),
                out->status == IRON_ROW_WRONG ? "**" : "", marked(iron__row_name(out).text).text,
                marked(out->reason).text);
    }
}

void iron__report_markdown(const iron__report *report, FILE *to) {
    put_machine(report, to);
    put_devices(report, to);
    put_ceilings(report, to);
    for (size_t k = 0; k < report->row_count;) {
        size_t end = iron__group_end(report, k);

        put_group(report, k, end, to);
        k = end;
    }
    fprintf(to, "\nMedians; every row verified before and after it was timed; %.1f s in all.\n",
            report->seconds);
}
