/* SPDX-License-Identifier: MIT */
/*
 * nodes_hash.c: the hash that a state is known by: FNV-1a over the bytes of all XOR accumulators,
 * then of all potentials.
 *
 * A step of FNV-1a, h = (h ^ byte) * P, waits for the one before it; the multiplier could begin
 * another each cycle. Two things make it quicker, and neither changes a bit:
 *
 *   lanes   the chains of several states run side by side, and hide each other's waiting;
 *   zeros   a zero byte only multiplies by P, so its factor joins the next byte's: an accumulator
 *           is a lattice's point below 2^16 and costs two multiplications instead of four, a
 *           potential that is a whole number below 2^16 three, below 2^8 two.
 *
 * Which bytes are zero is looked up, not believed: for a block of nodes at a time, in all lanes.
 */
#include "core/fnv.h"
#include "core/nodes.h"

#include <string.h>

#define BLOCK 64u

/* P times this is 1 modulo 2^64. */
#define PRIME_INVERSE UINT64_C(0xCE965057AFF6957B)
_Static_assert(IRON_FNV_PRIME *PRIME_INVERSE == 1, "the inverse of the prime");

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

/* Takes values of which only bytes first ... last are not zero. The zeros below `first` have
 * multiplied before the loop, and in it for the value that comes next: one time too many. */
INLINE void take(chain *chains, size_t lanes, size_t begin, size_t end, unsigned first,
                 unsigned last) {
    const uint64_t after = power(IRON_FNV_PRIME, 4 - last + first);
    uint64_t hash[IRON_HASH_LANES];

    for (size_t l = 0; l < lanes; l++)
        hash[l] = chains[l].hash * power(IRON_FNV_PRIME, first);
    for (size_t k = begin; k < end; k++)
        for (size_t l = 0; l < lanes; l++) {
            uint32_t value = value_at(chains[l].values, k);

            for (unsigned byte = first; byte < last; byte++)
                hash[l] = (hash[l] ^ byte_of(value, byte)) * IRON_FNV_PRIME;
            hash[l] = (hash[l] ^ byte_of(value, last)) * after;
        }
    for (size_t l = 0; l < lanes; l++)
        chains[l].hash = hash[l] * power(PRIME_INVERSE, first);
}

/* All bits that are set anywhere in the block. */
INLINE uint32_t bits_of(const chain *chains, size_t lanes, size_t begin, size_t end) {
    uint32_t bits = 0;

    for (size_t l = 0; l < lanes; l++)
        for (size_t k = begin; k < end; k++)
            bits |= value_at(chains[l].values, k);
    return bits;
}

INLINE void take_all(chain *chains, size_t lanes, size_t count) {
    for (size_t begin = 0; begin < count; begin += BLOCK) {
        size_t end = count - begin < BLOCK ? count : begin + BLOCK;
        uint32_t bits = bits_of(chains, lanes, begin, end);

        if (bits <= UINT16_MAX)
            take(chains, lanes, begin, end, 0, 1);
        else if ((bits & UINT16_MAX) == 0)
            take(chains, lanes, begin, end, 2, 3);
        else if ((bits & UINT8_MAX) == 0)
            take(chains, lanes, begin, end, 1, 3);
        else
            take(chains, lanes, begin, end, 0, 3);
    }
}

static void take_alone(chain *chains, size_t count) { take_all(chains, 1, count); }

static void take_abreast(chain *chains, size_t count) { take_all(chains, IRON_HASH_LANES, count); }

uint64_t iron__nodes_hash(const iron__nodes *nodes) {
    iron__hash_lane lane = {nodes->xor_accumulators, nodes->potentials, 0};

    iron__nodes_hash_lanes(&lane, 1, nodes->count);
    return lane.hash;
}

void iron__nodes_hash_lanes(iron__hash_lane *lanes, size_t count, uint32_t nodes) {
    void (*const take_values)(chain *, size_t) = count == 1 ? take_alone : take_abreast;
    chain chains[IRON_HASH_LANES];

    if (count == 0)
        return;
    /* lanes that nobody asked for follow the last: they cost nothing */
    for (size_t l = 0; l < IRON_HASH_LANES; l++)
        chains[l] = (chain){lanes[l < count ? l : count - 1].xor_accumulators, IRON_FNV_START};
    take_values(chains, nodes);
    for (size_t l = 0; l < IRON_HASH_LANES; l++)
        chains[l].values = lanes[l < count ? l : count - 1].potentials;
    take_values(chains, nodes);
    for (size_t l = 0; l < count; l++)
        lanes[l].hash = chains[l].hash;
}
