/* SPDX-License-Identifier: MIT */
/*
 * arena_run.c: from a plan to samples. Ceilings first, of every device that takes part. Then case
 * by case, so that one problem is in memory at a time; and within a case device by device: its
 * contenders are made ready, race among themselves, and are gone before the next device begins.
 */
#include "arena/arena.h"
#include "arena/ceilings.h"
#include "arena/clock_watch.h"
#include "arena/entrants.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/cpu_clock_linux.h"
#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_USUAL  60.0
#define STREAMS_USUAL  4u
#define PRECISION      0.01
#define FLUSH_STEP     ((size_t)1 << 20)
#define CEILINGS_SHARE 100u /* of the progress, in thousandths */
#define PROGRESS_WHOLE 1000u

/* The race as it goes. */
typedef struct course {
    iron_arena *arena;
    iron__team *team, *alone;
    size_t racing;             /* rows that will race */
    size_t raced;              /* and have */
    size_t now;                /* rows in the race that is on */
    iron__cpu_stage cpu;       /* flush is kept from case to case */
    iron__gpu_device *watched; /* whose clocks are looked at; NULL: the CPU's */
    iron__report_device *seen; /* where they are noted */
    iron__clock_watch watch;
} course;

static bool races(const iron_arena *a, size_t row) { return a->plan.rows[row].reason[0] == '\0'; }

static iron_status tell(course *c, uint64_t thousandths, iron_error *err) {
    const iron_arena_options *o = &c->arena->options;

    IRON_FAIL_IF(o->progress && o->progress(o->context, thousandths, PROGRESS_WHOLE), err,
                 IRON_E_CANCELLED, "cancelled while racing");
    return IRON_OK;
}

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

static iron_status measure_one(course *c, const iron__plan_device *d, iron_error *err) {
    listening l = {c->arena, d};
    iron__ceiling_listener listener = {keep_ceiling, &l};
    iron_measure_options o = {.threads = c->arena->options.threads};
    iron_device_ceilings device;
    iron_ceilings cpu;

    if (d->is_cpu)
        return iron__measure_cpu(&o, listener, &cpu, err);
    return iron__measure_device(d->gpu_backend, d->index, &o, listener, &device, err);
}

static bool takes_part(const iron_arena *a, size_t device) {
    for (size_t k = 0; k < a->plan.row_count; k++)
        if (a->plan.rows[k].device_index == device && races(a, k))
            return true;
    return false;
}

/* A device without a limit to hold its contenders against does not race; the others do. */
static iron_status measure_or_leave(course *c, size_t device, iron_error *err) {
    iron__plan *plan = &c->arena->plan;
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = measure_one(c, &plan->devices[device], &why);

    if (status == IRON_OK)
        return IRON_OK;
    IRON_FAIL_IF(status == IRON_E_CANCELLED, err, status, "%s", why.text);
    for (size_t k = 0; k < plan->row_count; k++) {
        if (plan->rows[k].device_index != device || !races(c->arena, k))
            continue;
        snprintf(plan->rows[k].reason, sizeof plan->rows[k].reason, "no ceiling: %.220s", why.text);
        c->racing--;
        c->arena->racers[k].status = IRON_ROW_SKIPPED;
        memcpy(c->arena->racers[k].reason, plan->rows[k].reason, sizeof plan->rows[k].reason);
    }
    return IRON_OK;
}

static iron_status measure_ceilings(course *c, iron_error *err) {
    iron_arena *a = c->arena;

    for (size_t k = 0; k < a->plan.device_count; k++) {
        if (takes_part(a, k))
            IRON_TRY(measure_or_leave(c, k, err));
        IRON_TRY(tell(c, (k + 1) * CEILINGS_SHARE / a->plan.device_count, err));
    }
    return IRON_OK;
}

/* A CPU has neighbours that no GPU has: its ceilings are measured once more in the end. */
static iron_status measure_again(course *c, iron_error *err) {
    const iron__plan *plan = &c->arena->plan;

    for (size_t k = 0; k < plan->device_count; k++)
        if (plan->devices[k].is_cpu && takes_part(c->arena, k))
            IRON_TRY(measure_one(c, &plan->devices[k], err));
    return IRON_OK;
}

/* A contender that cannot be made ready: what a device or a case does not allow is a reason to skip
 * it, anything else a failure. */
static void give_up(iron__racer *racer, iron_status status, const iron_error *err) {
    bool is_skip = status == IRON_E_UNSUPPORTED || status == IRON_E_NOMEM;

    racer->status = is_skip ? IRON_ROW_SKIPPED : IRON_ROW_FAILED;
    snprintf(racer->reason, sizeof racer->reason, "%s", err->text);
}

