/* SPDX-License-Identifier: MIT */
/*
 * divisor.h: p mod vocab for any 32-bit p, without dividing.
 *
 * A divisor is prepared once per configuration. Reductions need the sum of the remainders only, and
 * sum(p mod V) = sum(p) - V * sum(floor(p / V)), so they only need an exact quotient. There are
 * three ways to compute it; every divisor has `wide`, the others are cheaper where they exist:
 *
 *   mask   V is a power of two: p mod V = p & (V - 1).
 *   wide   floor(p / V) = (p * multiplier + addend) >> shift, in 64 bits. With
 *          multiplier = ceil(2^shift / V) and addend 0 it is exact if the rounding error of the
 *          multiplier is small enough; otherwise multiplier = floor(2^shift / V) with
 *          addend = multiplier is exact. A 32-bit multiplier always suffices (Robison, N-bit
 *          division by N-bit multiply-add, 2005).
 *   half   V = 2^k * odd with k >= 1: floor(p / V) = floor((p >> k) / (V >> k)), and p >> k has 31
 *          bits or fewer, so a *signed* doubling multiply-high computes it, which NEON has as one
 *          instruction for four values: ((p >> k) * half_multiplier >> 31) >> half_shift.
 *
 * The quotient functions are monotone in p. So exactness at p = mV - 1 and p = mV for every m means
 * exactness for all p; the tests check exactly this for whole vocabularies.
 */
#ifndef IRON_CORE_DIVISOR_H
#define IRON_CORE_DIVISOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct iron__divisor {
    uint32_t vocab;
    bool is_power_of_two;

    uint32_t multiplier;
    uint32_t shift; /* 32 ... 63: always at least 32, so high halves can be taken first */
    uint64_t addend;

    bool has_half;
    uint32_t half_preshift; /* k */
    uint32_t half_shift;
    uint32_t half_multiplier; /* below 2^31 */
} iron__divisor;

/* vocab: 2 ... 2^31. */
iron__divisor iron__divisor_make(uint32_t vocab);

static inline uint32_t iron__divisor_quotient(const iron__divisor *d, uint32_t p) {
    return (uint32_t)(((uint64_t)p * d->multiplier + d->addend) >> d->shift);
}

static inline uint32_t iron__divisor_half_quotient(const iron__divisor *d, uint32_t p) {
    uint64_t product = (uint64_t)(p >> d->half_preshift) * d->half_multiplier;

    return (uint32_t)(product >> 31) >> d->half_shift;
}

static inline uint32_t iron__divisor_remainder(const iron__divisor *d, uint32_t p) {
    return p - iron__divisor_quotient(d, p) * d->vocab;
}

#endif
