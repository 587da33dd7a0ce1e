/* SPDX-License-Identifier: MIT */
/*
 * lattice.h: the points that node values are quantized to, and the two quantizers.
 *
 * Both quantizers are one table lookup, whatever the number of points. Points are whole numbers, so
 * the border between two neighbours a and b, where a tie goes to a, is (a + b) / 2: a multiple of
 * one half. A real v lies above it iff ceil(2v) > a + b, so ceil(2v) is the table index, and it has
 * 2 * (last - first) + 1 values. The whole numbers that XOR values fold into are a subset of them.
 */
#ifndef IRON_CORE_LATTICE_H
#define IRON_CORE_LATTICE_H

#include "core/memory.h"

#include <math.h>

#define IRON_LATTICE_MIN       2u
#define IRON_LATTICE_MAX       64u
#define IRON_LATTICE_POINT_MAX 65535u

struct iron_lattice {
    uint32_t count;
    uint32_t first, last;
    uint32_t span;       /* last - first + 1: XOR values fold into first ... last modulo this */
    uint32_t first_fold; /* first modulo span */
    uint32_t points[IRON_LATTICE_MAX];
    const iron_allocator *allocator;
    uint8_t nearest[]; /* index of the point nearest to first + k / 2, k = 0 ... 2 * (span - 1) */
};

/* Checks that the points are a valid lattice. */
iron_status iron__lattice_check(const uint32_t *points, uint32_t count, iron_error *err);

iron_status iron__lattice_create(const uint32_t *points, uint32_t count,
                                 const iron_allocator *allocator, iron_lattice **out,
                                 iron_error *err);

/* The index of the point that x folds to: v = x modulo span with v in first ... last. */
static inline uint32_t iron__lattice_index_xor(const iron_lattice *l, uint32_t x) {
    uint32_t fold = x % l->span;
    uint32_t offset = fold - l->first_fold + (fold < l->first_fold ? l->span : 0);

    return l->nearest[2 * (size_t)offset];
}

static inline uint32_t iron__lattice_xor(const iron_lattice *l, uint32_t x) {
    return l->points[iron__lattice_index_xor(l, x)];
}

/* The index of the point nearest to a nonzero magnitude; infinity gives the last point. */
static inline uint32_t iron__lattice_index_magnitude(const iron_lattice *l, double magnitude) {
    double first = l->first, last = l->last;
    /* written so that NaN, which callers must not pass, gives the first point */
    double v = magnitude > first ? (magnitude < last ? magnitude : last) : first;
    double halves = 2 * (v - first); /* exact: both are multiples of the last place of v */
    uint32_t whole = (uint32_t)halves;

    return l->nearest[whole + (halves > whole)]; /* ceil, without the mathematics library */
}

static inline double iron__lattice_real(const iron_lattice *l, double c) {
    double point;

    if (c == 0)
        return 0;
    point = l->points[iron__lattice_index_magnitude(l, fabs(c))];
    return c < 0 ? -point : point;
}

#endif
