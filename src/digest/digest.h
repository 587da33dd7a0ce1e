/* SPDX-License-Identifier: MIT */
/*
 * digest.h: the inside of iron_digest, and how a piece of a stream comes into it.
 *
 *     tokens      . . 2 3 | 4 5 6 7 | 8 9 . .        position 2, count 8
 *     piece       head      quads     tail
 *
 * Whole quads are reduced to words and statistics by whoever has the tokens: threads
 * (quads_pass.c) or a GPU. The edges, at most three tokens each, go along as they are, and wait in
 * open_quads.h for their neighbours. A piece is taken whole or not at all: everything that can fail
 * comes before the first change.
 */
#ifndef IRON_DIGEST_DIGEST_H
#define IRON_DIGEST_DIGEST_H

#include "core/team.h"
#include "core/token_stats.h"
#include "digest/coverage.h"
#include "digest/open_quads.h"
#include "digest/quads_pass.h"
#include "digest/seal_device.h"

#include <sys/types.h>

#define IRON_DIGEST_VOCAB     UINT64_C(50257)
#define IRON_DIGEST_VOCAB_MAX (UINT64_C(1) << 32)

typedef struct iron__digest {
    const iron_allocator *allocator;
    uint64_t vocab;
    uint32_t threads;
    uint32_t device;        /* these two are for update_device */
    char backend[16];       /* "auto", "cuda", "opencl" */
    iron__seal_device *gpu; /* NULL until a piece is on one */
    pid_t gpu_owner;        /* the process that opened it: a fork cannot use it, nor close it */
    iron__team *team;       /* NULL until a piece is worth it */
    pid_t team_owner;       /* the process whose threads they are: a fork has none of them */
    iron__quads_sum *sums;
    iron__seal_words words;  /* of whole quads alone */
    iron__token_stats stats; /* of all tokens */
    iron__coverage seen;
    iron__open_quads open;
} iron__digest;

/* Tokens position ... position+count-1 of the stream. */
typedef struct iron__digest_piece {
    uint64_t position, count;
    uint32_t head[3], tail[3]; /* those before the first and after the last whole quad */
    iron__seal_words words;    /* of the whole quads in between, at their places in the stream */
    iron__token_stats stats;   /* of the same */
} iron__digest_piece;

/* How many tokens of position ... position+count-1 are head, whole quads, and tail. A piece that
 * reaches no quad's end is all tail if it begins where a quad does, else all head. */
typedef struct iron__digest_cuts {
    uint32_t head, tail;
    uint64_t quads;
} iron__digest_cuts;

iron__digest_cuts iron__digest_cut(uint64_t position, uint64_t count);

/* NULL with err filled: not initialised. */
iron__digest *iron__digest_of(const iron_digest *digest, iron_error *err);

/* Would a piece be taken? Refuses what was seen before and what lies beyond the last position. */
iron_status iron__digest_check_range(const iron__digest *d, uint64_t position, uint64_t count,
                                     iron_error *err);

/* Checks, then takes the piece; its count is not 0. On failure nothing has changed. */
iron_status iron__digest_take_range(iron__digest *d, const iron__digest_piece *piece,
                                    iron_error *err);

/* Ends the threads, if they are this process's. */
void iron__digest_team_leave(iron__digest *d);

/* IRON_E_STATE: "positions 96 to 127 were seen before; ..." */
iron_status iron__digest_refuse_seen(iron__stretch seen, iron_error *err);

#endif
