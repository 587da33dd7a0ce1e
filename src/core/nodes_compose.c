/* SPDX-License-Identifier: MIT */
/*
 * nodes_compose.c: many batches at once, as nodes.h tells. The invariant: after iron__nodes_apply
 * the arrays hold the bits that iron__nodes_apply_one, called for each effect in turn, would leave.
 */
#include "core/nodes.h"

#include <string.h>

/* Floats hold every whole number below this, so sums of whole numbers below it are exact. */
#define EXACT_LIMIT ((int64_t)1 << 24)

/* Below so many nodes a plain loop over them beats a dozen bisections (measured: about 150 on a
 * Neoverse V1). */
#define STAIRCASE_NODES 128u

/* A slice costs two passes over the nodes; a batch in order costs one, with more work a node. */
#define SLICE_MIN 4u

/* A level counts the points crossed: 0 for no contribution, +k and -k for the k-th point. */
typedef struct staircase {
    const iron_lattice *lattice;
    const float *sorted;
    float potential;
} staircase;

static int level_of_rank(const staircase *s, uint32_t rank) {
    float c = s->sorted[rank] * s->potential;
    int level;

    if (c == 0)
        return 0;
    level = (int)iron__lattice_index_magnitude(s->lattice, fabsf(c)) + 1;
    return c < 0 ? -level : level;
}

static int64_t value_of_level(const staircase *s, int level) {
    if (level == 0)
        return 0;
    return level > 0 ? (int64_t)s->lattice->points[level - 1]
                     : -(int64_t)s->lattice->points[-level - 1];
}

/* The first rank in begin ... end-1 whose level is no longer `level`; end if there is none. */
static uint32_t end_of_step(const staircase *s, int level, uint32_t begin, uint32_t end) {
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;

        if (level_of_rank(s, middle) == level)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Books one batch: at each edge, by how much the contribution changes there. */
static void book_batch(iron__nodes *nodes, float potential) {
    staircase s = {nodes->lattice, nodes->sorted, potential};
    int64_t before = 0;

    if (potential == 0)
        return;
    for (uint32_t rank = 0; rank < nodes->count;) {
        int level = level_of_rank(&s, rank);
        int64_t value = value_of_level(&s, level);

        nodes->booking[rank] += value - before;
        before = value;
        rank = end_of_step(&s, level, rank + 1, nodes->count);
    }
}

/* Adds the running sum of the booked differences to the potentials and clears them. */
static void settle_booking(iron__nodes *nodes) {
    int64_t total = 0;

    for (uint32_t rank = 0; rank < nodes->count; rank++) {
        total += nodes->booking[rank];
        nodes->potentials[nodes->order[rank]] += (float)total;
    }
    memset(nodes->booking, 0, nodes->count * sizeof nodes->booking[0]);
}

/* How many batches can be added at once before a potential might reach the limit. */
static size_t exact_batches(const iron__nodes *nodes) {
    float largest = 0;

    for (uint32_t j = 0; j < nodes->count; j++) {
        float magnitude = fabsf(nodes->potentials[j]);

        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= (float)EXACT_LIMIT)
        return 0;
    return (size_t)((EXACT_LIMIT - 1 - (int64_t)largest) / nodes->lattice->last);
}

static void add_in_order(iron__nodes *nodes, const iron__batch_effect *effects, size_t count) {
    for (uint32_t j = 0; j < nodes->count; j++) {
        float activation = nodes->activations[j], potential = nodes->potentials[j];

        for (size_t k = 0; k < count; k++) {
            float contribution = activation * effects[k].potential;

            potential += (float)iron__lattice_real(nodes->lattice, contribution);
        }
        nodes->potentials[j] = potential;
    }
}

/* As many batches at a time as stay exact; when a slice is not worth the look at all nodes that it
 * costs, what is left is added in order. */
static void apply_potentials(iron__nodes *nodes, const iron__batch_effect *effects, size_t count) {
    while (count > 0 && nodes->count >= STAIRCASE_NODES) {
        size_t exact = exact_batches(nodes);
        size_t slice = exact < count ? exact : count;

        if (slice < SLICE_MIN && slice < count)
            break;
        for (size_t k = 0; k < slice; k++)
            book_batch(nodes, effects[k].potential);
        settle_booking(nodes);
        effects += slice;
        count -= slice;
    }
    add_in_order(nodes, effects, count);
}

/* Composes the batches' maps of point indices, first batch innermost, then looks each node up. */
static void apply_xors(iron__nodes *nodes, const iron__batch_effect *effects, size_t count) {
    const iron_lattice *l = nodes->lattice;
    uint8_t map[IRON_LATTICE_MAX];

    for (uint32_t i = 0; i < l->count; i++)
        map[i] = (uint8_t)i;
    for (size_t k = 0; k < count; k++) {
        uint8_t step[IRON_LATTICE_MAX];

        for (uint32_t i = 0; i < l->count; i++)
            step[i] = (uint8_t)iron__lattice_index_xor(l, l->points[i] ^ effects[k].xors);
        for (uint32_t i = 0; i < l->count; i++)
            map[i] = step[map[i]];
    }
    for (uint32_t j = 0; j < nodes->count; j++) {
        size_t offset = nodes->xor_accumulators[j] - l->first;

        nodes->xor_accumulators[j] = l->points[map[l->nearest[2 * offset]]];
    }
}

void iron__nodes_apply(iron__nodes *nodes, const iron__batch_effect *effects, size_t count) {
    if (count == 0)
        return;
    apply_xors(nodes, effects, count);
    apply_potentials(nodes, effects, count);
}
