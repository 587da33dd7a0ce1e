/* SPDX-License-Identifier: MIT */
/*
 * divergence_cpu.c: two paths on the CPU. A core has no neighbours to keep in step with: a branch
 * costs where it is guessed wrongly, and it keeps the compiler from using vectors. Both paths for
 * four elements at a time, and a choice by masks, has neither trouble; it computes twice as much.
 */
#include "ops/data.h"
#include "ops/divergence/divergence.h"

#include <string.h>

typedef uint32_t lanes __attribute__((vector_size(16)));

#define LANES  (sizeof(lanes) / sizeof(uint32_t))
#define CHAINS 4u /* vectors at a time: while one waits, others go on */

static void plain_piece(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const uint32_t *in = w->problem->inputs[0].data;
    uint32_t *out = w->output;

    for (size_t k = begin; k < end; k++)
        out[k] = iron__divergence_value(in[k]);
}

static inline void both_paths(const lanes *x, lanes *out) {
    lanes odd[CHAINS], even[CHAINS];

    memcpy(odd, x, sizeof odd);
    memcpy(even, x, sizeof even);
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++)
        for (size_t c = 0; c < CHAINS; c++) {
            odd[c] = odd[c] * DIVERGENCE_ODD_P + DIVERGENCE_ODD_Q;
            odd[c] ^= odd[c] >> 15;
            even[c] ^= even[c] << 11 ^ DIVERGENCE_EVEN_R;
            even[c] *= DIVERGENCE_EVEN_S;
        }
    for (size_t c = 0; c < CHAINS; c++) {
        lanes mask = -(x[c] & 1);

        out[c] = (odd[c] & mask) | (even[c] & ~mask);
    }
}

static void branch_free_piece(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const uint32_t *in = w->problem->inputs[0].data;
    uint32_t *out = w->output;
    size_t k = begin;

    for (; k + CHAINS * LANES <= end; k += CHAINS * LANES) {
        lanes x[CHAINS], y[CHAINS];

        memcpy(x, in + k, sizeof x);
        both_paths(x, y);
        memcpy(out + k, y, sizeof y);
    }
    plain_piece(context, k, end);
}

/* Over all elements: by one thread, or by all. */
static void over_all(const iron__cpu_work *w, iron__data_piece piece) {
    void *context = (void *)(uintptr_t)w;
    size_t count = (size_t)w->problem->c.rows;

    if (w->row->is_single)
        piece(context, 0, count);
    else
        iron__data_pieces(w->team, count, piece, context);
}

static void run_plain(const iron__cpu_work *w) { over_all(w, plain_piece); }
static void run_branch_free(const iron__cpu_work *w) { over_all(w, branch_free_piece); }

/* What a thread computes in a second, about, element by element and in vectors: enough to tell
 * seconds from minutes. */
#define PLAIN_A_SECOND  4e9
#define VECTOR_A_SECOND 2e10

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    double path = 4.0 * DIVERGENCE_ROUNDS * (double)c->rows;

    (void)device;
    if (row->cpu_run == run_plain)
        return path / PLAIN_A_SECOND;
    return 2 * path / VECTOR_A_SECOND / (row->is_single ? 1 : threads);
}

static const iron__contender rows[] = {
    {.name = "plain",
     .idea = "an element at a time, and a branch",
     .backends = IRON_ON_CPU,
     .cpu_run = run_plain,
     .is_single = true,
     .seconds = seconds},
    {.name = "branch-free",
     .idea = "both paths in vectors, and a choice by masks",
     .beats = "plain",
     .backends = IRON_ON_CPU,
     .cpu_run = run_branch_free,
     .is_single = true,
     .seconds = seconds},
    {.name = "threads",
     .idea = "the same on all threads",
     .beats = "branch-free",
     .backends = IRON_ON_CPU,
     .cpu_run = run_branch_free,
     .seconds = seconds},
};

size_t iron__divergence_cpu_contender_count(void) { return sizeof rows / sizeof rows[0]; }

bool iron__divergence_cpu_contender_at(size_t index, iron__contender *out) {
    if (index >= sizeof rows / sizeof rows[0])
        return false;
    *out = rows[index];
    return true;
}
