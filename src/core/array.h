/* SPDX-License-Identifier: MIT */
/*
 * array.h: arrays from malloc that grow, and the search in arrays of runs.
 */
#ifndef IRON_CORE_ARRAY_H
#define IRON_CORE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Any pointer: reading and writing one through this type is allowed. */
typedef void *__attribute__((may_alias)) iron__array;

/* Makes room for one element more than `count` in the array that `at` points to. False: out of
 * memory, and it is as before. */
#define IRON_ARRAY_GROW(at, count, capacity)                                                       \
    iron__array_grow((iron__array *)(at), (count), (capacity), sizeof **(at))

static inline bool iron__array_grow(iron__array *at, size_t count, size_t *capacity, size_t each) {
    size_t more = *capacity ? 2 * *capacity : 16;
    void *grown;

    if (*at && count < *capacity)
        return true;
    grown = realloc(*at, more * each);
    if (!grown)
        return false;
    *at = grown;
    *capacity = more;
    return true;
}

/* Compares structs by the number that they begin with: for qsort and bsearch. */
static inline int iron__by_first_number(const void *x, const void *y) {
    const uint64_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* The run that holds a position: the last of `count` that begins there or before. `starts`: where
 * the first one begins; those of the others follow at every `stride` bytes. */
static inline size_t iron__array_find(const uint64_t *starts, size_t stride, size_t count,
                                      uint64_t position) {
    size_t low = 0, high = count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (*(const uint64_t *)((const void *)((const char *)starts + middle * stride)) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
