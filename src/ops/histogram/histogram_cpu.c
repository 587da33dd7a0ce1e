/* SPDX-License-Identifier: MIT */
/*
 * histogram_cpu.c: the rows of the op histogram on the CPU.
 *
 *   plain     one table, one element after the other. An element that is equal to the one before it
 *             has to wait until its counter has been stored: a few cycles each in sorted data
 *   tables    8 bytes at a time, and a table for each element in them (8 of u8, 4 of u16, 2 of
 *             u32): neighbours never meet in one counter
 *   threads   the same on all threads, each with tables of its own; then threads add up bins
 *
 * Tables have 32-bit counters and so half the memory of the answer. A strip of elements that is
 * counted in one set of tables is short enough for them; tables are few enough that adding them up
 * costs less than counting.
 */
#include "core/memory.h"
#include "ops/histogram/histogram.h"
#include "ops/kit.h"

#include <string.h>

/* Of elements; what a counter of 32 bits can hold. */
#define STRIP_MAX (UINT64_C(1) << 31)
#define WORD      sizeof(uint64_t)
/* Bins that a thread adds up at a time: few, so that all threads have some. */
#define PIECE ((size_t)4096)

typedef struct pass {
    const iron__problem *problem;
    size_t strips, ways, bins; /* ways: tables a strip, elements in 8 bytes */
    uint32_t *tables;
    uint64_t *counts;
} pass;

static void run_plain(const iron__cpu_work *work) {
    const iron__array *elements = &work->problem->inputs[0];
    size_t rows = (size_t)work->problem->c.rows;
    uint64_t *counts = work->output;

    memset(counts, 0, work->problem->output_bytes);
    if (work->problem->c.element == IRON_U8)
        for (size_t k = 0; k < rows; k++)
            counts[((const uint8_t *)elements->data)[k]]++;
    else if (work->problem->c.element == IRON_U16)
        for (size_t k = 0; k < rows; k++)
            counts[((const uint16_t *)elements->data)[k]]++;
    else
        for (size_t k = 0; k < rows; k++)
            counts[((const uint32_t *)elements->data)[k]]++;
}

/* Elements of so many bytes, a constant wherever this is called. */
static inline __attribute__((always_inline)) void count(const unsigned char *from, size_t bytes,
                                                        uint32_t *tables, size_t bins,
                                                        const size_t element) {
    const uint64_t mask = UINT64_MAX >> (64 - 8 * element);
    uint64_t word = 0;
    size_t k = 0;

    for (; k + WORD <= bytes; k += WORD) {
        memcpy(&word, from + k, WORD);
        for (size_t way = 0; way < WORD / element; way++)
            tables[way * bins + (word >> 8 * element * way & mask)]++;
    }
    for (; k < bytes; k += element) {
        word = 0;
        memcpy(&word, from + k, element);
        tables[word]++;
    }
}

static void count_strip(void *context, size_t index) {
    const pass *p = context;
    const iron__array *elements = &p->problem->inputs[0];
    size_t words = elements->bytes / WORD, begin = words * index / p->strips * WORD;
    size_t end = index + 1 < p->strips ? words * (index + 1) / p->strips * WORD : elements->bytes;
    const unsigned char *from = (const unsigned char *)elements->data + begin;
    uint32_t *tables = p->tables + index * p->ways * p->bins;

    memset(tables, 0, p->ways * p->bins * sizeof *tables);
    if (p->problem->c.element == IRON_U8)
        count(from, end - begin, tables, p->bins, 1);
    else if (p->problem->c.element == IRON_U16)
        count(from, end - begin, tables, p->bins, 2);
    else
        count(from, end - begin, tables, p->bins, 4);
}

static void add_tables(void *context, size_t index) {
    const pass *p = context;
    size_t begin = index * PIECE, end = p->bins - begin < PIECE ? p->bins : begin + PIECE;

    memset(p->counts + begin, 0, (end - begin) * sizeof *p->counts);
    for (size_t table = 0; table < p->strips * p->ways; table++)
        for (size_t bin = begin; bin < end; bin++)
            p->counts[bin] += p->tables[table * p->bins + bin];
}

static size_t ways_of(const iron__problem *problem) {
    return WORD / iron__element_bytes(problem->c.element);
}

/* One a thread, if each has twice as many elements as its tables have counters. */
static size_t strips_of(const iron__problem *problem, uint32_t threads) {
    uint64_t rows = problem->c.rows;
    uint64_t worth = rows / (2 * ways_of(problem) * iron__histogram_bins(&problem->c));
    uint64_t strips = threads < worth ? threads : worth, least = iron__kit_pieces(rows, STRIP_MAX);

    return (size_t)(strips > least ? strips : least);
}

static size_t threads_scratch(const iron__problem *problem, uint32_t threads) {
    return strips_of(problem, threads) * ways_of(problem) * iron__histogram_bins(&problem->c) *
           sizeof(uint32_t);
}

static size_t tables_scratch(const iron__problem *problem, uint32_t threads) {
    (void)threads;
    return threads_scratch(problem, 1);
}

static pass start(const iron__cpu_work *work, uint32_t threads) {
    return (pass){.problem = work->problem,
                  .strips = strips_of(work->problem, threads),
                  .ways = ways_of(work->problem),
                  .bins = iron__histogram_bins(&work->problem->c),
                  .tables = work->scratch,
                  .counts = work->output};
}

static void run_tables(const iron__cpu_work *work) {
    pass p = start(work, 1);

    for (size_t k = 0; k < p.strips; k++)
        count_strip(&p, k);
    for (size_t k = 0; k < iron__kit_pieces(p.bins, PIECE); k++)
        add_tables(&p, k);
}

static void run_threads(const iron__cpu_work *work) {
    pass p = start(work, iron__team_threads(work->team));

    iron__team_run(work->team, count_strip, &p, p.strips);
    iron__team_run(work->team, add_tables, &p, (size_t)iron__kit_pieces(p.bins, PIECE));
}

static const iron__contender rows[] = {
    {.name = "plain",
     .idea = "one table, one element after the other",
     .backends = IRON_ON_CPU,
     .cpu_run = run_plain,
     .is_single = true},
    {.name = "tables",
     .idea = "8 bytes at a time, and a table for each element in them",
     .beats = "plain",
     .backends = IRON_ON_CPU,
     .cpu_run = run_tables,
     .cpu_scratch_bytes = tables_scratch,
     .is_single = true},
    {.name = "threads",
     .idea = "the same on all threads, with tables of their own that are added up",
     .beats = "tables",
     .backends = IRON_ON_CPU,
     .cpu_run = run_threads,
     .cpu_scratch_bytes = threads_scratch},
};

size_t iron__histogram_cpu_count(void) { return IRON_KIT_COUNT(rows); }

bool iron__histogram_cpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
