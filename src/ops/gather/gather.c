/* SPDX-License-Identifier: MIT */
/*
 * gather.c: out[i] = table[index[i]] with indices in random, windowed or sorted order.
 *
 * All words of the table differ, so reading a wrong one gives a wrong answer. The check looks each
 * element up again; no reference is stored.
 *
 * On the CPU, plain and prefetch take the indices as they come. An out-of-order processor has a few
 * dozen loads in flight by itself; prefetching makes their number a choice. sorted-first sorts
 * blocks of indices into buckets of the table, so that the reads of a block pass through the table
 * once, from beginning to end. A block and its entries fit the L2 cache.
 *
 * On GPUs each row is one kernel, in groups that process a block of elements. The texture is
 * created from the table's buffer when the table has arrived there.
 */
#include "core/fail.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/gather/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <stdio.h>
#include <string.h>

/* The values of the axis "order", in the order of its words. */
typedef enum index_order {
    ORDER_RANDOM,   /* anywhere in the table */
    ORDER_WINDOWED, /* anywhere in a window that moves through the table with i */
    ORDER_SORTED    /* ascending, some words several times, some never */
} index_order;

/* The size of a one-dimensional texture that every card supports. */
#define TABLE_MAX (UINT64_C(1) << 27)
/* The sorted order is made in blocks of this size; each block has its part of the table. */
#define SORT_BLOCK ((size_t)64)

static index_order order_of(const iron__case *c) { return (index_order)(int)c->at[0]; }

static uint64_t table_words(const iron__case *c) { return iron__min(c->rows, TABLE_MAX); }

/* Each step is invertible, so words at different places differ. */
static uint32_t make_word(const iron__op_problem *p, size_t place, uint64_t bits) {
    uint64_t base = iron__data_base(p->c.seed, 2);
    uint32_t x = (uint32_t)place * UINT32_C(0x9E3779B1) + (uint32_t)base;

    (void)bits;
    x = (x ^ x >> 15) * UINT32_C(0x85EBCA77);
    return x ^ x >> 13 ^ (uint32_t)(base >> 32);
}

/* Random order has one window, the whole table. Sorted order draws each block from its own part of
 * the table; sort_indices sorts the blocks. */
static uint32_t make_index(const iron__op_problem *p, size_t i, uint64_t bits) {
    index_order order = order_of(&p->c);
    uint64_t words = table_words(&p->c), blocks = iron__kit_pieces(p->c.rows, SORT_BLOCK);
    uint64_t window = order == ORDER_RANDOM || words < GATHER_WINDOW ? words : GATHER_WINDOW;
    uint64_t low = i * (words - window) / p->c.rows;

    if (order == ORDER_SORTED) {
        low = i / SORT_BLOCK * words / blocks;
        window = (i / SORT_BLOCK + 1) * words / blocks - low;
    }
    return (uint32_t)low + iron__data_below(bits, (uint32_t)window);
}

/* Each block by insertion. Pieces begin at blocks. */
static void sort_indices(void *context, size_t begin, size_t end) {
    uint32_t *index = ((const iron__op_problem *)context)->inputs[0].data;

    for (size_t k = begin; k < end; k++) {
        uint32_t value = index[k];
        size_t at = k;

        for (; at % SORT_BLOCK > 0 && index[at - 1] > value; at--)
            index[at] = index[at - 1];
        index[at] = value;
    }
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    IRON_TRY(iron__data_input(p, "index", (size_t)p->c.rows, make_index, err));
    if (order_of(&p->c) == ORDER_SORTED)
        iron__data_pieces(p->pool, (size_t)p->c.rows, sort_indices, p);
    return iron__data_input(p, "table", (size_t)table_words(&p->c), make_word, err);
}

static uint32_t expected(const iron__op_problem *problem, size_t i) {
    const uint32_t *index = problem->inputs[0].data, *table = problem->inputs[1].data;

    return table[index[i]];
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    size_t rows = (size_t)problem->c.rows, i = iron__data_first_word(problem, output, rows);

    if (i < rows)
        snprintf(text, size, "out[%zu] is %u, should be table[%u] = %u", i,
                 ((const uint32_t *)output)[i], ((const uint32_t *)problem->inputs[0].data)[i],
                 expected(problem, i));
    return i == rows;
}

typedef struct arrays {
    const uint32_t *index, *table;
    uint32_t *output;
} arrays;

static arrays arrays_of(const iron__cpu_work *work) {
    return (arrays){work->problem->inputs[0].data, work->problem->inputs[1].data, work->output};
}

/* Prefetch distance in elements: a few hundred nanoseconds at one or two nanoseconds each. */
#define AHEAD ((size_t)64)

static void gather_plain(const iron__cpu_work *work, size_t begin, size_t end) {
    const arrays a = arrays_of(work);

    for (size_t i = begin; i < end; i++)
        a.output[i] = a.table[a.index[i]];
}

