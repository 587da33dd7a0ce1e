/* SPDX-License-Identifier: MIT */
/*
 * nodes.h: the state of all nodes, as a structure of arrays, and what batches do to it.
 *
 * One batch at a time is the definition (iron__nodes_apply_one). Many batches at once give the same
 * bits with far less work (iron__nodes_apply):
 *
 * XOR side. x -> quantize_xor(x ^ xor) maps the lattice's points into themselves, the same for
 * every node; so K batches are one composed map of at most 64 entries, and each node is looked up
 * once.
 *
 * Potential side. activation * P, rounded to float, rises with the activation (falls where P < 0),
 * and quantize_real is monotone. So with the nodes sorted by activation, once, a batch adds a
 * staircase of at most 2|L| + 1 steps. Its edges are found by bisection and booked in an array of
 * differences; one running sum over the nodes at the end is the total of all K batches:
 * O(K |L| log N + N) instead of O(K N). Totals are whole numbers; while |potential| + K * L_last <
 * 2^24 every partial sum is exact in float, so adding the total is adding one by one. Beyond that
 * the batches are added one by one, in their order.
 */
#ifndef IRON_CORE_NODES_H
#define IRON_CORE_NODES_H

#include "core/contribution.h"
#include "core/lattice.h"
#include "core/team.h"

typedef struct iron__nodes {
    uint32_t count;
    const iron_lattice *lattice;
    const iron_allocator *allocator;
    uint32_t *xor_accumulators; /* 32 bits, never 16: neighbours must not share a word */
    float *potentials;
    float *activations;
    /* derived from activations, and scratch */
    uint32_t *order;  /* node of each rank, by rising activation */
    float *sorted;    /* activation of each rank */
    int64_t *booking; /* differences of the staircase, count + 1 */
} iron__nodes;

_Static_assert(sizeof(((iron__nodes *)0)->xor_accumulators[0]) == 4,
               "XOR accumulators are 32 bits wide");

/* What one batch does: its XOR, and its potential before activations scale it. */
typedef iron_batch_effect iron__batch_effect;

/* Floats hold every whole number below this, so sums of whole numbers below it are exact. */
#define IRON_EXACT_LIMIT (INT64_C(1) << 24)

/* Start values of SPEC; activations: NULL for (j + 1) / N, else `count` checked numbers. */
iron_status iron__nodes_init(iron__nodes *nodes, uint32_t count, const iron_lattice *lattice,
                             const float *activations, const iron_allocator *allocator,
                             iron_error *err);
void iron__nodes_deinit(iron__nodes *nodes);
/* Accumulators and potentials as SPEC starts them. */
void iron__nodes_restart(iron__nodes *nodes);

/* Refuses what no computation could bear: not finite, or so small that products would vanish. */
iron_status iron__activations_check(const float *activations, uint64_t count, iron_error *err);

void iron__nodes_apply_one(iron__nodes *nodes, iron__batch_effect effect);
void iron__nodes_apply_to(iron__nodes *nodes, uint32_t node, iron__batch_effect effect);
/* Many batches at once, on the threads of a team (NULL: on this one). */
void iron__nodes_apply(iron__nodes *nodes, const iron__batch_effect *effects, size_t count,
                       iron__team *team);

/* How many batches may be added to a node in any order: while |potential| + K * L_last stays exact,
 * whichever node it is. */
uint64_t iron__nodes_exact_batches(const iron__nodes *nodes);

/* Puts what batches do to the lattice's points on top of a map of their indices. */
void iron__batches_compose(const iron_lattice *lattice, const iron__batch_effect *effects,
                           size_t count, uint8_t map[IRON_LATTICE_MAX]);

/* FNV-1a over the little-endian bytes of all xor_accumulators, then all potentials. */
uint64_t iron__nodes_hash(const iron__nodes *nodes);

/* The same of several sets of nodes at once: one is a chain of dependent multiplications, several
 * side by side take hardly longer than one. At most IRON_HASH_LANES of them. */
#define IRON_HASH_LANES 4u
typedef struct iron__hash_lane {
    const uint32_t *xor_accumulators;
    const float *potentials;
    uint64_t hash; /* out */
} iron__hash_lane;
void iron__nodes_hash_lanes(iron__hash_lane *lanes, size_t count, uint32_t nodes);

#endif
