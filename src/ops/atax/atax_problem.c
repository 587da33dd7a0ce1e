/* SPDX-License-Identifier: MIT */
/*
 * atax_problem.c: the data of the op atax: a matrix and a vector of numbers that look random, from
 * a seed.
 *
 * Every element is a function of the seed and its own index, so threads fill pieces in any order
 * and the data are the same for any number of them; which thread touches a page first decides where
 * it lies. Elements lie strictly between -1 and 1, are never 0, and have as many digits as the type
 * holds: nothing is symmetric, of low rank or rounded by luck, so a contender that takes A for A^T,
 * drops a row or reads one twice is found out. (Suites are known whose matrix hides all of that.)
 */
#include "core/fail.h"
#include "core/mix.h"
#include "ops/atax/atax.h"

/* Elements that a thread fills at a time. */
#define PIECE ((size_t)65536)

/* Streams of numbers of one seed. */
enum { STREAM_A = 1, STREAM_X = 2 };

typedef struct filling {
    void *data;
    size_t count;
    iron__element element;
    uint64_t base;
} filling;

static inline uint64_t bits_at(uint64_t base, uint64_t index) {
    return iron__mix64(base + (index + 1) * IRON_GOLDEN_GAMMA);
}

/* Odd numerators over a power of two: never 0, never 1. */
static inline float as_f32(uint64_t bits) {
    return (float)((int64_t)(bits >> 41 << 1 | 1) - (INT64_C(1) << 23)) * 0x1p-23f;
}

static inline double as_f64(uint64_t bits) {
    return (double)((int64_t)(bits >> 12 << 1 | 1) - (INT64_C(1) << 52)) * 0x1p-52;
}

static void fill_piece(void *context, size_t index) {
    const filling *f = context;
    size_t begin = index * PIECE, end = f->count - begin < PIECE ? f->count : begin + PIECE;

    if (f->element == IRON_F32) {
        float *to = f->data;

        for (size_t k = begin; k < end; k++)
            to[k] = as_f32(bits_at(f->base, k));
        return;
    }
    double *to = f->data;

    for (size_t k = begin; k < end; k++)
        to[k] = as_f64(bits_at(f->base, k));
}

static void fill(const iron__array *array, const iron__case *c, uint64_t stream, iron__team *team) {
    filling f = {.data = array->data,
                 .count = array->bytes / iron__element_bytes(c->element),
                 .element = c->element,
                 .base = iron__mix64(c->seed + stream * IRON_GOLDEN_GAMMA)};

    iron__team_run(team, fill_piece, &f, (f.count + PIECE - 1) / PIECE);
}

static iron_status take(iron__array *array, const char *name, size_t bytes, iron_error *err) {
    *array = (iron__array){.name = name, .bytes = bytes};
    array->data = iron__allocate_large(bytes, err);
    return array->data ? IRON_OK : IRON_E_NOMEM;
}

static iron_status make_all(iron__problem *p, iron__team *team, iron_error *err) {
    size_t element = iron__element_bytes(p->c.element);
    size_t cols_bytes = (size_t)p->c.cols * element;
    iron__atax_own *own;

    p->input_count = 2;
    p->output_bytes = cols_bytes;
    own = iron__allocate(iron__allocator_default(), 1, sizeof *own, "atax's problem", err);
    if (!own)
        return IRON_E_NOMEM;
    p->own = own;
    IRON_TRY(take(&p->inputs[0], "A", (size_t)p->c.rows * cols_bytes, err));
    IRON_TRY(take(&p->inputs[1], "x", cols_bytes, err));
    fill(&p->inputs[0], &p->c, STREAM_A, team);
    fill(&p->inputs[1], &p->c, STREAM_X, team);
    IRON_TRY(iron__atax_refer(p, team, own, err));
    own->tolerance = iron__atax_tolerance(&p->c, own->scale);
    return IRON_OK;
}

iron_status iron__atax_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c};
    status = make_all(out, team, err);
    if (status != IRON_OK)
        iron__atax_unmake(out);
    return status;
}

void iron__atax_unmake(iron__problem *problem) {
    iron__atax_own *own = problem->own;

    for (size_t k = 0; k < problem->input_count; k++)
        iron__release_large(problem->inputs[k].data, problem->inputs[k].bytes);
    if (own)
        iron__release(iron__allocator_default(), own->reference);
    iron__release(iron__allocator_default(), own);
    *problem = (iron__problem){.c = problem->c};
}
