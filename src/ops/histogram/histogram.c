/* SPDX-License-Identifier: MIT */
/*
 * histogram.c: the op histogram: counts how often each value occurs. The data decide how often
 * threads collide in one counter, so they are an axis:
 *
 *   uniform   every value is equally likely
 *   zipf      value k with a probability proportional to 1 / (k + 1), like words of a language:
 *             real tokenizers give frequent tokens low numbers, so a value is its own rank
 *   one       a single value, chosen by the seed, but never 0
 *   sorted    all values equally often, in ascending order: element i is floor(i * bins / count)
 *   skewed    nine of ten elements are one value as above, the others uniform: padded data
 *
 * or they are the user's (iron arena --data).
 *
 * Zipf's law is sampled by Walker's alias method in integers: bins cells of equal size, and cell k
 * is shared between value k and one other. An element takes a cell and a coin from one random
 * number. Weights fall with k, so the values that fill up the cells of rare ones are found by
 * walking from both ends, and no list of them is needed.
 *
 * The reference is a plain loop on all threads: each counts a strip of the elements into its own
 * 64-bit counters, which are then added. Counts are integers, so a right answer is equal to it.
 *
 * The CPU rows:
 *
 *   plain     one table, one element after the other. An element that equals the one before must
 *             wait until its counter has been stored: a few cycles each in sorted data
 *   tables    u8: 8 at a time, with a table for each, so that neighbours never share a counter.
 *             u16, u32: 16 bytes at a time, and if all are one value a single addition: runs are
 *             where neighbours meet if there are many bins, and one table stays in the cache. On a
 *             Neoverse V1 256,000 bins take 1.2 ns per element (1.5 with two tables), sorted data
 *             0.4 (0.9)
 *   threads   the same on all threads, each with its own tables; then all threads add up bins
 *
 * Tables have 32-bit counters, half the memory of the answer. A strip that is counted in one set of
 * tables is short enough for 32 bits; tables are so few that adding them costs less than counting.
 *
 * The GPU rows are in histogram_gpu.c and follow the CPU rows.
 */
#include "ops/histogram/histogram.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Random streams. */
enum { STREAM_ELEMENTS = 1, STREAM_ONE = 2 };

/* Weights are integers, WEIGHT / (k + 1); bins * WEIGHT must stay below 2^63. */
#define WEIGHT    (UINT64_C(1) << 36)
#define COIN_BITS 23u
#define BLOCK     ((size_t)1024)

typedef struct cell {
    uint32_t own;   /* of 2^COIN_BITS coins, so many select the cell's own value */
    uint32_t other; /* and the rest select this one */
} cell;

typedef struct source {
    const iron__op_problem *problem;
    uint32_t bins, one;
    uint64_t base;
    const cell *cells;
    void (*draw)(const struct source *s, uint64_t first, uint32_t *to, size_t count);
} source;

/* Gives `rare` its cell and fills the rest with `frequent`, which then has that much less left. */
static void share(cell *cells, uint64_t *left, uint32_t rare, uint32_t frequent, uint64_t size) {
    cells[rare] = (cell){(uint32_t)((left[rare] << COIN_BITS) / size), frequent};
    left[frequent] -= size - left[rare];
}

/* left[k] is the weight that value k has not been given yet, initially bins times its weight. A
 * cell holds the sum of all weights, so all cells together hold everything. */
static void share_all(cell *cells, uint64_t *left, uint32_t bins) {
    uint32_t rare = 0, frequent = 0;
    uint64_t size = 0;

    for (uint32_t k = 0; k < bins; k++) {
        left[k] = bins * (WEIGHT / (k + 1));
        size += WEIGHT / (k + 1);
        cells[k] = (cell){UINT32_C(1) << COIN_BITS, k};
    }
    while (rare < bins && left[rare] >= size)
        rare++;
    for (uint32_t k = bins; k-- > rare;) {
        share(cells, left, k, frequent, size);
        while (left[frequent] < size && frequent + 1 < rare) {
            share(cells, left, frequent, frequent + 1, size);
            frequent++;
        }
    }
}

