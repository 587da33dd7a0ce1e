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
#include <sys/mman.h>

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
    typedef long long two __attribute__((vector_size(16)));

    __builtin_ia32_movntdq((two *)(void *)to, (two)value);
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

/* The median rate of a task over the pieces, counting `factor` bytes moved for each byte. */
static double median_rate(iron__team *team, iron__task task, work *w, double factor) {
    size_t pieces = w->bytes / PIECE_BYTES;
    double rates[PASSES];

    iron__team_run(team, task, w, pieces);
    for (unsigned k = 0; k < PASSES; k++) {
        uint64_t start = iron__clock_ns();

        iron__team_run(team, task, w, pieces);
        rates[k] = factor * (double)(pieces * PIECE_BYTES) / (double)(iron__clock_ns() - start);
    }
    qsort(rates, PASSES, sizeof rates[0], by_value);
    return rates[PASSES / 2];
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
    iron__team *teams[2]; /* one thread, all threads */
    char *buffer;
    size_t bytes;
    unsigned done;
} measurement;

static iron_status measure(measurement *m, iron__task task, bool is_copy, iron_ceiling *out,
                           iron_error *err) {
    double *rates[2] = {&out->one_thread_gb_s, &out->all_threads_gb_s};
    size_t half = m->bytes / 2;

    for (int k = 0; k < 2; k++) {
        work w = {m->buffer, m->buffer + half, is_copy ? half : m->bytes, 0};

        *rates[k] = median_rate(m->teams[k], task, &w, is_copy ? 2 : 1);
        m->done++;
        IRON_FAIL_IF(m->options->progress && m->options->progress(m->options->context, m->done, 6),
                     err, IRON_E_CANCELLED, "cancelled while measuring");
    }
    return IRON_OK;
}

static iron_status measure_all(measurement *m, iron_ceilings *out, iron_error *err) {
    work touch = {m->buffer, NULL, m->bytes, 0};

    iron__team_run(m->teams[1], write_piece, &touch, m->bytes / PIECE_BYTES);
    IRON_TRY(measure(m, read_piece, false, &out->read, err));
    IRON_TRY(measure(m, write_piece, false, &out->write, err));
    return measure(m, copy_piece, true, &out->copy, err);
}

iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                  iron_error *err) {
    uint32_t threads = options->threads ? options->threads : iron__cpu_threads();
    measurement m = {.options = options, .bytes = (size_t)choose_bytes(options)};
    iron_status status;

    IRON_FAIL_IF(threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", threads, IRON_THREADS_MAX);
    *out = (iron_ceilings){.threads = threads, .passes = PASSES, .buffer_bytes = m.bytes};
    m.buffer = mmap(NULL, m.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.buffer == MAP_FAILED)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: %zu bytes to measure with",
                          m.bytes);
    madvise(m.buffer, m.bytes, MADV_HUGEPAGE);
    status = iron__team_create(1, iron__allocator_default(), &m.teams[0], err);
    if (status == IRON_OK)
        status = iron__team_create(threads, iron__allocator_default(), &m.teams[1], err);
    if (status == IRON_OK)
        status = measure_all(&m, out, err);
    iron__team_destroy(m.teams[1]);
    iron__team_destroy(m.teams[0]);
    munmap(m.buffer, m.bytes);
    return status;
}
