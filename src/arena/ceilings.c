/* SPDX-License-Identifier: MIT */
/*
 * ceilings.c: what this machine's memory can give: one thread and all, reading, writing, copying.
 *
 * The working set is at least four times the last-level cache. Each thread first touches the part
 * that it will use. A pass goes over all of it; the figure is the median of several, after one that
 * is not counted. Reading means: every byte reaches a register (an XOR keeps the compiler honest).
 * Nothing is computed that a memory-bound kernel would not have to do, so a kernel's share of these
 * figures is its share of what is possible.
 */
#include "arena/ceilings.h"

#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"

#include <iron/iron_arena.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define PASSES     9u
#define BUFFER_MIN (UINT64_C(512) << 20)
#define BUFFER_MAX (UINT64_C(8) << 30)

/* Pieces that threads take in turn; big enough for the prefetchers, small enough to balance. */
#define PIECE_BYTES ((size_t)1 << 20)

/* 16 bytes, the widest that every 64-bit processor has; wider ones read DRAM no faster. */
typedef uint64_t vector __attribute__((vector_size(16)));

/* Loads in flight: independent sums, so that none waits for another. */
#define CHAINS 8u

/* Without being asked for ahead, into the second-level cache, lines come a sixth slower on a
 * Neoverse V1 and a third slower on a Xeon: a ceiling has to know the tricks of those who are
 * measured against it. */
#define AHEAD_BYTES 32768
#define LINE_BYTES  64

typedef struct work {
    char *from, *to; /* to: the second half, for copies */
    size_t bytes;    /* read or written by a pass */
    uint64_t result; /* of reading, XORed over the pieces */
} work;

/* Asks for what one turn of the loops below will read a while later. */
static inline void ask_ahead(const vector *at) {
    for (size_t k = 0; k < CHAINS * sizeof(vector); k += LINE_BYTES)
        __builtin_prefetch((const char *)at + AHEAD_BYTES + k, 0, 2);
}

static void read_piece(void *context, size_t index) {
    work *w = context;
    const vector *at = (const vector *)(const void *)(w->from + index * PIECE_BYTES);
    vector x[CHAINS] = {0};

    for (size_t k = 0; k < PIECE_BYTES / sizeof(vector); k += CHAINS) {
        ask_ahead(at + k);
        for (size_t chain = 0; chain < CHAINS; chain++)
            x[chain] ^= at[k + chain];
    }
    for (size_t chain = 1; chain < CHAINS; chain++)
        x[0] ^= x[chain];
    __atomic_fetch_xor(&w->result, x[0][0] ^ x[0][1], __ATOMIC_RELAXED);
}

uint64_t iron__read_pass(iron__team *team, const void *data, size_t bytes) {
    work w = {.from = (char *)(uintptr_t)data, .bytes = bytes};

    iron__team_run(team, read_piece, &w, bytes / PIECE_BYTES);
    return w.result;
}

/* Stores that do not read the line first, where the instruction set has them. */
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

void iron__write_pass(iron__team *team, void *data, size_t bytes) {
    work w = {.from = data, .bytes = bytes};

    iron__team_run(team, write_piece, &w, bytes / PIECE_BYTES);
}

static void copy_piece(void *context, size_t index) {
    work *w = context;
    const vector *from = (const vector *)(const void *)(w->from + index * PIECE_BYTES);
    vector *to = (vector *)(void *)(w->to + index * PIECE_BYTES);

    for (size_t k = 0; k < PIECE_BYTES / sizeof(vector); k += CHAINS) {
        ask_ahead(from + k);
        for (size_t chain = 0; chain < CHAINS; chain++)
            stream(&to[k + chain], from[k + chain]);
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Milliseconds of each pass of a task over the pieces, after one that is not counted. */
static void time_passes(iron__team *team, iron__task task, work *w, double ms[PASSES]) {
    size_t pieces = w->bytes / PIECE_BYTES;

    iron__team_run(team, task, w, pieces);
    for (unsigned k = 0; k < PASSES; k++) {
        uint64_t start = iron__clock_ns();

        iron__team_run(team, task, w, pieces);
        ms[k] = (double)(iron__clock_ns() - start) * 1e-6;
    }
}

static double median_of(const double ms[PASSES]) {
    double sorted[PASSES];

    memcpy(sorted, ms, sizeof sorted);
    qsort(sorted, PASSES, sizeof sorted[0], by_value);
    return sorted[PASSES / 2];
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
    iron__ceiling_listener listener;
    iron__team *teams[2]; /* one thread, all threads */
    char *buffer;
    size_t bytes;
    unsigned done;
} measurement;

static iron_status tell(measurement *m, iron_error *err) {
    const iron_measure_options *o = m->options;

    m->done++;
    IRON_FAIL_IF(o->progress && o->progress(o->context, m->done, m->listener.told ? 3 : 6), err,
                 IRON_E_CANCELLED, "cancelled while measuring");
    return IRON_OK;
}

static iron_status measure(measurement *m, const char *what, iron__task task, iron_ceiling *out,
                           iron_error *err) {
    bool is_copy = task == copy_piece;
    double *rates[2] = {&out->one_thread_gb_s, &out->all_threads_gb_s};
    size_t half = m->bytes / 2, bytes = is_copy ? half : m->bytes;
    iron__ceiling_passes passes = {what, "", (double)(is_copy ? 2 * bytes : bytes), NULL, PASSES};

    for (int k = m->listener.told ? 1 : 0; k < 2; k++) {
        work w = {m->buffer, m->buffer + half, bytes, 0};
        double ms[PASSES];

        time_passes(m->teams[k], task, &w, ms);
        *rates[k] = passes.bytes / median_of(ms) * 1e-6;
        passes.ms = ms;
        if (m->listener.told)
            m->listener.told(m->listener.context, &passes);
        IRON_TRY(tell(m, err));
    }
    return IRON_OK;
}

static iron_status measure_all(measurement *m, iron_ceilings *out, iron_error *err) {
    work touch = {m->buffer, NULL, m->bytes, 0};

    iron__team_run(m->teams[1], write_piece, &touch, m->bytes / PIECE_BYTES);
    IRON_TRY(measure(m, "read", read_piece, &out->read, err));
    IRON_TRY(measure(m, "write", write_piece, &out->write, err));
    return measure(m, "copy", copy_piece, &out->copy, err);
}

iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                  iron_error *err) {
    return iron__measure_cpu(options, (iron__ceiling_listener){0}, out, err);
}

iron_status iron__measure_cpu(const iron_measure_options *options, iron__ceiling_listener listener,
                              iron_ceilings *out, iron_error *err) {
    uint32_t threads = options->threads ? options->threads : iron__cpu_threads();
    measurement m = {
        .options = options, .listener = listener, .bytes = (size_t)choose_bytes(options)};
    iron_status status;

    IRON_FAIL_IF(threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", threads, IRON_THREADS_MAX);
    *out = (iron_ceilings){.threads = threads, .passes = PASSES, .buffer_bytes = m.bytes};
    m.buffer = iron__allocate_large(m.bytes, err);
    if (!m.buffer)
        return IRON_E_NOMEM;
    status = iron__team_create(1, iron__allocator_default(), &m.teams[0], err);
    if (status == IRON_OK)
        status = iron__team_create(threads, iron__allocator_default(), &m.teams[1], err);
    if (status == IRON_OK)
        status = measure_all(&m, out, err);
    iron__team_destroy(m.teams[1]);
    iron__team_destroy(m.teams[0]);
    iron__release_large(m.buffer, m.bytes);
    return status;
}
