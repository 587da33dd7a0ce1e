/* SPDX-License-Identifier: MIT */
/*
 * entrant_gpu.c: a contender on a GPU with one way to bring it its inputs. The contender only
 * computes; this file knows what the strategies mean:
 *
 *   strategy      kernels read        before them                          prepare pays for
 *   pageable      device memory       a copy from ordinary memory          device memory
 *   pinned        device memory       a copy from page-locked memory       + page-locking
 *   streams       device memory       rows in pieces, a queue each; the    + page-locking
 *                                     kernels of a piece follow its copy
 *   uvm           managed memory      nothing: pages come as they are      managed memory
 *                                     touched
 *   uvm-prefetch  managed memory      pages are sent ahead                 managed memory
 *   zero-copy     the host's memory   nothing: every read crosses the bus  page-locking
 *
 * Scopes. kernel: inputs are in place, events around the passes, behind an untimed pass (or, cold,
 * a pass that empties the caches) that is still running while they are put into the queue, so that
 * no launch is waited for. transfer: inputs in, answer out, nothing computed. end to end: the same
 * with the computation; what a contender derives from the inputs (a transposed copy) is derived
 * anew. Both by the host's clock, since the host's part counts. Before each, pages of managed
 * memory are brought back to the host, untimed.
 */
#include "arena/entrants.h"
#include "core/clock.h"
#include "core/fail.h"

#include <stdlib.h>
#include <string.h>

typedef struct gpu_entrant {
    iron__entrant base;
    iron__stage *stage;
    iron__contender contender;
    iron__gpu_strategy strategy;
    iron__gpu_work *work;
    iron__gpu_data data;     /* what kernels see */
    const iron__place *host; /* page-locked inputs; NULL: they are the problem's */
    iron__gpu_watch *watch;  /* for the first answer; NULL: it has been given */
} gpu_entrant;

static iron__gpu_queue *main_queue(const gpu_entrant *e) { return e->stage->queues[0]; }

static const iron__gpu_way *way_of(const gpu_entrant *e) { return e->contender.gpu; }

/* Kernels see this memory. */
static iron__gpu_memory memory_of(iron__gpu_strategy strategy) {
    switch (strategy) {
    case IRON_GPU_UVM:
    case IRON_GPU_UVM_PREFETCH:
        return IRON_GPU_MEMORY_MANAGED;
    case IRON_GPU_ZERO_COPY:
        return IRON_GPU_MEMORY_MAPPED;
    default:
        return IRON_GPU_MEMORY_DEVICE;
    }
}

static bool is_pinned(iron__gpu_strategy s) {
    return s == IRON_GPU_PINNED || s == IRON_GPU_STREAMS;
}

static bool is_copied(const gpu_entrant *e) {
    return memory_of(e->strategy) == IRON_GPU_MEMORY_DEVICE;
}

/* Puts the copy of bytes of an input into a queue. */
static iron_status put_input(gpu_entrant *e, size_t input, size_t offset, size_t bytes,
                             iron__gpu_queue *queue, iron_error *err) {
    iron__gpu_copy copy = {
        .to = e->data.inputs[input], .to_offset = offset, .from_offset = offset, .bytes = bytes};

    if (e->host)
        copy.from = e->host->inputs[input];
    else
        copy.from_host = e->stage->problem->inputs[input].data;
    return iron__gpu_copy_bytes(queue, &copy, err);
}

static iron_status put_inputs(gpu_entrant *e, size_t first, iron_error *err) {
    const iron__problem *p = e->stage->problem;

    for (size_t k = first; k < p->input_count; k++)
        IRON_TRY(put_input(e, k, 0, p->inputs[k].bytes, main_queue(e), err));
    return IRON_OK;
}

static iron__gpu_part part_at(const gpu_entrant *e, uint32_t index) {
    uint64_t rows = e->stage->problem->c.rows;
    uint32_t parts = rows < e->stage->streams ? (uint32_t)rows : e->stage->streams;
    uint64_t first = rows * index / parts;

    return (iron__gpu_part){first, rows * (index + 1) / parts - first, index, parts};
}

