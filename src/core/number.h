/* SPDX-License-Identifier: MIT */
/*
 * number.h: numbers in text.
 */
#ifndef IRON_CORE_NUMBER_H
#define IRON_CORE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads digits of a base up to 16, with lowercase letters, and moves *at past them. `end`: where
 * the text ends at the latest; NULL if it ends with a zero. False: no digit, or 2^64 and more. */
static inline bool iron__read_digits(const char **at, const char *end, unsigned base,
                                     uint64_t *value) {
    const char *start = *at;

    for (*value = 0; *at != end; ++*at) {
        unsigned digit = **at >= '0' && **at <= '9'   ? (unsigned)(**at - '0')
                         : **at >= 'a' && **at <= 'f' ? (unsigned)(**at - 'a') + 10
                                                      : 16;

        if (digit >= base)
            break;
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value))
            return false;
    }
    return *at != start;
}

#endif