static iron_status make_cells(cell **out, uint32_t bins, iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    uint64_t *left = iron__allocate(allocator, bins, sizeof *left, "weights", err);

    *out = left ? iron__allocate(allocator, bins, sizeof **out, "cells", err) : NULL;
    if (*out)
        share_all(*out, left, bins);
    iron__release(allocator, left);
    return *out ? IRON_OK : IRON_E_NOMEM;
}

static void draw_uniform(const source *s, uint64_t first, uint32_t *to, size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = iron__data_below(iron__data_bits(s->base, first + k), s->bins);
}

static void draw_zipf(const source *s, uint64_t first, uint32_t *to, size_t count) {
    for (size_t k = 0; k < count; k++) {
        uint64_t bits = iron__data_bits(s->base, first + k);
        uint32_t at = iron__data_below(bits, s->bins);
        uint32_t coin = (uint32_t)bits & ((UINT32_C(1) << COIN_BITS) - 1);

        uint32_t is_own =
            0 - (uint32_t)(coin < s->cells[at].own); /* a branch would be mispredicted */

        to[k] = (at & is_own) | (s->cells[at].other & ~is_own);
    }
}

static void draw_one(const source *s, uint64_t first, uint32_t *to, size_t count) {
    (void)first;
    for (size_t k = 0; k < count; k++)
        to[k] = s->one;
}

/* From value to value: one division per value, not per element. */
static void draw_sorted(const source *s, uint64_t first, uint32_t *to, size_t count) {
    uint64_t rows = s->problem->c.rows;

    for (size_t k = 0; k < count;) {
        uint64_t value = (first + k) * s->bins / rows;
        uint64_t next =
            ((value + 1) * rows + s->bins - 1) / s->bins; /* first index of the next value */

        for (; k < count && first + k < next; k++)
            to[k] = (uint32_t)value;
    }
}

static void draw_skewed(const source *s, uint64_t first, uint32_t *to, size_t count) {
    draw_uniform(s, first, to, count);
    for (size_t k = 0; k < count; k++) /* values come from the upper half of the bits */
        if ((iron__data_bits(s->base, first + k) & 0x3FFu) < 922)
            to[k] = s->one;
}

static void fill_piece(void *context, size_t begin, size_t end) {
    const source *s = context;
    const iron__op_problem p = *s->problem; /* a copy, which no store can change */
    uint32_t block[BLOCK];

    for (size_t k = begin; k < end; k += BLOCK) {
        size_t count = iron__min_size(BLOCK, end - k);

        s->draw(s, k, block, count);
        for (size_t j = 0; j < count; j++)
            iron__data_put(&p, k + j, block[j]);
    }
}

/* Fills the elements of the problem. */
static iron_status fill_elements(const iron__op_problem *problem, iron_error *err) {
    static void (*const draws[IRON_HISTOGRAM_DATA])(const source *, uint64_t, uint32_t *,
                                                    size_t) = {draw_uniform, draw_zipf, draw_one,
                                                               draw_sorted, draw_skewed};
    const iron__case *c = &problem->c;
    cell *cells = NULL;
    source s = {.problem = problem,
                .bins = iron__histogram_bins(c),
                .base = iron__data_base(c->seed, STREAM_ELEMENTS),
                .draw = draws[iron__histogram_data_of(c)]};

    s.one = 1 + iron__data_below(iron__data_base(c->seed, STREAM_ONE), s.bins - 1);
    if (iron__histogram_data_of(c) == IRON_HISTOGRAM_ZIPF)
        IRON_TRY(make_cells(&cells, s.bins, err));
    s.cells = cells;
    iron__data_pieces(problem->pool, (size_t)c->rows, fill_piece, &s);
    iron__release(iron__allocator_default(), cells);
    return IRON_OK;
}

typedef struct counting {
    const iron__op_problem *problem;
    uint64_t *strips; /* `bins` counters each; the first becomes the reference */
    size_t count;     /* of strips */
    size_t bins;
} counting;

