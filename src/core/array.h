/* SPDX-License-Identifier: MIT */
/*
 * array.h: arrays from malloc that grow, and the search in arrays of runs.
 */
#ifndef IRON_CORE_ARRAY_H
#define IRON_CORE_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* The array with room for one element more than `count`, which takes the old one's place. NULL: out
 * of memory, and the old one is as before. */
static inline void *iron__array_grow(void *array, size_t count, size_t *capacity, size_t each) {
    size_t more = *capacity ? 2 * *capacity : 16;

    if (array && count < *capacity)
        return array;
    array = realloc(array, more * each);
    *capacity = array ? more : *capacity;
    return array;
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
