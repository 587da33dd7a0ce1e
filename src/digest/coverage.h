/* SPDX-License-Identifier: MIT */
/*
 * coverage.h: which positions of a stream were seen.
 *
 * Stretches, sorted, that neither overlap nor touch: whatever was seen without a break is one
 * stretch, so a stream that comes in order is one, and each gap costs one more. Room is made in a
 * call of its own that may fail; adding then cannot.
 */
#ifndef IRON_DIGEST_COVERAGE_H
#define IRON_DIGEST_COVERAGE_H

#include "digest/sorted.h"

/* Positions first ... end-1; never empty. */
typedef struct iron__stretch {
    uint64_t first, end;
} iron__stretch;

typedef struct iron__coverage {
    iron__sorted stretches; /* of iron__stretch */
} iron__coverage;

iron__coverage iron__coverage_make(const iron_allocator *allocator);
void iron__coverage_deinit(iron__coverage *c);

/* Room for one more piece; what is covered does not change. */
iron_status iron__coverage_reserve(iron__coverage *c, iron_error *err);

/* The first stretch of `piece` that was seen before, in *seen. */
bool iron__coverage_overlaps(const iron__coverage *c, iron__stretch piece, iron__stretch *seen);

/* Adds a piece that overlaps nothing; needs room. */
void iron__coverage_add(iron__coverage *c, iron__stretch piece);

/* The first stretch that both have seen. */
bool iron__coverage_meets(const iron__coverage *a, const iron__coverage *b, iron__stretch *both);

/* All of a and b, which do not meet, into *out, which is made. On failure it holds nothing. */
iron_status iron__coverage_join(const iron__coverage *a, const iron__coverage *b,
                                iron__coverage *out, iron_error *err);

/* What is missing first, and where that ends: UINT64_MAX if nothing was seen behind it. */
iron__stretch iron__coverage_gap(const iron__coverage *c);

/* How many positions were seen, and which of quad q's four: bit k is position 4q + k. */
uint64_t iron__coverage_total(const iron__coverage *c);
uint32_t iron__coverage_quad(const iron__coverage *c, uint64_t quad);

#endif
