/* SPDX-License-Identifier: MIT */
/*
 * cpu_groups.c: what all vector variants share: a run is cut into whole groups of 16 positions,
 * aligned in the stream, in which the position hash is linear, and the few tokens before and after
 * them.
 */
#include "core/mix.h"
#include "ops/tokens/tokens.h"

iron__contribution iron__tokens_few(const iron__tokens_run *run) {
    iron__contribution c = {.count = run->count};

    for (size_t k = 0; k < run->count; k++) {
        uint32_t p = run->tokens[k] + iron__position_hash(run->first + k);

        c.xors ^= p;
        c.sum += iron__divisor_remainder(run->divisor, p);
    }
    return c;
}

static iron__tokens_run part(const iron__tokens_run *run, size_t begin, size_t count) {
    return (iron__tokens_run){run->tokens + begin, count, run->first + begin, run->divisor};
}

iron__contribution iron__tokens_by_groups(const iron__tokens_run *run,
                                          iron__tokens_reduce reduce_groups) {
    size_t to_group = (size_t)(-run->first % IRON_HASH_GROUP);
    size_t head = to_group < run->count ? to_group : run->count;
    size_t body = (run->count - head) / IRON_HASH_GROUP * IRON_HASH_GROUP;
    iron__tokens_run before = part(run, 0, head);
    iron__tokens_run groups = part(run, head, body);
    iron__tokens_run after = part(run, head + body, run->count - head - body);
    iron__contribution c = iron__tokens_few(&before);

    if (body)
        c = iron__contribution_merge(c, reduce_groups(&groups));
    return iron__contribution_merge(c, iron__tokens_few(&after));
}
