/* SPDX-License-Identifier: MIT */
/*
 * cpu_portable.c: the vector idea in plain C: no division, and loops over groups of 16 positions in
 * which the position hash is linear, so that any compiler can vectorise them. For processors
 * without vector code of their own, and the yardstick for those who have it.
 */
#include "core/mix.h"
#include "ops/tokens/tokens.h"

/* Whole groups only; run->first is a multiple of 16. */
static iron__contribution reduce_groups(const iron__tokens_run *run) {
    const uint32_t *tokens = run->tokens;
    const iron__divisor d = *run->divisor;
    uint32_t hash = iron__position_hash(run->first);
    uint32_t xors[IRON_HASH_GROUP] = {0};
    uint64_t sums[IRON_HASH_GROUP] = {0};
    iron__contribution c = {.count = run->count};

    for (size_t k = 0; k < run->count; k += IRON_HASH_GROUP, hash += IRON_HASH_GROUP_STEP) {
        for (uint32_t lane = 0; lane < IRON_HASH_GROUP; lane++) {
            uint32_t p = tokens[k + lane] + (hash + IRON_HASH_STEP * lane);

            xors[lane] ^= p;
            sums[lane] += iron__divisor_remainder(&d, p);
        }
    }
    for (uint32_t lane = 0; lane < IRON_HASH_GROUP; lane++) {
        c.xors ^= xors[lane];
        c.sum += sums[lane];
    }
    return c;
}

iron__contribution iron__tokens_portable(const iron__tokens_run *run) {
    return iron__tokens_by_groups(run, reduce_groups);
}
