/* SPDX-License-Identifier: MIT */
/*
 * line.h: what every op over a line accepts, said once: an element type that it knows, a count from
 * 1 to its most, and on each axis a value that there is; and how long a line is that no cache
 * holds.
 */
#ifndef IRON_OPS_LINE_H
#define IRON_OPS_LINE_H

#include "ops/op.h"

/* IRON_E_ARG with a sentence, from the op's own types and axes. */
iron_status iron__line_accept(const iron__case *c, uint64_t most, iron_error *err);

/* An op's usual size: `least` elements of so many bytes each, doubled until they are four times the
 * caches, or `most` and more. */
uint64_t iron__line_usual(uint64_t least, uint64_t most, size_t element_bytes,
                          uint64_t cache_bytes);

#endif
