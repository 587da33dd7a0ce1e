/* SPDX-License-Identifier: MIT */
/*
 * tokens_op_gpu.c: the nine modes as contenders on GPUs: iron__tokens_gpu fed one batch, whose
 * positions begin at 0, so that every run computes the same. What they have in common with the op
 * seal is in tokens_race.c.
 */
#include "core/fail.h"
#include "ops/tokens/tokens_op.h"
#include "ops/tokens/tokens_race.h"

#include <string.h>

static iron_status make_tokens(iron__gpu_work *w, const iron__contender *row, iron_error *err) {
    const iron__tokens_problem *own = w->problem->own;
    iron__tokens_gpu_config config = {.row = row->own,
                                      .lattice = own->lattice,
                                      .allocator = iron__allocator_default(),
                                      .batch = w->problem->c.rows,
                                      .nodes = IRON_TOKENS_RACE_NODES,
                                      .vocab = w->problem->c.vocab,
                                      .by_batch = true};

    return iron__tokens_gpu_create(w->device, &config, &w->tokens, err);
}

static iron_status create(iron__gpu_device *device, const iron__contender *row,
                          const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                          iron_error *err) {
    (void)parts;
    return iron__tokens_race_create(device, row, problem, make_tokens, out, err);
}

static iron_status reset(iron__gpu_work *w, iron__gpu_queue *queue, iron_error *err) {
    const iron__tokens_problem *own = w->problem->own;

    return iron__tokens_gpu_begin(w->tokens, queue, &own->start, iron__contribution_neutral(), 0,
                                  err);
}

static iron_status fetch(iron__gpu_work *w, iron__gpu_queue *queue, void *output, iron_error *err) {
    const iron__tokens_problem *own = w->problem->own;
    iron__tokens_answer *answer = output;
    iron__nodes nodes = own->start;
    iron__contribution closed;

    nodes.xor_accumulators = answer->xor_accumulators;
    nodes.potentials = answer->potentials;
    IRON_TRY(iron__tokens_gpu_fetch(w->tokens, queue, &nodes, &closed, err));
    answer->sum = closed.sum;
    answer->xors = closed.xors;
    answer->count = closed.count;
    answer->has_nodes = 1;
    return IRON_OK;
}

static const iron__gpu_way way = {
    .create = create, IRON_TOKENS_RACE_WAY, .reset = reset, .fetch = fetch};

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    (void)threads;
    return iron__tokens_gpu_seconds(row->own, device, IRON_TOKENS_RACE_NODES, c->rows);
}

bool iron__tokens_gpu_contender_at(size_t index, iron__contender *out) {
    const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(index);

    if (!row)
        return false;
    *out = (iron__contender){.name = row->mode,
                             .idea = row->idea,
                             .beats = row->beats,
                             .backends = IRON_ON_GPU,
                             .passes = row->per_node ? IRON_TOKENS_RACE_NODES : 1,
                             .gpu = &way,
                             .seconds = seconds,
                             .own = row};
    return true;
}
