/* SPDX-License-Identifier: MIT */
/*
 * gather.c: the op gather: what it is, its sizes, and its rows on the CPU. Rows on GPUs follow
 * those (gather_gpu.c).
 */
#include "ops/gather/gather.h"

#include "ops/gather/gather_op.h"
#include "ops/kit.h"
#include "ops/line.h"

#define ROWS_MAX  (UINT64_C(1) << 33)
#define GPU_ROWS  (UINT64_C(1) << 27)
#define CPU_LEAST (UINT64_C(4) << 20)
#define CPU_MOST  (UINT64_C(22) << 20)

static const char why[] =
    "A table is read where the indices say. Whatever the indices are, they and the results pass by "
    "in order, at the rate of a copy; what differs is the table. Memory comes in pieces of 32 "
    "bytes or more, and a word alone costs its whole piece: indices in a random order move several "
    "times the bytes that they use. The same indices sorted use all of each piece. Between the two "
    "are windows: reads that are random, but lie close together for a while, so that the caches "
    "hold what they need.\n"
    "\n"
    "So there are three questions. How many words are under way at a time, when each is waited "
    "for? "
    "That is what 16-byte loads of indices and several words a thread are for. Which cache serves "
    "a "
    "warp whose 32 threads read 32 lines? A texture once was the answer, and the race shows what "
    "is "
    "left of that; local memory is one when the window fits. And does it pay to sort first? The "
    "sort is part of the run.";

static const char traffic[] =
    "Useful: each index, each result and each word of the table once. In the random order a word "
    "of the table costs 32 bytes or more unless the cache holds its piece; windowed and sorted, "
    "each piece comes from memory about once, and shared-staged brings up to one and a half words "
    "an element from the L2 cache into local memory.";

static const char unless_it[] =
    "Staging pays for windows that fit local memory and are read more than once a word; in a "
    "random order it loads what nobody asks for. Sorting a block pays where a block's indices are "
    "close enough to share lines: not over a table of hundreds of megabytes in a random order. A "
    "table that fits the cache needs none of it.";

static const char used[] =
    "src/ops/tokens/apply.k: tokens_apply_settle brings the maps of all chunks into local memory "
    "before it walks through them, and the nearest points of a lattice are read-only look-ups in a "
    "table that stays in the L1 cache. src/ops/tokens/champion.k reads in order, and gathers "
    "nothing.";

static const char *const order_words[] = {"random", "windowed", "sorted"};

static const iron__axis axes[] = {{.name = "order",
                                   .about = "where the indices of neighbours point to",
                                   .words = order_words,
                                   .count = IRON_KIT_COUNT(order_words)}};

static const iron__size sizes[] = {
    {"size", "SMALL", UINT64_C(1) << 22, 1, NULL},
    {"size", "STANDARD", GPU_ROWS, 1, NULL},
    {"size", "LARGE", UINT64_C(1) << 29, 1, NULL},
};

static const iron__contender cpu_rows[] = {
    {.name = "plain",
     .idea = "one after the other, as it is written",
     .backends = IRON_ON_CPU,
     .cpu_run = iron__gather_run_plain,
     .is_single = true},
    {.name = "prefetch",
     .idea = "words of the table asked for long before they are needed",
     .beats = "plain",
     .backends = IRON_ON_CPU,
     .cpu_run = iron__gather_run_prefetch,
     .is_single = true},
    {.name = "threads",
     .idea = "plain on all threads",
     .beats = "plain",
     .backends = IRON_ON_CPU,
     .cpu_run = iron__gather_run_threads},
    {.name = "prefetch-threads",
     .idea = "prefetch on all threads",
     .beats = "prefetch",
     .backends = IRON_ON_CPU,
     .cpu_run = iron__gather_run_prefetch_threads},
    {.name = "sorted-first",
     .idea = "all threads; blocks of indices sorted into buckets of the table first",
     .beats = "threads",
     .backends = IRON_ON_CPU,
     .cpu_run = iron__gather_run_sorted,
     .cpu_scratch_bytes = iron__gather_sorted_scratch},
};

static bool contender_at(size_t index, iron__contender *out) {
    if (index < IRON_KIT_COUNT(cpu_rows)) {
        *out = cpu_rows[index];
        return true;
    }
    return iron__gather_gpu_contender_at(index - IRON_KIT_COUNT(cpu_rows), out);
}

/* Whole 2^20 elements of 12 bytes that come to four times the cache, within limits. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t wanted = ((cache_bytes / 3 >> 20) + 1) << 20;

    (void)element;
    *rows = has_gpu              ? GPU_ROWS
            : wanted < CPU_LEAST ? CPU_LEAST
            : wanted > CPU_MOST  ? CPU_MOST
                                 : wanted;
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return (2 * c->rows + iron__gather_table_words(c)) * sizeof(uint32_t);
}

/* One look-up an element. */
static double operations(const iron__case *c) { return (double)c->rows; }

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    *name = "table";
    *value = (double)iron__gather_table_words(c);
    return index == 0;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

const iron__op iron__op_gather = {
    .name = "gather",
    .contract = "out[i] = table[index[i]], 32-bit words",
    .why = why,
    .traffic = traffic,
    .unless = unless_it,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .axes = axes,
    .axis_count = IRON_KIT_COUNT(axes),
    .param_at = param_at,
    .baselines = {"plain", "global"},
    .sizes = sizes,
    .size_count = IRON_KIT_COUNT(sizes),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__gather_make,
    .unmake = iron__gather_unmake,
    .check = iron__gather_check,
    .contender_at = contender_at,
};