/* Elements begin ... end-1, one after the other. */
static void count_elements(const iron__op_problem *problem, size_t begin, size_t end,
                           uint64_t *counts) {
    const void *elements = problem->inputs[0].data;

    if (problem->c.element == IRON_U8)
        for (size_t k = begin; k < end; k++)
            counts[((const uint8_t *)elements)[k]]++;
    else if (problem->c.element == IRON_U16)
        for (size_t k = begin; k < end; k++)
            counts[((const uint16_t *)elements)[k]]++;
    else
        for (size_t k = begin; k < end; k++)
            counts[((const uint32_t *)elements)[k]]++;
}

static void count_strip(void *context, size_t index) {
    const counting *w = context;
    size_t rows = (size_t)w->problem->c.rows, begin = rows / w->count * index;
    size_t end = index + 1 < w->count ? begin + rows / w->count : rows;

    count_elements(w->problem, begin, end, w->strips + index * w->bins);
}

static void add_strips(void *context, size_t begin, size_t end) {
    const counting *w = context;

    for (size_t strip = 1; strip < w->count; strip++)
        for (size_t bin = begin; bin < end; bin++)
            w->strips[bin] += w->strips[strip * w->bins + bin];
}

/* The reference has one strip per thread, as long as strips are longer than their counters. */
static iron_status fill(iron__op_problem *p, iron_error *err) {
    size_t bins = iron__histogram_bins(&p->c), threads = iron__thread_pool_threads(p->pool);
    counting w = {.problem = p,
                  .count = (size_t)iron__max(iron__min(threads, p->c.rows / bins), 1),
                  .bins = bins};

    p->output_bytes = bins * sizeof(uint64_t);
    IRON_TRY(iron__data_own(p, "elements", err));
    if (!p->c.data)
        IRON_TRY(fill_elements(p, err));
    IRON_TRY(iron__data_take(&p->reference, "counters", w.count * bins * sizeof *w.strips, err));
    w.strips = p->reference.data;
    iron__thread_pool_run(p->pool, count_strip, &w, w.count);
    iron__data_pieces(p->pool, bins, add_strips, &w);
    return IRON_OK;
}

static bool differs(const iron__op_problem *problem, const void *output, size_t bin) {
    return ((const uint64_t *)output)[bin] != ((const uint64_t *)problem->reference.data)[bin];
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    size_t bins = iron__histogram_bins(&problem->c);
    size_t bin = iron__data_first(problem, output, bins, differs);

    if (bin < bins)
        snprintf(text, size, "value %zu occurs %" PRIu64 " times, should be %" PRIu64, bin,
                 ((const uint64_t *)output)[bin], ((const uint64_t *)problem->reference.data)[bin]);
    return bin == bins;
}

/* Maximum of elements per strip: what 32-bit counters can hold. */
#define STRIP_MAX (UINT64_C(1) << 31)
#define WORD      sizeof(uint64_t)
/* Bins per task when tables are added: few, so that all threads have some. */
#define PIECE ((size_t)4096)

typedef struct pass {
    const iron__op_problem *problem;
    size_t strips, bins;
    size_t ways; /* tables per strip */
    uint32_t *tables;
    uint64_t *counts;
} pass;

static void run_plain(const iron__cpu_work *work) {
    memset(work->output, 0, work->problem->output_bytes);
    count_elements(work->problem, 0, (size_t)work->problem->c.rows, work->output);
}

static void count_bytes(const unsigned char *from, size_t bytes, uint32_t *tables, size_t bins) {
    uint64_t word = 0;
    size_t k = 0;

    for (; k + WORD <= bytes; k += WORD) {
        memcpy(&word, from + k, WORD);
        for (size_t way = 0; way < WORD; way++)
            tables[way * bins + (word >> 8 * way & 255)]++;
    }
    for (; k < bytes; k++)
        tables[from[k]]++;
}