static void give_up_all(course *c, size_t first, size_t count, iron_status status,
                        const iron_error *err) {
    for (size_t k = first; k < first + count; k++)
        if (races(c->arena, k))
            give_up(&c->arena->racers[k], status, err);
}

/* Progress of a part, in thousandths, becomes that of the whole. */
static int tell_part(void *context, uint64_t done, uint64_t total) {
    course *c = context;
    double part = total ? (double)done / (double)total : 0;
    double all = ((double)c->raced + part * (double)c->now) / (double)(c->racing ? c->racing : 1);
    uint64_t span = PROGRESS_WHOLE - CEILINGS_SHARE;

    return tell(c, CEILINGS_SHARE + (uint64_t)(all * (double)span), NULL) != IRON_OK;
}

/* Was the device held back, by heat, its power supply or a lower clock? */
static bool is_throttled(void *context) {
    course *c = context;
    iron__gpu_clocks clocks;

    if (!c->watched)
        return iron__clock_watch_look_cpu(&c->watch, iron__cpu_clock_mhz(IRON_CPU_CLOCK_ROOT),
                                          iron__cpu_throttle_count(IRON_CPU_CLOCK_ROOT), c->seen);
    if (iron__gpu_clocks_read(c->watched, &clocks, NULL) != IRON_OK)
        return false;
    return iron__clock_watch_look(&c->watch, &clocks, c->seen);
}

static iron_status run_race(course *c, size_t first, size_t count, iron_error *err) {
    const iron_arena_options *o = &c->arena->options;
    double seconds = o->seconds > 0 ? o->seconds : SECONDS_USUAL;
    iron__race_rules rules = {.seconds = seconds * (double)c->now / (double)c->racing,
                              .runs = o->runs,
                              .precision = PRECISION,
                              .seed = o->seed + first,
                              .is_throttled = is_throttled,
                              .progress = tell_part,
                              .context = c};

    return iron__race_run(c->arena->racers + first, count, &rules, err);
}

static void close_entrants(course *c, size_t first, size_t count) {
    for (size_t k = first; k < first + count; k++) {
        iron__racer *r = &c->arena->racers[k];

        if (r->entrant)
            r->entrant->ops->close(r->entrant);
        r->entrant = NULL;
    }
}

/* Where contenders of one device are made ready: one of the two is used. */
typedef struct any_stage {
    iron__cpu_stage *cpu;
    iron__stage *gpu;
} any_stage;

static iron_status open_entrant(const any_stage *stage, const iron__plan_row *row,
                                iron__entrant **out, iron_error *err) {
    iron__contender peer;

    if (stage->cpu)
        return row->peer ? iron__entrant_cpu_peer(stage->cpu, row->peer, out, err)
                         : iron__entrant_cpu(stage->cpu, &row->contender, out, err);
    if (!row->peer)
        return iron__entrant_gpu(stage->gpu, &row->contender, row->memory, out, err);
    peer = iron__peer_contender(row->peer, &row->contender);
    return iron__entrant_gpu(stage->gpu, &peer, row->memory, out, err);
}

static iron_status race_rows(course *c, const any_stage *stage, const iron__problem *problem,
                             size_t first, size_t count, iron_error *err) {
    iron__judging *judgings = calloc(count, sizeof *judgings);
    iron_status status;

    if (!judgings)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a race");
    for (size_t k = 0; k < count; k++) {
        const iron__plan_row *row = &c->arena->plan.rows[first + k];
        iron__racer *racer = &c->arena->racers[first + k];
        iron_error why = {IRON_OK, 0, ""};

        judgings[k] = (iron__judging){problem, row->peer};
        racer->output_bytes = problem->output_bytes;
        racer->judge = iron__judge_answer;
        racer->judge_context = &judgings[k];
        if (!races(c->arena, first + k))
            continue;
        status = open_entrant(stage, row, &racer->entrant, &why);
        if (status != IRON_OK)
            give_up(racer, status, &why);
        else
            racer->entrant->scopes &= c->arena->plan.scopes;
    }
    status = run_race(c, first, count, err);
    close_entrants(c, first, count);
    free(judgings);
    return status;
}

static iron_status race_on_cpu(course *c, const iron__problem *problem, size_t first, size_t count,
                               iron_error *err) {
    any_stage stage = {.cpu = &c->cpu};

    c->cpu.problem = problem;
    c->watched = NULL;
    c->watch = (iron__clock_watch){0};
    return race_rows(c, &stage, problem, first, count, err);
}

