/* SPDX-License-Identifier: MIT */
/* memory.c: the allocators of memory.h. */
#include "core/memory.h"

#include "core/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *default_alloc(void *context, size_t bytes, size_t align) {
    void *memory = NULL;

    (void)context;
    return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void default_release(void *context, void *memory) {
    (void)context;
    free(memory);
}

const iron_allocator *iron__allocator_default(void) {
    static const iron_allocator allocator = {default_alloc, default_release, NULL};

    return &allocator;
}

void *iron__allocate(const iron_allocator *allocator, size_t count, size_t size, const char *what,
                     iron_error *err) {
    size_t bytes = 0;
    void *memory = NULL;

    if (!__builtin_mul_overflow(count, size, &bytes)) {
        bytes = bytes ? bytes : 1;
        memory = allocator->alloc(allocator->context, bytes, IRON_CACHE_LINE);
    }
    if (!memory) {
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory for %s of %zu bytes; free memory and retry",
                   what, bytes ? bytes : SIZE_MAX);
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

void iron__release(const iron_allocator *allocator, void *memory) {
    if (memory)
        allocator->release(allocator->context, memory);
}

char *iron__print(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length >= 0 ? text : NULL;
}

bool iron__append(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
    return length >= 0 && (size_t)length < size - used;
}

void iron__append_item(char *text, size_t size, const char *item) {
    if (!iron__append(text, size, "%s%s", text[0] ? ", " : "", item))
        memcpy(text + size - 4, "...", 4);
}

/* From this size on memory comes from mmap, in huge pages: walking down the columns of a matrix
 * would otherwise spend its time in page tables. */
#define LARGE_BYTES ((size_t)4 << 20)

void *iron__allocate_large(size_t bytes, iron_error *err) {
    void *memory;

    if (bytes < LARGE_BYTES)
        return iron__allocate(iron__allocator_default(), bytes, 1, "an array", err);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        iron__fail(err, IRON_E_NOMEM, errno,
                   "out of memory for %zu bytes at once; use a smaller size", bytes);
        return NULL;
    }
    madvise(memory, bytes, MADV_HUGEPAGE); /* only an optimization: failure is ignored */
    return memory;
}

void iron__release_large(void *memory, size_t bytes) {
    if (memory && bytes >= LARGE_BYTES)
        munmap(memory, bytes);
    else
        iron__release(iron__allocator_default(), memory);
}
