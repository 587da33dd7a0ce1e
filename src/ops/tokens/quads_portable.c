/* SPDX-License-Identifier: MIT */
/*
 * quads_portable.c: the seal and the statistics in plain C, in loops over groups of quads that any
 * compiler can vectorise: the keys of a group into a small array each, then its products, then its
 * smallest and largest token. For processors without vector code of their own, and the yardstick
 * for those who have it.
 */
#include "ops/tokens/quads_cpu.h"

#define GROUP 16u

typedef struct group_keys {
    uint32_t k0[GROUP], k1[GROUP], k2[GROUP], k3[GROUP];
} group_keys;

static inline void make_keys(group_keys *g, uint32_t low_quad, uint64_t window) {
    for (uint32_t j = 0; j < GROUP; j++) {
        uint32_t z = iron__quads_start(low_quad + j);

        z = (z ^ z >> IRON_SEAL_SHIFT_0) * IRON_SEAL_FACTOR_0;
        z = (z ^ z >> IRON_SEAL_SHIFT_1) * IRON_SEAL_FACTOR_1;
        z ^= z >> IRON_SEAL_SHIFT_2;
        g->k0[j] = z ^ (uint32_t)window;
        g->k1[j] = (z * IRON_SEAL_STEP + IRON_SEAL_OTHER) ^ (uint32_t)(window >> 32);
        g->k2[j] = iron__quads_rotate(g->k0[j], IRON_SEAL_ROTATE_2);
        g->k3[j] = iron__quads_rotate(g->k1[j], IRON_SEAL_ROTATE_3);
    }
}

static inline void add_group(iron__quads_sums *s, const uint32_t *tokens, const group_keys *g) {
    uint64_t t = 0, a = 0, b = 0;

    for (uint32_t j = 0; j < GROUP; j++) {
        const uint32_t *q = tokens + (size_t)4 * j;

        a += (uint64_t)(q[0] + g->k0[j]) * (q[1] + g->k1[j]);
        a += (uint64_t)(q[2] + g->k2[j]) * (q[3] + g->k3[j]);
        b += (uint64_t)(q[0] + g->k2[j]) * (q[2] + g->k0[j]);
        b += (uint64_t)(q[1] + g->k3[j]) * (q[3] + g->k1[j]);
        t += (uint64_t)q[0] + q[1] + q[2] + q[3];
    }
    s->t += t;
    s->a += a;
    s->b += b;
}

static void reduce(const iron__quads_part *part, iron__quads_sums *sums) {
    size_t whole = part->quads / GROUP * GROUP;
    const uint32_t *tokens = part->tokens;
    iron__quads_part rest = iron__quads_rest(part, whole);
    group_keys keys;

    for (size_t k = 0; k < whole; k += GROUP) {
        make_keys(&keys, part->low_quad + (uint32_t)k, part->window);
        add_group(sums, tokens + 4 * k, &keys);
    }
    iron__quads_few(&rest, sums);
}

/* The block is in the first-level cache. */
static void reduce_stats(const iron__quads_part *part, iron__quads_sums *sums) {
    const uint32_t *tokens = part->tokens;
    uint32_t min = sums->min, max = sums->max;

    reduce(part, sums);
    for (size_t k = 0; k < 4 * part->quads; k++) {
        min = tokens[k] < min ? tokens[k] : min;
        max = tokens[k] > max ? tokens[k] : max;
    }
    sums->min = min;
    sums->max = max;
}

void iron__quads_portable(const iron__quads_run *run, iron__seal_words *words,
                          iron__token_stats *stats) {
    static const iron__quads_loops loops = {reduce, reduce_stats, NULL};

    iron__quads_by_parts(run, &loops, words, stats);
}