static iron_status race_on_gpu(course *c, const iron__plan_device *d, const iron__problem *problem,
                               size_t first, size_t count, iron_error *err) {
    const iron_arena_options *o = &c->arena->options;
    iron__stage gpu;
    any_stage stage = {.gpu = &gpu};
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = iron__stage_open(&gpu, d->gpu_backend, d->index, problem,
                                          o->streams ? o->streams : STREAMS_USUAL, &why);

    if (status != IRON_OK) {
        give_up_all(c, first, count, status, &why);
        return IRON_OK;
    }
    c->watched = gpu.device;
    c->watch = (iron__clock_watch){0};
    status = race_rows(c, &stage, problem, first, count, err);
    c->watched = NULL;
    iron__stage_close(&gpu);
    return status;
}

static iron_status race_on(course *c, size_t device, const iron__problem *problem, size_t first,
                           size_t count, iron_error *err) {
    const iron__plan_device *d = &c->arena->plan.devices[device];

    c->now = 0;
    for (size_t k = first; k < first + count; k++)
        c->now += races(c->arena, k);
    if (c->now == 0)
        return IRON_OK;
    c->seen = &c->arena->report.devices[device];
    IRON_TRY(d->is_cpu ? race_on_cpu(c, problem, first, count, err)
                       : race_on_gpu(c, d, problem, first, count, err));
    c->raced += c->now;
    return IRON_OK;
}

/* The rows of one case, device by device. */
static iron_status race_devices(course *c, const iron__problem *problem, size_t first, size_t last,
                                iron_error *err) {
    const iron__plan_row *rows = c->arena->plan.rows;

    while (first < last) {
        size_t end = first;

        while (end < last && rows[end].device_index == rows[first].device_index)
            end++;
        IRON_TRY(race_on(c, rows[first].device_index, problem, first, end - first, err));
        first = end;
    }
    return IRON_OK;
}

static iron_status race_case(course *c, size_t first, size_t last, iron_error *err) {
    const iron__plan *plan = &c->arena->plan;
    iron__problem problem = {.c = plan->cases[plan->rows[first].case_index].c};
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = problem.c.op->make(&problem, c->team, &why);

    if (status != IRON_OK) {
        give_up_all(c, first, last - first, status, &why);
        return IRON_OK;
    }
    status = race_devices(c, &problem, first, last, err);
    problem.c.op->unmake(&problem);
    return status;
}

static iron_status race_cases(course *c, iron_error *err) {
    const iron__plan *plan = &c->arena->plan;

    for (size_t first = 0, last; first < plan->row_count; first = last) {
        bool is_any = false;

        for (last = first;
             last < plan->row_count && plan->rows[last].case_index == plan->rows[first].case_index;
             last++)
            is_any = is_any || races(c->arena, last);
        if (is_any)
            IRON_TRY(race_case(c, first, last, err));
    }
    return IRON_OK;
}

static iron_status set_up(course *c, iron_error *err) {
    uint32_t threads = c->arena->options.threads;

    IRON_TRY(iron__team_create(threads ? threads : iron__cpu_threads(), iron__allocator_default(),
                               &c->team, err));
    IRON_TRY(iron__team_create(1, iron__allocator_default(), &c->alone, err));
    c->cpu = (iron__cpu_stage){.team = c->team, .alone = c->alone};
    c->cpu.flush_bytes = 2 * (size_t)iron__cpu_last_cache_bytes() / FLUSH_STEP * FLUSH_STEP;
    c->cpu.flush = iron__allocate_large(c->cpu.flush_bytes, err);
    if (!c->cpu.flush)
        return IRON_E_NOMEM;
    iron__write_pass(c->team, c->cpu.flush, c->cpu.flush_bytes); /* real pages */
    return IRON_OK;
}

static void tear_down(course *c) {
    iron__release_large(c->cpu.flush, c->cpu.flush_bytes);
    iron__team_destroy(c->alone);
    iron__team_destroy(c->team);
}

/* Rows that the plan skips; and how many are left. */
static void count_rows(course *c) {
    iron_arena *a = c->arena;

    for (size_t k = 0; k < a->plan.row_count; k++) {
        if (races(a, k)) {
            c->racing++;
            continue;
        }
        a->racers[k].status = IRON_ROW_SKIPPED;
        snprintf(a->racers[k].reason, sizeof a->racers[k].reason, "%s", a->plan.rows[k].reason);
    }
}

iron_status iron__arena_run(iron_arena *arena, iron_error *err) {
    course c = {.arena = arena};
    uint64_t start = iron__clock_ns();
    iron_status status;

    count_rows(&c);
    status = set_up(&c, err);
    if (status == IRON_OK && c.racing > 0)
        status = measure_ceilings(&c, err);
    if (status == IRON_OK)
        status = race_cases(&c, err);
    if (status == IRON_OK && c.racing > 0)
        status = measure_again(&c, err);
    tear_down(&c);
    arena->report.seconds = (double)(iron__clock_ns() - start) * 1e-9;
    return status;
}
