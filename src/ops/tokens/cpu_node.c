/* SPDX-License-Identifier: MIT */
/*
 * cpu_node.c: what one node does in the papers' Part I, on a CPU. The engine calls these once a
 * node over the whole run: O(nodes x tokens), kept to show what reduce-then-apply saves. Same bits.
 *
 *   node     one loop over all tokens, as the node-centric kernel's thread does it
 *   hybrid   256 lanes with a stride of 256 tokens, then a tree, as the hybrid kernel's block does
 */
#include "core/mix.h"
#include "ops/tokens/tokens.h"

#define LANES 256u

iron__contribution iron__tokens_node(const iron__tokens_run *run) { return iron__tokens_few(run); }

/* Halves the lanes until one is left: the block's reduction through shared memory. */
static void tree(uint32_t xors[LANES], uint64_t sums[LANES]) {
    for (uint32_t width = LANES / 2; width > 0; width /= 2) {
        for (uint32_t lane = 0; lane < width; lane++) {
            xors[lane] ^= xors[lane + width];
            sums[lane] += sums[lane + width];
        }
    }
}

iron__contribution iron__tokens_hybrid(const iron__tokens_run *run) {
    const iron__divisor d = *run->divisor;
    uint32_t xors[LANES] = {0};
    uint64_t sums[LANES] = {0};

    for (size_t k = 0; k < run->count; k += LANES) {
        uint32_t width = run->count - k < LANES ? (uint32_t)(run->count - k) : LANES;

        for (uint32_t lane = 0; lane < width; lane++) {
            uint32_t p = run->tokens[k + lane] + iron__position_hash(run->first + k + lane);

            xors[lane] ^= p;
            sums[lane] += iron__divisor_remainder(&d, p);
        }
    }
    tree(xors, sums);
    return (iron__contribution){run->count, sums[0], xors[0]};
}
