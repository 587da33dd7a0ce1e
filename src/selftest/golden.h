/* SPDX-License-Identifier: MIT */
/*
 * golden.h: the golden vectors of tests/golden/engine.json, which an independent program computed.
 * They are compiled into the library (GoldenVectors.cmake writes the table); unit tests of other
 * folders use them too.
 */
#ifndef IRON_SELFTEST_GOLDEN_H
#define IRON_SELFTEST_GOLDEN_H

#include <iron/iron.h>

#include <stdlib.h>
#include <string.h>

typedef struct iron__golden_case {
    const char *name, *state, *xor_total, *sum;
    uint64_t vocab, nodes, batch, expect_tokens, expect_batches;
    uint64_t gen_seed, gen_count, gen_limit; /* gen_limit 0: explicit tokens */
    iron_positions positions;
    const uint32_t *tokens, *lattice, *xors;
    const float *activations, *potentials; /* activations: one per node, or NULL */
    size_t tokens_count, lattice_count, activations_count, xors_count, potentials_count;
} iron__golden_case;

typedef struct iron__golden_seal {
    const char *name, *seal;
    uint64_t gen_seed, gen_count, gen_limit;
    uint64_t words[4];
    const uint32_t *tokens;
    size_t tokens_count;
} iron__golden_seal;

typedef struct iron__golden_number {
    uint64_t from, to;
} iron__golden_number;

typedef struct iron__golden_real {
    double from, to;
} iron__golden_real;

typedef struct iron__golden_quad {
    uint64_t quad;
    uint32_t tokens[4];
    uint64_t a, b;
} iron__golden_quad;

typedef struct iron__golden {
    const iron__golden_case *cases;
    const iron__golden_seal *seals;
    const iron__golden_number *quantize_xor, *position_hash;
    const iron__golden_real *quantize_real;
    const iron__golden_quad *quads;
    size_t case_count, seal_count, quantize_xor_count, position_hash_count, quantize_real_count;
    size_t quad_count;
} iron__golden;

extern const iron__golden iron__golden_vectors;

/* Tokens of a case or seal, explicit or generated; returned owned, free() them. */
static inline uint32_t *iron__golden_tokens(const uint32_t *tokens, size_t count, uint64_t seed,
                                            uint64_t limit, uint64_t gen_count, size_t *out_count) {
    uint32_t *copy;

    *out_count = limit ? (size_t)gen_count : count;
    copy = malloc((*out_count + 1) * sizeof *copy);
    if (!copy)
        return NULL;
    if (limit)
        iron_generate(seed, limit, 0, copy, *out_count, NULL);
    else if (count > 0)
        memcpy(copy, tokens, count * sizeof *copy);
    return copy;
}

#endif