static iron_status put_part(gpu_entrant *e, iron__gpu_part part, iron__gpu_queue *queue,
                            iron_error *err) {
    size_t row_bytes = e->stage->problem->inputs[0].bytes / (size_t)e->stage->problem->c.rows;

    return put_input(e, 0, (size_t)part.first * row_bytes, (size_t)part.count * row_bytes, queue,
                     err);
}

/* The big input in pieces, a queue each; with `computes` the contender's part of each behind it.
 * All end in the main queue. */
static iron_status put_parts(gpu_entrant *e, bool computes, iron_error *err) {
    iron__stage *s = e->stage;
    iron__gpu_part part = part_at(e, 0);

    IRON_TRY(put_inputs(e, 1, err));
    IRON_TRY(iron__gpu_event_record(s->queues[0], s->joined[0], err));
    for (uint32_t k = 0; k < part.total; k++) {
        part = part_at(e, k);
        IRON_TRY(put_part(e, part, s->queues[k], err));
        if (k > 0)
            IRON_TRY(iron__gpu_event_follow(s->queues[k], s->joined[0], err));
        if (computes)
            IRON_TRY(way_of(e)->run_part(e->work, &e->data, part, s->queues[k], err));
        if (k > 0)
            IRON_TRY(iron__gpu_event_record(s->queues[k], s->joined[k], err));
    }
    for (uint32_t k = 1; k < part.total; k++)
        IRON_TRY(iron__gpu_event_follow(s->queues[0], s->joined[k], err));
    return IRON_OK;
}

static iron_status send_ahead(gpu_entrant *e, iron_error *err) {
    const iron__place *place = &e->stage->places[IRON_GPU_MEMORY_MANAGED];

    for (size_t k = 0; k < e->stage->problem->input_count; k++)
        IRON_TRY(iron__gpu_prefetch(main_queue(e), place->inputs[k], place->inputs[k]->bytes, err));
    return IRON_OK;
}

/* The host gives the inputs away. */
static iron_status hand_over(gpu_entrant *e, iron_error *err) {
    const iron__place *place = &e->stage->places[memory_of(e->strategy)];

    for (size_t k = 0; k < e->stage->problem->input_count; k++)
        IRON_TRY(iron__gpu_host_end(main_queue(e), place->inputs[k], err));
    return IRON_OK;
}

static iron_status put_load(gpu_entrant *e, iron_error *err) {
    if (e->strategy == IRON_GPU_STREAMS)
        return put_parts(e, false, err);
    if (is_copied(e))
        return put_inputs(e, 0, err);
    IRON_TRY(hand_over(e, err));
    return e->strategy == IRON_GPU_UVM_PREFETCH ? send_ahead(e, err) : IRON_OK;
}

static iron_status put_derive(gpu_entrant *e, iron_error *err) {
    if (!way_of(e)->derive)
        return IRON_OK;
    return way_of(e)->derive(e->work, &e->data, main_queue(e), err);
}

static iron_status put_run(gpu_entrant *e, iron_error *err) {
    return way_of(e)->run(e->work, &e->data, main_queue(e), err);
}

static iron_status put_whole(gpu_entrant *e, iron_error *err) {
    if (e->strategy == IRON_GPU_STREAMS && way_of(e)->run_part) {
        IRON_TRY(put_parts(e, true, err));
        return way_of(e)->finish(e->work, &e->data, main_queue(e), err);
    }
    IRON_TRY(put_load(e, err));
    IRON_TRY(put_derive(e, err));
    return put_run(e, err);
}

/* Waits, and brings the answer to the host. */
static iron_status fetch(gpu_entrant *e, void *output, iron_error *err) {
    iron__gpu_copy copy = {
        .from = e->data.output, .to_host = output, .bytes = e->stage->problem->output_bytes};

    if (way_of(e)->fetch)
        return way_of(e)->fetch(e->work, main_queue(e), output, err);
    IRON_TRY(iron__gpu_copy_bytes(main_queue(e), &copy, err));
    return iron__gpu_queue_wait(main_queue(e), err);
}

