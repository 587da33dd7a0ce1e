/* SPDX-License-Identifier: MIT */
/*
 * nodes.c: the state of all nodes: start values and checks, one batch applied by the definition,
 * many batches applied at once, and the state hash.
 *
 * Compiled without contraction of a * b + c: each operation rounds once.
 */
#include "core/nodes.h"

#include "core/fail.h"
#include "core/hash.h"

#include <float.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "iron hashes and stores arrays in memory order: little-endian machines only"
#endif

/* A smaller activation times the smallest batch potential could become a denormal float. */
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

/* Heap sort by activation: no recursion and no allocation; n is at most 2^20. */
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
    *nodes = (iron__nodes){.count = count, .lattice = lattice, .allocator = allocator};
    if (IRON_ALLOCATE(&nodes->xor_accumulators, allocator, count, "node accumulators", err) ||
        IRON_ALLOCATE(&nodes->potentials, allocator, count, "node potentials", err) ||
        IRON_ALLOCATE(&nodes->activations, allocator, count, "node activations", err) ||
        IRON_ALLOCATE(&nodes->order, allocator, count, "node order", err) ||
        IRON_ALLOCATE(&nodes->sorted, allocator, count, "sorted activations", err) ||
        IRON_ALLOCATE(&nodes->differences, allocator, count + 1, "node differences", err)) {
        iron__nodes_deinit(nodes);
        return IRON_E_NOMEM;
    }
    for (uint32_t j = 0; j < count; j++)
        nodes->activations[j] = activations ? activations[j] : (float)(j + 1) / (float)count;
    iron__nodes_reset(nodes);
    sort_by_activation(nodes);
    return IRON_OK;
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
    iron__release(a, nodes->differences);
    *nodes = (iron__nodes){0};
}

void iron__nodes_apply_to(iron__nodes *nodes, uint32_t node, iron_batch_effect effect) {
    float contribution = nodes->activations[node] * effect.potential;
    float quantized = (float)iron__lattice_real(nodes->lattice, contribution);

    nodes->xor_accumulators[node] =
        iron__lattice_xor(nodes->lattice, nodes->xor_accumulators[node] ^ effect.xors);
    nodes->potentials[node] += quantized;
}

/*
 * Many batches at once, as described in nodes.h. Invariant: iron__nodes_apply leaves the same bits
 * in the arrays as calling iron__nodes_apply_one for each effect in turn.
 *
 * The XOR map is composed once. Potentials of different nodes are independent, so ranges of ranks
 * are distributed to the threads; each finds the steps of every batch inside its range.
 */

/* With fewer nodes than this a plain loop is faster than a dozen bisections. */
#define STEP_NODES_MIN 128u

/* Batches that are worth adding at once: this takes two passes over the nodes, while adding one
 * batch in order takes one pass with more work per node. */
#define SLICE_MIN 4u

/* What the threads share. Task k works on the ranks k * range ... (k + 1) * range - 1. */
typedef struct composition {
    iron__nodes *nodes;
    const iron_batch_effect *effects;
    size_t count;
    uint8_t map[IRON_LATTICE_MAX]; /* index of the point that each point maps to */
    uint32_t range;                /* ranks per task; the last may have fewer */
} composition;

/* One step of the step function: products c with lower < sign * c <= upper add `value`. */
typedef struct step {
    float sign, lower, upper;
    int64_t value;
} step;

/* The step that contains a product. Borders between points are multiples of one half below 2^17,
 * which floats represent exactly. */
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

/* The first rank in begin ... end-1 that is outside the step; end if all are inside. */
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

/* Adds one batch to the differences: at the first rank of each step, the change of the value. */
static void add_batch(iron__nodes *nodes, float potential, uint32_t begin, uint32_t end) {
    int64_t before = 0;

    if (potential == 0)
        return;
    for (uint32_t rank = begin; rank < end;) {
        step s = step_of(nodes->lattice, nodes->sorted[rank] * potential);

        nodes->differences[rank] += s.value - before;
        before = s.value;
        rank = end_of_step(&s, nodes->sorted, potential, rank + 1, end);
    }
}

/* Adds the running sum of the differences to the potentials and clears them. */
static void sum_differences(iron__nodes *nodes, uint32_t begin, uint32_t end) {
    int64_t total = 0;

    for (uint32_t rank = begin; rank < end; rank++) {
        total += nodes->differences[rank];
        nodes->potentials[nodes->order[rank]] += (float)total;
    }
    memset(nodes->differences + begin, 0, (end - begin) * sizeof nodes->differences[0]);
}

/* How many batches can be added at once with no potential of the range reaching the limit. */
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

