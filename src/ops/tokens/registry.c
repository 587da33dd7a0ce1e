/* SPDX-License-Identifier: MIT */
/*
 * registry.c: the rows of the op `tokens`. A row is all there is to say of a variant: the command's
 * modes, the tests, the selftest, the benchmarks and the docs are made from these.
 */
#include "core/cpu.h"
#include "ops/tokens/tokens.h"

#include <string.h>

#define SCALAR_IDEA  "one token at a time with %: the reference"
#define THREADS_IDEA "the reference's loop, runs dealt out to all threads"
#define NODE_IDEA    "each node loops over all tokens: O(nodes x tokens)"
#define HYBRID_IDEA  "each node reduces strided lanes, then a tree: O(nodes x tokens), vectorised"

#define AVX512_IDEA   "16 tokens an operation, quotients summed instead of remainders"
#define AVX2_IDEA     "8 tokens an operation, quotients summed instead of remainders"
#define NEON_IDEA     "4 tokens an operation, quotients summed instead of remainders"
#define PORTABLE_IDEA "plain C without division, left to the compiler's vectoriser"
#define ON_ALL        ", on all threads"

/* Vector code comes as two rows: on one thread, and on all. Names and ideas are string literals. */
#define VECTOR_ROW(row, feature, function, text)                                                   \
    {                                                                                              \
        .name = (row), .mode = "vector", .needs = (feature), .reduce = (function), .idea = (text), \
        .beats = "tokens.cpu.scalar"                                                               \
    }
#define CHAMPION_ROW(row, feature, function, text, slower)                                         \
    {                                                                                              \
        .name = (row), .mode = "champion", .needs = (feature), .reduce = (function),               \
        .all_threads = true, .idea = (text), .beats = (slower)                                     \
    }

static const iron__tokens_variant variants[] = {
    {.name = "tokens.cpu.scalar",
     .mode = "scalar",
     .reduce = iron__tokens_scalar,
     .idea = SCALAR_IDEA},
#if defined(__x86_64__)
    VECTOR_ROW("tokens.cpu.vector.avx512", IRON_CPU_AVX512, iron__tokens_avx512, AVX512_IDEA),
    VECTOR_ROW("tokens.cpu.vector.avx2", IRON_CPU_AVX2, iron__tokens_avx2, AVX2_IDEA),
#elif defined(__aarch64__)
    VECTOR_ROW("tokens.cpu.vector.neon", IRON_CPU_NEON, iron__tokens_neon, NEON_IDEA),
#endif
    VECTOR_ROW("tokens.cpu.vector.portable", 0, iron__tokens_portable, PORTABLE_IDEA),
    {.name = "tokens.cpu.threads",
     .mode = "threads",
     .reduce = iron__tokens_scalar,
     .all_threads = true,
     .idea = THREADS_IDEA,
     .beats = "tokens.cpu.scalar"},
#if defined(__x86_64__)
    CHAMPION_ROW("tokens.cpu.champion.avx512", IRON_CPU_AVX512, iron__tokens_avx512,
                 AVX512_IDEA ON_ALL, "tokens.cpu.vector.avx512"),
    CHAMPION_ROW("tokens.cpu.champion.avx2", IRON_CPU_AVX2, iron__tokens_avx2, AVX2_IDEA ON_ALL,
                 "tokens.cpu.vector.avx2"),
#elif defined(__aarch64__)
    CHAMPION_ROW("tokens.cpu.champion.neon", IRON_CPU_NEON, iron__tokens_neon, NEON_IDEA ON_ALL,
                 "tokens.cpu.vector.neon"),
#endif
    CHAMPION_ROW("tokens.cpu.champion.portable", 0, iron__tokens_portable, PORTABLE_IDEA ON_ALL,
                 "tokens.cpu.vector.portable"),
    {.name = "tokens.cpu.node",
     .mode = "node",
     .reduce = iron__tokens_node,
     .all_threads = true,
     .per_node = true,
     .idea = NODE_IDEA},
    {.name = "tokens.cpu.hybrid",
     .mode = "hybrid",
     .reduce = iron__tokens_hybrid,
     .all_threads = true,
     .per_node = true,
     .idea = HYBRID_IDEA,
     .beats = "tokens.cpu.node"},
};

#define VARIANT_COUNT (sizeof variants / sizeof variants[0])

size_t iron__tokens_variant_count(void) { return VARIANT_COUNT; }

const iron__tokens_variant *iron__tokens_variant_at(size_t index) {
    return index < VARIANT_COUNT ? &variants[index] : NULL;
}

bool iron__tokens_variant_runs_here(const iron__tokens_variant *variant) {
    return (variant->needs & ~iron__cpu_features()) == 0;
}

const iron__tokens_variant *iron__tokens_variant_find(const char *name) {
    for (size_t k = 0; k < VARIANT_COUNT; k++) {
        const iron__tokens_variant *v = &variants[k];

        if ((strcmp(v->mode, name) == 0 || strcmp(v->name, name) == 0) &&
            iron__tokens_variant_runs_here(v))
            return v;
    }
    return NULL;
}

const char *iron__tokens_mode_at(size_t index) {
    size_t seen = 0;

    for (size_t k = 0; k < VARIANT_COUNT; k++) {
        if (k > 0 && strcmp(variants[k].mode, variants[k - 1].mode) == 0)
            continue;
        if (seen++ == index)
            return variants[k].mode;
    }
    return NULL;
}
