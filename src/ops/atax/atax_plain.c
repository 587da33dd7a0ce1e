/* SPDX-License-Identifier: MIT */
/*
 * atax_plain.c: three rows on one thread in plain C, each one idea away from the one before it:
 *
 *   naive         both products as they are written down; A^T t goes down the columns
 *   interchanged  A^T t with its two loops exchanged, so that A is read along its rows, too
 *   blocked       the same in blocks of columns whose part of y stays in the first-level cache
 *
 * All read A twice. Scratch is t, the vector between the two products.
 */
#include "ops/atax/atax.h"

#include <string.h>

/* 16 KiB of y: half of a small first-level cache, the other half is for the rows that pass. */
#define BLOCK_BYTES ((size_t)16384)

#define NAME(word) word##_f32
#define REAL       float
#include "ops/atax/atax_plain.inc"
#undef NAME
#undef REAL

#define NAME(word) word##_f64
#define REAL       double
#include "ops/atax/atax_plain.inc"

size_t iron__atax_plain_scratch(const iron__problem *problem, uint32_t threads) {
    (void)threads;
    return (size_t)problem->c.rows * iron__element_bytes(problem->c.element);
}

void iron__atax_run_naive(const iron__cpu_work *work) {
    if (work->problem->c.element == IRON_F32)
        naive_f32(work);
    else
        naive_f64(work);
}

void iron__atax_run_interchanged(const iron__cpu_work *work) {
    if (work->problem->c.element == IRON_F32)
        by_rows_f32(work, SIZE_MAX);
    else
        by_rows_f64(work, SIZE_MAX);
}

void iron__atax_run_blocked(const iron__cpu_work *work) {
    if (work->problem->c.element == IRON_F32)
        by_rows_f32(work, BLOCK_BYTES / sizeof(float));
    else
        by_rows_f64(work, BLOCK_BYTES / sizeof(double));
}
