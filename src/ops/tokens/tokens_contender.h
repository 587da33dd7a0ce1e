/* SPDX-License-Identifier: MIT */
/*
 * tokens_contender.h: what the ops `tokens` and `seal` share: their input, and a contender on a GPU
 * that feeds one stream of tokens to iron__tokens_gpu, whole or in parts. How its iron__tokens_gpu
 * is made, how a run begins and what its answer is, each op defines itself.
 */
#ifndef IRON_OPS_TOKENS_TOKENS_CONTENDER_H
#define IRON_OPS_TOKENS_TOKENS_CONTENDER_H

#include "core/nodes.h"
#include "ops/kit.h"
#include "ops/tokens/tokens_gpu.h"

/* Tokens that a thread takes at a time, as in the engine: whole quads, and whole groups of the
 * position hash. */
#define IRON_TOKENS_RUN ((size_t)1 << 18)

#define IRON_TOKENS_ROWS_MAX (UINT64_C(1) << 40)

/* A part of both ops' `accept`, and of their `fill`: the input, tokens of the generator below the
 * vocabulary. */
iron_status iron__tokens_accept_vocab(const iron__case *c, iron_error *err);
iron_status iron__tokens_generate(iron__op_problem *p, iron_error *err);

/* What both ops share; their files call their functions `accept` and `contender_at`. */
#define IRON_TOKENS_OP                                                                             \
    .elements = IRON_BIT(IRON_U32), .usual = IRON_U32, .is_line = true, .takes_data = true,        \
    .vocab_usual = 50257, .bound = IRON_BOUND_READ, .usual_log2 = {{26, 40}, {28, 40}},            \
    .bytes_each = sizeof(uint32_t), .accept = accept, .contender_at = contender_at

/* A contender's own part of its iron__gpu_work, whose event is recorded after each part. */
typedef struct iron__tokens_contender {
    iron__tokens_gpu *tokens;
    /* For ops whose problem has neither: destroyed with the object. */
    iron_lattice *lattice;
    iron__nodes nodes;
} iron__tokens_contender;

/* The functions of iron__gpu_launcher that are the same for both ops. An op's set_up begins with
 * init, and sets the object's `tokens`. Parts are fed in order, each in the queue that copied it
 * and after the part before it: copies and kernels overlap. */
iron_status iron__tokens_contender_init(iron__gpu_work *work, iron__tokens_contender **out,
                                        iron_error *err);
void iron__tokens_contender_tear_down(iron__gpu_work *work);
iron_status iron__tokens_contender_run(iron__gpu_work *work, const iron__gpu_data *data,
                                       iron__gpu_queue *queue, iron_error *err);
iron_status iron__tokens_contender_run_part(iron__gpu_work *work, const iron__gpu_data *data,
                                            iron__gpu_part part, iron__gpu_queue *queue,
                                            iron_error *err);
iron_status iron__tokens_contender_finish(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err);

#define IRON_TOKENS_CONTENDER                                                                      \
    .create = iron__kit_create, .destroy = iron__kit_destroy,                                      \
    .tear_down = iron__tokens_contender_tear_down, .run = iron__tokens_contender_run,              \
    .run_part = iron__tokens_contender_run_part, .finish = iron__tokens_contender_finish

#endif
