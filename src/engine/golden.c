/* SPDX-License-Identifier: MIT */
/* golden.c: the tables that GoldenVectors.cmake makes, under one roof. */
#include "engine/golden.h"

#include <stdlib.h>
#include <string.h>

typedef iron__golden_case golden_case;
typedef iron__golden_seal golden_seal;
typedef iron__golden_number golden_pair_u64;
typedef iron__golden_real golden_pair_real;
typedef iron__golden_quad golden_quad;

#include "engine/golden_vectors.inc"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const iron__golden *iron__golden_vectors(void) {
    static const iron__golden golden = {
        .cases = golden_cases,
        .seals = golden_seals,
        .quantize_xor = golden_quantize_xor,
        .position_hash = golden_position_hash,
        .quantize_real = golden_quantize_real,
        .quads = golden_quads,
        .case_count = COUNT(golden_cases),
        .seal_count = COUNT(golden_seals),
        .quantize_xor_count = COUNT(golden_quantize_xor),
        .position_hash_count = COUNT(golden_position_hash),
        .quantize_real_count = COUNT(golden_quantize_real),
        .quad_count = COUNT(golden_quads),
    };

    return &golden;
}

uint32_t *iron__golden_tokens(const uint32_t *tokens, size_t count, uint64_t seed, uint64_t limit,
                              uint64_t gen_count, size_t *out_count) {
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