/* Before a transfer: pages that moved come back, and the host holds the inputs. */
static iron_status take_back(gpu_entrant *e, iron_error *err) {
    iron__gpu_memory memory = memory_of(e->strategy);

    if (is_copied(e))
        return iron__gpu_queue_wait(main_queue(e), err);
    if (memory == IRON_GPU_MEMORY_MANAGED)
        IRON_TRY(iron__stage_refill(e->stage, memory, err));
    for (size_t k = 0; k < e->stage->problem->input_count; k++)
        IRON_TRY(iron__gpu_host_begin(main_queue(e), e->stage->places[memory].inputs[k], err));
    return iron__gpu_queue_wait(main_queue(e), err);
}

static iron_status time_once(gpu_entrant *e, iron__scope scope, double *ms, iron_error *err) {
    uint64_t start;

    IRON_TRY(take_back(e, err));
    start = iron__clock_ns();
    if (scope == IRON_SCOPE_TRANSFER)
        IRON_TRY(put_load(e, err));
    else
        IRON_TRY(put_whole(e, err));
    IRON_TRY(fetch(e, e->stage->answer, err));
    *ms = (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

static iron_status time_by_clock(gpu_entrant *e, uint32_t passes, double *ms, iron_error *err) {
    uint64_t start;

    IRON_TRY(iron__gpu_queue_wait(main_queue(e), err));
    start = iron__clock_ns();
    for (uint32_t k = 0; k < passes; k++)
        IRON_TRY(put_run(e, err));
    IRON_TRY(iron__gpu_queue_wait(main_queue(e), err));
    *ms = (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

static iron_status time_by_events(gpu_entrant *e, uint32_t passes, double *ms, iron_error *err) {
    iron__stage *s = e->stage;

    IRON_TRY(iron__gpu_event_record(s->queues[0], s->begin, err));
    for (uint32_t k = 0; k < passes; k++)
        IRON_TRY(put_run(e, err));
    IRON_TRY(iron__gpu_event_record(s->queues[0], s->end, err));
    IRON_TRY(iron__gpu_event_wait(s->device, s->end, err));
    return iron__gpu_event_elapsed(s->device, s->begin, s->end, ms, err);
}

static iron_status time_passes(iron__entrant *base, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    gpu_entrant *e = (gpu_entrant *)base;

    if (scope != IRON_SCOPE_KERNEL)
        return time_once(e, scope, ms, err);
    IRON_TRY(is_cold ? iron__stage_flush(e->stage, err) : put_run(e, err));
    IRON_TRY(e->stage->has_event_times ? time_by_events(e, passes, ms, err)
                                       : time_by_clock(e, passes, ms, err));
    *ms /= passes;
    return IRON_OK;
}

static iron_status poison(gpu_entrant *e, iron_error *err) {
    iron__gpu_copy copy = {.from_host = e->stage->poison,
                           .to = e->data.output,
                           .bytes = e->stage->problem->output_bytes};

    if (way_of(e)->spoil)
        IRON_TRY(way_of(e)->spoil(e->work, main_queue(e), err));
    if (way_of(e)->reset)
        return way_of(e)->reset(e->work, main_queue(e), err);
    IRON_TRY(iron__gpu_copy_bytes(main_queue(e), &copy, err));
    return iron__gpu_queue_wait(main_queue(e), err);
}

static iron_status put_answer(gpu_entrant *e, iron__scope scope, void *output, iron_error *err) {
    IRON_TRY(poison(e, err));
    if (scope != IRON_SCOPE_END_TO_END) {
        IRON_TRY(put_run(e, err));
        return fetch(e, output, err);
    }
    IRON_TRY(take_back(e, err));
    if (is_copied(e)) /* what is not copied again must show */
        IRON_TRY(iron__stage_forget(e->stage, err));
    IRON_TRY(put_whole(e, err));
    return fetch(e, output, err);
}

/* The first one is watched. */
static iron_status answer(iron__entrant *base, iron__scope scope, void *output, iron_error *err) {
    gpu_entrant *e = (gpu_entrant *)base;
    iron_status status;

    e->stage->device->watch = e->watch;
    status = put_answer(e, scope, output, err);
    e->stage->device->watch = e->watch = NULL;
    return status;
}

static void close_entrant(iron__entrant *base) {
    gpu_entrant *e = (gpu_entrant *)base;

    iron__stage_wait(e->stage);
    if (e->work)
        way_of(e)->destroy(e->work);
    iron__gpu_buffer_destroy(e->data.output);
    free(e);
}

static const iron__entrant_ops ops = {time_passes, answer, close_entrant};

/* All contenders of a race are there at the same time. */
static iron_status check_memory(gpu_entrant *e, iron_error *err) {
    iron__stage *s = e->stage;
    uint64_t most = s->device->info.memory_bytes, bytes = s->problem->output_bytes;

    if (way_of(e)->device_bytes)
        bytes += way_of(e)->device_bytes(&e->contender, &s->problem->c);
    IRON_FAIL_IF(s->lent_bytes + bytes > most - most / 8, err, IRON_E_NOMEM,
                 "too large for %s beside the others: %.1f GiB more, and %.1f of %.1f GiB are "
                 "lent; race it with fewer others",
                 s->device->info.name, (double)bytes / 0x1p30, (double)s->lent_bytes / 0x1p30,
                 (double)most / 0x1p30);
    s->lent_bytes += bytes;
    return IRON_OK;
}

/* Kernels are loaded, and built where they must be, before anything is timed. */
static iron_status load_kernels(gpu_entrant *e, iron_error *err) {
    iron__stage *s = e->stage;
    iron_status status =
        way_of(e)->create(s->device, &e->contender, s->problem, s->streams, &e->work, err);

    if (status == IRON_OK)
        way_of(e)->destroy(e->work);
    e->work = NULL;
    return status;
}

/* Places, output, the contender's own, and what it derives; all of it is `prepare`. */
static iron_status prepare(gpu_entrant *e, iron_error *err) {
    iron__stage *s = e->stage;
    const iron__place *place;
    uint64_t start;

    IRON_TRY(check_memory(e, err));
    IRON_TRY(load_kernels(e, err));
    IRON_TRY(iron__stage_place(s, memory_of(e->strategy), &place, err));
    memcpy(e->data.inputs, place->inputs, sizeof place->inputs);
    if (is_pinned(e->strategy))
        IRON_TRY(iron__stage_place(s, IRON_GPU_MEMORY_PINNED, &e->host, err));
    e->base.prepare_ms = place->ms + (e->host ? e->host->ms : 0);
    start = iron__clock_ns();
    if (!way_of(e)->fetch)
        IRON_TRY(iron__gpu_buffer_create(s->device, IRON_GPU_MEMORY_DEVICE,
                                         s->problem->output_bytes, &e->data.output, err));
    IRON_TRY(way_of(e)->create(s->device, &e->contender, s->problem, s->streams, &e->work, err));
    IRON_TRY(put_derive(e, err));
    IRON_TRY(iron__gpu_queue_wait(main_queue(e), err));
    e->base.prepare_ms += (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

/* Managed memory that comes as it is touched, and memory across the bus, know no transfer. */
static uint32_t scopes_of(iron__gpu_strategy strategy) {
    uint32_t scopes = IRON_BIT(IRON_SCOPE_KERNEL) | IRON_BIT(IRON_SCOPE_END_TO_END);

    if (strategy != IRON_GPU_UVM && strategy != IRON_GPU_ZERO_COPY)
        scopes |= IRON_BIT(IRON_SCOPE_TRANSFER);
    return scopes;
}

iron_status iron__entrant_gpu(iron__stage *stage, const iron__contender *contender,
                              iron__gpu_strategy strategy, iron__kernels *kernels,
                              iron__entrant **out, iron_error *err) {
    gpu_entrant *e = calloc(1, sizeof *e);
    iron_status status;

    *out = NULL;
    if (!e)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a contender");
    e->base = (iron__entrant){.ops = &ops,
                              .scopes = scopes_of(strategy),
                              .has_cold = !stage->problem->c.op->is_never_cold};
    e->stage = stage;
    e->contender = *contender;
    e->strategy = strategy;
    e->watch = &kernels->answer;
    stage->device->watch = &kernels->prepare;
    status = prepare(e, err);
    stage->device->watch = NULL;
    if (status != IRON_OK)
        close_entrant(&e->base);
    else
        *out = &e->base;
    return status;
}
