/* SPDX-License-Identifier: MIT */
/*
 * tokens_race.h: the object of a contender that feeds iron__tokens_gpu one stream, whole or in
 * parts: what the ops tokens and seal have in common on GPUs. How its tokens_gpu is made, where a
 * run begins and what its answer is are the op's own.
 */
#ifndef IRON_OPS_TOKENS_TOKENS_RACE_H
#define IRON_OPS_TOKENS_TOKENS_RACE_H

#include "ops/op.h"
#include "ops/tokens/tokens_gpu.h"

struct iron__gpu_work {
    iron__gpu_device *device; /* borrowed */
    const iron__problem *problem;
    iron__tokens_gpu *tokens;
    iron__gpu_event *fed; /* the piece before this one */
    /* For ops whose problem has none: destroyed with the object. */
    iron_lattice *lattice;
    iron__nodes nodes;
};

/* Makes the object; make_tokens fills its `tokens`. On failure nothing is left behind. */
typedef iron_status (*iron__tokens_race_make)(iron__gpu_work *w, const iron__contender *row,
                                              iron_error *err);
iron_status iron__tokens_race_create(iron__gpu_device *device, const iron__contender *row,
                                     const iron__problem *problem,
                                     iron__tokens_race_make make_tokens, iron__gpu_work **out,
                                     iron_error *err);
void iron__tokens_race_destroy(iron__gpu_work *w); /* takes NULL, too */

iron_status iron__tokens_race_run(iron__gpu_work *w, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err);
/* One piece is fed after the other, each in the queue that brought it and after the piece before
 * it: copies run under kernels. */
iron_status iron__tokens_race_run_part(iron__gpu_work *w, const iron__gpu_data *data,
                                       iron__gpu_part part, iron__gpu_queue *queue,
                                       iron_error *err);
iron_status iron__tokens_race_finish(iron__gpu_work *w, const iron__gpu_data *data,
                                     iron__gpu_queue *queue, iron_error *err);

#define IRON_TOKENS_RACE_WAY                                                                       \
    .destroy = iron__tokens_race_destroy, .run = iron__tokens_race_run,                            \
    .run_part = iron__tokens_race_run_part, .finish = iron__tokens_race_finish

#endif
