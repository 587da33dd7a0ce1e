/* SPDX-License-Identifier: MIT */
/*
 * arena_ceilings.c: what the memory of the devices can give, as rows of the report. They are of the
 * device, not of a case: measured once before the first case, however many follow, and once more
 * after the last on a CPU.
 */
#include "arena/ceilings.h"
#include "arena/course.h"
#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A ceiling as it was measured becomes a row of the report. */
typedef struct listening {
    iron_arena *arena;
    const iron__plan_device *device;
} listening;

/* Where a ceiling of that name stands, or where the next one goes. */
static size_t place_of(const iron__report *r, const char *backend, const char *name) {
    size_t k = 0;

    while (k < r->ceiling_count &&
           (strcmp(r->ceilings[k].backend, backend) != 0 || strcmp(r->ceilings[k].name, name) != 0))
        k++;
    return k;
}

static bool copy_samples(iron__samples *to, const iron__ceiling_passes *from) {
    double *ms = malloc(from->count * sizeof *ms);

    if (!ms)
        return false;
    memcpy(ms, from->ms, from->count * sizeof *ms);
    free(to->ms);
    *to = (iron__samples){.ms = ms,
                          .count = (uint32_t)from->count,
                          .room = (uint32_t)from->count,
                          .passes = 1,
                          .stop = IRON_STOP_RUNS};
    return true;
}

/* Of two measurements of a ceiling the better one is kept: a limit that was lowered by a neighbour
 * is none. Where memory is out it is missing, and shares of it are not shown. */
static void keep_ceiling(void *context, const iron__ceiling_passes *passes) {
    const listening *l = context;
    iron__report *r = &l->arena->report;
    size_t at = place_of(r, l->device->backend, passes->name);
    iron__statistics figures = iron__statistics_of(passes->ms, passes->count);
    iron__report_ceiling *to = &r->ceilings[at];

    if (at == IRON_CEILINGS_MAX || !(figures.median > 0))
        return;
    if ((at < r->ceiling_count && to->figures.warm.median <= figures.median) ||
        !copy_samples(&l->arena->ceiling_samples[at], passes))
        return;
    r->ceiling_count += at == r->ceiling_count;
    snprintf(to->backend, sizeof to->backend, "%s", l->device->backend);
    snprintf(to->device, sizeof to->device, "%s", l->device->info.name);
    snprintf(to->name, sizeof to->name, "%s", passes->name);
    snprintf(to->shape, sizeof to->shape, "%s", passes->shape);
    to->bytes = (uint64_t)passes->bytes;
    to->figures = (iron__report_scope){.is_there = true,
                                       .warm = figures,
                                       .gb_s = passes->bytes / figures.median * 1e-6,
                                       .percent_of_ceiling = 100,
                                       .samples = &l->arena->ceiling_samples[at]};
}

static iron_status measure_one(iron__course *c, const iron__plan_device *d, iron_error *err) {
    listening l = {c->arena, d};
    iron__ceiling_listener listener = {keep_ceiling, &l};
    iron_measure_options o = {.threads = c->arena->options.threads};
    iron_device_ceilings device;
    iron_ceilings cpu;

    if (d->is_cpu)
        return iron__measure_cpu(&o, listener, &cpu, err);
    return iron__measure_device(d->gpu_backend, d->index, &o, listener, &device, err);
}

static bool takes_part(const iron__course *c, size_t device) {
    const iron__plan *plan = &c->arena->plan;

    for (size_t k = 0; k < plan->row_count; k++)
        if (plan->rows[k].device_index == device && iron__course_races(c, k))
            return true;
    return false;
}

/* A device without a limit to hold its contenders against does not race; the others do. */
static iron_status measure_or_leave(iron__course *c, size_t device, iron_error *err) {
    iron__plan *plan = &c->arena->plan;
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = measure_one(c, &plan->devices[device], &why);

    if (status == IRON_OK)
        return IRON_OK;
    IRON_FAIL_IF(status == IRON_E_CANCELLED, err, status, "%s", why.text);
    for (size_t k = 0; k < plan->row_count; k++) {
        if (plan->rows[k].device_index != device || !iron__course_races(c, k))
            continue;
        snprintf(plan->rows[k].reason, sizeof plan->rows[k].reason, "no ceiling: %.220s", why.text);
        c->racing--;
        c->arena->racers[k].status = IRON_ROW_SKIPPED;
        memcpy(c->arena->racers[k].reason, plan->rows[k].reason, sizeof plan->rows[k].reason);
    }
    return IRON_OK;
}

iron_status iron__course_ceilings(iron__course *c, iron_error *err) {
    iron_arena *a = c->arena;

    for (size_t k = 0; k < a->plan.device_count; k++) {
        if (takes_part(c, k))
            IRON_TRY(measure_or_leave(c, k, err));
        IRON_TRY(
            iron__course_tell(c, (k + 1) * IRON_PROGRESS_CEILINGS / a->plan.device_count, err));
    }
    return IRON_OK;
}

iron_status iron__course_ceilings_again(iron__course *c, iron_error *err) {
    const iron__plan *plan = &c->arena->plan;

    for (size_t k = 0; k < plan->device_count; k++)
        if (plan->devices[k].is_cpu && takes_part(c, k))
            IRON_TRY(measure_one(c, &plan->devices[k], err));
    return IRON_OK;
}