static void gather_ahead(const iron__cpu_work *work, size_t begin, size_t end) {
    const arrays a = arrays_of(work);
    size_t i = begin;

    for (; i + AHEAD < end; i++) {
        __builtin_prefetch(a.table + a.index[i + AHEAD]);
        a.output[i] = a.table[a.index[i]];
    }
    gather_plain(work, i, end);
}

#define BLOCK   ((size_t)16384)
#define BUCKETS ((size_t)1024)

typedef struct entry {
    uint32_t index, place;
} entry;

/* Workspace of a strip: a multiple of the cache line. */
typedef struct workspace {
    entry entries[BLOCK];
    uint32_t starts[BUCKETS];
} workspace;

/* One strip per thread, but no more than there are blocks. */
static size_t count_strips(const iron__op_problem *problem, uint32_t threads) {
    return iron__min_size(threads, iron__kit_pieces(problem->c.rows, BLOCK));
}

static size_t sorted_scratch(const iron__op_problem *problem, uint32_t threads) {
    return count_strips(problem, threads) * sizeof(workspace);
}

/* In the narrowest buckets of which BUCKETS cover all indices. */
static void sort_block(workspace *w, const uint32_t *index, size_t count) {
    uint32_t least = index[0], most = index[0], shift = 0, start = 0;

    for (size_t i = 1; i < count; i++) {
        least = index[i] < least ? index[i] : least;
        most = index[i] > most ? index[i] : most;
    }
    while ((most - least) >> shift >= BUCKETS)
        shift++;
    memset(w->starts, 0, sizeof w->starts);
    for (size_t i = 0; i < count; i++)
        w->starts[(index[i] - least) >> shift]++;
    for (size_t b = 0; b < BUCKETS; b++) {
        uint32_t in_bucket = w->starts[b];

        w->starts[b] = start;
        start += in_bucket;
    }
    for (size_t i = 0; i < count; i++)
        w->entries[w->starts[(index[i] - least) >> shift]++] = (entry){index[i], (uint32_t)i};
}

static void run_strip(void *context, size_t strip) {
    const iron__cpu_work *work = context;
    const arrays a = arrays_of(work);
    size_t strips = count_strips(work->problem, iron__thread_pool_threads(work->pool));
    size_t rows = (size_t)work->problem->c.rows, blocks = iron__kit_pieces(rows, BLOCK);
    workspace *w = (workspace *)work->scratch + strip;

    for (size_t b = blocks * strip / strips; b < blocks * (strip + 1) / strips; b++) {
        size_t first = b * BLOCK, count = rows - first < BLOCK ? rows - first : BLOCK;

        sort_block(w, a.index + first, count);
        for (size_t k = 0; k < count; k++)
            a.output[first + w->entries[k].place] = a.table[w->entries[k].index];
    }
}

static void run_sorted(const iron__cpu_work *work) {
    iron__thread_pool_run(work->pool, run_strip, (void *)(uintptr_t)work,
                          count_strips(work->problem, iron__thread_pool_threads(work->pool)));
}

IRON_KIT_IMAGE(gather)

static iron_status run_staged(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    uint32_t words = (uint32_t)table_words(&work->c);
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {(uint32_t)iron__kit_pieces(work->c.rows, work->spec->block)},
        .threads = {work->spec->threads},
        IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->inputs[1]),
                      IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(work->c.rows),
                      IRON_GPU_VALUE(words)),
        .local_bytes = work->spec->local_bytes};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_texture(iron__gpu_work *work, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    return IRON_KIT_LAUNCH(queue, err, work->kernels[0],
                           iron__kit_pieces(work->c.rows, work->spec->block), work->spec->threads,
                           IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_VALUE(work->texture),
                           IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(work->c.rows));
}

/* A texture is a view that stays valid when its memory is filled again. params[0] is the address of
 * the memory. */
static iron_status derive_texture(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_buffer *table = data->inputs[1];

    (void)queue;
    if (work->texture && work->params[0] == table->native)
        return IRON_OK;
    iron__gpu_texture_destroy(work->device, work->texture);
    work->texture = 0;
    IRON_TRY(iron__gpu_texture_create(table, &work->texture, err));
    work->params[0] = table->native;
    return IRON_OK;
}

static iron_status suits_texture(const iron__gpu_device *device, const iron__case *c,
                                 iron_error *err) {
    (void)c;
    IRON_FAIL_IF(!device->info.has_textures, err, IRON_E_UNSUPPORTED,
                 "%s does not support textures as kernel arguments", device->info.name);
    return IRON_OK;
}

#define CPU(piece) IRON_ON_CPU, .cpu_run = iron__line_run, .cpu_piece = (piece)
#define GPU(kernel, size, per_group, ...)                                                          \
    .gpu = IRON_KIT(.kernels = {kernel}, .threads = (size), .block = (per_group), __VA_ARGS__)
