/* SPDX-License-Identifier: MIT */
/*
 * fusion_cpu.c: the chain on the CPU: a loop a step, with arrays between them in scratch, or one
 * loop for all steps. Plain C that the compiler turns into vectors; on one thread or on all, piece
 * by piece. Between two steps of the separate kind all threads meet.
 */
#include "ops/data.h"
#include "ops/fusion/fusion.h"

/* One step over a range: to = t + b, and so on. */
typedef struct step_work {
    const float *t, *a, *b;
    float *to;
    iron__fusion_step step;
} step_work;

static void add(const float *restrict t, const float *restrict b, float *restrict to,
                size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = t[k] + b[k];
}

static void scale(const float *restrict t, float *restrict to, size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = t[k] * FUSION_SCALE;
}

static void multiply(const float *restrict t, const float *restrict a, float *restrict to,
                     size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = t[k] * a[k];
}

static void clamp(const float *restrict t, float *restrict to, size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = iron__fusion_clamp(t[k]);
}

static void subtract(const float *restrict t, const float *restrict b, float *restrict to,
                     size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = t[k] - b[k];
}

static void take_step(void *context, size_t begin, size_t end) {
    const step_work *w = context;
    size_t count = end - begin;

    switch (w->step) {
    case IRON_FUSION_ADD:
        add(w->t + begin, w->b + begin, w->to + begin, count);
        break;
    case IRON_FUSION_SCALE:
        scale(w->t + begin, w->to + begin, count);
        break;
    case IRON_FUSION_MULTIPLY:
        multiply(w->t + begin, w->a + begin, w->to + begin, count);
        break;
    case IRON_FUSION_CLAMP:
        clamp(w->t + begin, w->to + begin, count);
        break;
    default:
        subtract(w->t + begin, w->b + begin, w->to + begin, count);
        break;
    }
}

static void take_all(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const float *restrict a = w->problem->inputs[0].data;
    const float *restrict b = w->problem->inputs[1].data;
    float *restrict d = w->output;

    if (iron__fusion_is_long(&w->problem->c))
        for (size_t k = begin; k < end; k++)
            d[k] = iron__fusion_long(a[k], b[k]);
    else
        for (size_t k = begin; k < end; k++)
            d[k] = iron__fusion_short(a[k], b[k]);
}

/* Over all elements: by one thread, or by all. */
static void over_all(const iron__cpu_work *w, iron__data_piece piece, void *context) {
    size_t count = (size_t)w->problem->c.rows;

    if (w->row->is_single)
        piece(context, 0, count);
    else
        iron__data_pieces(w->team, count, piece, context);
}

static void run_separate(const iron__cpu_work *w) {
    const iron__fusion_chain *chain = iron__fusion_chain_of(&w->problem->c);
    float *between = w->scratch;
    step_work s = {.a = w->problem->inputs[0].data, .b = w->problem->inputs[1].data};

    s.t = s.a;
    for (size_t k = 0; k < chain->count; k++) {
        s.step = chain->steps[k];
        s.to = k + 1 == chain->count ? (float *)w->output : between + k % 2 * w->problem->c.rows;
        over_all(w, take_step, &s);
        s.t = s.to;
    }
}

static void run_fused(const iron__cpu_work *w) { over_all(w, take_all, (void *)(uintptr_t)w); }

static size_t separate_scratch(const iron__problem *p, uint32_t threads) {
    (void)threads;
    return iron__fusion_chain_of(&p->c)->between * (size_t)p->c.rows * sizeof(float);
}

static const iron__contender rows[] = {
    {.name = "separate",
     .idea = "a loop a step, with an array in memory between two of them",
     .backends = IRON_ON_CPU,
     .cpu_run = run_separate,
     .cpu_scratch_bytes = separate_scratch,
     .is_single = true},
    {.name = "fused",
     .idea = "all steps of an element in one loop: nothing between them leaves the registers",
     .beats = "separate",
     .backends = IRON_ON_CPU,
     .cpu_run = run_fused,
     .is_single = true},
    {.name = "separate-threads",
     .idea = "a loop a step on all threads, which meet after each",
     .beats = "separate",
     .backends = IRON_ON_CPU,
     .cpu_run = run_separate,
     .cpu_scratch_bytes = separate_scratch},
    {.name = "fused-threads",
     .idea = "the one loop on all threads",
     .beats = "separate-threads",
     .backends = IRON_ON_CPU,
     .cpu_run = run_fused},
};

size_t iron__fusion_cpu_contender_count(void) { return sizeof rows / sizeof rows[0]; }

bool iron__fusion_cpu_contender_at(size_t index, iron__contender *out) {
    if (index >= sizeof rows / sizeof rows[0])
        return false;
    *out = rows[index];
    return true;
}
