/* SPDX-License-Identifier: MIT */
/*
 * stat_entropy.h: the entropy of a histogram, and the logarithm it takes, since the library uses no
 * libm.
 */
#ifndef IRON_DIGEST_STAT_ENTROPY_H
#define IRON_DIGEST_STAT_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

/* The logarithm to base 2 of a positive, finite, normal number; off by less than 1e-15 of the
 * value, or of 1 if that is more. */
double iron__log2(double x);

/* Bits a token, of tokens that are drawn as the counts say; 0 of no tokens. */
double iron__entropy_bits(const uint64_t *counts, size_t ids);

#endif
