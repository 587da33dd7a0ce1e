/* SPDX-License-Identifier: MIT */
/*
 * adaptive_cpu.c: the function over sparse data on the CPU. Sixteen values share the instructions
 * of a block (adaptive_apply.c), as 32 threads share those of a warp, so the story is the same: a
 * branch saves a block only if all of it is 0, and packing fills the blocks.
 */
#include "ops/adaptive/adaptive.h"
#include "ops/data.h"

#include <string.h>

/* Elements that are packed together: they stay in the first-level cache. */
#define PACK 1024u

/* What a thread computes in a second, about: enough to tell seconds from minutes. */
#define OPERATIONS_A_SECOND 1.6e10

static void all_of(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const float *in = w->problem->inputs[0].data;
    float *out = w->output;

    memcpy(out + begin, in + begin, (end - begin) * sizeof(float));
    iron__adaptive_apply(out + begin, end - begin);
}

static void blocks_of(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const float *in = w->problem->inputs[0].data;
    float *out = w->output;

    memcpy(out + begin, in + begin, (end - begin) * sizeof(float));
    for (size_t k = begin; k < end; k += IRON_ADAPTIVE_BLOCK) {
        size_t count = end - k < IRON_ADAPTIVE_BLOCK ? end - k : IRON_ADAPTIVE_BLOCK;

        if (iron__adaptive_has_any(out + k, count))
            iron__adaptive_apply(out + k, count);
    }
}

/* Without a branch an element: each is put behind those that were found, and the next one takes its
 * place if it was 0. The way back is the same. */
static void pack(const float *in, float *out, size_t count) {
    float values[PACK];
    size_t found = 0;

    for (size_t k = 0; k < count; k++) {
        values[found] = in[k];
        found += in[k] != 0;
    }
    iron__adaptive_apply(values, found);
    found = 0;
    for (size_t k = 0; k < count; k++)
        out[k] = in[k] != 0 ? values[found++] : 0;
}

static void packs_of(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const float *in = w->problem->inputs[0].data;
    float *out = w->output;

    for (size_t k = begin; k < end; k += PACK)
        pack(in + k, out + k, end - k < PACK ? end - k : PACK);
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

static void run_dense(const iron__cpu_work *w) { over_all(w, all_of); }
static void run_branch(const iron__cpu_work *w) { over_all(w, blocks_of); }
static void run_compact(const iron__cpu_work *w) { over_all(w, packs_of); }

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    double all = IRON_ADAPTIVE_OPERATIONS * (double)c->rows / OPERATIONS_A_SECOND;

    (void)device;
    if (row->cpu_run == run_compact)
        all *= iron__adaptive_density(c);
    return row->is_single ? all : all / threads;
}

static const iron__contender rows[] = {
    {.name = "dense-always",
     .idea = "computes f of every element, zeros too",
     .backends = IRON_ON_CPU,
     .cpu_run = run_dense,
     .is_single = true,
     .seconds = seconds},
    {.name = "branch",
     .idea = "leaves out blocks of sixteen elements that are all 0",
     .beats = "dense-always",
     .backends = IRON_ON_CPU,
     .cpu_run = run_branch,
     .is_single = true,
     .seconds = seconds},
    {.name = "compact",
     .idea = "packs the elements that are not 0, computes full blocks, puts the results back",
     .beats = "branch",
     .backends = IRON_ON_CPU,
     .cpu_run = run_compact,
     .is_single = true,
     .seconds = seconds},
    {.name = "threads",
     .idea = "compact on all threads",
     .beats = "compact",
     .backends = IRON_ON_CPU,
     .cpu_run = run_compact,
     .seconds = seconds},
};

size_t iron__adaptive_cpu_contender_count(void) { return sizeof rows / sizeof rows[0]; }

bool iron__adaptive_cpu_contender_at(size_t index, iron__contender *out) {
    if (index >= sizeof rows / sizeof rows[0])
        return false;
    *out = rows[index];
    return true;
}
