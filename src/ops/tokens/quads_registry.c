/* SPDX-License-Identifier: MIT */
/*
 * quads_registry.c: the rows of quads.h on the CPU, best first within a mode. The product, the
 * tests, the selftest and the races are made from these.
 */
#include "core/cpu.h"
#include "ops/tokens/quads_cpu.h"

#include <string.h>

#define REFERENCE_IDEA "quad by quad, then token by token: the reference"
#define AVX512_IDEA    "the keys of 16 quads an operation, 8 products a multiply"
#define AVX2_IDEA      "the keys of 8 quads an operation, 4 products a multiply"
#define NEON_IDEA      "four quads in vectors beside two in the integer units"
#define PORTABLE_IDEA  "plain C over groups of quads, left to the compiler's vectoriser"
#define ON_ALL         ", on all threads"

/* Vector code comes as two rows: on one thread, and on all. Names and ideas are string literals. */
#define VECTOR_ROW(row, feature, function, function_u16, text)                                     \
    {                                                                                              \
        .name = (row), .mode = "vector", .needs = (feature), .take = (function),                   \
        .take_u16 = (function_u16), .idea = (text), .beats = "seal.cpu.reference"                  \
    }
#define CHAMPION_ROW(row, feature, function, function_u16, text, slower)                           \
    {                                                                                              \
        .name = (row), .mode = "champion", .needs = (feature), .take = (function),                 \
        .take_u16 = (function_u16), .all_threads = true, .idea = (text), .beats = (slower)         \
    }

static const iron__seal_variant variants[] = {
    {.name = "seal.cpu.reference",
     .mode = "reference",
     .take = iron__quads_reference,
     .idea = REFERENCE_IDEA},
#if defined(__x86_64__)
    VECTOR_ROW("seal.cpu.vector.avx512", IRON_CPU_AVX512, iron__quads_avx512, NULL, AVX512_IDEA),
    VECTOR_ROW("seal.cpu.vector.avx2", IRON_CPU_AVX2, iron__quads_avx2, NULL, AVX2_IDEA),
#elif defined(__aarch64__)
    VECTOR_ROW("seal.cpu.vector.neon", IRON_CPU_NEON, iron__quads_neon, iron__quads_neon_u16,
               NEON_IDEA),
#endif
    VECTOR_ROW("seal.cpu.vector.portable", 0, iron__quads_portable, NULL, PORTABLE_IDEA),
#if defined(__x86_64__)
    CHAMPION_ROW("seal.cpu.champion.avx512", IRON_CPU_AVX512, iron__quads_avx512, NULL,
                 AVX512_IDEA ON_ALL, "seal.cpu.vector.avx512"),
    CHAMPION_ROW("seal.cpu.champion.avx2", IRON_CPU_AVX2, iron__quads_avx2, NULL, AVX2_IDEA ON_ALL,
                 "seal.cpu.vector.avx2"),
#elif defined(__aarch64__)
    CHAMPION_ROW("seal.cpu.champion.neon", IRON_CPU_NEON, iron__quads_neon, iron__quads_neon_u16,
                 NEON_IDEA ON_ALL, "seal.cpu.vector.neon"),
#endif
    CHAMPION_ROW("seal.cpu.champion.portable", 0, iron__quads_portable, NULL, PORTABLE_IDEA ON_ALL,
                 "seal.cpu.vector.portable"),
};

#define VARIANT_COUNT (sizeof variants / sizeof variants[0])

const iron__seal_variant *iron__seal_variant_at(size_t index) {
    return index < VARIANT_COUNT ? &variants[index] : NULL;
}

bool iron__seal_variant_runs_here(const iron__seal_variant *variant) {
    return (variant->needs & ~iron__cpu_features()) == 0;
}

const iron__seal_variant *iron__seal_variant_find(const char *name) {
    for (size_t k = 0; k < VARIANT_COUNT; k++) {
        const iron__seal_variant *v = &variants[k];

        if ((strcmp(v->mode, name) == 0 || strcmp(v->name, name) == 0) &&
            iron__seal_variant_runs_here(v))
            return v;
    }
    return NULL;
}
