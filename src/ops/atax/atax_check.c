/* SPDX-License-Identifier: MIT */
/*
 * atax_check.c: is this y right?
 *
 * Contenders add up in whatever order suits them, so a right answer is one whose distance from the
 * reference can be explained by rounding. Errors of single operations look random, so they grow
 * with the root of the number of operations on the way to an element, rows + cols:
 *
 *   |y[j] - reference[j]| <= 16 * u * sqrt(rows + cols) * scale,     u = 2^-24 (f32), 2^-53 (f64)
 *
 * scale is the size of an element: the root of the mean square over y; not y[j] itself, which may
 * be close to 0 by chance. Where a matrix has few rows, all of y may be: with one row y is a
 * multiple of t[0], a sum whose terms may cancel while their rounding errors stay. So the scale is
 * at least what y would be if nothing cancelled: the root of the mean over j of
 *
 *   sum over i of A[i][j]^2 * (sum over k of (A[i][k] x[k])^2)
 *
 * 16: over 20 shapes from 1x1 to 60000x64, up to 2000 seeds each, both types, and all orders of our
 * CPU rows, the textbook's one by one among them, the largest error was 2.6 in place of 16. In f32
 * at 20000x20000 an answer scaled by 1.001 is off by 5 tolerances, one that leaves out a row of A
 * by 26; at other sizes and in f64 by more.
 */
#include "ops/atax/atax.h"

#include <stdio.h>

/* The 16 of above. */
#define ROUNDINGS 16.0

double iron__atax_root(double square) {
    double root = square > 1 ? square : 1, better;

    if (!(square > 0))
        return 0;
    /* Newton's steps from above only go down, until they are done. */
    while ((better = (root + square / root) / 2) < root)
        root = better;
    return root;
}

double iron__atax_tolerance(const iron__case *c, double scale) {
    double unit = c->element == IRON_F32 ? 0x1p-24 : 0x1p-53;

    return ROUNDINGS * unit * iron__atax_root((double)(c->rows + c->cols)) * scale;
}

static double element_at(const iron__problem *problem, const void *output, size_t index) {
    if (problem->c.element == IRON_F32)
        return (double)((const float *)output)[index];
    return ((const double *)output)[index];
}

bool iron__atax_check(const iron__problem *problem, const void *output, char *text, size_t size) {
    const iron__atax_own *own = problem->own;
    int digits = problem->c.element == IRON_F32 ? 9 : 17;

    for (size_t j = 0; j < problem->c.cols; j++) {
        double is = element_at(problem, output, j), should_be = own->reference[j];
        double off = is > should_be ? is - should_be : should_be - is;

        /* Not "off > tolerance": that would let NaN through. */
        if (!(off <= own->tolerance)) {
            snprintf(text, size, "y[%zu] is %.*g, should be %.*g (off by %.3g; tolerance %.3g)", j,
                     digits, is, digits, should_be, off, own->tolerance);
            return false;
        }
    }
    return true;
}
