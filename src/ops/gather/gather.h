/* SPDX-License-Identifier: MIT */
/*
 * gather.h: what the files of the op gather share: the orders of the indices, the table's length,
 * and the rows.
 */
#ifndef IRON_OPS_GATHER_GATHER_H
#define IRON_OPS_GATHER_GATHER_H

#include "ops/op.h"

/* The values of the axis "order", in the order of its words. */
typedef enum iron__gather_order {
    IRON_GATHER_RANDOM,   /* anywhere in the table */
    IRON_GATHER_WINDOWED, /* anywhere in a window that moves through the table as i does */
    IRON_GATHER_SORTED    /* ascending, some words often, some never */
} iron__gather_order;

/* A texture in a line holds so many elements on every card that has them. */
#define IRON_GATHER_TABLE_MAX (UINT64_C(1) << 27)
/* The sorted order is sorted by blocks of so many elements, each of which has a part of the table.
 */
#define IRON_GATHER_SORT_BLOCK ((size_t)64)

iron__gather_order iron__gather_order_of(const iron__case *c);
/* As long as the indices, up to the limit. */
uint64_t iron__gather_table_words(const iron__case *c);

iron_status iron__gather_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__gather_unmake(iron__problem *problem);
bool iron__gather_check(const iron__problem *problem, const void *output, char *text, size_t size);

/* Rows of the CPU: gather_cpu.c; the one that sorts: gather_cpu_sorted.c. */
void iron__gather_run_plain(const iron__cpu_work *work);
void iron__gather_run_prefetch(const iron__cpu_work *work);
void iron__gather_run_threads(const iron__cpu_work *work);
void iron__gather_run_prefetch_threads(const iron__cpu_work *work);
void iron__gather_run_sorted(const iron__cpu_work *work);
size_t iron__gather_sorted_scratch(const iron__problem *problem, uint32_t threads);

/* Rows on GPUs: gather_gpu.c; false past the last. */
bool iron__gather_gpu_contender_at(size_t index, iron__contender *out);

#endif
