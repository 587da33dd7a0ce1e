/* SPDX-License-Identifier: MIT */
/*
 * seal_gpu.c: the op `seal` on GPUs: the kernels that the product runs (ops/tokens/quads.k), fed
 * one stream after the other. With the contribution the stream is one batch, and both are taken in
 * one read where its length is a multiple of four.
 */
#include "core/fail.h"
#include "ops/seal/seal_op.h"
#include "ops/tokens/tokens_race.h"

/* A row's own: what sets it apart. */
static const uint32_t as_one = 0, apart = IRON_LANE_APART;

static uint32_t lanes_of(const iron__contender *row, const iron__case *c) {
    return IRON_LANE_SEAL | *(const uint32_t *)row->own |
           (iron__seal_has_stats(c) ? (uint32_t)IRON_LANE_STATS : 0) |
           (iron__seal_has_contribution(c) ? 0 : (uint32_t)IRON_LANE_ALONE);
}

/* One node, which nobody looks at. */
static iron_status make_tokens(iron__gpu_work *w, const iron__contender *row, iron_error *err) {
    const iron_allocator *a = iron__allocator_default();
    const iron__case *c = &w->problem->c;
    iron__tokens_gpu_config config = {.row = iron__tokens_gpu_row_find("champion"),
                                      .allocator = a,
                                      .batch = c->rows,
                                      .nodes = 1,
                                      .vocab = c->vocab,
                                      .lanes = lanes_of(row, c),
                                      .last = c->vocab - 1,
                                      .by_batch = true};

    IRON_TRY(iron_lattice_create(NULL, 0, &w->lattice, err));
    IRON_TRY(iron__nodes_init(&w->nodes, 1, w->lattice, NULL, a, err));
    config.lattice = w->lattice;
    return iron__tokens_gpu_create(w->device, &config, &w->tokens, err);
}

static iron_status create(iron__gpu_device *device, const iron__contender *row,
                          const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                          iron_error *err) {
    (void)parts;
    return iron__tokens_race_create(device, row, problem, make_tokens, out, err);
}

static iron_status reset(iron__gpu_work *w, iron__gpu_queue *queue, iron_error *err) {
    iron__quads_total nothing = {.stats = iron__token_stats_neutral()};

    IRON_TRY(
        iron__tokens_gpu_begin(w->tokens, queue, &w->nodes, iron__contribution_neutral(), 0, err));
    return iron__tokens_gpu_seal_begin(w->tokens, queue, &nothing, err);
}

static iron_status fetch(iron__gpu_work *w, iron__gpu_queue *queue, void *output, iron_error *err) {
    iron__contribution closed = iron__contribution_neutral();
    iron__quads_total total;

    if (iron__seal_has_contribution(&w->problem->c))
        IRON_TRY(iron__tokens_gpu_fetch(w->tokens, queue, &w->nodes, &closed, err));
    IRON_TRY(iron__tokens_gpu_seal_fetch(w->tokens, queue, &total, err));
    if (!iron__seal_has_stats(&w->problem->c))
        total.stats = iron__token_stats_neutral();
    *(iron__seal_answer *)output =
        iron__seal_answer_of(iron__seal_total(&total.seal), total.stats, closed);
    return IRON_OK;
}

static const iron__gpu_way way = {
    .create = create, IRON_TOKENS_RACE_WAY, .reset = reset, .fetch = fetch};

static bool is_for_all(const iron__contender *row, const iron__case *c) {
    (void)row;
    return iron__seal_has_contribution(c);
}

bool iron__seal_gpu_contender_at(size_t index, iron__contender *out) {
    static const iron__contender rows[] = {
        {.name = "champion",
         .idea = "six quads in flight a thread, rising keys, only the lanes asked for, one read",
         .backends = IRON_ON_GPU,
         .gpu = &way,
         .own = &as_one},
        {.name = "apart",
         .idea = "the contribution and the seal by kernels of their own: two reads",
         .backends = IRON_ON_GPU,
         .passes = 2,
         .suits = is_for_all,
         .gpu = &way,
         .own = &apart},
    };

    if (index >= sizeof rows / sizeof rows[0])
        return false;
    *out = rows[index];
    return true;
}
