/* SPDX-License-Identifier: MIT */
/*
 * transpose.h: what the files of the op transpose share: the problem and its judge, the CPU rows,
 * and the GPU rows.
 *
 * Letters as in the contract: A has rows x cols elements, B has cols x rows, B[j][i] is A[i][j].
 */
#ifndef IRON_OPS_TRANSPOSE_TRANSPOSE_H
#define IRON_OPS_TRANSPOSE_TRANSPOSE_H

#include "ops/op.h"

iron_status iron__transpose_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__transpose_unmake(iron__problem *problem);
bool iron__transpose_check(const iron__problem *problem, const void *output, char *text,
                           size_t size);

/* transpose_cpu.c */
void iron__transpose_run_naive(const iron__cpu_work *work);
void iron__transpose_run_blocked(const iron__cpu_work *work);
void iron__transpose_run_vector(const iron__cpu_work *work);
void iron__transpose_run_threads(const iron__cpu_work *work);

/* transpose_gpu.c: row number `index` on GPUs; false past the last. */
bool iron__transpose_gpu_contender_at(size_t index, iron__contender *out);

#endif
