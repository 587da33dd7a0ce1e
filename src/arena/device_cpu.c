/* SPDX-License-Identifier: MIT */
/*
 * device_cpu.c: the CPU in a race: the bandwidth of the host's memory, and contenders and peers
 * that run on its threads.
 *
 * Ceilings: one thread and all, reading, writing, copying. The working set is at least four times
 * the last-level cache. Each thread first touches the part that it will use. A pass goes over all
 * of it; the figure is the median of several, after one that is not counted. Reading means that
 * every byte reaches a register (an XOR keeps the compiler from removing the loads). Nothing is
 * computed that a memory-bound kernel would not have to do, so a kernel's share of these figures is
 * its share of what is possible.
 *
 * Contenders: their inputs stay where the problem made them; output and scratch are their own. They
 * are timed with the monotonic clock, around whole passes. Before cold samples a buffer of twice
 * the last-level cache is read. (Writing it would not do: stores that bypass the cache evict
 * nothing.)
 */
#include "arena/arena_internal.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define PASSES     9u
#define BUFFER_MIN (UINT64_C(512) << 20)
#define BUFFER_MAX (UINT64_C(8) << 30)

/* Threads take pieces of this size; big enough for the prefetchers, small enough to balance. */
#define PIECE_BYTES ((size_t)1 << 20)

/* 16 bytes, the widest that every 64-bit processor has; wider ones read DRAM no faster. */
typedef uint64_t vector __attribute__((vector_size(16)));

/* Loads in flight: independent XORs, so that none waits for another. */
#define CHAINS 8u

/* Without prefetching into the second-level cache, reading is a sixth slower on a Neoverse V1 and a
 * third slower on a Xeon: a ceiling has to use the tricks of the contenders that are compared with
 * it. */
#define PREFETCH_BYTES 32768
#define LINE_BYTES     64

typedef struct work {
    char *from, *to; /* to: the second half, for copies */
    size_t bytes;    /* read or written by a pass */
    uint64_t result; /* of reading, XORed over the pieces */
} work;

/* Prefetches what one step of the loops below will read later. */
static inline void prefetch(const vector *at) {
    for (size_t k = 0; k < CHAINS * sizeof(vector); k += LINE_BYTES)
        __builtin_prefetch((const char *)at + PREFETCH_BYTES + k, 0, 2);
}

static void read_piece(void *context, size_t index) {
    work *w = context;
    const vector *at = (const vector *)(const void *)(w->from + index * PIECE_BYTES);
    vector x[CHAINS] = {0};

    for (size_t k = 0; k < PIECE_BYTES / sizeof(vector); k += CHAINS) {
        prefetch(at + k);
        for (size_t chain = 0; chain < CHAINS; chain++)
            x[chain] ^= at[k + chain];
    }
    for (size_t chain = 1; chain < CHAINS; chain++)
        x[0] ^= x[chain];
    __atomic_fetch_xor(&w->result, x[0][0] ^ x[0][1], __ATOMIC_RELAXED);
}

/* A store that does not read the line first, where the instruction set has one. */
static inline void stream(vector *to, vector value) {
#if defined(__x86_64__)
    _mm_stream_si128((__m128i *)(void *)to, (__m128i)value);
#else
    *to = value;
#endif
}

static void write_piece(void *context, size_t index) {
    work *w = context;
    vector *at = (vector *)(void *)(w->from + index * PIECE_BYTES);
    vector value = {index, index};

    for (size_t k = 0; k < PIECE_BYTES / sizeof(vector); k += CHAINS)
        for (size_t chain = 0; chain < CHAINS; chain++)
            stream(&at[k + chain], value);
}

/* Reads or writes all of `bytes`, a multiple of 1 MiB, aligned to 16, once. */
static void run_pass(iron__thread_pool *pool, iron__task task, void *data, size_t bytes) {
    work w = {.from = data, .bytes = bytes};

    iron__thread_pool_run(pool, task, &w, bytes / PIECE_BYTES);
}

static void copy_piece(void *context, size_t index) {
    work *w = context;
    const vector *from = (const vector *)(const void *)(w->from + index * PIECE_BYTES);
    vector *to = (vector *)(void *)(w->to + index * PIECE_BYTES);

    for (size_t k = 0; k < PIECE_BYTES / sizeof(vector); k += CHAINS) {
        prefetch(from + k);
        for (size_t chain = 0; chain < CHAINS; chain++)
            stream(&to[k + chain], from[k + chain]);
    }
}

static uint64_t choose_bytes(const iron_measure_options *options) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    uint64_t bytes = options->buffer_bytes;

    if (bytes == 0) {
        iron_cpu_describe(&cpu, NULL);
        bytes = 4 * iron__cpu_last_cache_bytes();
        bytes = bytes < BUFFER_MIN ? BUFFER_MIN : bytes > BUFFER_MAX ? BUFFER_MAX : bytes;
        if (bytes > cpu.memory_bytes / 4)
            bytes = cpu.memory_bytes / 4;
    }
    return (bytes + 2 * PIECE_BYTES - 1) / (2 * PIECE_BYTES) * (2 * PIECE_BYTES);
}

typedef struct measurement {
    const iron_measure_options *options;
    iron__ceiling_sink sink;
    iron__thread_pool *pools[2]; /* one thread, all threads */
    char *buffer;
    size_t bytes;
    unsigned done;
} measurement;