static void add_in_order(iron__nodes *nodes, const iron_batch_effect *effects, size_t count,
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

/* Adds as many batches at a time as stay exact. When that becomes fewer than SLICE_MIN, the rest
 * are added in order. */
static void add_potentials(const composition *c, uint32_t begin, uint32_t end) {
    const iron_batch_effect *effects = c->effects;
    size_t count = c->count;

    while (count > 0 && end - begin >= STEP_NODES_MIN) {
        size_t exact = exact_batches(c->nodes, begin, end);
        size_t slice = exact < count ? exact : count;

        if (slice < SLICE_MIN && slice < count)
            break;
        for (size_t k = 0; k < slice; k++)
            add_batch(c->nodes, effects[k].potential, begin, end);
        sum_differences(c->nodes, begin, end);
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

void iron__batches_compose(const iron_lattice *l, const iron_batch_effect *effects, size_t count,
                           uint8_t map[IRON_LATTICE_MAX]) {
    for (size_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < l->count; i++)
            map[i] = (uint8_t)iron__lattice_index_xor(l, l->points[map[i]] ^ effects[k].xors);
}

void iron__nodes_apply(iron__nodes *nodes, const iron_batch_effect *effects, size_t count,
                       iron__thread_pool *pool) {
    composition c = {.nodes = nodes, .effects = effects, .count = count};
    uint32_t threads = pool ? iron__thread_pool_threads(pool) : 1;

    if (count == 0)
        return;
    for (uint32_t i = 0; i < nodes->lattice->count; i++)
        c.map[i] = (uint8_t)i;
    iron__batches_compose(nodes->lattice, effects, count, c.map);
    c.range = (nodes->count + threads - 1) / threads;
    if (c.range < STEP_NODES_MIN)
        c.range = STEP_NODES_MIN;
    if (threads == 1)
        apply_range(&c, 0);
    else
        iron__thread_pool_run(pool, apply_range, &c, (nodes->count + c.range - 1) / c.range);
}

/*
 * The state hash: FNV-1a over the bytes of all XOR accumulators, then of all potentials.
 *
 * Each step of FNV-1a, h = (h ^ byte) * P, depends on the one before, although the multiplier could
 * start another each cycle. Two things make it faster without changing a bit:
 *
 *   several states   the chains of several states run interleaved and hide each other's latency;
 *   zero bytes       a zero byte only multiplies by P, so its factor is merged with the next one's:
 *                    an accumulator is a lattice point below 2^16 and costs two multiplications
 *                    instead of four, a potential that is a whole number below 2^16 three, below
 *                    2^8 two.
 *
 * Which bytes are zero is checked, not assumed: for one block of nodes at a time, in all states.
 */
#define BLOCK 64u

/* The inverse of the prime P modulo 2^64. */
#define PRIME_INVERSE UINT64_C(0xCE965057AFF6957B)
_Static_assert(IRON_FNV_PRIME *PRIME_INVERSE == 1, "PRIME_INVERSE is not the inverse of the prime");

#define INLINE static inline __attribute__((always_inline))

typedef struct chain {
    const void *values; /* 32 bits each */
    uint64_t hash;
} chain;

INLINE uint32_t value_at(const void *values, size_t k) {
    uint32_t value;

    memcpy(&value, (const unsigned char *)values + k * sizeof value, sizeof value);
    return value;
}

INLINE uint64_t power(uint64_t base, unsigned exponent) {
    uint64_t result = 1;

    for (unsigned k = 0; k < exponent; k++)
        result *= base;
    return result;
}

INLINE uint64_t byte_of(uint32_t value, unsigned byte) { return value >> (8 * byte) & 255; }

/* Hashes values in which only bytes first ... last may be nonzero. The factors of the zero bytes
 * below `first` are applied before the loop for the first value, and inside it for the next value
 * each time: once too often, which is undone at the end. */
INLINE void hash_values(chain *chains, size_t states, size_t begin, size_t end, unsigned first,
                        unsigned last) {
    const uint64_t after = power(IRON_FNV_PRIME, 4 - last + first);
    uint64_t hash[IRON_NODES_HASH_MAX];

    for (size_t l = 0; l < states; l++)
        hash[l] = chains[l].hash * power(IRON_FNV_PRIME, first);
    for (size_t k = begin; k < end; k++)
        for (size_t l = 0; l < states; l++) {
            uint32_t value = value_at(chains[l].values, k);

            for (unsigned byte = first; byte < last; byte++)
                hash[l] = (hash[l] ^ byte_of(value, byte)) * IRON_FNV_PRIME;
            hash[l] = (hash[l] ^ byte_of(value, last)) * after;
        }
    for (size_t l = 0; l < states; l++)
        chains[l].hash = hash[l] * power(PRIME_INVERSE, first);
}

/* All bits that are set anywhere in the block. */
INLINE uint32_t bits_of(const chain *chains, size_t states, size_t begin, size_t end) {
    uint32_t bits = 0;

    for (size_t l = 0; l < states; l++)
        for (size_t k = begin; k < end; k++)
            bits |= value_at(chains[l].values, k);
    return bits;
}

INLINE void hash_blocks(chain *chains, size_t states, size_t count) {
    for (size_t begin = 0; begin < count; begin += BLOCK) {
        size_t end = count - begin < BLOCK ? count : begin + BLOCK;
        uint32_t bits = bits_of(chains, states, begin, end);

        if (bits <= UINT16_MAX)
            hash_values(chains, states, begin, end, 0, 1);
        else if ((bits & UINT16_MAX) == 0)
            hash_values(chains, states, begin, end, 2, 3);
        else if ((bits & UINT8_MAX) == 0)
            hash_values(chains, states, begin, end, 1, 3);
        else
            hash_values(chains, states, begin, end, 0, 3);
    }
}

static void hash_one(chain *chains, size_t count) { hash_blocks(chains, 1, count); }

static void hash_all(chain *chains, size_t count) {
    hash_blocks(chains, IRON_NODES_HASH_MAX, count);
}

void iron__nodes_hash_many(iron__hashed_nodes *states, size_t count, uint32_t nodes) {
    void (*const hash_chains)(chain *, size_t) = count == 1 ? hash_one : hash_all;
    chain chains[IRON_NODES_HASH_MAX];

    if (count == 0)
        return;
    /* unused chains repeat the last state: that costs nothing */
    for (size_t l = 0; l < IRON_NODES_HASH_MAX; l++)
        chains[l] = (chain){states[l < count ? l : count - 1].xor_accumulators, IRON_FNV_START};
    hash_chains(chains, nodes);
    for (size_t l = 0; l < IRON_NODES_HASH_MAX; l++)
        chains[l].values = states[l < count ? l : count - 1].potentials;
    hash_chains(chains, nodes);
    for (size_t l = 0; l < count; l++)
        states[l].hash = chains[l].hash;
}
