/* SPDX-License-Identifier: MIT */
/*
 * stat_entropy.c: see stat_entropy.h.
 *
 * x = m 2^e with m within sqrt(1/2) ... sqrt(2), and log m = 2 artanh(s) with s = (m-1)/(m+1), at
 * most 0.172: the series s + s^3/3 + s^5/5 + ... gains 1.5 digits a term, so twelve terms reach
 * the last bit of a double.
 */
#include "digest/stat_entropy.h"

#include <string.h>

#define TERMS     12
#define ROOT_TWO  1.4142135623730951
#define LOG2_OF_E 1.4426950408889634

double iron__log2(double x) {
    uint64_t bits;
    int exponent;
    double s, square, sum = 0;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    memcpy(&x, &bits, sizeof x);
    if (x > ROOT_TWO) {
        x /= 2;
        exponent++;
    }
    s = (x - 1) / (x + 1);
    square = s * s;
    for (int k = TERMS; k > 0; k--)
        sum = (sum + 1.0 / (2 * k - 1)) * (k > 1 ? square : 1);
    return (double)exponent + 2 * s * sum * LOG2_OF_E;
}

/* Sixty million small terms: what rounding takes from the sum is carried along (Kahan). */
double iron__entropy_bits(const uint64_t *counts, size_t ids) {
    double total, sum = 0, lost = 0;
    uint64_t tokens = 0;

    for (size_t k = 0; k < ids; k++)
        tokens += counts[k];
    total = (double)tokens;
    for (size_t k = 0; k < ids; k++) {
        double share, term, next;

        if (counts[k] == 0 || counts[k] == tokens)
            continue;
        share = (double)counts[k] / total;
        term = share * iron__log2(total / (double)counts[k]) - lost;
        next = sum + term;
        lost = next - sum - term;
        sum = next;
    }
    return sum;
}
