/* SPDX-License-Identifier: MIT */
/*
 * mpi_feed_ordered.c: where potentials may pass 2^24 float additions round, so batches are applied
 * one by one in the stream's order, by rank 0. The ranks do what costs time, reading and reducing,
 * and hand over eight bytes a batch.
 *
 * The stream is cut into blocks, which are dealt out in turn; a round is a block for each rank:
 *
 *     round 0: rank 0 | rank 1 | rank 2      round 1: rank 0 | rank 1 | ...
 *
 * so that at the end of a round rank 0 can take all blocks in order, and no rank ever keeps more
 * than a block's batches, however long the stream. Meanwhile the others begin the next round.
 */
#include "mpi_feed.h"

#include "args.h"

#include <stdlib.h>

/* 64 MiB of 16-bit tokens: a block takes much longer than starting to read it. */
#define BLOCK_TOKENS (UINT64_C(1) << 25)
/* Tiny batches make many: 4 MiB of them. */
#define BLOCK_BATCHES_MAX (UINT64_C(1) << 19)
/* A block begins where a quad of the seal does, whatever the batch. */
#define GRID 4u

typedef struct rounds {
    rank_feed *feed;
    uint64_t block; /* batches */
    uint64_t blocks;
    iron_effect effect;
    iron_batch_effect *batches; /* room for a block */
} rounds;

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Batches of a block: a short stream still has one for every rank. */
static uint64_t block_size(const rank_feed *f) {
    uint64_t share = f->batches / (uint64_t)f->ranks->count / GRID * GRID + GRID;
    uint64_t block = smaller(BLOCK_TOKENS / f->batch / GRID * GRID, BLOCK_BATCHES_MAX);

    return smaller(block > GRID ? block : GRID, share);
}

/* This rank's block of the round; there may be none left. */
static iron_status feed_block(rounds *r, uint64_t index, iron_error *err) {
    rank_feed *f = r->feed;
    iron_status status;

    f->told = index < r->blocks ? index * r->block * f->batch : f->tokens;
    f->total = f->tokens;
    status = rank_feed_batches(f, index < r->blocks ? index * r->block : f->batches, r->block,
                               r->batches, err);
    return status == IRON_OK ? iron_engine_effect(f->mine, &r->effect, NULL, err) : status;
}

static iron_status apply_block(rounds *r, int from, iron_status status, iron_error *err) {
    if (from != 0) {
        ranks_receive(from, &r->effect, sizeof r->effect);
        ranks_receive(from, r->batches, (size_t)r->effect.batches * sizeof *r->batches);
    }
    if (status != IRON_OK)
        return status;
    return iron_engine_apply_batches(r->feed->whole, &r->effect, r->batches, err);
}

static iron_status hand_over(rounds *r, iron_error *err) {
    const ranks *all = r->feed->ranks;
    iron_status status = IRON_OK;

    if (all->rank == 0) {
        for (int from = 0; from < all->count; from++)
            status = apply_block(r, from, status, err);
        return status;
    }
    ranks_send(&r->effect, sizeof r->effect);
    ranks_send(r->batches, (size_t)r->effect.batches * sizeof *r->batches);
    return IRON_OK;
}

iron_status rank_feed_ordered(rank_feed *f, iron_error *err) {
    uint64_t count = (uint64_t)f->ranks->count;
    rounds r = {.feed = f, .block = block_size(f), .effect.struct_size = sizeof r.effect};
    iron_status status = IRON_OK, before = IRON_OK;

    r.blocks = f->batches / r.block + (f->batches % r.block != 0);
    r.batches = malloc((size_t)r.block * sizeof *r.batches);
    if (!r.batches)
        status = usage(err, "out of memory for %zu batches", (size_t)r.block);
    status = ranks_agree(f->ranks, status, err);
    for (uint64_t first = 0; first < r.blocks && status == IRON_OK; first += count) {
        status = before == IRON_OK ? feed_block(&r, first + (uint64_t)f->ranks->rank, err) : before;
        status = ranks_agree(f->ranks, status, err);
        if (status == IRON_OK)
            before = hand_over(&r, err);
    }
    free(r.batches);
    return status == IRON_OK ? before : status;
}
