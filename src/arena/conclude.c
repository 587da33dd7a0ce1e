/* SPDX-License-Identifier: MIT */
/*
 * conclude.c: from samples to a report: statistics, rates, shares of the ceiling, ranks, speedups.
 *
 * Useful bytes come from the op, so two contenders' rates differ only where their times do. Shares
 * are of the same device: kernels are held against its read or copy ceiling (the op says which),
 * transfers and whole runs against page-locked copies, the fastest way to the device.
 */
#include "arena/arena.h"
#include "arena/report_words.h"
#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const iron__report_ceiling *find_ceiling(const iron__report *r, const char *backend,
                                                const char *name) {
    for (size_t k = 0; k < r->ceiling_count; k++)
        if (strcmp(r->ceilings[k].backend, backend) == 0 && strcmp(r->ceilings[k].name, name) == 0)
            return &r->ceilings[k];
    return NULL;
}

static double ceiling_for(const iron__report *r, const iron__plan_device *d, const iron__op *op,
                          iron__scope scope) {
    const char *name = op->bound == IRON_BOUND_COPY ? "copy" : "read";
    const iron__report_ceiling *c;

    if (scope == IRON_SCOPE_TRANSFER || scope == IRON_SCOPE_END_TO_END)
        name = "to_device_pinned";
    c = find_ceiling(r, d->backend, name);
    return c ? c->figures.gb_s : 0;
}

static iron__report_scope scope_of(const iron__samples *warm, const iron__samples *cold,
                                   double bytes, double ceiling) {
    iron__report_scope s = {.is_there = warm->count > 0};

    if (!s.is_there)
        return s;
    s.warm = iron__statistics_of(warm->ms, warm->count);
    s.samples = warm;
    s.gb_s = bytes / s.warm.median * 1e-6;
    s.percent_of_ceiling = ceiling > 0 ? 100 * s.gb_s / ceiling : 0;
    if (cold && cold->count > 0) {
        s.cold = iron__statistics_of(cold->ms, cold->count);
        s.cold_gb_s = bytes / s.cold.median * 1e-6;
        s.cold_samples = cold;
    }
    return s;
}

static void fill_names(const iron_arena *a, const iron__plan_row *p, iron__report_row *r) {
    const iron__plan_case *c = &a->plan.cases[p->case_index];
    const iron__plan_device *d = &a->plan.devices[p->device_index];

    snprintf(r->op, sizeof r->op, "%s", c->c.op->name);
    snprintf(r->contender, sizeof r->contender, "%s", p->contender.name);
    snprintf(r->backend, sizeof r->backend, "%s", d->backend);
    snprintf(r->memory, sizeof r->memory, "%s", iron__plan_memory_name(p));
    snprintf(r->device, sizeof r->device, "%s", d->info.name);
    snprintf(r->size, sizeof r->size, "%s", c->size);
    snprintf(r->size_name, sizeof r->size_name, "%s", c->size_name);
    snprintf(r->dtype, sizeof r->dtype, "%s", iron__element_name(c->c.element));
}

/* Does the problem stay in the last-level cache from one pass to the next? */
static bool is_cache_resident(const iron__plan_device *d, uint64_t bytes) {
    return d->cache_bytes > 0 && bytes < 4 * d->cache_bytes;
}

/* The op's own; where that is not for this case, the first that is and improves on nobody. */
static const char *baseline_of(const iron__case *c, const iron__plan_device *d) {
    const char *usual = c->op->baselines[d->is_cpu ? 0 : 1], *first = NULL;
    iron__contender row;

    for (size_t k = 0; c->op->contender_at(k, &row); k++) {
        if (!(row.backends & d->on) || (row.suits && !row.suits(&row, c)))
            continue;
        if (strcmp(row.name, usual) == 0)
            return usual;
        if (!first && !row.beats)
            first = row.name;
    }
    return first ? first : usual;
}

static void fill_row(const iron_arena *a, size_t index, iron__report_row *r) {
    const iron__plan_row *p = &a->plan.rows[index];
    const iron__racer *racer = &a->racers[index];
    const iron__case *c = &a->plan.cases[p->case_index].c;
    const iron__plan_device *d = &a->plan.devices[p->device_index];

    fill_names(a, p, r);
    r->vocab = c->vocab;
    r->params = a->plan.cases[p->case_index].params;
    r->kernels = iron__kernels_main(&a->kernels[index]) ? &a->kernels[index] : NULL;
    if (p->memory == IRON_GPU_STREAMS)
        r->streams = a->options.streams ? a->options.streams : 4;
    r->nodes = c->op->nodes;
    if (d->is_cpu && !p->peer) /* what a peer makes of the threads it may use is its own affair */
        r->threads = p->contender.is_single ? 1 : a->report.host.threads;
    r->idea = p->contender.idea;
    r->is_peer = p->peer != NULL;
    r->useful_bytes = c->op->useful_bytes(c);
    r->is_cache_resident = is_cache_resident(d, r->useful_bytes);
    r->is_verified = racer->is_verified;
    r->operations = c->op->operations(c);
    r->passes = p->contender.passes > 0 ? p->contender.passes : 1;
    r->status = racer->status;
    memcpy(r->reason, racer->reason, sizeof r->reason);
    snprintf(r->baseline, sizeof r->baseline, "%s", baseline_of(c, d));
    for (size_t k = 0; k < IRON_SCOPES && r->status == IRON_ROW_OK; k++)
        r->scopes[k] =
            scope_of(&racer->warm[k], k == IRON_SCOPE_KERNEL ? &racer->cold : NULL,
                     (double)r->useful_bytes, ceiling_for(&a->report, d, c->op, (iron__scope)k));
}

