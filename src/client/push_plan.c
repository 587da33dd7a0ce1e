/* SPDX-License-Identifier: MIT */
/* push_plan.c: see push_plan.h. */
#include "client/push_plan.h"

uint64_t iron__push_piece_tokens(uint64_t wanted, uint64_t batch, size_t width) {
    uint64_t tokens = wanted ? wanted : IRON_PUSH_PIECE_BYTES / width;

    return tokens < batch ? batch : tokens / batch * batch;
}

iron__push_piece iron__push_piece_at(const iron__push_plan *plan, uint64_t position) {
    uint64_t first = position - plan->base;
    uint64_t rest = plan->tokens - first;

    return (iron__push_piece){position, first, rest < plan->piece ? rest : plan->piece};
}
