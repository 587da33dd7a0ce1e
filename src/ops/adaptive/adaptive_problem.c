/* SPDX-License-Identifier: MIT */
/*
 * adaptive_problem.c: the data of the op adaptive, its right answer, and its judge.
 *
 * An element is 0 or, with the probability that the case calls density, a number from -1/8 to 1/8.
 * From there a hundred turns lead to numbers that still differ where the elements did, and that are
 * far from those too small for all their digits. The right answer is computed once and kept: it
 * takes longer than any check should. The judge wants its very bits.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "ops/adaptive/adaptive.h"
#include "ops/data.h"

#include <stdio.h>
#include <string.h>

#define STREAM   1u
#define STRETCH  0.125f
#define ALL_BITS 4294967296.0 /* 2^32 */

typedef struct filling {
    float *in, *right;
    uint64_t base;
    uint64_t below; /* of 2^32: elements whose lower bits are below that are not 0 */
} filling;

static void fill_piece(void *context, size_t begin, size_t end) {
    const filling *f = context;

    for (size_t k = begin; k < end; k++) {
        uint64_t bits = iron__data_bits(f->base, k);

        f->in[k] = (bits & UINT32_MAX) < f->below ? iron__data_f32(bits) * STRETCH : 0.0f;
    }
}

static void answer_piece(void *context, size_t begin, size_t end) {
    const filling *f = context;

    memcpy(f->right + begin, f->in + begin, (end - begin) * sizeof(float));
    for (size_t k = begin; k < end; k += IRON_ADAPTIVE_BLOCK) {
        size_t count = end - k < IRON_ADAPTIVE_BLOCK ? end - k : IRON_ADAPTIVE_BLOCK;

        if (iron__adaptive_has_any(f->right + k, count))
            iron__adaptive_apply(f->right + k, count);
    }
}

static iron_status make_all(iron__problem *p, iron_error *err) {
    size_t bytes = (size_t)p->c.rows * sizeof(float);
    filling f = {.base = iron__data_base(p->c.seed, STREAM),
                 .below = (uint64_t)(iron__adaptive_density(&p->c) * ALL_BITS)};

    p->input_count = 1;
    p->output_bytes = bytes;
    IRON_TRY(iron__data_take(&p->inputs[0], "in", bytes, err));
    p->own = iron__allocate_large(bytes, err);
    if (!p->own)
        return IRON_E_NOMEM;
    f.in = p->inputs[0].data;
    f.right = p->own;
    iron__data_pieces(p->team, (size_t)p->c.rows, fill_piece, &f);
    iron__data_pieces(p->team, (size_t)p->c.rows, answer_piece, &f);
    return IRON_OK;
}

iron_status iron__adaptive_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team};
    status = make_all(out, err);
    if (status != IRON_OK)
        iron__adaptive_unmake(out);
    return status;
}

void iron__adaptive_unmake(iron__problem *problem) {
    iron__data_release(problem);
    if (problem->own)
        iron__release_large(problem->own, problem->output_bytes);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct answer {
    const float *right, *out;
} answer;

static uint32_t bits_of(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* By bits: -0 is not 0, and NaN is nothing that was asked for. */
static bool differs(const void *context, size_t k) {
    const answer *a = context;

    return bits_of(a->out[k]) != bits_of(a->right[k]);
}

bool iron__adaptive_check(const iron__problem *problem, const void *output, char *text,
                          size_t size) {
    answer a = {problem->own, output};
    size_t count = (size_t)problem->c.rows;
    size_t first = iron__data_first(problem->team, count, differs, &a);

    if (first < count)
        snprintf(text, size, "out[%zu] is %.9g, should be %.9g", first, (double)a.out[first],
                 (double)a.right[first]);
    return first == count;
}