/* The baseline of a row: the op's own of the same backend, with pageable memory on GPUs. */
static const iron__report_row *find_baseline(const iron__report *report,
                                             const iron__report_row *row) {
    for (size_t k = 0; k < report->row_count; k++) {
        const iron__report_row *b = &report->rows[k];

        if (strcmp(b->contender, row->baseline) == 0 && strcmp(b->backend, row->backend) == 0 &&
            iron__rows_are_grouped(b, row) &&
            (strcmp(b->memory, "host") == 0 || strcmp(b->memory, "pageable") == 0))
            return b->status == IRON_ROW_OK ? b : NULL;
    }
    return NULL;
}

static void fill_speedups(iron__report *report) {
    for (size_t k = 0; k < report->row_count; k++) {
        iron__report_row *r = &report->rows[k];
        const iron__report_row *b = find_baseline(report, r);

        for (size_t s = 0; b && s < IRON_SCOPES; s++)
            if (r->scopes[s].is_there && b->scopes[s].is_there)
                r->scopes[s].speedup = b->scopes[s].warm.median / r->scopes[s].warm.median;
        r->speedup = r->scopes[IRON_SCOPE_KERNEL].speedup;
    }
}

/* Ranked rows by time, then wrong, failed and skipped ones; else as planned. */
static bool comes_before(const iron__report_row *a, const iron__report_row *b) {
    static const int order[] = {0, 1, 3, 2}; /* ok, wrong, skipped, failed */

    if (a->status != b->status)
        return order[a->status] < order[b->status];
    return a->status == IRON_ROW_OK &&
           a->scopes[IRON_SCOPE_KERNEL].warm.median < b->scopes[IRON_SCOPE_KERNEL].warm.median;
}

/* Insertion sort: stable, and a group has a hundred rows at most. */
static void rank_group(iron__report_row *rows, size_t count) {
    uint32_t rank = 0;

    for (size_t k = 1; k < count; k++) {
        iron__report_row row = rows[k];
        size_t at = k;

        for (; at > 0 && comes_before(&row, &rows[at - 1]); at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
    for (size_t k = 0; k < count; k++)
        rows[k].rank = rows[k].status == IRON_ROW_OK ? ++rank : 0;
}

static void rank_all(iron__report *report) {
    for (size_t first = 0, last; first < report->row_count; first = last) {
        last = iron__group_end(report, first);
        rank_group(report->rows + first, last - first);
    }
}

static void fill_devices(iron_arena *a) {
    for (size_t k = 0; k < a->plan.device_count; k++) {
        const iron__plan_device *d = &a->plan.devices[k];
        iron__report_device *r = &a->report.devices[k];

        snprintf(r->backend, sizeof r->backend, "%s", d->backend);
        snprintf(r->name, sizeof r->name, "%s", d->info.name);
        snprintf(r->driver, sizeof r->driver, "%s", d->info.driver);
        snprintf(r->reason, sizeof r->reason, "%s", d->reason);
        r->index = d->index;
        r->units = d->is_cpu ? a->report.host.threads : d->info.units;
        r->memory_bytes = d->is_cpu ? a->report.host.memory_bytes : d->info.memory_bytes;
        r->cache_bytes = d->cache_bytes;
        r->is_there = d->is_there;
    }
    a->report.device_count = a->plan.device_count;
}

/* Rows of an op stand together. */
static void fill_ops(iron_arena *a) {
    iron__report *r = &a->report;

    for (size_t k = 0; k < a->plan.row_count; k++) {
        const iron__op *op = a->plan.cases[a->plan.rows[k].case_index].c.op;

        if (r->op_count < IRON_REPORT_OPS && (r->op_count == 0 || r->ops[r->op_count - 1] != op))
            r->ops[r->op_count++] = op;
    }
}

iron_status iron__arena_conclude(iron_arena *arena, iron_error *err) {
    iron__report *r = &arena->report;

    (void)err;
    snprintf(r->version, sizeof r->version, "%s", iron_version());
    iron__report_host_fill(&r->host);
    if (arena->options.threads)
        r->host.threads = arena->options.threads;
    fill_devices(arena);
    r->row_count = arena->plan.row_count;
    for (size_t k = 0; k < r->row_count; k++)
        fill_row(arena, k, &r->rows[k]);
    fill_ops(arena);
    fill_speedups(r);
    rank_all(r);
    return IRON_OK;
}
