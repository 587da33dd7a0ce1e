/* SPDX-License-Identifier: MIT */
/*
 * arena_run.c: from a plan to samples. Ceilings first, of every device that takes part. Then case
 * by case, so that one problem is in memory at a time; and within a case device by device: its
 * contenders are made ready, race among themselves, and are gone before the next device begins. The
 * time asked for is for all cases: each row has an equal share of what is left.
 */
#include "arena/ceilings.h"
#include "arena/course.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/cpu_clock_linux.h"
#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_USUAL 60.0
#define STREAMS_USUAL 4u
#define PRECISION     0.01
#define FLUSH_STEP    ((size_t)1 << 20)

bool iron__course_races(const iron__course *c, size_t row) {
    return c->arena->plan.rows[row].reason[0] == '\0';
}

iron_status iron__course_tell(iron__course *c, uint64_t thousandths, iron_error *err) {
    const iron_arena_options *o = &c->arena->options;

    IRON_FAIL_IF(o->progress && o->progress(o->context, thousandths, IRON_PROGRESS_WHOLE), err,
                 IRON_E_CANCELLED, "cancelled while racing");
    return IRON_OK;
}

/* A contender that cannot be made ready: what a device or a case does not allow is a reason to skip
 * it, anything else a failure. */
static void give_up(iron__racer *racer, iron_status status, const iron_error *err) {
    bool is_skip = status == IRON_E_UNSUPPORTED || status == IRON_E_NOMEM;

    racer->status = is_skip ? IRON_ROW_SKIPPED : IRON_ROW_FAILED;
    snprintf(racer->reason, sizeof racer->reason, "%s", err->text);
}

static void give_up_all(iron__course *c, size_t first, size_t count, iron_status status,
                        const iron_error *err) {
    for (size_t k = first; k < first + count; k++)
        if (iron__course_races(c, k))
            give_up(&c->arena->racers[k], status, err);
}

/* Progress of a part, in thousandths, becomes that of the whole. */
static int tell_part(void *context, uint64_t done, uint64_t total) {
    iron__course *c = context;
    double part = total ? (double)done / (double)total : 0;
    double all = ((double)c->raced + part * (double)c->now) / (double)(c->racing ? c->racing : 1);
    uint64_t span = IRON_PROGRESS_WHOLE - IRON_PROGRESS_CEILINGS;

    return iron__course_tell(c, IRON_PROGRESS_CEILINGS + (uint64_t)(all * (double)span), NULL) !=
           IRON_OK;
}

/* Was the device held back, by heat, its power supply or a lower clock? */
static bool is_throttled(void *context) {
    iron__course *c = context;
    iron__gpu_clocks clocks;

    if (!c->watched)
        return iron__clock_watch_look_cpu(&c->watch, iron__cpu_clock_mhz(IRON_CPU_CLOCK_ROOT),
                                          iron__cpu_throttle_count(IRON_CPU_CLOCK_ROOT), c->seen);
    if (iron__gpu_clocks_read(c->watched, &clocks, NULL) != IRON_OK)
        return false;
    return iron__clock_watch_look(&c->watch, &clocks, c->seen);
}

double iron__course_share(const iron__course *c) {
    const iron_arena_options *o = &c->arena->options;
    double all = o->seconds > 0 ? o->seconds : SECONDS_USUAL;
    double share = (all - c->spent) * (double)c->now / (double)(c->racing - c->raced);
    double least = all * (double)c->now / (double)c->racing / 2;

    return share > least ? share : least;
}

static iron_status run_race(iron__course *c, size_t first, size_t count, iron_error *err) {
    const iron_arena_options *o = &c->arena->options;
    iron__race_rules rules = {.seconds = iron__course_share(c),
                              .spent = &c->spent,
                              .runs = o->runs,
                              .precision = PRECISION,
                              .seed = o->seed + first,
                              .is_throttled = is_throttled,
                              .progress = tell_part,
                              .context = c};

    return iron__race_run(c->arena->racers + first, count, &rules, err);
}

