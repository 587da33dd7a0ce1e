/* SPDX-License-Identifier: MIT */
/*
 * barrier_cpu.c: the sums on the CPU: on one thread, and on all. There a thread meets the others
 * once a piece of 256 KiB, and what that costs is lost beside the reading: this is what GPUs are
 * compared with, not a race of its own.
 */
#include "ops/barrier/barrier.h"
#include "ops/data.h"
#include "ops/kit.h"

#include <stdatomic.h>
#include <string.h>

static uint32_t sum_segment(const uint32_t *line, size_t count) {
    uint32_t sum = 0;

    for (size_t k = 0; k < count; k++)
        sum += line[k];
    return sum;
}

static uint64_t sum_line(const uint32_t *line, size_t count) {
    uint64_t sum = 0;

    for (size_t k = 0; k < count; k++)
        sum += line[k];
    return sum;
}

/* Segments begin ... end-1. */
static void take_segments(const iron__cpu_work *work, size_t begin, size_t end) {
    const uint32_t *line = work->problem->inputs[0].data;
    size_t rows = (size_t)work->problem->c.rows;
    uint32_t *sums = work->output;

    for (size_t k = begin; k < end; k++) {
        size_t from = k * BARRIER_SEGMENT;

        sums[k] =
            sum_segment(line + from, rows - from < BARRIER_SEGMENT ? rows - from : BARRIER_SEGMENT);
    }
}

static void run_plain(const iron__cpu_work *work) {
    const iron__case *c = &work->problem->c;
    uint64_t sum;

    if (!iron__barrier_is_grid(c)) {
        take_segments(work, 0, (size_t)iron__barrier_segments(c));
        return;
    }
    sum = sum_line(work->problem->inputs[0].data, (size_t)c->rows);
    memcpy(work->output, &sum, sizeof sum);
}

typedef struct sharing {
    const iron__cpu_work *work;
    _Atomic uint64_t sum;
} sharing;

/* A task of segments: as many elements as a piece of the line. */
#define TASK_SEGMENTS ((size_t)64)

static void share_segments(void *context, size_t index) {
    const sharing *s = context;
    size_t all = (size_t)iron__barrier_segments(&s->work->problem->c),
           begin = index * TASK_SEGMENTS;

    take_segments(s->work, begin, all - begin < TASK_SEGMENTS ? all : begin + TASK_SEGMENTS);
}

static void share_line(void *context, size_t begin, size_t end) {
    sharing *s = context;
    const uint32_t *line = s->work->problem->inputs[0].data;

    atomic_fetch_add_explicit(&s->sum, sum_line(line + begin, end - begin), memory_order_relaxed);
}

static void run_threads(const iron__cpu_work *work) {
    const iron__case *c = &work->problem->c;
    sharing s = {.work = work};
    uint64_t sum;

    if (!iron__barrier_is_grid(c)) {
        iron__team_run(work->team, share_segments, &s,
                       (size_t)iron__kit_pieces(iron__barrier_segments(c), TASK_SEGMENTS));
        return;
    }
    iron__data_pieces(work->team, (size_t)c->rows, share_line, &s);
    sum = s.sum;
    memcpy(work->output, &sum, sizeof sum);
}

static const iron__contender rows[IRON_BARRIER_CPU_ROWS] = {
    {.name = "plain",
     .idea = "one loop on one thread",
     .backends = IRON_ON_CPU,
     .cpu_run = run_plain,
     .is_single = true},
    {.name = "threads",
     .idea = "pieces of 256 KiB on all threads",
     .beats = "plain",
     .backends = IRON_ON_CPU,
     .cpu_run = run_threads},
};

bool iron__barrier_cpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_BARRIER_CPU_ROWS)
        return false;
    *out = rows[index];
    return true;
}
