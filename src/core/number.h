/* SPDX-License-Identifier: MIT */
/*
 * number.h: the smaller and the larger of two numbers, and numbers in text.
 */
#ifndef IRON_CORE_NUMBER_H
#define IRON_CORE_NUMBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t iron__min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t iron__max(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline size_t iron__min_size(size_t a, uint64_t b) { return a < b ? a : (size_t)b; }

/* Lowers a number that many threads lower to `value`, unless it is lower already. */
static inline void iron__lower(_Atomic uint64_t *number, uint64_t value) {
    uint64_t now = atomic_load_explicit(number, memory_order_relaxed);

    while (value < now && !atomic_compare_exchange_weak(number, &now, value))
        ;
}

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
