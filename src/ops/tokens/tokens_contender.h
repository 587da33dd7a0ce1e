/* SPDX-License-Identifier: MIT */
/*
 * tokens_contender.h: what the ops `tokens` and `seal` share: the sizes of their problems, and a
 * contender on a GPU that feeds one stream of tokens to iron__tokens_gpu, whole or in parts. How
 * its iron__tokens_gpu is made, how a run begins and what its answer is, each op defines itself.
 */
#ifndef IRON_OPS_TOKENS_TOKENS_CONTENDER_H
#define IRON_OPS_TOKENS_TOKENS_CONTENDER_H

#include "core/nodes.h"
#include "ops/op.h"
#include "ops/tokens/tokens_gpu.h"

/* Tokens that a thread takes at a time, as in the engine: whole quads, and whole groups of the
 * position hash. */
#define IRON_TOKENS_RUN ((size_t)1 << 18)

#define IRON_TOKENS_ROWS_MAX (UINT64_C(1) << 40)

/* Functions of both ops, and a part of their `accept`. */
void iron__tokens_usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element,
                             uint64_t *rows, uint64_t *cols);
uint64_t iron__tokens_useful_bytes(const iron__case *c);
iron_status iron__tokens_accept_vocab(const iron__case *c, iron_error *err);

/* The object behind iron__gpu_work. */
typedef struct iron__tokens_contender {
    iron__gpu_device *device; /* borrowed */
    iron__contender row;
    const iron__op_problem *problem;
    iron__tokens_gpu *tokens;
    iron__gpu_event *fed; /* recorded after each part */
    /* For ops whose problem has neither: destroyed with the object. */
    iron_lattice *lattice;
    iron__nodes nodes;
} iron__tokens_contender;

/* The functions of iron__gpu_launcher that are the same for both ops; create calls the launcher's
 * set_up, which sets the object's `tokens`. Parts are fed in order,
 * each in the queue that copied it and after the part before it: copies and kernels overlap. */
iron_status iron__tokens_contender_create(iron__gpu_device *device, const iron__contender *row,
                                          const iron__op_problem *problem, uint32_t parts,
                                          iron__gpu_work **out, iron_error *err);
void iron__tokens_contender_destroy(iron__gpu_work *work);
iron_status iron__tokens_contender_run(iron__gpu_work *work, const iron__gpu_data *data,
                                       iron__gpu_queue *queue, iron_error *err);
iron_status iron__tokens_contender_run_part(iron__gpu_work *work, const iron__gpu_data *data,
                                            iron__gpu_part part, iron__gpu_queue *queue,
                                            iron_error *err);
iron_status iron__tokens_contender_finish(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err);

#define IRON_TOKENS_CONTENDER                                                                      \
    .create = iron__tokens_contender_create, .destroy = iron__tokens_contender_destroy,            \
    .run = iron__tokens_contender_run, .run_part = iron__tokens_contender_run_part,                \
    .finish = iron__tokens_contender_finish

#endif
