/* SPDX-License-Identifier: MIT */
/*
 * memory.h: the one door through which an engine takes memory, so that a user's allocator sees all
 * of it and tests can make the n-th request fail. Everything is aligned to a cache line and zeroed;
 * sizes that would overflow are refused like any other lack of memory. (Lists of files and names of
 * outputs, small and short-lived, come from malloc.)
 */
#ifndef IRON_CORE_MEMORY_H
#define IRON_CORE_MEMORY_H

#include <iron/iron.h>

#define IRON_CACHE_LINE 64

/* malloc's family, used when a configuration names no allocator. */
const iron_allocator *iron__allocator_default(void);

/* count * size zeroed bytes, or NULL with err filled: "out of memory: <what> of <bytes>". */
void *iron__allocate(const iron_allocator *allocator, size_t count, size_t size, const char *what,
                     iron_error *err);
void iron__release(const iron_allocator *allocator, void *memory);

/* Memory by the gigabyte, for what is raced: zeroed, huge pages where the system has them, which
 * come when they are first touched. Little of it is taken from the default allocator, whose edges
 * sanitizers watch. NULL with err filled. */
void *iron__allocate_large(size_t bytes, iron_error *err);
void iron__release_large(void *memory, size_t bytes);

#endif