#define EACH(kernel, ...) GPU(kernel, GATHER_THREADS, GATHER_THREADS, __VA_ARGS__)

static const iron__contender contenders[] = {
    {"plain", "one loop, one element after the other", NULL, CPU(gather_plain), .is_single = true},
    {"prefetch", "words of the table are prefetched long before they are needed", "plain",
     CPU(gather_ahead), .is_single = true},
    {"threads", "plain on all threads", "plain", CPU(gather_plain)},
    {"prefetch-threads", "prefetch on all threads", "prefetch", CPU(gather_ahead)},
    {"sorted-first", "all threads; blocks of indices are first sorted into buckets of the table",
     "threads", IRON_ON_CPU, .cpu_run = run_sorted, .cpu_scratch_bytes = sorted_scratch},
    {"global", "one thread per element, ordinary loads", NULL, IRON_ON_GPU,
     EACH("gather_global", .run = iron__kit_run)},
    {"read-only", "the same; the compiler knows that the table is read-only", "global", IRON_ON_GPU,
     EACH("gather_read_only", .run = iron__kit_run)},
    {"texture", "the same; the table is a texture", "global", IRON_ON_CUDA,
     EACH("gather_texture", .derive = derive_texture, .run = run_texture, .suits = suits_texture)},
    {"vector", "indices in 16-byte loads, eight table words in flight per thread", "read-only",
     IRON_ON_GPU,
     GPU("gather_vector", GATHER_THREADS, 4 * GATHER_QUADS * GATHER_THREADS, .run = iron__kit_run)},
    {"shared-staged", "a group copies its window of the table to local memory and reads it there",
     "vector", IRON_ON_GPU,
     GPU("gather_staged", GATHER_STAGED_THREADS, GATHER_STAGED_BLOCK, .run = run_staged,
         .local_bytes = 4 * GATHER_STAGED_WORDS)},
    {"sorted-first",
     "a group sorts its indices in local memory, so that neighbours read neighbouring words",
     "read-only", IRON_ON_GPU,
     GPU("gather_sorted", GATHER_SORTED_THREADS, GATHER_SORTED_BLOCK, .run = iron__kit_run)},
};

#define GPU_ROWS  (UINT64_C(1) << 27)
#define CPU_LEAST (UINT64_C(4) << 20)
#define CPU_MOST  (UINT64_C(22) << 20)

/* On a CPU a multiple of 2^20 elements of 12 bytes, four times the cache, within limits. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t wanted = ((cache_bytes / 3 >> 20) + 1) << 20;

    (void)element;
    *rows = has_gpu ? GPU_ROWS : iron__min(iron__max(wanted, CPU_LEAST), CPU_MOST);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return (2 * c->rows + table_words(c)) * sizeof(uint32_t);
}

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    *name = "table";
    *value = (double)table_words(c);
    return index == 0;
}

const iron__op iron__op_gather = {
    .name = "gather",
    .contract = "out[i] = table[index[i]], 32-bit words",
    .why =
        "A table is read at the places that the indices name; indices and results are streamed at "
        "the rate of a copy. Memory delivers pieces of at least 32 bytes, and a single word costs "
        "the whole piece: indices in random order move several times the bytes they use, sorted "
        "ones use all of each piece, and those in windows stay close together for a while, so that "
        "caches hold what they need.\n"
        "\n"
        "How many words are in flight at a time? 16-byte loads of indices and several words per "
        "thread increase that number. Which cache serves a warp whose 32 threads read 32 lines? "
        "Textures used to be the answer; local memory is one if the window fits. And does it pay "
        "to sort first? The sort is part of the run.",
    .traffic =
        "Useful: each index, each result and each word of the table once. In random order a word "
        "of the table costs 32 bytes or more unless the cache holds its piece; windowed and "
        "sorted, each piece comes from memory about once.",
    .unless =
        "Staging pays for windows that fit local memory and whose words are read more than once. "
        "Sorting a block pays if its indices are close enough to share cache lines: not for a "
        "table of hundreds of megabytes in random order. A table that fits the cache needs "
        "neither.",
    .used =
        "tokens_apply_settle in src/ops/tokens/apply.k copies the maps of all chunks to local "
        "memory before it walks through them, and the nearest points of a lattice are read-only "
        "lookups in a table that stays in the L1 cache. src/ops/tokens/champion.k reads in order "
        "and gathers nothing.",
    IRON_LINE_OP(IRON_U32, check),
    .bound = IRON_BOUND_COPY,
    IRON_AXES({.name = "order",
               .about = "the order of the indices",
               IRON_WORDS("random", "windowed", "sorted")}),
    .param_at = param_at,
    .baselines = {"plain", "global"},
    IRON_LINE_SIZES(22, 27, 29),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations_each = 1, /* lookup */
    .rows_max = UINT64_C(1) << 33,
    .expected = expected,
};
