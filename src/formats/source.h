/* SPDX-License-Identifier: MIT */
/*
 * source.h: the inside door of iron_source: reading that another thread can call off.
 */
#ifndef IRON_FORMATS_SOURCE_H
#define IRON_FORMATS_SOURCE_H

#include <iron/iron.h>

#include <stdatomic.h>

/* iron_source_read, but gives up with IRON_E_CANCELLED within a tenth of a second once *stop is
 * set, even while a pipe's other end is silent. stop may be NULL. */
iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err);

#endif
