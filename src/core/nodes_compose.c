/* SPDX-License-Identifier: MIT */
/*
 * nodes_compose.c: many batches at once, as nodes.h tells. The invariant: after iron__nodes_apply
 * the arrays hold the bits that iron__nodes_apply_one, called for each effect in turn, would leave.
 *
 * The XOR side is composed once. The potential side knows nothing but its own nodes, so ranges of
 * ranks are dealt out to the threads; each finds the edges of every batch's staircase that lie in
 * its range.
 */
#include "core/nodes.h"

#include <float.h>
#include <string.h>

/* Below so many nodes a plain loop over them beats a dozen bisections. */
#define STAIRCASE_NODES 128u

/* A slice costs two passes over the nodes; a batch in order costs one, with more work a node. */
#define SLICE_MIN 4u

/* What the threads share. Ranks begin ... end-1 of range k are those of one task. */
typedef struct composition {
    iron__nodes *nodes;
    const iron__batch_effect *effects;
    size_t count;
    uint8_t map[IRON_LATTICE_MAX]; /* where each lattice point goes */
    uint32_t range;                /* ranks in a range, but for the last */
} composition;

/* A step of the staircase: the products c with lower < sign * c <= upper, and what they add. */
typedef struct step {
    float sign, lower, upper;
    int64_t value;
} step;

/* The step that a product belongs to. Borders between points are multiples of one half below 2^17:
 * floats hold them exactly. */
static step step_of(const iron_lattice *l, float c) {
    step s = {.sign = c < 0 ? -1.0f : 1.0f};
    uint32_t k;

    if (c == 0)
        return (step){1.0f, -FLT_TRUE_MIN, 0.0f, 0};
    k = iron__lattice_index_magnitude(l, fabsf(c));
    s.lower = k > 0 ? (float)(l->points[k - 1] + l->points[k]) / 2 : 0.0f;
    s.upper = k + 1 < l->count ? (float)(l->points[k] + l->points[k + 1]) / 2 : INFINITY;
    s.value = c < 0 ? -(int64_t)l->points[k] : (int64_t)l->points[k];
    return s;
}

/* The first rank in begin ... end-1 that has left the step; end if there is none. */
static uint32_t end_of_step(const step *s, const float *sorted, float potential, uint32_t begin,
                            uint32_t end) {
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        float magnitude = s->sign * (sorted[middle] * potential);

        if (magnitude > s->lower && magnitude <= s->upper)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Books one batch: at each edge in the range, by how much the contribution changes there. */
static void book_batch(iron__nodes *nodes, float potential, uint32_t begin, uint32_t end) {
    int64_t before = 0;

    if (potential == 0)
        return;
    for (uint32_t rank = begin; rank < end;) {
        step s = step_of(nodes->lattice, nodes->sorted[rank] * potential);

        nodes->booking[rank] += s.value - before;
        before = s.value;
        rank = end_of_step(&s, nodes->sorted, potential, rank + 1, end);
    }
}

/* Adds the running sum of the booked differences to the potentials and clears them. */
static void settle_booking(iron__nodes *nodes, uint32_t begin, uint32_t end) {
    int64_t total = 0;

    for (uint32_t rank = begin; rank < end; rank++) {
        total += nodes->booking[rank];
        nodes->potentials[nodes->order[rank]] += (float)total;
    }
    memset(nodes->booking + begin, 0, (end - begin) * sizeof nodes->booking[0]);
}

/* How many batches can be added at once before a potential of the range might reach the limit. */
static size_t exact_batches(const iron__nodes *nodes, uint32_t begin, uint32_t end) {
    float largest = 0;

    for (uint32_t rank = begin; rank < end; rank++) {
        float magnitude = fabsf(nodes->potentials[nodes->order[rank]]);

        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= (float)IRON_EXACT_LIMIT)
        return 0;
    return (size_t)((IRON_EXACT_LIMIT - 1 - (int64_t)largest) / nodes->lattice->last);
}

static void add_in_order(iron__nodes *nodes, const iron__batch_effect *effects, size_t count,
                         uint32_t begin, uint32_t end) {
    for (uint32_t rank = begin; rank < end && count > 0; rank++) {
        float activation = nodes->sorted[rank];
        float *potential = &nodes->potentials[nodes->order[rank]];

        for (size_t k = 0; k < count; k++) {
            float contribution = activation * effects[k].potential;

            *potential += (float)iron__lattice_real(nodes->lattice, contribution);
        }
    }
}

/* As many batches at a time as stay exact; when a slice is not worth the look at all nodes that it
 * costs, what is left is added in order. */
static void add_potentials(const composition *c, uint32_t begin, uint32_t end) {
    const iron__batch_effect *effects = c->effects;
    size_t count = c->count;

    while (count > 0 && end - begin >= STAIRCASE_NODES) {
        size_t exact = exact_batches(c->nodes, begin, end);
        size_t slice = exact < count ? exact : count;

        if (slice < SLICE_MIN && slice < count)
            break;
        for (size_t k = 0; k < slice; k++)
            book_batch(c->nodes, effects[k].potential, begin, end);
        settle_booking(c->nodes, begin, end);
        effects += slice;
        count -= slice;
    }
    add_in_order(c->nodes, effects, count, begin, end);
}

static void apply_range(void *context, size_t index) {
    const composition *c = context;
    const iron_lattice *l = c->nodes->lattice;
    uint32_t begin = (uint32_t)index * c->range;
    uint32_t end = c->nodes->count - begin < c->range ? c->nodes->count : begin + c->range;

    add_potentials(c, begin, end);
    for (uint32_t j = begin; j < end; j++) {
        size_t offset = c->nodes->xor_accumulators[j] - l->first;

        c->nodes->xor_accumulators[j] = l->points[c->map[l->nearest[2 * offset]]];
    }
}

uint64_t iron__nodes_exact_batches(const iron__nodes *nodes) {
    return exact_batches(nodes, 0, nodes->count);
}

void iron__batches_compose(const iron_lattice *l, const iron__batch_effect *effects, size_t count,
                           uint8_t map[IRON_LATTICE_MAX]) {
    for (size_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < l->count; i++)
            map[i] = (uint8_t)iron__lattice_index_xor(l, l->points[map[i]] ^ effects[k].xors);
}

void iron__nodes_apply(iron__nodes *nodes, const iron__batch_effect *effects, size_t count,
                       iron__team *team) {
    composition c = {.nodes = nodes, .effects = effects, .count = count};
    uint32_t threads = team ? iron__team_threads(team) : 1;

    if (count == 0)
        return;
    for (uint32_t i = 0; i < nodes->lattice->count; i++)
        c.map[i] = (uint8_t)i;
    iron__batches_compose(nodes->lattice, effects, count, c.map);
    c.range = (nodes->count + threads - 1) / threads;
    if (c.range < STAIRCASE_NODES)
        c.range = STAIRCASE_NODES;
    if (threads == 1)
        apply_range(&c, 0);
    else
        iron__team_run(team, apply_range, &c, (nodes->count + c.range - 1) / c.range);
}
