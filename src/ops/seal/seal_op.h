/* SPDX-License-Identifier: MIT */
/*
 * seal_op.h: the op `seal` as a race: a stream of tokens, read once, comes down to its seal and
 * whatever else the case asks for. The contenders on the CPU are the rows of ops/tokens/quads.h.
 */
#ifndef IRON_OPS_SEAL_SEAL_OP_H
#define IRON_OPS_SEAL_SEAL_OP_H

#include "core/contribution.h"
#include "core/divisor.h"
#include "core/seal.h"
#include "core/token_stats.h"
#include "ops/op.h"

extern const iron__op iron__op_seal;

/* Values of the axis `lanes`, in the order of its words. */
enum { IRON_SEAL_LANES_STATS, IRON_SEAL_LANES_ALL, IRON_SEAL_LANES_ALONE };

static inline bool iron__seal_has_stats(const iron__case *c) {
    return c->at[0] != IRON_SEAL_LANES_ALONE;
}

static inline bool iron__seal_has_contribution(const iron__case *c) {
    return c->at[0] == IRON_SEAL_LANES_ALL;
}

/* The answer, 72 bytes without padding. The stream begins at position 0; its last quad is filled up
 * with zeros, which statistics do not see. What the case does not ask for is that of no tokens:
 * first_position and min all ones, the others 0. */
typedef struct iron__seal_answer {
    uint64_t count, t, a, b;
    uint64_t out_of_vocab, first_position;
    uint32_t first_value, min, max;
    uint32_t xors; /* of the contribution, and its sum */
    uint64_t sum;
} iron__seal_answer;

_Static_assert(sizeof(iron__seal_answer) == 72, "kernels write it as it stands");

static inline iron__seal_answer iron__seal_answer_of(iron__seal_words w, iron__token_stats s,
                                                     iron__contribution c) {
    return (iron__seal_answer){
        w.count,       w.t,   w.a,   w.b,    s.out_of_vocab, s.first_position,
        s.first_value, s.min, s.max, c.xors, c.sum};
}

/* A problem's own part. */
typedef struct iron__seal_problem {
    iron__divisor divisor;
    iron__seal_answer expected;
} iron__seal_problem;

/* Makes and unmakes problems (seal_problem.c). */
iron_status iron__seal_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__seal_unmake(iron__problem *problem);

/* Rows on the CPU (seal_cpu.c). */
size_t iron__seal_cpu_contender_count(void);
bool iron__seal_cpu_contender_at(size_t index, iron__contender *out);

/* Rows on GPUs (seal_gpu.c). */
bool iron__seal_gpu_contender_at(size_t index, iron__contender *out);

#endif
