/* SPDX-License-Identifier: MIT */
/*
 * hash.h: the small hash functions that the rest is built from: the 64-bit mix of the generator and
 * the seal, the position hash of the contribution, and FNV-1a for state hashes and checksums.
 */
#ifndef IRON_CORE_HASH_H
#define IRON_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define IRON_GOLDEN_GAMMA UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t iron__mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Within an aligned group of 16 positions i >> 4 is constant, so the hash grows by 137 per
 * position; from one group to the next it grows by 16 * 137 + 17. The vector code depends on it. */
#define IRON_HASH_STEP       137u
#define IRON_HASH_GROUP      16u
#define IRON_HASH_GROUP_STEP (IRON_HASH_GROUP * IRON_HASH_STEP + 17u)

static inline uint32_t iron__position_hash(uint64_t position) {
    return (uint32_t)(IRON_HASH_STEP * position + 17u * (position >> 4));
}

#define IRON_FNV_START UINT64_C(0xCBF29CE484222325)
#define IRON_FNV_PRIME UINT64_C(0x00000100000001B3)

/* FNV-1a, 64 bits. Each step is a bijection of the running value, so a single damaged byte always
 * changes the result. */
static inline uint64_t iron__fnv(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;

    for (size_t k = 0; k < bytes; k++)
        /* it does not know bytes of words: NOLINTNEXTLINE(clang-analyzer-core.Undefined*) */
        hash = (hash ^ at[k]) * IRON_FNV_PRIME;
    return hash;
}

#endif
