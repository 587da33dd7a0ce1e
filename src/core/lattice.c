/* SPDX-License-Identifier: MIT */
/*
 * lattice.c: checks a user's points, builds the lookup table of lattice.h, and implements the
 * public functions on top.
 */
#include "core/lattice.h"

#include "core/fail.h"

#include <string.h>

static const uint32_t default_points[] = {7, 15, 23, 31, 47, 63, 95, 127, 191, 255, 383, 511};

iron_status iron__lattice_check(const uint32_t *points, uint32_t count, iron_error *err) {
    IRON_FAIL_IF(count < IRON_LATTICE_MIN || count > IRON_LATTICE_MAX, err, IRON_E_ARG,
                 "lattice has %u points; give 2 to 64", count);
    for (uint32_t k = 0; k < count; k++) {
        IRON_FAIL_IF(points[k] < 1 || points[k] > IRON_LATTICE_POINT_MAX, err, IRON_E_ARG,
                     "lattice point %u is %u; points must be 1 to 65535", k, points[k]);
        IRON_FAIL_IF(k > 0 && points[k] <= points[k - 1], err, IRON_E_ARG,
                     "lattice point %u follows %u; give strictly increasing points", points[k],
                     points[k - 1]);
    }
    return IRON_OK;
}

iron_status iron__lattice_create(const uint32_t *points, uint32_t count,
                                 const iron_allocator *allocator, iron_lattice **out,
                                 iron_error *err) {
    iron_lattice *l;
    uint32_t span;
    uint32_t index = 0;

    *out = NULL;
    IRON_FAIL_IF(
        !points && count > 0, err, IRON_E_ARG,
        "lattice points are NULL but the count is %u; pass the points, or 0 for the default",
        count);
    if (!points) {
        points = default_points;
        count = sizeof default_points / sizeof default_points[0];
    }
    IRON_TRY(iron__lattice_check(points, count, err));
    span = points[count - 1] - points[0] + 1;
    l = iron__allocate(allocator, 1, sizeof *l + 2 * (size_t)span, "a lattice", err);
    if (!l)
        return IRON_E_NOMEM;
    l->count = count;
    l->first = points[0];
    l->last = points[count - 1];
    l->span = span;
    l->first_fold = points[0] % span;
    l->allocator = allocator;
    memcpy(l->points, points, count * sizeof *points);
    for (uint32_t k = 0; k <= 2 * (l->span - 1); k++) {
        uint32_t twice = 2 * l->first + k;

        while (index + 1 < l->count && twice > l->points[index] + l->points[index + 1])
            index++;
        l->nearest[k] = (uint8_t)index;
    }
    *out = l;
    return IRON_OK;
}

iron_status iron_lattice_create(const uint32_t *points, uint32_t count, iron_lattice **out,
                                iron_error *err) {
    return iron__lattice_create(points, count, iron__allocator_default(), out, err);
}

void iron_lattice_destroy(iron_lattice *lattice) {
    if (lattice)
        iron__release(lattice->allocator, lattice);
}

uint32_t iron_lattice_count(const iron_lattice *lattice) { return lattice->count; }

const uint32_t *iron_lattice_points(const iron_lattice *lattice) { return lattice->points; }

uint32_t iron_lattice_quantize_xor(const iron_lattice *lattice, uint32_t value) {
    return iron__lattice_xor(lattice, value);
}

double iron_lattice_quantize_real(const iron_lattice *lattice, double value) {
    return iron__lattice_real(lattice, value);
}
