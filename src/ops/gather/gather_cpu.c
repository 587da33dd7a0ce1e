/* SPDX-License-Identifier: MIT */
/*
 * gather_cpu.c: the rows of the CPU that take the indices as they come: one after the other, with
 * words of the table asked for ahead, and both on all threads.
 *
 * A processor that looks ahead has a few dozen loads on their way by itself. Asking for a word long
 * before it is needed makes their number a matter of choice instead of one of its buffers.
 */
#include "ops/data.h"
#include "ops/gather/gather.h"

/* How many elements ahead: some hundred nanoseconds at a nanosecond or two each. */
#define AHEAD ((size_t)64)

typedef struct arrays {
    const uint32_t *index, *table;
    uint32_t *output;
} arrays;

static arrays arrays_of(const iron__cpu_work *work) {
    return (arrays){work->problem->inputs[0].data, work->problem->inputs[1].data, work->output};
}

static void gather_plain(void *context, size_t begin, size_t end) {
    const arrays *a = context;

    for (size_t i = begin; i < end; i++)
        a->output[i] = a->table[a->index[i]];
}

static void gather_ahead(void *context, size_t begin, size_t end) {
    const arrays *a = context;
    size_t i = begin;

    for (; i + AHEAD < end; i++) {
        __builtin_prefetch(a->table + a->index[i + AHEAD]);
        a->output[i] = a->table[a->index[i]];
    }
    gather_plain(context, i, end);
}

void iron__gather_run_plain(const iron__cpu_work *work) {
    arrays a = arrays_of(work);

    gather_plain(&a, 0, (size_t)work->problem->c.rows);
}

void iron__gather_run_prefetch(const iron__cpu_work *work) {
    arrays a = arrays_of(work);

    gather_ahead(&a, 0, (size_t)work->problem->c.rows);
}

void iron__gather_run_threads(const iron__cpu_work *work) {
    arrays a = arrays_of(work);

    iron__data_pieces(work->team, (size_t)work->problem->c.rows, gather_plain, &a);
}

void iron__gather_run_prefetch_threads(const iron__cpu_work *work) {
    arrays a = arrays_of(work);

    iron__data_pieces(work->team, (size_t)work->problem->c.rows, gather_ahead, &a);
}
