/* SPDX-License-Identifier: MIT */
/*
 * device_cpu.c: the CPU in a race: contenders and peers that run on its threads.
 *
 * Their inputs stay where the problem made them; output and scratch are their own. They are timed
 * with the monotonic clock, around whole passes. Before cold samples a buffer of twice the
 * last-level cache is read. (Writing it would not do: stores that bypass the cache evict nothing.)
 *
 * The ceilings (ceilings_cpu.c) are passes over a working set that stays allocated for the race, so
 * that they can take turns with the contenders; where a problem needs the memory, it is released.
 */
#include "arena/arena_internal.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"

#include <assert.h>

#define PIECE_BYTES ((size_t)1 << 20)

/* What the CPU provides to its contenders. */
typedef struct cpu_device {
    iron__race_device base;
    const iron__op_problem *problem;  /* borrowed; NULL outside begin and end */
    iron__thread_pool *pool, *single; /* all threads (borrowed); one */
    void *flush;                      /* read before cold samples; made for the first */
    size_t flush_bytes;               /* whole pieces, twice the last-level cache */
    uint64_t host_bytes;              /* of the host's memory; 0 unknown */
    uint64_t used_bytes;              /* of it, by the problem and all its contenders at once */
    iron__cpu_ceilings *ceilings;
} cpu_device;

typedef struct cpu_contender {
    iron__race_contender base;
    cpu_device *device;
    iron__contender row; /* not of a peer */
    iron__cpu_work work;
    size_t scratch_bytes;
    const iron_peer *peer; /* NULL: one of our contenders */
    void *peer_state;
    bool is_peer_open;
} cpu_contender;

static iron_status run_once(cpu_contender *c, iron_error *err) {
    char why[160] = "";

    if (!c->peer) {
        c->row.cpu_run(&c->work);
        return IRON_OK;
    }
    IRON_FAIL_IF(c->peer->run(c->peer_state, why, sizeof why) != 0, err, IRON_E_STATE,
                 "%s failed: %s", c->peer->name, why);
    return IRON_OK;
}

/* A piece of what empties the caches: a byte of every line. */
static void read_piece(void *context, size_t index) {
    const volatile char *at = (const char *)context + index * PIECE_BYTES;

    for (size_t k = 0; k < PIECE_BYTES; k += IRON_CACHE_LINE)
        (void)at[k];
}

/* The CPU has the kernel scope only. */
static iron_status time_passes(iron__race_contender *base, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    cpu_contender *c = (cpu_contender *)base;
    uint64_t start;

    (void)scope;
    if (is_cold) {
        /* twice, since recently used lines survive the first time */
        if (!c->device->flush) {
            c->device->flush = iron__allocate_large(c->device->flush_bytes, err);
            if (!c->device->flush)
                return IRON_E_NOMEM;
            memset(c->device->flush, 1, c->device->flush_bytes); /* makes the pages real */
        }
        for (int k = 0; k < 2; k++)
            iron__thread_pool_run(c->device->pool, read_piece, c->device->flush,
                                  c->device->flush_bytes / PIECE_BYTES);
    }
    start = iron__clock_ns();
    for (uint32_t k = 0; k < passes; k++)
        IRON_TRY(run_once(c, err));
    *ms = (double)(iron__clock_ns() - start) * 1e-6 / passes;
    return IRON_OK;
}

static iron_status answer(iron__race_contender *base, iron__scope scope, void *output,
                          iron_error *err) {
    cpu_contender *c = (cpu_contender *)base;
    size_t bytes = c->work.problem->output_bytes;

    (void)scope;
    memset(c->work.output, 0xFF, bytes);
    IRON_TRY(run_once(c, err));
    memcpy(output, c->work.output, bytes);
    return IRON_OK;
}

static void close_contender(iron__race_contender *base) {
    cpu_contender *c = (cpu_contender *)base;

    if (c->is_peer_open)
        c->peer->close(c->peer_state);
    if (c->work.output)
        c->device->used_bytes -= c->work.problem->output_bytes;
    if (c->work.scratch)
        c->device->used_bytes -= c->scratch_bytes;
    iron__release_large(c->work.scratch, c->scratch_bytes);
    iron__release_large(c->work.output, c->work.problem->output_bytes);
    free(c);
}

