/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu_rows.c: the nine modes, one row each: what the command, the selftest, the races and
 * the docs know of them. The order is the ladder's, from the first paper's first kernel up.
 */
#include "ops/tokens/tokens_gpu.h"

#include <string.h>

#define PAIRS_ROWS_MAX   65535u
#define PAIRS_GROUPS_MAX (1u << 20)
#define VECTOR_GROUPS    64u

/* A modern GPU's multiprocessor holds 2048 threads: eight of these groups. */
#define CHAMPION_GROUPS 8u

static uint32_t quotient_up(uint64_t value, uint32_t by) {
    return (uint32_t)((value + by - 1) / by);
}

static void pairs(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    uint64_t tokens = (s->count + TOKENS_PAIRS_SIDE - 1) / TOKENS_PAIRS_SIDE;
    uint32_t nodes = quotient_up(s->nodes, TOKENS_PAIRS_SIDE);

    (void)info;
    groups[0] = tokens < PAIRS_GROUPS_MAX ? (uint32_t)tokens : PAIRS_GROUPS_MAX;
    groups[1] = nodes < PAIRS_ROWS_MAX ? nodes : PAIRS_ROWS_MAX;
}

static void thread_a_node(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    (void)info;
    groups[0] = quotient_up(s->nodes, TOKENS_NODE_THREADS);
}

static void few_threads_a_node(const iron__gpu_info *info, const tokens_span *s,
                               uint32_t groups[2]) {
    (void)info;
    groups[0] = quotient_up(s->nodes, TOKENS_TILED_WIDE_THREADS);
}

static void group_a_node(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    (void)info;
    groups[0] = s->nodes;
}

/* 64 groups of 8 warps, or as many as the device has units for. */
static void warp_a_node(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    uint32_t most = quotient_up(s->nodes, TOKENS_TILED_THREADS / 32);
    uint32_t wanted = 2 * info->units > VECTOR_GROUPS ? 2 * info->units : VECTOR_GROUPS;

    groups[0] = wanted < most || most < VECTOR_GROUPS ? wanted : most;
}

static void as_written(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    (void)info;
    (void)s;
    groups[0] = TOKENS_REDUCE_GROUPS;
}

static void fill_the_device(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    uint64_t turn = UINT64_C(4) * TOKENS_CHAMPION_THREADS; /* a load for every thread, at least */
    uint64_t turns = (s->count + turn - 1) / turn;
    uint32_t full = CHAMPION_GROUPS * info->units;

    groups[0] = turns < full ? (uint32_t)turns : full;
}

#define NAMES(mode) {"tokens.cuda." mode, "tokens.opencl." mode}, mode

static const iron__tokens_gpu_row rows[] = {
    {NAMES("atomic2d"),
     "tokens_atomic2d",
     {TOKENS_PAIRS_SIDE, TOKENS_PAIRS_SIDE},
     .per_node = true,
     .shares_sum = true,
     .unit_pairs = 2e7,
     .groups = pairs,
     .idea = "a thread a pair of token and node, one 32-bit atomic each"},
    {NAMES("node"),
     "tokens_node",
     {TOKENS_NODE_THREADS},
     .per_node = true,
     .unit_pairs = 5.7e8,
     .token_ns = 55,
     .groups = thread_a_node,
     .idea = "a thread a node, which walks through all tokens",
     .beats = "atomic2d"},
    {NAMES("hybrid"),
     "tokens_hybrid",
     {TOKENS_HYBRID_THREADS},
     .per_node = true,
     .unit_pairs = 9e9,
     .groups = group_a_node,
     .idea = "a group a node: strided tokens, warp and local reduction, one write",
     .beats = "node"},
    {NAMES("tiled"),
     "tokens_tiled",
     {TOKENS_TILED_THREADS},
     .per_node = true,
     .unit_pairs = 5.2e8,
     .token_ns = 59,
     .groups = thread_a_node,
     .idea = "tiles of tokens through local memory, 256 nodes a group",
     .beats = "node"},
    {NAMES("tiled-wide"),
     "tokens_tiled_wide",
     {TOKENS_TILED_WIDE_THREADS},
     .per_node = true,
     .unit_pairs = 5.5e8,
     .token_ns = 57,
     .groups = few_threads_a_node,
     .idea = "tiles of tokens through local memory, 32 nodes a group",
     .beats = "tiled"},
    {NAMES("tiled-vector"),
     "tokens_tiled_vector",
     {TOKENS_TILED_THREADS},
     .per_node = true,
     .unit_pairs = 5.5e9,
     .groups = warp_a_node,
     .idea = "16-byte loads of tiles, a warp a node",
     .beats = "tiled-wide"},
    {NAMES("hybrid-vector"),
     "tokens_hybrid_vector",
     {TOKENS_HYBRID_THREADS},
     .per_node = true,
     .unit_pairs = 1.1e10,
     .groups = group_a_node,
     .idea = "hybrid with 16-byte loads, four tokens an iteration",
     .beats = "hybrid"},
    {NAMES("reduce"),
     "tokens_reduce",
     {TOKENS_REDUCE_THREADS},
     .groups = as_written,
     .idea = "tokens reduced once, then applied to every node; % and a tree, as Part II wrote it",
     .beats = "hybrid-vector"},
    {NAMES("champion"),
     "tokens_champion",
     {TOKENS_CHAMPION_THREADS},
     .takes_many = true,
     .groups = fill_the_device,
     .idea =
         "one read at the memory limit: wide loads in flight, no division, many batches at once",
     .beats = "reduce"},
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

const iron__tokens_gpu_row *iron__tokens_gpu_row_at(size_t index) {
    return index < ROW_COUNT ? &rows[index] : NULL;
}

const iron__tokens_gpu_row *iron__tokens_gpu_row_find(const char *name) {
    for (size_t k = 0; k < ROW_COUNT; k++)
        if (strcmp(rows[k].mode, name) == 0 || strcmp(rows[k].names[0], name) == 0 ||
            strcmp(rows[k].names[1], name) == 0)
            return &rows[k];
    return NULL;
}

const iron__tokens_gpu_row *iron__tokens_gpu_row_for(size_t backend, const char *name) {
    const iron__tokens_gpu_row *row = iron__tokens_gpu_row_find(name);

    return row && (strcmp(row->mode, name) == 0 || strcmp(row->names[backend], name) == 0) ? row
                                                                                           : NULL;
}

double iron__tokens_gpu_seconds(const iron__tokens_gpu_row *row, const iron__gpu_info *info,
                                uint64_t nodes, uint64_t tokens) {
    /* OpenCL on a CPU: about a hundredth, on PoCL */
    double pace = (info->is_gpu ? 1.0 : 0.01) * (info->units ? info->units : 1);
    double at_once, one_by_one;

    if (!row->per_node)
        return 0;
    at_once = (double)tokens * (double)nodes / (row->unit_pairs * pace);
    one_by_one = (double)tokens * row->token_ns * 1e-9;
    return at_once > one_by_one ? at_once : one_by_one;
}
