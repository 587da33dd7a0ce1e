/* SPDX-License-Identifier: MIT */
/*
 * memory.h: all memory of an engine is allocated here, so that a user's allocator sees all of it
 * and tests can make the n-th request fail. Memory is aligned to a cache line and zeroed; sizes
 * that overflow are reported as out of memory. (Lists of files and names of outputs, which are
 * small and short-lived, use malloc.)
 */
#ifndef IRON_CORE_MEMORY_H
#define IRON_CORE_MEMORY_H

#include "core/array.h"
#include "core/fail.h"

#include <iron/iron.h>

#include <stdbool.h>

#define IRON_CACHE_LINE 64

/* posix_memalign and free, used when a configuration gives no allocator. */
const iron_allocator *iron__allocator_default(void);

/* count * size zeroed bytes, or NULL with err filled: "out of memory for <what> of <bytes>". */
void *iron__allocate(const iron_allocator *allocator, size_t count, size_t size, const char *what,
                     iron_error *err);
void iron__release(const iron_allocator *allocator, void *memory);

/* The pointer that `at` points to gets zeroed memory for `count` elements: from an allocator, or
 * from calloc, for one element at least. IRON_E_NOMEM with err filled. */
#define IRON_ALLOCATE(at, allocator, count, what, err)                                             \
    iron__allocate_at((iron__array *)(at), (allocator), (count), sizeof **(at), (what), (err))
#define IRON_NEW(at, count, what, err)                                                             \
    iron__new_at((iron__array *)(at), (count), sizeof **(at), (what), (err))

static inline iron_status iron__allocate_at(iron__array *at, const iron_allocator *allocator,
                                            size_t count, size_t size, const char *what,
                                            iron_error *err) {
    *at = iron__allocate(allocator, count, size, what, err);
    return *at ? IRON_OK : IRON_E_NOMEM;
}

static inline iron_status iron__new_at(iron__array *at, size_t count, size_t size, const char *what,
                                       iron_error *err) {
    *at = calloc(count ? count : 1, size);
    return *at ? IRON_OK : iron__no_memory(err, what);
}

/* A text from malloc, which the caller frees; NULL: out of memory. */
char *iron__print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Appends to a text in an array of so many bytes; false: it was cut. */
bool iron__append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends to a list "a, b"; one that is cut ends in dots. */
void iron__append_item(char *text, size_t size, const char *item);

/* Large zeroed arrays for benchmarks, in huge pages where the system has them, committed on first
 * touch. Small requests use the default allocator, so that sanitizers see out-of-bounds accesses.
 * NULL with err filled on failure. */
void *iron__allocate_large(size_t bytes, iron_error *err);
void iron__release_large(void *memory, size_t bytes);

#endif
