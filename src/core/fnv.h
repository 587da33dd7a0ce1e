/* SPDX-License-Identifier: MIT */
/*
 * fnv.h: FNV-1a, 64 bit: the state hash, and the checksum of saved states. Each step is a bijection
 * of the running value, so one damaged byte always shows.
 */
#ifndef IRON_CORE_FNV_H
#define IRON_CORE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define IRON_FNV_START UINT64_C(0xCBF29CE484222325)
#define IRON_FNV_PRIME UINT64_C(0x00000100000001B3)

static inline uint64_t iron__fnv(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;

    for (size_t k = 0; k < bytes; k++)
        hash = (hash ^ at[k]) * IRON_FNV_PRIME;
    return hash;
}

#endif
