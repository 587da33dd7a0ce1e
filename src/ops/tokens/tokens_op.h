/* SPDX-License-Identifier: MIT */
/*
 * tokens_op.h: the op `tokens` as a race: one batch of tokens comes down to its contribution, and
 * 4096 nodes are updated by it. The contenders are the modes: the CPU's rows (tokens.h) and the
 * GPU's (tokens_gpu.h).
 */
#ifndef IRON_OPS_TOKENS_OP_H
#define IRON_OPS_TOKENS_OP_H

#include "core/nodes.h"
#include "ops/op.h"
#include "ops/tokens/tokens.h"

#define IRON_TOKENS_RACE_NODES 4096u

extern const iron__op iron__op_tokens;

/* The answer: the batch's contribution, and the nodes after it. Who has no nodes (a library that
 * only reduces) says so with has_nodes = 0 and may leave out all that follows. */
typedef struct iron__tokens_answer {
    uint64_t sum;
    uint32_t xors;
    uint32_t has_nodes;
    uint64_t count;
    uint32_t xor_accumulators[IRON_TOKENS_RACE_NODES];
    float potentials[IRON_TOKENS_RACE_NODES];
} iron__tokens_answer;

/* A problem's own part. */
typedef struct iron__tokens_problem {
    iron__divisor divisor;
    iron_lattice *lattice;
    iron__nodes start; /* before the batch */
    iron__tokens_answer *expected;
} iron__tokens_problem;

/* The GPU's rows, after the CPU's (tokens_op_gpu.c). */
bool iron__tokens_gpu_contender_at(size_t index, iron__contender *out);

#endif
