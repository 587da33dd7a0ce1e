/* SPDX-License-Identifier: MIT */
/*
 * opencl_cache.h: built programs kept on disk, by the text that decides what is built. A cache: it
 * never fails, it only has nothing. opencl.h says where it lies and how to switch it off.
 */
#ifndef IRON_GPU_OPENCL_OPENCL_CACHE_H
#define IRON_GPU_OPENCL_OPENCL_CACHE_H

#include <stddef.h>

/* What was kept for exactly this key; free() it. NULL: nothing, or nothing that can be trusted. */
unsigned char *iron__opencl_cache_read(const char *key, size_t *bytes);

/* Keeps it, in place of what was there, or does nothing where that cannot be done. */
void iron__opencl_cache_write(const char *key, const unsigned char *binary, size_t bytes);

#endif