/* Leaves an eighth of the memory to others: where the system overcommits memory, using too much of
 * it ends the process. */
static iron_status allocate(cpu_device *d, size_t bytes, void **out, iron_error *err) {
    uint64_t most = d->host_bytes - d->host_bytes / 8;

    IRON_FAIL_IF(
        d->host_bytes && (d->used_bytes > most || bytes > most - d->used_bytes), err, IRON_E_NOMEM,
        "too large for this machine beside the others: needs %.1f GiB more, and %.1f of "
        "%.1f GiB are in use; race it with fewer others, or use a smaller --size",
        (double)bytes / 0x1p30, (double)d->used_bytes / 0x1p30, (double)d->host_bytes / 0x1p30);
    *out = iron__allocate_large(bytes, err);
    if (!*out)
        return IRON_E_NOMEM;
    d->used_bytes += bytes;
    return IRON_OK;
}

/* Allocates scratch and lets the contender prepare it. */
static iron_status prepare(cpu_contender *c, iron_error *err) {
    uint64_t start = iron__clock_ns();

    c->work.row = &c->row;
    if (c->row.is_single)
        c->work.pool = c->device->single;
    if (c->row.cpu_scratch_bytes)
        c->scratch_bytes =
            c->row.cpu_scratch_bytes(c->work.problem, iron__thread_pool_threads(c->work.pool));
    if (c->scratch_bytes) {
        IRON_TRY(allocate(c->device, c->scratch_bytes, &c->work.scratch, err));
        assert(c->work.scratch);
        memset(c->work.scratch, 0xFF, c->scratch_bytes); /* no contender may rely on zeros */
    }
    if (!c->row.cpu_prepare)
        return IRON_OK; /* allocating scratch alone is not worth a time */
    c->row.cpu_prepare(&c->work);
    c->base.prepare_ms = (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

static iron_status open_peer(cpu_contender *c, iron_error *err) {
    uint64_t start = iron__clock_ns();
    iron_peer_case pc = iron__peer_case(c->device->problem, c->work.output,
                                        iron__thread_pool_threads(c->device->pool));
    char why[160] = "";

    IRON_FAIL_IF(c->peer->open(&pc, &c->peer_state, why, sizeof why) != 0, err, IRON_E_UNSUPPORTED,
                 "%s: %s", c->peer->name, why);
    c->is_peer_open = true;
    c->base.prepare_ms = (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

static iron_status open_contender(iron__race_device *base, const iron__race_plan_row *row,
                                  iron__kernels *kernels, iron__race_contender **out,
                                  iron_error *err) {
    static const iron__race_contender_ops ops = {time_passes, answer, close_contender};
    cpu_device *device = (cpu_device *)base;
    cpu_contender *c = calloc(1, sizeof *c);
    iron_status status;

    (void)kernels;
    *out = NULL;
    if (!c)
        return iron__no_memory(err, "a contender");
    *c = (cpu_contender){
        .base = {.ops = &ops,
                 .scopes = IRON_BIT(IRON_SCOPE_KERNEL),
                 .has_cold = device->flush_bytes > 0 && !device->problem->c.op->is_never_cold},
        .device = device,
        .row = row->contender,
        .work = {.problem = device->problem, .pool = device->pool},
        .peer = row->peer};
    status = allocate(device, device->problem->output_bytes, &c->work.output, err);
    if (status == IRON_OK)
        status = c->peer ? open_peer(c, err) : prepare(c, err);
    if (status == IRON_OK)
        *out = &c->base;
    else
        close_contender(&c->base);
    return status;
}

static void close_device(iron__race_device *base) {
    cpu_device *d = (cpu_device *)base;

    iron__release_large(d->flush, d->flush_bytes);
    iron__cpu_ceilings_destroy(d->ceilings);
    iron__thread_pool_destroy(d->single);
    free(d);
}

static iron_status open_device(const iron__race_plan *plan, size_t index, uint32_t streams,
                               iron__thread_pool *pool, iron__race_device **out, iron_error *err) {
    cpu_device *d = calloc(1, sizeof *d);
    iron_status status;

    (void)index;
    (void)streams;
    *out = NULL;
    if (!d)
        return iron__no_memory(err, "a race");
    *d = (cpu_device){
        .base = {.ops = &iron__race_cpu}, .pool = pool, .host_bytes = plan->host_bytes};
    d->flush_bytes = 2 * (size_t)iron__cpu_last_cache_bytes() / PIECE_BYTES * PIECE_BYTES;
    status = iron__thread_pool_create(1, iron__allocator_default(), &d->single, err);
    if (status == IRON_OK)
        *out = &d->base;
    else
        close_device(&d->base);
    return status;
}

static iron_status begin_problem(iron__race_device *base, const iron__op_problem *problem,
                                 iron_error *err) {
    cpu_device *d = (cpu_device *)base;

    (void)err;
    d->problem = problem;
    d->used_bytes = iron__problem_bytes(problem, 1); /* the answer that is checked */
    if (d->ceilings && d->host_bytes && d->used_bytes > d->host_bytes / 4)
        iron__cpu_ceilings_release(d->ceilings);
    return IRON_OK;
}

static void end_problem(iron__race_device *base) { ((cpu_device *)base)->problem = NULL; }

static iron_status measure(iron__race_device *base, const iron__race_plan_device *planned,
                           const iron_measure_options *options, bool is_new_search,
                           iron__ceiling_sink sink, iron_error *err) {
    cpu_device *d = (cpu_device *)base;

    (void)planned;
    if (!d->ceilings)
        IRON_TRY(
            iron__cpu_ceilings_create(options->threads, options->buffer_bytes, &d->ceilings, err));
    return iron__cpu_ceilings_measure(d->ceilings, is_new_search, sink, err);
}

/* A ceiling that races: a pass is one of its own. */
typedef struct ceiling_contender {
    iron__race_contender base;
    iron__cpu_ceilings *ceilings;
    iron__cpu_pass pass;
} ceiling_contender;

static iron_status time_ceiling(iron__race_contender *base, iron__scope scope, bool is_cold,
                                uint32_t passes, double *ms, iron_error *err) {
    const ceiling_contender *c = (const ceiling_contender *)base;
    iron__ceiling_samples what;

    (void)scope;
    (void)is_cold;
    (void)err;
    *ms = 0;
    for (uint32_t k = 0; k < passes; k++)
        *ms += iron__cpu_ceilings_pass(c->ceilings, c->pass, &what) / passes;
    return IRON_OK;
}

static void close_ceiling(iron__race_contender *base) { free(base); }

static iron_status open_ceiling(iron__race_device *base, const char *name,
                                iron__ceiling_samples *what, iron__race_contender **out,
                                iron_error *err) {
    static const iron__race_contender_ops ops = {time_ceiling, NULL, close_ceiling};
    const cpu_device *d = (const cpu_device *)base;
    ceiling_contender *c;

    *out = NULL;
    IRON_FAIL_IF(d->host_bytes && d->used_bytes > d->host_bytes / 4, err, IRON_E_UNSUPPORTED,
                 "the problem needs the memory");
    IRON_TRY(iron__cpu_ceilings_prepare(d->ceilings, false, err));
    c = calloc(1, sizeof *c);
    if (!c)
        return iron__no_memory(err, "a contender");
    *c = (ceiling_contender){{.ops = &ops, .scopes = IRON_BIT(IRON_SCOPE_KERNEL), .passes_max = 1},
                             d->ceilings,
                             iron__cpu_pass_find(name)};
    iron__cpu_ceilings_pass(c->ceilings, c->pass, what);
    *out = &c->base;
    return IRON_OK;
}

const iron__race_device_ops iron__race_cpu = {.measure = measure,
                                              .ceiling_open = open_ceiling,
                                              .open = open_device,
                                              .close = close_device,
                                              .begin = begin_problem,
                                              .end = end_problem,
                                              .contender_open = open_contender};
