/* SPDX-License-Identifier: MIT */
/*
 * nodes.c: start values, checks, one batch applied as the definition says, and the state hash.
 * Applying many at once is in nodes_compose.c. Compiled without contraction of a * b + c: each
 * operation rounds once.
 */
#include "core/nodes.h"

#include "core/fail.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "iron hashes and stores arrays as they lie in memory: little-endian machines only"
#endif

/* Below this a product with the smallest batch potential could leave the normal floats. */
#define ACTIVATION_MIN 0x1p-96f

iron_status iron__activations_check(const float *activations, uint64_t count, iron_error *err) {
    for (uint64_t j = 0; j < count; j++) {
        float a = activations[j];

        IRON_FAIL_IF(!isfinite(a), err, IRON_E_ARG,
                     "activation %llu is %g; activations must be finite", (unsigned long long)j,
                     (double)a);
        IRON_FAIL_IF(a != 0 && fabsf(a) < ACTIVATION_MIN, err, IRON_E_ARG,
                     "activation %llu is %g; use 0 or at least 2^-96 in magnitude",
                     (unsigned long long)j, (double)a);
    }
    return IRON_OK;
}

static iron_status allocate_arrays(iron__nodes *nodes, iron_error *err) {
    const iron_allocator *a = nodes->allocator;
    size_t n = nodes->count;

    nodes->xor_accumulators = iron__allocate(a, n, sizeof(uint32_t), "node accumulators", err);
    if (!nodes->xor_accumulators)
        return IRON_E_NOMEM;
    nodes->potentials = iron__allocate(a, n, sizeof(float), "node potentials", err);
    if (!nodes->potentials)
        return IRON_E_NOMEM;
    nodes->activations = iron__allocate(a, n, sizeof(float), "node activations", err);
    if (!nodes->activations)
        return IRON_E_NOMEM;
    nodes->order = iron__allocate(a, n, sizeof(uint32_t), "the order of nodes", err);
    if (!nodes->order)
        return IRON_E_NOMEM;
    nodes->sorted = iron__allocate(a, n, sizeof(float), "sorted activations", err);
    if (!nodes->sorted)
        return IRON_E_NOMEM;
    nodes->booking = iron__allocate(a, n + 1, sizeof(int64_t), "the staircase", err);
    return nodes->booking ? IRON_OK : IRON_E_NOMEM;
}

/* Heap sort of ranks by activation: no recursion, no allocation, and n is at most 2^20. */
static void sift_down(const float *key, uint32_t *order, uint32_t root, uint32_t end) {
    for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
        uint32_t moved = order[root];

        if (child + 1 < end && key[order[child]] < key[order[child + 1]])
            child++;
        if (key[moved] >= key[order[child]])
            return;
        order[root] = order[child];
        order[child] = moved;
    }
}

static void sort_by_activation(iron__nodes *nodes) {
    uint32_t n = nodes->count;
    uint32_t *order = nodes->order;

    for (uint32_t k = 0; k < n; k++)
        order[k] = k;
    for (uint32_t root = n / 2; root-- > 0;)
        sift_down(nodes->activations, order, root, n);
    for (uint32_t end = n; end-- > 1;) {
        uint32_t largest = order[0];

        order[0] = order[end];
        order[end] = largest;
        sift_down(nodes->activations, order, 0, end);
    }
    for (uint32_t k = 0; k < n; k++)
        nodes->sorted[k] = nodes->activations[order[k]];
}

iron_status iron__nodes_init(iron__nodes *nodes, uint32_t count, const iron_lattice *lattice,
                             const float *activations, const iron_allocator *allocator,
                             iron_error *err) {
    iron_status status;

    *nodes = (iron__nodes){.count = count, .lattice = lattice, .allocator = allocator};
    status = allocate_arrays(nodes, err);
    if (status != IRON_OK) {
        iron__nodes_deinit(nodes);
        return status;
    }
    for (uint32_t j = 0; j < count; j++)
        nodes->activations[j] = activations ? activations[j] : (float)(j + 1) / (float)count;
    iron__nodes_restart(nodes);
    sort_by_activation(nodes);
    return IRON_OK;
}

void iron__nodes_restart(iron__nodes *nodes) {
    for (uint32_t j = 0; j < nodes->count; j++) {
        nodes->xor_accumulators[j] = nodes->lattice->points[j % nodes->lattice->count];
        nodes->potentials[j] = 0;
    }
}

void iron__nodes_deinit(iron__nodes *nodes) {
    const iron_allocator *a = nodes->allocator;

    if (!a)
        return;
    iron__release(a, nodes->xor_accumulators);
    iron__release(a, nodes->potentials);
    iron__release(a, nodes->activations);
    iron__release(a, nodes->order);
    iron__release(a, nodes->sorted);
    iron__release(a, nodes->booking);
    *nodes = (iron__nodes){0};
}

void iron__nodes_apply_to(iron__nodes *nodes, uint32_t node, iron__batch_effect effect) {
    float contribution = nodes->activations[node] * effect.potential;
    float quantized = (float)iron__lattice_real(nodes->lattice, contribution);

    nodes->xor_accumulators[node] =
        iron__lattice_xor(nodes->lattice, nodes->xor_accumulators[node] ^ effect.xors);
    nodes->potentials[node] += quantized;
}

void iron__nodes_apply_one(iron__nodes *nodes, iron__batch_effect effect) {
    for (uint32_t j = 0; j < nodes->count; j++)
        iron__nodes_apply_to(nodes, j, effect);
}