/* `element`, the bytes of an element, is always a constant. */
static inline __attribute__((always_inline)) void
count_runs(const unsigned char *from, size_t bytes, uint32_t *table, const size_t element) {
    const uint64_t mask = UINT64_MAX >> (64 - 8 * element), ones = UINT64_MAX / mask;
    uint64_t words[2];
    size_t k = 0;

    for (; k + sizeof words <= bytes; k += sizeof words) {
        memcpy(words, from + k, sizeof words);
        if (words[0] == words[1] && words[0] == (words[0] & mask) * ones) {
            table[words[0] & mask] += (uint32_t)(sizeof words / element);
            continue;
        }
        for (size_t way = 0; way < sizeof words / element; way++)
            table[words[way * element / WORD] >> 8 * element * (way % (WORD / element)) & mask]++;
    }
    for (; k < bytes; k += element) {
        words[0] = 0;
        memcpy(words, from + k, element);
        table[words[0]]++;
    }
}

static void count_strip_in_tables(void *context, size_t index) {
    const pass *p = context;
    const iron__op_array *elements = &p->problem->inputs[0];
    size_t words = elements->bytes / WORD, begin = words * index / p->strips * WORD;
    size_t end = index + 1 < p->strips ? words * (index + 1) / p->strips * WORD : elements->bytes;
    const unsigned char *from = (const unsigned char *)elements->data + begin;
    uint32_t *tables = p->tables + index * p->ways * p->bins;

    memset(tables, 0, p->ways * p->bins * sizeof *tables);
    if (p->problem->c.element == IRON_U8)
        count_bytes(from, end - begin, tables, p->bins);
    else if (p->problem->c.element == IRON_U16)
        count_runs(from, end - begin, tables, 2);
    else
        count_runs(from, end - begin, tables, 4);
}

static void add_tables(void *context, size_t index) {
    const pass *p = context;
    size_t begin = index * PIECE, end = p->bins - begin < PIECE ? p->bins : begin + PIECE;

    memset(p->counts + begin, 0, (end - begin) * sizeof *p->counts);
    for (size_t table = 0; table < p->strips * p->ways; table++)
        for (size_t bin = begin; bin < end; bin++)
            p->counts[bin] += p->tables[table * p->bins + bin];
}

static size_t ways_of(const iron__op_problem *problem) {
    return problem->c.element == IRON_U8 ? WORD : 1;
}

/* One per thread, if each has at least twice as many elements as its tables have counters. */
static size_t strips_of(const iron__op_problem *problem, uint32_t threads) {
    uint64_t rows = problem->c.rows;
    uint64_t worth = rows / (2 * ways_of(problem) * iron__histogram_bins(&problem->c));

    return (size_t)iron__max(iron__min(threads, worth), iron__kit_pieces(rows, STRIP_MAX));
}

static size_t tables_scratch(const iron__op_problem *problem, uint32_t threads) {
    return strips_of(problem, threads) * ways_of(problem) * iron__histogram_bins(&problem->c) *
           sizeof(uint32_t);
}

static void run_tables(const iron__cpu_work *work) {
    pass p = {.problem = work->problem,
              .strips = strips_of(work->problem, iron__thread_pool_threads(work->pool)),
              .ways = ways_of(work->problem),
              .bins = iron__histogram_bins(&work->problem->c),
              .tables = work->scratch,
              .counts = work->output};

    iron__thread_pool_run(work->pool, count_strip_in_tables, &p, p.strips);
    iron__thread_pool_run(work->pool, add_tables, &p, (size_t)iron__kit_pieces(p.bins, PIECE));
}

static const iron__contender cpu_rows[] = {
    {"plain", "one table, one element after the other", NULL, IRON_ON_CPU, .cpu_run = run_plain,
     .is_single = true},
    {"tables", "eight tables for neighbouring bytes; runs of wider values are one addition",
     "plain", IRON_ON_CPU, .cpu_run = run_tables, .cpu_scratch_bytes = tables_scratch,
     .is_single = true},
    {"threads", "the same on all threads, each with its own tables, which are then added", "tables",
     IRON_ON_CPU, .cpu_run = run_tables, .cpu_scratch_bytes = tables_scratch},
};

#define VOCAB_USUAL 50257u
#define VOCAB_MAX   (UINT32_C(1) << 24)
#define BYTES_GPU   (UINT64_C(1) << 32)
#define BYTES_CPU   (UINT64_C(1) << 26)

