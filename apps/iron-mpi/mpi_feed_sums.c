/* SPDX-License-Identifier: MIT */
/*
 * mpi_feed_sums.c: every rank feeds one range of whole batches; the ranges' effects are joined and
 * their additions to potentials added up, both by one reduction of a few kilobytes.
 *
 * Ranges begin at multiples of four batches, so that the seal's quads lie in one range.
 */
#include "mpi_feed.h"

#include "args.h"

#include <stdlib.h>

#define GRID 4u

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static int tell(void *context, uint64_t done, uint64_t total) {
    rank_feed *f = context;

    (void)total;
    return progress_tell(&f->progress, f->told + done, f->total);
}

iron_status rank_feed_batches(rank_feed *f, uint64_t first, uint64_t count, iron_batch_effect *room,
                              iron_error *err) {
    uint64_t begin = first < f->batches ? first * f->batch : f->tokens;
    uint64_t end =
        first < f->batches && count < f->batches - first ? (first + count) * f->batch : f->tokens;
    iron_status status;

    /* an empty range may stand anywhere, and for the seal its beginning must be a multiple of 4 */
    status = iron_engine_begin_at(f->mine, f->base + (begin < end ? begin : 0), err);
    if (status == IRON_OK && room)
        status = iron_engine_record(f->mine, room, (size_t)count, err);
    if (status == IRON_OK)
        status = iron_engine_feed_range(f->mine, f->source, begin, end - begin, tell, f, err);
    return status == IRON_OK ? iron_engine_end_batch(f->mine, err) : status;
}

static iron_status feed_share(rank_feed *f, iron_effect *effect, int32_t *additions,
                              iron_error *err) {
    uint64_t fours = f->batches / GRID + (f->batches % GRID != 0);
    uint64_t rank = (uint64_t)f->ranks->rank, count = (uint64_t)f->ranks->count;
    uint64_t first = fours / count * rank + smaller(rank, fours % count);
    uint64_t share = fours / count + (rank < fours % count);
    iron_status status;

    f->total = f->tokens / count + 1;
    status = rank_feed_batches(f, first * GRID, share * GRID, NULL, err);
    return status == IRON_OK ? iron_engine_effect(f->mine, effect, additions, err) : status;
}

iron_status rank_feed_sums(rank_feed *f, iron_error *err) {
    size_t nodes = (size_t)iron_engine_config(f->mine)->nodes;
    iron_effect effect = {.struct_size = sizeof effect};
    int32_t *additions = malloc(nodes * sizeof *additions);
    iron_status status = additions ? feed_share(f, &effect, additions, err)
                                   : usage(err, "out of memory for %zu additions", nodes);

    status = ranks_agree(f->ranks, status, err);
    if (status == IRON_OK)
        status = ranks_join_effects(f->ranks, &effect, additions, nodes, err);
    if (status == IRON_OK && f->ranks->rank == 0)
        status = iron_engine_apply(f->whole, &effect, additions, err);
    free(additions);
    return status;
}