static void close_entrants(iron__course *c, size_t first, size_t count) {
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

static iron_status open_entrant(iron__course *c, const any_stage *stage, size_t index,
                                iron__entrant **out, iron_error *err) {
    const iron__plan_row *row = &c->arena->plan.rows[index];
    iron__contender peer;

    if (stage->cpu)
        return row->peer ? iron__entrant_cpu_peer(stage->cpu, row->peer, out, err)
                         : iron__entrant_cpu(stage->cpu, &row->contender, out, err);
    if (row->peer)
        peer = iron__peer_contender(row->peer, &row->contender);
    return iron__entrant_gpu(stage->gpu, row->peer ? &peer : &row->contender, row->memory,
                             &c->arena->kernels[index], out, err);
}

/* What the contender at `index` needs to race, as far as it gets. */
static void make_ready(iron__course *c, const any_stage *stage, const iron__judging *judging,
                       size_t index) {
    const iron__plan *plan = &c->arena->plan;
    iron__racer *racer = &c->arena->racers[index];
    iron_error why = {IRON_OK, 0, ""};
    iron_status status;

    racer->output_bytes = judging->problem->output_bytes;
    racer->judge = iron__judge_answer;
    racer->judge_context = judging;
    if (!iron__course_races(c, index))
        return;
    status = open_entrant(c, stage, index, &racer->entrant, &why);
    if (status != IRON_OK)
        give_up(racer, status, &why);
    else
        racer->entrant->scopes &= plan->cases[plan->rows[index].case_index].scopes;
}

/* `unpacked` is shared: one answer is judged at a time. */
static iron_status race_judged(iron__course *c, const any_stage *stage,
                               const iron__problem *problem, iron__judging *judgings,
                               void *unpacked, size_t first, size_t count, iron_error *err) {
    iron_status status;

    for (size_t k = 0; k < count; k++) {
        const iron__plan_row *row = &c->arena->plan.rows[first + k];

        judgings[k] = (iron__judging){problem, row->peer, &row->contender, unpacked};
        make_ready(c, stage, &judgings[k], first + k);
    }
    status = run_race(c, first, count, err);
    close_entrants(c, first, count);
    return status;
}

static iron_status race_rows(iron__course *c, const any_stage *stage, const iron__problem *problem,
                             size_t first, size_t count, iron_error *err) {
    iron__judging *judgings = calloc(count, sizeof *judgings);
    void *unpacked = NULL;
    bool is_packed = false;
    iron_status status;

    for (size_t k = first; k < first + count; k++)
        is_packed = is_packed || c->arena->plan.rows[k].contender.unpack;
    if (is_packed)
        unpacked = malloc(problem->output_bytes);
    if (judgings && (unpacked || !is_packed))
        status = race_judged(c, stage, problem, judgings, unpacked, first, count, err);
    else
        status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a race");
    free(unpacked);
    free(judgings);
    return status;
}

/* Of the host's memory: the inputs, and so many outputs. */
static uint64_t host_bytes_of(const iron__problem *problem, uint64_t outputs) {
    uint64_t bytes = outputs * problem->output_bytes;

    for (size_t k = 0; k < problem->input_count; k++)
        bytes += problem->inputs[k].bytes;
    return bytes;
}

static iron_status race_on_cpu(iron__course *c, const iron__problem *problem, size_t first,
                               size_t count, iron_error *err) {
    any_stage stage = {.cpu = &c->cpu};

    c->cpu.problem = problem;
    c->cpu.lent_bytes = host_bytes_of(problem, 1); /* the answer that is judged */
    c->watched = NULL;
    c->watch = (iron__clock_watch){0};
    return race_rows(c, &stage, problem, first, count, err);
}

/* A device stays open from case to case, unless its driver marked it: then the next case has one
 * that is opened anew. */
static iron_status open_device(iron__course *c, size_t device, iron_error *err) {
    const iron__plan_device *d = &c->arena->plan.devices[device];

    if (c->devices[device])
        return IRON_OK;
    return iron__gpu_device_open(d->gpu_backend, d->index, &c->devices[device], err);
}

static void leave_device(iron__course *c, size_t device) {
    if (!c->devices[device] || c->devices[device]->failure.status == IRON_OK)
        return;
    iron__gpu_device_close(c->devices[device]);
    c->devices[device] = NULL;
}

static iron_status open_stage(iron__course *c, size_t device, const iron__problem *problem,
                              iron__stage *stage, iron_error *err) {
    uint32_t streams = c->arena->options.streams;
    /* outputs: poison, an answer while it is timed, and one that is judged */
    uint64_t bytes = host_bytes_of(problem, 3), most = c->arena->plan.host_bytes;

    IRON_FAIL_IF(most && bytes > most - most / 8, err, IRON_E_NOMEM,
                 "too large for this machine: %.1f GiB of inputs and answers, and it has %.1f GiB "
                 "of memory; use a smaller --size",
                 (double)bytes / 0x1p30, (double)most / 0x1p30);
    IRON_TRY(open_device(c, device, err));
    return iron__stage_open(stage, c->devices[device], problem, streams ? streams : STREAMS_USUAL,
                            err);
}

static iron_status race_on_gpu(iron__course *c, size_t device, const iron__problem *problem,
                               size_t first, size_t count, iron_error *err) {
    iron__stage gpu = {.device = NULL};
    any_stage stage = {.gpu = &gpu};
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = open_stage(c, device, problem, &gpu, &why);

    if (status != IRON_OK) {
        give_up_all(c, first, count, status, &why);
        leave_device(c, device);
        return IRON_OK;
    }
    c->watched = gpu.device;
    c->watch = (iron__clock_watch){0};
    status = race_rows(c, &stage, problem, first, count, err);
    c->watched = NULL;
    iron__stage_close(&gpu);
    leave_device(c, device);
    return status;
}

static iron_status race_on(iron__course *c, size_t device, const iron__problem *problem,
                           size_t first, size_t count, iron_error *err) {
    const iron__plan_device *d = &c->arena->plan.devices[device];

    c->now = 0;
    for (size_t k = first; k < first + count; k++)
        c->now += iron__course_races(c, k);
    if (c->now == 0)
        return IRON_OK;
    c->seen = &c->arena->report.devices[device];
    IRON_TRY(d->is_cpu ? race_on_cpu(c, problem, first, count, err)
                       : race_on_gpu(c, device, problem, first, count, err));
    c->raced += c->now;
    return IRON_OK;
}

/* The rows of one case, device by device. */
static iron_status race_devices(iron__course *c, const iron__problem *problem, size_t first,
                                size_t last, iron_error *err) {
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

static iron_status race_case(iron__course *c, size_t first, size_t last, iron_error *err) {
    const iron__plan *plan = &c->arena->plan;
    iron__problem problem = {.c = plan->cases[plan->rows[first].case_index].c};
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = problem.c.op->make(&problem, c->team, &why);

    if (status != IRON_OK) {
        give_up_all(c, first, last - first, status, &why);
        for (size_t k = first; k < last; k++)
            c->raced += iron__course_races(c, k);
        return IRON_OK;
    }
    status = race_devices(c, &problem, first, last, err);
    problem.c.op->unmake(&problem);
    return status;
}

static iron_status race_cases(iron__course *c, iron_error *err) {
    const iron__plan *plan = &c->arena->plan;

    for (size_t first = 0, last; first < plan->row_count; first = last) {
        bool is_any = false;

        for (last = first;
             last < plan->row_count && plan->rows[last].case_index == plan->rows[first].case_index;
             last++)
            is_any = is_any || iron__course_races(c, last);
        if (is_any)
            IRON_TRY(race_case(c, first, last, err));
    }
    return IRON_OK;
}

static iron_status set_up(iron__course *c, iron_error *err) {
    uint32_t threads = c->arena->options.threads;

    IRON_TRY(iron__team_create(threads ? threads : iron__cpu_threads(), iron__allocator_default(),
                               &c->team, err));
    IRON_TRY(iron__team_create(1, iron__allocator_default(), &c->alone, err));
    c->cpu = (iron__cpu_stage){
        .team = c->team, .alone = c->alone, .host_bytes = c->arena->plan.host_bytes};
    c->cpu.flush_bytes = 2 * (size_t)iron__cpu_last_cache_bytes() / FLUSH_STEP * FLUSH_STEP;
    c->cpu.flush = iron__allocate_large(c->cpu.flush_bytes, err);
    if (!c->cpu.flush)
        return IRON_E_NOMEM;
    iron__write_pass(c->team, c->cpu.flush, c->cpu.flush_bytes); /* real pages */
    return IRON_OK;
}

static void tear_down(iron__course *c) {
    for (size_t k = 0; k < IRON_PLAN_DEVICES; k++)
        iron__gpu_device_close(c->devices[k]);
    iron__release_large(c->cpu.flush, c->cpu.flush_bytes);
    iron__team_destroy(c->alone);
    iron__team_destroy(c->team);
}

/* Rows that the plan skips; and how many are left. */
static void count_rows(iron__course *c) {
    iron_arena *a = c->arena;

    for (size_t k = 0; k < a->plan.row_count; k++) {
        if (iron__course_races(c, k)) {
            c->racing++;
            continue;
        }
        a->racers[k].status = IRON_ROW_SKIPPED;
        snprintf(a->racers[k].reason, sizeof a->racers[k].reason, "%s", a->plan.rows[k].reason);
    }
}

iron_status iron__arena_run(iron_arena *arena, iron_error *err) {
    iron__course c = {.arena = arena};
    uint64_t start = iron__clock_ns();
    iron_status status;

    count_rows(&c);
    status = set_up(&c, err);
    if (status == IRON_OK && c.racing > 0)
        status = iron__course_ceilings(&c, err);
    if (status == IRON_OK)
        status = race_cases(&c, err);
    if (status == IRON_OK && c.racing > 0)
        status = iron__course_ceilings_again(&c, err);
    tear_down(&c);
    arena->report.seconds = (double)(iron__clock_ns() - start) * 1e-9;
    return status;
}
