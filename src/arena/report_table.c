/* SPDX-License-Identifier: MIT */
/*
 * report_table.c: the report for a terminal.
 *
 * First the machine; then a table an op, size, element type and parameters: what the devices'
 * memory can give, as rows in the same columns, and the contenders, best first. What is wrong or
 * failed follows the ranked rows, each with its reason, in red: nobody scrolls past it. What was
 * skipped comes once at the end, a line a reason, since one absent driver explains twenty rows. The
 * last line says by which rules the figures came about.
 */
#include "arena/report_columns.h"

#include <string.h>

/* A sentence that begins a line; what follows a break is set in. */
static void put_sentence(const iron__layout *l, const char *text) {
    int at = 0;

    iron__layout_text(l, iron__plain(text, "").text, 4, &at);
    fputc('\n', l->to);
}

static void put_device(const iron__layout *l, const iron__report_device *device) {
    iron__words w, clocks = {""};

    if (device->clock_max)
        snprintf(clocks.text, sizeof clocks.text, ", %u to %u MHz%s%s", device->clock_min,
                 device->clock_max, device->throttle[0] ? ", throttled: " : "", device->throttle);
    if (device->is_there)
        snprintf(w.text, sizeof w.text, "%s %u: %s, %s%s%u units, %.16s%.140s", device->backend,
                 device->index, device->name, device->driver, device->driver[0] ? ", " : "",
                 device->units, iron__bytes_words(device->memory_bytes).text, clocks.text);
    else
        snprintf(w.text, sizeof w.text, "%s %u: not raced: %s", device->backend, device->index,
                 device->reason);
    put_sentence(l, w.text);
}

static void put_machine(const iron__layout *l, const iron__report *report) {
    const iron__report_host *host = &report->host;
    iron__words w;

    snprintf(w.text, sizeof w.text, "iron %s on %s: %s, %u threads, %.16s; %s", report->version,
             host->name, host->cpu, host->threads, iron__bytes_words(host->memory_bytes).text,
             host->date);
    put_sentence(l, w.text);
    for (size_t k = 0; k < report->device_count; k++)
        put_device(l, &report->devices[k]);
}

/* A row without figures: its name, the verdict, the reason. */
static void put_verdict(const iron__layout *l, const iron__report_row *row) {
    bool is_wrong = row->status == IRON_ROW_WRONG;
    int at = 4;

    fputs("   !", l->to);
    iron__ink_begin(l, is_wrong ? IRON_INK_RED : IRON_INK_YELLOW);
    iron__layout_text(l, iron__row_name(row).text, 5, &at);
    iron__layout_text(l, is_wrong ? "WRONG:" : "FAILED:", 5, &at);
    iron__layout_text(l, iron__plain(row->reason, "").text, 7, &at);
    iron__ink_end(l);
    fputc('\n', l->to);
}

static void put_group_title(const iron__layout *l, const iron__report_row *row) {
    iron__words w;
    int at = 0;

    snprintf(w.text, sizeof w.text, "%.400s: %.100s", iron__group_title(row).text,
             iron__group_facts(row).text);
    fputc('\n', l->to);
    iron__ink_begin(l, IRON_INK_BOLD);
    iron__layout_text(l, w.text, 2, &at);
    iron__ink_end(l);
    fputc('\n', l->to);
}

static bool has_lines(const iron__report *report, size_t first, size_t end) {
    for (size_t k = first; k < end; k++)
        if (report->rows[k].status != IRON_ROW_SKIPPED)
            return true;
    return false;
}

static void put_group(const iron__layout *l, const iron__report *report, size_t first, size_t end) {
    if (!has_lines(report, first, end))
        return;
    put_group_title(l, &report->rows[first]);
    iron__layout_titles(l);
    for (size_t k = 0; k < report->ceiling_count; k++)
        if (iron__group_has_ceiling(report, first, end, &report->ceilings[k]))
            iron__layout_ceiling(l, &report->ceilings[k]);
    for (size_t k = first; k < end; k++) {
        const iron__report_row *row = &report->rows[k];

        if (row->status == IRON_ROW_OK)
            iron__layout_row(l, row);
        else if (row->status != IRON_ROW_SKIPPED)
            put_verdict(l, row);
    }
}

static bool is_skipped_for(const iron__report_row *row, const char *reason) {
    return row->status == IRON_ROW_SKIPPED && strcmp(row->reason, reason) == 0;
}

/* Was the same reason, or with it the same name, told by a row before this one? Sizes and types
 * repeat both. */
static bool is_told(const iron__report *report, size_t index, bool with_name) {
    const iron__report_row *row = &report->rows[index];
    iron__words name = iron__row_name(row);

    for (size_t k = 0; k < index; k++)
        if (is_skipped_for(&report->rows[k], row->reason) &&
            (!with_name || strcmp(iron__row_name(&report->rows[k]).text, name.text) == 0))
            return true;
    return false;
}

