/* SPDX-License-Identifier: MIT */
/*
 * nodes.h: the state of all nodes, as a structure of arrays, and how batches change it.
 *
 * One batch at a time is the definition (iron__nodes_apply_one). Many batches at once give the same
 * bits with far less work (iron__nodes_apply):
 *
 * XOR accumulators. x -> quantize_xor(x ^ xor) maps the lattice's points to themselves, in the same
 * way for every node; so K batches are one composed map of at most 64 entries, and each node needs
 * one lookup.
 *
 * Potentials. activation * P, rounded to float, increases with the activation (decreases if P < 0),
 * and quantize_real is monotone. So over the nodes sorted by activation, a batch adds a step
 * function of at most 2|L| + 1 steps. The steps are found by bisection and stored in an array of
 * differences; one running sum over the nodes at the end is the total of all K batches:
 * O(K |L| log N + N) instead of O(K N). Totals are whole numbers; while |potential| + K * L_last <
 * 2^24 every partial sum is exact in float, so adding the total equals adding one by one. Beyond
 * that the batches are added one by one, in their order.
 */
#ifndef IRON_CORE_NODES_H
#define IRON_CORE_NODES_H

#include "core/contribution.h"
#include "core/lattice.h"
#include "core/thread_pool.h"

typedef struct iron__nodes {
    uint32_t count;
    const iron_lattice *lattice;
    const iron_allocator *allocator;
    uint32_t *xor_accumulators; /* 32 bits, never 16: neighbours must not share a word */
    float *potentials;
    float *activations;
    /* derived from activations, and scratch */
    uint32_t *order;      /* node of each rank, by increasing activation */
    float *sorted;        /* activation of each rank */
    int64_t *differences; /* of the step functions; count + 1 entries, zero between calls */
} iron__nodes;

_Static_assert(sizeof(((iron__nodes *)0)->xor_accumulators[0]) == 4,
               "XOR accumulators are 32 bits wide");

/* Floats represent every whole number below this, so sums that stay below it are exact. */
#define IRON_EXACT_LIMIT (INT64_C(1) << 24)

/* Start values as in docs/semantics.md. activations: NULL for (j + 1) / N, else `count` checked
 * numbers. */
iron_status iron__nodes_init(iron__nodes *nodes, uint32_t count, const iron_lattice *lattice,
                             const float *activations, const iron_allocator *allocator,
                             iron_error *err);
void iron__nodes_deinit(iron__nodes *nodes);
/* Resets accumulators and potentials to their start values. */
static inline void iron__nodes_reset(iron__nodes *nodes) {
    for (uint32_t j = 0; j < nodes->count; j++) {
        nodes->xor_accumulators[j] = nodes->lattice->points[j % nodes->lattice->count];
        nodes->potentials[j] = 0;
    }
}

/* Rejects activations that are not finite, or so small that products would underflow. */
iron_status iron__activations_check(const float *activations, uint64_t count, iron_error *err);

void iron__nodes_apply_to(iron__nodes *nodes, uint32_t node, iron_batch_effect effect);

static inline void iron__nodes_apply_one(iron__nodes *nodes, iron_batch_effect effect) {
    for (uint32_t j = 0; j < nodes->count; j++)
        iron__nodes_apply_to(nodes, j, effect);
}

/* Applies many batches at once, on the threads of `pool` (NULL: on the calling thread). */
void iron__nodes_apply(iron__nodes *nodes, const iron_batch_effect *effects, size_t count,
                       iron__thread_pool *pool);

/* How many batches may be added to any node in any order: while |potential| + K * L_last stays
 * exact. */
uint64_t iron__nodes_exact_batches(const iron__nodes *nodes);

/* Composes the XOR maps of the batches with a map of lattice indices, in place. */
void iron__batches_compose(const iron_lattice *lattice, const iron_batch_effect *effects,
                           size_t count, uint8_t map[IRON_LATTICE_MAX]);

/* The state hash: FNV-1a over the little-endian bytes of all xor_accumulators, then all potentials.
 * Of up to IRON_NODES_HASH_MAX states at once: one hash is a chain of dependent multiplications,
 * and several interleaved ones take hardly longer than one. */
#define IRON_NODES_HASH_MAX 4u
typedef struct iron__hashed_nodes {
    const uint32_t *xor_accumulators;
    const float *potentials;
    uint64_t hash; /* out */
} iron__hashed_nodes;
void iron__nodes_hash_many(iron__hashed_nodes *states, size_t count, uint32_t nodes);

static inline uint64_t iron__nodes_hash(const iron__nodes *nodes) {
    iron__hashed_nodes state = {nodes->xor_accumulators, nodes->potentials, 0};

    iron__nodes_hash_many(&state, 1, nodes->count);
    return state.hash;
}

#endif
