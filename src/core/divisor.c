/* SPDX-License-Identifier: MIT */
/*
 * divisor.c: computes the constants of divisor.h, once per configuration.
 */
#include "core/divisor.h"

static uint32_t floor_log2(uint32_t value) { return 31u - (uint32_t)__builtin_clz(value); }

/* With s = floor(log2 V) the multiplier of shift 32 + s fits 32 bits. Rounded up by e / V (0 <= e <
 * V), the error p * e / (V * 2^(32+s)) stays below 1 / V for all p < 2^32 iff e <= 2^s. Otherwise
 * V - e <= 2^s (since V < 2^(s+1)), and that is the condition for rounding down and adding. */
static void find_wide(iron__divisor *d) {
    uint32_t s = floor_log2(d->vocab);
    uint64_t power = UINT64_C(1) << (32 + s);
    uint64_t down = power / d->vocab;
    uint64_t excess = d->vocab - power % d->vocab;

    d->shift = 32 + s;
    if (d->is_power_of_two) {
        /* down is 2^32, one bit too many: halve both, exact because nothing was rounded. */
        d->shift = 31 + s;
        d->multiplier = UINT32_C(1) << 31;
        d->addend = 0;
    } else if (excess <= UINT64_C(1) << s) {
        d->multiplier = (uint32_t)(down + 1);
        d->addend = 0;
    } else {
        d->multiplier = (uint32_t)down;
        d->addend = down;
    }
}

/* The dividend has 32 - k bits. Rounding up by e / V' is exact iff e * 2^(32-k) < 2^(31+s), that is
 * e < 2^(s+k-1): always true for k >= 2, where V' < 2^(s+1), and for k = 1 true for most. */
static void find_half(iron__divisor *d) {
    uint32_t k = (uint32_t)__builtin_ctz(d->vocab);
    uint32_t odd = d->vocab >> k;
    uint32_t s;
    uint64_t power, multiplier, excess;

    if (d->is_power_of_two || k == 0)
        return;
    s = floor_log2(odd);
    power = UINT64_C(1) << (31 + s);
    multiplier = power / odd + 1;
    excess = multiplier * odd - power;
    if (excess >= UINT64_C(1) << (s + k - 1))
        return;
    d->has_half = true;
    d->half_preshift = k;
    d->half_shift = s;
    d->half_multiplier = (uint32_t)multiplier;
}

iron__divisor iron__divisor_make(uint32_t vocab) {
    iron__divisor d = {.vocab = vocab, .is_power_of_two = (vocab & (vocab - 1)) == 0};

    find_wide(&d);
    find_half(&d);
    return d;
}