static void put_skipped_for(const iron__layout *l, const iron__report *report, size_t first) {
    const char *reason = report->rows[first].reason;
    int at = 0;

    iron__layout_text(l, iron__plain(reason, "").text, 4, &at);
    fputc(':', l->to);
    at++;
    for (size_t k = first; k < report->row_count; k++)
        if (is_skipped_for(&report->rows[k], reason) && !is_told(report, k, true)) {
            iron__words name = iron__row_name(&report->rows[k]);

            for (char *blank = name.text; (blank = strchr(blank, ' '));)
                *blank = '/'; /* the memory stays with its name when a line is broken */
            iron__layout_text(l, name.text, 4, &at);
        }
    fputc('\n', l->to);
}

static void put_skipped(const iron__layout *l, const iron__report *report) {
    bool is_first = true;

    for (size_t k = 0; k < report->row_count; k++) {
        if (report->rows[k].status != IRON_ROW_SKIPPED || is_told(report, k, false))
            continue;
        if (is_first)
            fputs("\nskipped\n", l->to);
        is_first = false;
        put_skipped_for(l, report, k);
    }
}

static void put_legend(const iron__layout *l, const iron__report *report) {
    bool has_peers = false, has_residents = false;
    int at = 0;

    for (size_t k = 0; k < report->row_count; k++) {
        has_peers |= report->rows[k].is_peer && report->rows[k].status == IRON_ROW_OK;
        has_residents |= report->rows[k].is_cache_resident && report->rows[k].status == IRON_ROW_OK;
    }
    fputc('\n', l->to);
    iron__ink_begin(l, IRON_INK_DIM);
    if (has_peers)
        iron__layout_text(l, "* a peer: another library's way.", 0, &at);
    if (has_residents)
        iron__layout_text(l, "~ cache-resident: the data fit into the cache.", 0, &at);
    if (l->is_shown[IRON_COLUMN_COLD])
        iron__layout_text(l, "cold: GB/s with empty caches.", 0, &at);
    if (l->is_shown[IRON_COLUMN_SAMPLES])
        iron__layout_text(l, "runs: ended by p precision, t time, r their number.", 0, &at);
    if (l->is_shown[IRON_COLUMN_SPEEDUP])
        iron__layout_text(l, "speedup: over the op's baseline, same backend.", 0, &at);
    if (l->is_shown[IRON_COLUMN_OCCUPANCY])
        iron__layout_text(l, "occ: percent of the threads that a unit could hold.", 0, &at);
    if (l->is_shown[IRON_COLUMN_REGISTERS])
        iron__layout_text(l, "regs, spill: registers and spilled bytes a thread.", 0, &at);
    if (l->is_shown[IRON_COLUMN_LOCAL])
        iron__layout_text(l, "local: bytes of local memory a group.", 0, &at);
    iron__ink_end(l);
    fputc('\n', l->to);
}

/* The rules, as they came to apply: how sampling ended, what was dropped, how long it all took. */
static void put_rules(const iron__layout *l, const iron__report *report) {
    uint32_t ends[IRON_STOP_RUNS + 1] = {0}, dropped = 0, raced = 0;
    iron__words w;
    int at = 0;

    for (size_t k = 0; k < report->row_count; k++) {
        const iron__report_scope *kernel = iron__row_scope(&report->rows[k], IRON_SCOPE_KERNEL);

        raced += report->rows[k].status == IRON_ROW_OK;
        if (kernel && kernel->samples) {
            ends[kernel->samples->stop]++;
            dropped += kernel->samples->dropped;
        }
    }
    snprintf(
        w.text, sizeof w.text,
        "%u of %zu rows raced, in turns, verified before and after, in %.1f s; medians; "
        "sampling ended by precision %u, time %u, runs %u times; %u samples dropped (throttled).",
        raced, report->row_count, report->seconds, ends[IRON_STOP_PRECISION], ends[IRON_STOP_TIME],
        ends[IRON_STOP_RUNS], dropped);
    iron__layout_text(l, w.text, 0, &at);
    fputc('\n', l->to);
}

void iron__report_table(const iron__report *report, FILE *to, bool is_terminal, int width) {
    iron__layout l = iron__layout_make(report, to, is_terminal, width);

    put_machine(&l, report);
    for (size_t k = 0; k < report->row_count;) {
        size_t end = iron__group_end(report, k);

        put_group(&l, report, k, end);
        k = end;
    }
    put_skipped(&l, report);
    put_legend(&l, report);
    put_rules(&l, report);
}
