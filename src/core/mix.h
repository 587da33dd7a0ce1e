/* SPDX-License-Identifier: MIT */
/*
 * mix.h: the two small functions of numbers that everything else is made of: the 64-bit mix of the
 * generator and the seal, and the position hash of the contribution.
 */
#ifndef IRON_CORE_MIX_H
#define IRON_CORE_MIX_H

#include <stdint.h>

#define IRON_GOLDEN_GAMMA UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t iron__mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Within an aligned group of 16 positions i >> 4 is constant, so the hash rises by 137 a position;
 * from one group to the next it rises by 16 * 137 + 17. Vector code lives on that. */
#define IRON_HASH_STEP       137u
#define IRON_HASH_GROUP      16u
#define IRON_HASH_GROUP_STEP (IRON_HASH_GROUP * IRON_HASH_STEP + 17u)

static inline uint32_t iron__position_hash(uint64_t position) {
    return (uint32_t)(IRON_HASH_STEP * position + 17u * (position >> 4));
}

#endif
