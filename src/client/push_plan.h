/* SPDX-License-Identifier: MIT */
/*
 * push_plan.h: which tokens of a file go with which request.
 *
 * A request is a body, and batches never span bodies. So a piece is a whole number of the engine's
 * batches, but for the last: the engine then cuts its batches where `iron feed` of the whole file
 * does, and comes to the same state.
 */
#ifndef IRON_CLIENT_PUSH_PLAN_H
#define IRON_CLIENT_PUSH_PLAN_H

#include <stddef.h>
#include <stdint.h>

/* What a piece holds unless told. Losing one costs a tenth of a second; an acknowledgement, which
 * waits for a disk, comes often enough to go on from, and not so often that it counts. */
#define IRON_PUSH_PIECE_BYTES ((uint64_t)256 << 20)

typedef struct iron__push_plan {
    uint64_t base;   /* the engine's position where the file's first token belongs */
    uint64_t tokens; /* of the file */
    uint64_t piece;  /* tokens of a request */
} iron__push_plan;

typedef struct iron__push_piece {
    uint64_t at;    /* the engine's position before it */
    uint64_t first; /* the file's token that it begins with */
    uint64_t tokens;
} iron__push_piece;

/* `wanted` tokens, or IRON_PUSH_PIECE_BYTES of them for 0, as whole batches: at least one. */
uint64_t iron__push_piece_tokens(uint64_t wanted, uint64_t batch, size_t width);

/* What comes after the engine's position, which is base ... base + tokens. No tokens: all is in. */
iron__push_piece iron__push_piece_at(const iron__push_plan *plan, uint64_t position);

#endif
