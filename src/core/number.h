/* SPDX-License-Identifier: MIT */
/*
 * number.h: the smaller and the larger of two numbers, and numbers in bytes and in text.
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

/* Unaligned little-endian numbers; one of up to 8 bytes. */
static inline uint64_t iron__load(const unsigned char *at, size_t bytes) {
    uint64_t value = 0;

    for (size_t k = 0; k < bytes; k++)
        value |= (uint64_t)at[k] << 8 * k;
    return value;
}

static inline uint32_t iron__load_u32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t iron__load_u64(const unsigned char *at) {
    return iron__load_u32(at) | (uint64_t)iron__load_u32(at + 4) << 32;
}

/* Lowers a number that many threads lower to `value`, unless it is lower already. */
static inline void iron__lower(_Atomic uint64_t *number, uint64_t value) {
    uint64_t now = atomic_load_explicit(number, memory_order_relaxed);

    while (value < now && !atomic_compare_exchange_weak(number, &now, value))
        ;
}

/* The value of a hexadecimal digit, or -1. */
static inline int iron__hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
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
