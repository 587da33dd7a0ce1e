/* SPDX-License-Identifier: MIT */
/*
 * tokens_op_gpu.c: the nine modes as contenders on GPUs: iron__tokens_gpu fed one batch, whose
 * positions begin at 0, so that every run computes the same. In parts, one piece is fed after the
 * other, each in the queue that brought it and after the piece before it: copies run under kernels.
 */
#include "core/fail.h"
#include "ops/tokens/tokens_gpu.h"
#include "ops/tokens/tokens_op.h"

#include <stdlib.h>
#include <string.h>

struct iron__gpu_work {
    iron__gpu_device *device; /* borrowed */
    const iron__problem *problem;
    iron__tokens_gpu *tokens;
    iron__gpu_event *fed; /* the piece before this one */
};

static void destroy(iron__gpu_work *w) {
    if (!w)
        return;
    iron__gpu_event_destroy(w->device, w->fed);
    iron__tokens_gpu_destroy(w->tokens);
    free(w);
}

static iron_status fill(iron__gpu_work *w, const iron__tokens_gpu_row *row, iron_error *err) {
    const iron__tokens_problem *own = w->problem->own;
    iron__tokens_gpu_config config = {.row = row,
                                      .lattice = own->lattice,
                                      .allocator = iron__allocator_default(),
                                      .batch = w->problem->c.rows,
                                      .nodes = IRON_TOKENS_RACE_NODES,
                                      .vocab = w->problem->c.vocab,
                                      .by_batch = true};

    IRON_TRY(iron__gpu_event_create(w->device, &w->fed, err));
    return iron__tokens_gpu_create(w->device, &config, &w->tokens, err);
}

static iron_status create(iron__gpu_device *device, const iron__contender *row,
                          const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                          iron_error *err) {
    iron__gpu_work *w = calloc(1, sizeof *w);
    iron_status status;

    (void)parts;
    *out = NULL;
    if (!w)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a contender");
    w->device = device;
    w->problem = problem;
    status = fill(w, row->own, err);
    if (status != IRON_OK)
        destroy(w);
    else
        *out = w;
    return status;
}

static iron_status feed(iron__gpu_work *w, const iron__gpu_data *data, uint64_t first,
                        uint64_t count, iron__gpu_queue *queue, iron_error *err) {
    return iron__tokens_gpu_feed(w->tokens, queue, data->inputs[0], first, count, err);
}

static iron_status finish(iron__gpu_work *w, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    (void)data;
    return iron__tokens_gpu_settle(w->tokens, queue, err);
}

static iron_status run(iron__gpu_work *w, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    IRON_TRY(feed(w, data, 0, w->problem->c.rows, queue, err));
    return finish(w, data, queue, err);
}

static iron_status run_part(iron__gpu_work *w, const iron__gpu_data *data, iron__gpu_part part,
                            iron__gpu_queue *queue, iron_error *err) {
    if (part.index > 0)
        IRON_TRY(iron__gpu_event_follow(queue, w->fed, err));
    IRON_TRY(feed(w, data, part.first, part.count, queue, err));
    return iron__gpu_event_record(queue, w->fed, err);
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

static const iron__gpu_way way = {.create = create,
                                  .destroy = destroy,
                                  .run = run,
                                  .run_part = run_part,
                                  .finish = finish,
                                  .reset = reset,
                                  .fetch = fetch};

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