static iron_status measure(measurement *m, const char *name, iron__task task, iron_ceiling *out,
                           iron_error *err) {
    const iron_measure_options *o = m->options;
    bool is_copy = task == copy_piece;
    double *rates[2] = {&out->one_thread_gb_s, &out->all_threads_gb_s};
    size_t half = m->bytes / 2, bytes = is_copy ? half : m->bytes;
    iron__ceiling_samples samples = {name, "", (double)(is_copy ? 2 * bytes : bytes), NULL, PASSES};

    for (int k = m->sink.add ? 1 : 0; k < 2; k++) {
        work w = {m->buffer, m->buffer + half, bytes, 0};
        double ms[PASSES];

        iron__thread_pool_run(m->pools[k], task, &w, bytes / PIECE_BYTES); /* is not counted */
        for (unsigned pass = 0; pass < PASSES; pass++) {
            uint64_t start = iron__clock_ns();

            iron__thread_pool_run(m->pools[k], task, &w, bytes / PIECE_BYTES);
            ms[pass] = (double)(iron__clock_ns() - start) * 1e-6;
        }
        *rates[k] = samples.bytes / iron__statistics_of(ms, PASSES).median * 1e-6;
        samples.ms = ms;
        if (m->sink.add)
            m->sink.add(m->sink.context, &samples);
        m->done++;
        IRON_FAIL_IF(o->progress && o->progress(o->context, m->done, m->sink.add ? 3 : 6), err,
                     IRON_E_CANCELLED, "cancelled while measuring");
    }
    return IRON_OK;
}

static iron_status measure_all(measurement *m, iron_ceilings *out, iron_error *err) {
    run_pass(m->pools[1], write_piece, m->buffer, m->bytes);
    IRON_TRY(measure(m, "read", read_piece, &out->read, err));
    IRON_TRY(measure(m, "write", write_piece, &out->write, err));
    return measure(m, "copy", copy_piece, &out->copy, err);
}

/* With a sink only all threads are measured: one thread takes as long as everything else. */
static iron_status measure_cpu(const iron_measure_options *options, iron__ceiling_sink sink,
                               iron_ceilings *out, iron_error *err) {
    uint32_t threads = options->threads ? options->threads : iron__cpu_threads();
    measurement m = {.options = options, .sink = sink, .bytes = (size_t)choose_bytes(options)};
    iron_status status;

    IRON_FAIL_IF(threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", threads, IRON_THREADS_MAX);
    *out = (iron_ceilings){.threads = threads, .passes = PASSES, .buffer_bytes = m.bytes};
    m.buffer = iron__allocate_large(m.bytes, err);
    if (!m.buffer)
        return IRON_E_NOMEM;
    status = iron__thread_pool_create(1, iron__allocator_default(), &m.pools[0], err);
    if (status == IRON_OK)
        status = iron__thread_pool_create(threads, iron__allocator_default(), &m.pools[1], err);
    if (status == IRON_OK)
        status = measure_all(&m, out, err);
    iron__thread_pool_destroy(m.pools[1]);
    iron__thread_pool_destroy(m.pools[0]);
    iron__release_large(m.buffer, m.bytes);
    return status;
}

iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                  iron_error *err) {
    return measure_cpu(options, (iron__ceiling_sink){0}, out, err);
}

static iron_status measure_planned(const iron__race_plan_device *planned,
                                   const iron_measure_options *options, iron__ceiling_sink sink,
                                   iron_error *err) {
    iron_ceilings ceilings;

    (void)planned;
    return measure_cpu(options, sink, &ceilings, err);
}

/* What the CPU provides to its contenders. */
typedef struct cpu_device {
    iron__race_device base;
    const iron__op_problem *problem;  /* borrowed; NULL outside begin and end */
    iron__thread_pool *pool, *single; /* all threads (borrowed); one */
    void *flush;                      /* read before cold samples; made for the first */
    size_t flush_bytes;               /* whole pieces, twice the last-level cache */
    uint64_t host_bytes;              /* of the host's memory; 0 unknown */
    uint64_t used_bytes;              /* of it, by the problem and all its contenders at once */
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

/* Reads what empties the caches: twice, since recently used lines survive the first. */
static iron_status flush_caches(cpu_device *d, iron_error *err) {
    if (!d->flush) {
        d->flush = iron__allocate_large(d->flush_bytes, err);
        if (!d->flush)
            return IRON_E_NOMEM;
        run_pass(d->pool, write_piece, d->flush, d->flush_bytes); /* makes the pages real */
    }
    for (int k = 0; k < 2; k++)
        run_pass(d->pool, read_piece, d->flush, d->flush_bytes);
    return IRON_OK;
}

/* The CPU has the kernel scope only. */
static iron_status time_passes(iron__race_contender *base, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    cpu_contender *c = (cpu_contender *)base;
    uint64_t start;

    (void)scope;
    if (is_cold)
        IRON_TRY(flush_caches(c->device, err));
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
    return IRON_OK;
}

static void end_problem(iron__race_device *base) { ((cpu_device *)base)->problem = NULL; }

const iron__race_device_ops iron__race_cpu = {.measure = measure_planned,
                                              .open = open_device,
                                              .close = close_device,
                                              .begin = begin_problem,
                                              .end = end_problem,
                                              .contender_open = open_contender};
