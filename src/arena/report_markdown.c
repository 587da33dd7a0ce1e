/* SPDX-License-Identifier: MIT */
/*
 * report_markdown.c: the report for a README or an issue: tables as GitHub draws them.
 *
 * Names and reasons are text, whatever they hold: the characters that Markdown or HTML would act on
 * are escaped, and a line break becomes a blank, since a table's row is a line. What the main
 * kernel of a row takes of its device stands in columns at the end, those that any row of the
 * report fills.
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

/* Columns about the main kernel, and which of them the report has. */
#define KERNEL_COLUMNS 4u

static const char *const kernel_titles[KERNEL_COLUMNS] = {"registers", "local bytes", "spill bytes",
                                                          "occupancy"};

typedef struct kernel_columns {
    bool is_shown[KERNEL_COLUMNS];
} kernel_columns;

static double kernel_figure(const iron__report_row *row, size_t column) {
    iron__kernel_figures f = iron__kernel_figures_of(iron__kernels_main(row->kernels));

    return (const double[]){f.registers, f.local_bytes, f.spill_bytes, f.occupancy_percent}[column];
}

static kernel_columns kernel_columns_of(const iron__report *report) {
    kernel_columns c = {{false}};

    for (size_t k = 0; k < report->row_count; k++)
        for (size_t n = 0; n < KERNEL_COLUMNS && report->rows[k].status == IRON_ROW_OK; n++)
            c.is_shown[n] = c.is_shown[n] || kernel_figure(&report->rows[k], n) >= 0;
    return c;
}

/* Ends a line of a table; row: NULL for one that has no kernel. */
static void put_kernel(const kernel_columns *c, const iron__report_row *row, FILE *to) {
    for (size_t n = 0; n < KERNEL_COLUMNS; n++) {
        double figure = row ? kernel_figure(row, n) : -1;

        if (!c->is_shown[n])
            continue;
        if (figure >= 0)
            fprintf(to, " %.0f%s |", figure, n + 1 == KERNEL_COLUMNS ? " %" : "");
        else
            fputs(" |", to);
    }
    fputc('\n', to);
}

static void put_row(const iron__report_row *row, const kernel_columns *columns, FILE *to) {
    const iron__report_scope *kernel = &row->scopes[IRON_SCOPE_KERNEL];
    iron__words w[4];

    fprintf(to, "| %u | %s%s%s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %zu, %s |", row->rank,
            marked(iron__row_name(row).text).text, row->is_peer ? " (peer)" : "",
            row->is_cache_resident ? " (cache-resident)" : "",
            median_of(row, IRON_SCOPE_KERNEL, &w[0]), iron__figure(kernel->gb_s).text,
            iron__figure_of(kernel->percent_of_ceiling, 1, " %").text,
            iron__figure(kernel->cold_gb_s).text, median_of(row, IRON_SCOPE_END_TO_END, &w[1]),
            median_of(row, IRON_SCOPE_TRANSFER, &w[2]), median_of(row, IRON_SCOPE_PREPARE, &w[3]),
            iron__figure_of(row->speedup, 2, "×").text,
            iron__figure_of(kernel->warm.noise_percent, 1, " %").text, kernel->warm.count,
            kernel->samples ? iron__stop_name(kernel->samples->stop) : "");
    put_kernel(columns, row, to);
}

/* A limit, in the columns of the contenders. */
static void put_limit(const iron__report_ceiling *c, const kernel_columns *columns, FILE *to) {
    fprintf(to, "| | *%s ceiling: %s* | %s | %s | 100.0 %% | | | | | | %s | %zu, runs |",
            marked(c->backend).text, marked(c->name).text,
            iron__figure(c->figures.warm.median).text, iron__figure(c->figures.gb_s).text,
            iron__figure_of(c->figures.warm.noise_percent, 1, " %").text, c->figures.warm.count);
    put_kernel(columns, NULL, to);
}

static void put_titles(const iron__report *report, const kernel_columns *columns, size_t first,
                       size_t end, FILE *to) {
    fputs("\n| # | contender | kernel ms | GB/s | of ceiling | cold GB/s | end to end ms | "
          "transfer ms | prepare ms | speedup | noise | samples |",
          to);
    for (size_t n = 0; n < KERNEL_COLUMNS; n++)
        if (columns->is_shown[n])
            fprintf(to, " %s |", kernel_titles[n]);
    fputs("\n|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|", to);
    for (size_t n = 0; n < KERNEL_COLUMNS; n++)
        fputs(columns->is_shown[n] ? "---:|" : "", to);
    fputc('\n', to);
    for (size_t k = 0; k < report->ceiling_count; k++)
        if (iron__group_has_ceiling(report, first, end, &report->ceilings[k]))
            put_limit(&report->ceilings[k], columns, to);
}

static void put_group(const iron__report *report, const kernel_columns *columns, size_t first,
                      size_t end, FILE *to) {
    const iron__report_row *row = &report->rows[first];
    bool has_titles = false;

    fprintf(to, "\n## %s\n\n%s.\n", marked(iron__group_title(row).text).text,
            marked(iron__group_facts(row).text).text);
    for (; first < end && report->rows[first].status == IRON_ROW_OK; first++) {
        if (!has_titles)
            put_titles(report, columns, first, end, to);
        has_titles = true;
        put_row(&report->rows[first], columns, to);
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
    kernel_columns columns = kernel_columns_of(report);

    put_machine(report, to);
    put_devices(report, to);
    put_ceilings(report, to);
    for (size_t k = 0; k < report->row_count;) {
        size_t end = iron__group_end(report, k);

        put_group(report, &columns, k, end, to);
        k = end;
    }
    fprintf(to, "\nMedians; every row verified before and after it was timed; %.1f s in all.\n",
            report->seconds);
}