static bool contender_at(size_t index, iron__contender *out) {
    return iron__row_at(cpu_rows, IRON_KIT_COUNT(cpu_rows), &index, out) ||
           iron__row_at(iron__histogram_gpu_rows, IRON_HISTOGRAM_GPU_ROWS, &index, out);
}

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    *name = "bins";
    *value = iron__histogram_bins(c);
    return index == 0;
}

/* 4 GiB on a GPU, which takes about a millisecond; otherwise more than the CPU's caches hold. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t bytes = has_gpu ? BYTES_GPU : BYTES_CPU;

    while (bytes < 4 * cache_bytes)
        bytes *= 2;
    *rows = bytes / iron__element_bytes(element);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return c->rows * iron__element_bytes(c->element) + iron__histogram_bins(c) * sizeof(uint64_t);
}

static iron_status accept(const iron__case *c, iron_error *err) {
    IRON_TRY(iron__line_accept_case(c, err));
    IRON_FAIL_IF(c->element == IRON_U32 && (c->vocab < 2 || c->vocab > VOCAB_MAX), err, IRON_E_ARG,
                 "vocab is %" PRIu32 "; a histogram has 2 to %" PRIu32 " bins", c->vocab,
                 VOCAB_MAX);
    return IRON_OK;
}

const iron__op iron__op_histogram = {
    .name = "histogram",
    .contract =
        "a 64-bit count of each value: 256 values of u8, 65,536 of u16, the vocabulary of u32",
    .why =
        "The data are read once, with one addition per element; but the data decide where the "
        "additions go. Threads that add to the same counter wait for each other, and atomics in "
        "device memory make all threads of the device collide in a few lines of the last-level "
        "cache. A table in a group's local memory, added to the answer once at the end, restricts "
        "collisions to the group. Copies of the table make them rarer; one copy for each of 32 "
        "lanes, each in its own bank, makes them impossible within a warp.\n"
        "\n"
        "Then memory is the limit again, and with it the bytes in flight: 16-byte loads, several "
        "at a time. With many bins the question is another one: does a table fit at all? Tokens of "
        "a large vocabulary need all local memory of a unit and counters of 16, 8 or 4 bits, whose "
        "overflows must be prevented or found. Race all values of `data`: a contender that is fast "
        "on uniform data only is a trap.",
    .traffic =
        "All contenders read the data once. They differ in atomic additions: one per element in "
        "device memory (global-atomic), or one per element in local memory plus one per bin and "
        "group in device memory. Counters in device memory have 8 bytes, tables in local memory 4 "
        "bytes per bin and copy, packed ones 2, mixed ones 2, 1 or a half; mixed tables are stored "
        "once per group and added by a second kernel.",
    .unless =
        "Each group must clear its tables and write them back once: if the data are not much "
        "longer than tables times groups, or if the bins do not fit local memory, adding in place "
        "is as good. Sorting first pays only if the sorted data are needed anyway.",
    .used = "iron's own kernels count nothing, but they add by the same rule: sums are computed in "
            "registers and local memory, and device memory sees one atomic per group and batch "
            "(tokens_champion in src/ops/tokens/champion.k, tokens_reduce_group in "
            "src/ops/tokens/tokens.k); they also use 16-byte loads, several in flight.",
    .elements = IRON_BIT(IRON_U8) | IRON_BIT(IRON_U16) | IRON_BIT(IRON_U32),
    .usual = IRON_U8,
    .is_line = true,
    .takes_data = true,
    .vocab_usual = VOCAB_USUAL,
    .bound = IRON_BOUND_READ,
    .is_resident = true,
    IRON_AXES({.name = "data",
               .about = "the distribution and order of the values",
               IRON_WORDS("uniform", "zipf", "one", "sorted", "skewed")}),
    .param_at = param_at,
    .baselines = {"plain", "shared"},
    IRON_LINE_SIZES(20, 28, 32),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations_each = 1, /* addition */
    .rows_max = UINT64_C(1) << 38,
    .accept = accept,
    IRON_DATA_OP,
    .contender_at = contender_at,
};
