/* SPDX-License-Identifier: MIT */
/*
 * atax.h: what the files of the op atax share: the problem's reference, the CPU rows, and the three
 * loops that every instruction set writes for itself.
 *
 * Letters as in the contract: y = A^T t with t = A x.
 */
#ifndef IRON_OPS_ATAX_ATAX_H
#define IRON_OPS_ATAX_ATAX_H

#include "ops/op.h"

/* What a problem keeps for its judge. */
typedef struct iron__atax_own {
    double *reference; /* cols values, rounded once from a higher precision */
    double scale;      /* the size of an element of y, for the tolerance: see atax_check.c */
    double tolerance;  /* how far from the reference an element may be */
} iron__atax_own;

iron_status iron__atax_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__atax_unmake(iron__problem *problem);
bool iron__atax_check(const iron__problem *problem, const void *output, char *text, size_t size);

/* Fills own->reference and own->scale from the inputs. */
iron_status iron__atax_refer(const iron__problem *problem, iron__team *team, iron__atax_own *own,
                             iron_error *err);
/* k * u * sqrt(rows + cols) * scale */
double iron__atax_tolerance(const iron__case *c, double scale);
/* The square root, to a relative error of about 1e-16; libm is not needed for it. */
double iron__atax_root(double square);

/* A part of the problem: `rows` rows of `cols` elements, `stride` elements from one to the next. */
typedef struct iron__atax_block {
    const void *a;
    size_t rows, cols, stride;
    const void *x; /* cols elements */
    void *t;       /* rows elements */
    void *y;       /* cols elements */
} iron__atax_block;

/* The loops take rows by fours. */
#define IRON_ATAX_ROWS 4u

typedef void (*iron__atax_loop)(const iron__atax_block *block);

/* The loops in one instruction set and element type. A row of A is read from left to right. */
typedef struct iron__atax_loops {
    iron__atax_loop multiply;       /* t = A x */
    iron__atax_loop add_transposed; /* y += A^T t */
    iron__atax_loop add_both;       /* y += A^T (A x), with A read once; t is not used */
} iron__atax_loops;

/* One for f32 and one for f64; NULL where the code is of another architecture. */
const iron__atax_loops *iron__atax_neon(iron__element element);
const iron__atax_loops *iron__atax_avx2(iron__element element);
const iron__atax_loops *iron__atax_avx512(iron__element element);
const iron__atax_loops *iron__atax_portable(iron__element element);

/* The widest that this machine has. */
const iron__atax_loops *iron__atax_best(iron__element element);

/* The rows' functions: atax_plain.c has the loops of textbooks, atax_threads.c the others. */
void iron__atax_run_naive(const iron__cpu_work *work);
void iron__atax_run_interchanged(const iron__cpu_work *work);
void iron__atax_run_blocked(const iron__cpu_work *work);
size_t iron__atax_plain_scratch(const iron__problem *problem, uint32_t threads);

void iron__atax_run_vector(const iron__cpu_work *work);
void iron__atax_run_threads(const iron__cpu_work *work);
void iron__atax_run_single_pass(const iron__cpu_work *work);
void iron__atax_run_single_pass_one_thread(const iron__cpu_work *work);
size_t iron__atax_threads_scratch(const iron__problem *problem, uint32_t threads);
size_t iron__atax_single_pass_scratch(const iron__problem *problem, uint32_t threads);

/* y += more, elements each. */
void iron__atax_add(iron__element element, void *y, const void *more, size_t count);

/* The single pass by panels of columns, for few and long rows: atax_panels.c. */
bool iron__atax_suits_panels(const iron__problem *problem, uint32_t threads);
size_t iron__atax_panels_scratch(const iron__problem *problem, uint32_t threads);
void iron__atax_run_panels(const iron__cpu_work *work);

#endif
